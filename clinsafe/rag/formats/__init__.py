"""Recorded traces of any application as items: our own format, RAGVue, RAGAS, RAGChecker, OpenInference."""

from clinsafe.rag.formats.detection import FORMATS, Format
from clinsafe.rag.formats.reading import Detected, ItemReader, read_items
from clinsafe.rag.trace import BadLine

__all__ = ["FORMATS", "BadLine", "Detected", "Format", "ItemReader", "read_items"]

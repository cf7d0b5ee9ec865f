"""A corpus of any size: JSON Lines, Parquet, folders of text, read document by document and cut into passages.

Nothing here holds more than one document, or one batch of Parquet rows: a corpus may be larger than memory. What is no
document (a broken line, an empty text, an id that was there before) is a `BadRecord`, which never quotes the text.
"""

from clinsafe.corpus.files import corpus_files
from clinsafe.corpus.reading import read_corpus
from clinsafe.corpus.values import BadRecord, Document, Layout, OnBad
from clinsafe.corpus.windows import Window, windows

__all__ = ["BadRecord", "Document", "Layout", "OnBad", "Window", "corpus_files", "read_corpus", "windows"]

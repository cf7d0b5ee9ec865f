"""Passages from a file: JSON Lines, or plain text with an empty line between passages."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import ConfigDict, Field

from clinsafe.content import Record, load_jsonl
from clinsafe.errors import UsageError
from clinsafe.protocols import Passage

LARGEST = 200_000_000  # bytes; more is a corpus, not the passages of one query


class _Row(Record):
    """One line; what else stands in it is left alone."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    id: str = ""
    text: str = Field(min_length=1)


def load_passages(path: Path) -> list[Passage]:
    """The passages of a file, named by their ``id``, else by their position from 1.

    Raises:
        UsageError: no such file, not text, or nothing in it.
        ContentError: a line that is no passage: file, line, field.
    """
    if not path.is_file():
        raise UsageError(
            f"{path}: no such file; passages are JSON Lines or text with an empty line between them"
        )
    if path.stat().st_size > LARGEST:
        raise UsageError(f"{path}: larger than {LARGEST // 1_000_000} MB; give the passages of one query")
    if path.suffix in (".jsonl", ".ndjson"):
        rows = load_jsonl(path, _Row)
        return [Passage(row.id or str(number), row.text) for number, row in enumerate(rows, start=1)]
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path}: not UTF-8 text (byte {error.start}); passages are text or JSON Lines"
        ) from error
    parts = [part.strip() for part in re.split(r"\n[ \t]*\n", text) if part.strip()]
    if not parts:
        raise UsageError(f"{path}: the file is empty; put at least one passage into it")
    return [Passage(str(number), part) for number, part in enumerate(parts, start=1)]

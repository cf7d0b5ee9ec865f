"""Anybody's recorded traces, one item at a time."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from clinsafe.errors import UsageError
from clinsafe.rag.formats.detection import FIELDS, FORMATS, Format, best, likeness
from clinsafe.rag.formats.fields import Fault
from clinsafe.rag.formats.lines import Row, fingerprint, rows
from clinsafe.rag.formats.openinference import SpanBuffer
from clinsafe.rag.formats.own import own_item
from clinsafe.rag.formats.peers import PEERS
from clinsafe.rag.item import Item
from clinsafe.rag.trace import BadLine

LOOKED_AT = 20  # rows by which a file's format is told
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Detected:
    """Which format a file is read as.

    Attributes:
        format: its name.
        asked: whether it was asked for; else it was told from the fields.
        rows: how many rows it was told from.
    """

    format: Format
    asked: bool
    rows: int = 0

    def __str__(self) -> str:
        return (
            f"{self.format} (asked for)"
            if self.asked
            else f"{self.format} (by the fields of {self.rows} rows)"
        )


class ItemReader(Iterator[Item | BadLine]):
    """Items of a file, and `BadLine` for each line that is none; one line in memory at a time.

    Memory grows by the ids alone, about 100 bytes a question.

    Args:
        path: the file; see `read_items`.
        format: a name of `FORMATS`, or ``auto``.

    Attributes:
        detected: the format; None before the first item was asked for, and where no row has known fields.
    """

    def __init__(self, path: Path | str, format: str = "auto") -> None:  # noqa: A002 - the word users know
        self.path = Path(path)
        if format != "auto" and format not in FORMATS:
            raise UsageError(f"no format of traces is called {format!r}; valid: auto, {', '.join(FORMATS)}")
        if not self.path.is_file():
            what = "is not a file" if self.path.exists() else "does not exist"
            raise UsageError(f"{path}: {what}; name a file of traces, for example traces.jsonl")
        asked = None if format == "auto" else cast("Format", format)
        self.detected: Detected | None = None if asked is None else Detected(asked, True)
        self._items = self._once(self._read())

    def __next__(self) -> Item | BadLine:
        return next(self._items)

    def _read(self) -> Iterator[Item | BadLine]:
        stream = rows(self.path)
        ahead: list[Row | BadLine] = []
        if self.detected is None:
            ahead = self._look(stream)
        if self.detected is None:
            yield from (
                one if isinstance(one, BadLine) else _unknown(one) for one in itertools.chain(ahead, stream)
            )
            return
        spans = SpanBuffer() if self.detected.format == "openinference" else None
        for one in itertools.chain(ahead, stream):
            if isinstance(one, BadLine):
                yield one
            elif not self.detected.asked and self.detected.format not in likeness(one.data):
                yield _other(one, self.detected.format)
            elif spans is not None:
                yield from spans.add(one)
            else:
                yield _item(one, self.detected.format)
        if spans is not None:
            yield from spans.rest()

    def _look(self, stream: Iterator[Row | BadLine]) -> list[Row | BadLine]:
        """The first rows; their fields tell the format."""
        ahead: list[Row | BadLine] = []
        looks = []
        for one in stream:
            ahead.append(one)
            if isinstance(one, Row) and (look := likeness(one.data)):
                looks.append(look)
            if len(looks) >= LOOKED_AT or len(ahead) >= 5 * LOOKED_AT or _held(ahead) > 64_000_000:
                break
        name = best(looks)
        if name is not None:
            self.detected = Detected(name, False, len(looks))
            log.info("traces are read as %s", self.detected)
        return ahead

    @staticmethod
    def _once(items: Iterator[Item | BadLine]) -> Iterator[Item | BadLine]:
        seen: set[int] = set()
        for one in items:
            if isinstance(one, BadLine):
                yield one
                continue
            key = fingerprint(one.id)
            if key in seen:
                yield BadLine(one.line, "id", "was given before; an id is one question's")
            else:
                seen.add(key)
                yield one


def read_items(path: Path | str, format: str = "auto") -> ItemReader:  # noqa: A002
    """Read recorded traces of any format.

    JSON Lines, also compressed with gzip, of any length; or one JSON array, or an object with a list ``results``, of at
    most 256 MB. In ``auto`` the fields of the first rows tell the format; a row that cannot be of it is refused. The
    format that is named always wins. Rows without an id get ``line-N``; an id that was there before is refused.

    Args:
        path: the file.
        format: ``clinsafe``, ``ragvue``, ``ragas``, ``ragchecker``, ``openinference`` or ``auto``.

    Raises:
        UsageError: there is no such file or format, or it cannot be read.
    """
    return ItemReader(path, format)


def _held(ahead: list[Row | BadLine]) -> int:
    return sum(one.size for one in ahead if isinstance(one, Row))


def _item(row: Row, name: Format) -> Item | BadLine:
    try:
        return own_item(row.data, row.number) if name == "clinsafe" else PEERS[name](row.data, row.number)
    except Fault as fault:
        return BadLine(row.number, fault.field, fault.why)


def _unknown(row: Row) -> BadLine:
    valid = "; ".join(f"{name}: {fields}" for name, fields in FIELDS.items())
    return BadLine(row.number, "", f"has the fields of no known format; {valid}")


def _other(row: Row, name: Format) -> BadLine:
    other = best([likeness(row.data)])
    what = f"has the fields of {other}" if other else "has the fields of no known format"
    return BadLine(row.number, "", f"{what}; this file is read as {name}, whose fields are {FIELDS[name]}")

"""Reading a corpus: from records to documents, and what is none of them."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from clinsafe.corpus.faults import NOT_TEXT, Fault
from clinsafe.corpus.files import Record, corpus_files, records
from clinsafe.corpus.values import BadRecord, Document, Layout, OnBad
from clinsafe.errors import UsageError

USUAL = Layout()
SMALL = 200  # characters of an extra column that is kept


def read_corpus(path: Path, layout: Layout = USUAL, on_bad: OnBad | None = None) -> Iterator[Document]:
    """The documents of a corpus, in the order of the file; in a folder the files are sorted by their path.

    Args:
        path: a ``.jsonl``, ``.ndjson`` (or either with ``.gz``) or ``.parquet`` file, or a folder of these or of
            text, Markdown, HTML and PDF files, searched to its depths; such a file is one document and its path in
            the folder is the id. Front matter of Markdown and the title of a page become fields.
        layout: which fields are read.
        on_bad: told of each record that is no document; None raises at the first. An id that was there before makes a
            bad record, a missing one becomes ``file:line``.

    Raises:
        UsageError: no such path, another kind of file, not UTF-8, or no document in it.
        ContentError: a bad record, without `on_bad`; a file that breaks off.
        MissingDependency: Parquet without pyarrow, HTML without lxml, PDF without pypdfium2.
    """
    if not layout.text or not all(layout.text):
        raise UsageError("a corpus needs at least one text field; the usual name is text")
    tally = _Tally(on_bad)
    for file, name in corpus_files(path):
        for line, found in records(file, name, layout):
            document = _document(found, f"{name}:{line}", layout)
            if isinstance(document, Document) and tally.seen.before(document.id):
                document = Fault(layout.id, "the id was there before; ids must differ")
            if isinstance(document, Document):
                tally.good += 1
                yield document
            else:
                tally.bad(BadRecord(file, line, document.field, document.message))
    if not tally.good:
        why = f"; none of its {tally.faults} records can be read, the first: {tally.first}"
        raise UsageError(f"{path}: holds no document{why if tally.first else ''}")


@dataclass(slots=True)
class _Tally:
    """What was read so far."""

    on_bad: OnBad | None
    good: int = 0
    faults: int = 0
    first: BadRecord | None = None
    seen: _Seen = field(default_factory=lambda: _Seen())

    def bad(self, record: BadRecord) -> None:
        if self.on_bad is None:
            raise UsageError(str(record)) if record.message == NOT_TEXT else record.error()
        self.faults, self.first = self.faults + 1, self.first or record
        self.on_bad(record)


class _Seen:
    """Which ids were there: 64-bit hashes in one flat table, 13 to 27 bytes an id. Of 10 million ids, two are taken for
    the same with a chance of 3 in a million.
    """

    def __init__(self) -> None:
        self._table, self._count = array("Q", bytes(8 << 10)), 0

    def before(self, name: str) -> bool:
        """Whether this id was there; from now on it was."""
        key = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little") or 1
        if not self._put(key):
            return True
        self._count += 1
        if self._count * 5 > len(self._table) * 3:
            old = self._table
            self._table = array("Q", bytes(16 * len(old)))
            for kept in old:
                if kept:
                    self._put(kept)
        return False

    def _put(self, key: int) -> bool:
        table, mask = self._table, len(self._table) - 1
        at = key & mask
        while table[at]:
            if table[at] == key:
                return False
            at = (at + 1) & mask
        table[at] = key
        return True


def _document(record: Record | Fault, place: str, layout: Layout) -> Document | Fault:
    if isinstance(record, Fault):
        return record
    try:
        name = _name(record, layout.id) or place
        cluster = _name(record, layout.cluster) if layout.cluster else name
        text = "\n\n".join(part for column in layout.text for part in _texts(record, column))
    except _Wrong as wrong:
        return wrong.fault
    if not text:
        return _no_text(record, layout)
    if not cluster:
        return Fault(layout.cluster, "is missing; it names the source of the record")
    for column, value in ((layout.id, name), ("+".join(layout.text), text), (layout.cluster, cluster)):
        if not _is_text(value):
            return Fault(column, "holds half a character (a lone surrogate), which no file can store")
    return Document(name, text, cluster, _small(record, layout))


class _Wrong(Exception):
    """A field of a kind that cannot be used."""

    def __init__(self, column: str, message: str) -> None:
        self.fault = Fault(column, message)
        super().__init__(message)


def _texts(record: Record, column: str) -> list[str]:
    value = record.get(column)
    listed = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(part, str) for part in listed):
        raise _Wrong(column, "must be text or a list of texts")
    return [part for part in listed if part.strip()]


def _name(record: Record, column: str) -> str:
    value = record.get(column)
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise _Wrong(column, "must be text or a whole number")
    return "" if value is None else str(value).strip()


def _no_text(record: Record, layout: Layout) -> Fault:
    column = "+".join(layout.text)
    if any(name in record for name in layout.text):
        return Fault(column, "is empty")
    there = ", ".join(name[:30] for name in list(record)[:8])
    return Fault(column, f"is missing; the record has: {there or 'nothing'}")


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _small(record: Record, layout: Layout) -> dict[str, str]:
    known = {layout.id, layout.cluster, *layout.text}
    plain = {name: str(value) for name, value in record.items() if isinstance(value, str | int | float)}
    return {
        name: value
        for name, value in plain.items()
        if name not in known and 0 < len(value) <= SMALL and _is_text(name + value)
    }

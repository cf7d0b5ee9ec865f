"""Documents cut into chunks of so many tokens, and the chunks of a corpus on disk.

A token owns the characters from its start to the start of the next one, so chunks lose nothing, not even blanks. The
paper's chunks have 1,024 tokens and share 100 with the one before (RAG-X, IV).
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from clinsafe.corpus import Document
from clinsafe.errors import MissingDependency, UsageError

TOKENS, OVERLAP = 1024, 100
WIDEST = (
    256  # characters that one token may own; a word without end counts as several, or a chunk had no limit
)
_PIECE = re.compile(r"\w{1,16}|[^\w\s]")

Offsets: TypeAlias = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a document.

    Attributes:
        id: ``<document>#<n>``, n from 0.
        text: ``document.text[start:end]``.
        start, end: half-open character range in the document's text.
        first: number of its first token in the document, from 0.
        tokens: how many it has.
        document: id of the document.
        fields: the document's.
    """

    id: str
    text: str
    start: int
    end: int
    first: int
    tokens: int
    document: str
    fields: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Tokenizer(Protocol):
    """Cuts a text into tokens."""

    identity: str
    """What exactly cut: chunks of another identity are other chunks."""

    def offsets(self, text: str, /) -> Offsets:
        """Half-open character ranges of the tokens, in order; without special tokens, never cut off."""
        ...


class WordPieces:
    """The tokenizer of who names none: words of up to 16 letters or digits, longer ones in pieces; each sign alone.

    English medical prose has about 1.2 of a BERT vocabulary's tokens for each of these.
    """

    identity = r"regular expression \w{1,16}|[^\w\s]"

    def offsets(self, text: str, /) -> Offsets:
        """See `Tokenizer`."""
        return [match.span() for match in _PIECE.finditer(text)]


class HubTokenizer:
    """A tokenizer of the ``tokenizers`` library: ``tokenizer.json``, or the one inside a transformers tokenizer.

    Args:
        tokenizer: a ``tokenizers.Tokenizer``, a fast transformers tokenizer, or the path of a ``tokenizer.json``. It is
            copied: the copy neither cuts off nor pads.

    Raises:
        MissingDependency: without ``tokenizers``. UsageError: it is none of these.
    """

    def __init__(self, tokenizer: Any) -> None:
        try:
            from tokenizers import Tokenizer as Library
        except ImportError as error:
            raise MissingDependency(
                "chunks of a model's own tokens", "tokenizers", "pip install 'clinsafe[rag]'"
            ) from error
        found = getattr(tokenizer, "backend_tokenizer", tokenizer)
        try:
            made = found.to_str() if isinstance(found, Library) else Path(found).read_text(encoding="utf-8")
            self._tokenizer = Library.from_str(made)
        except Exception as error:  # the library raises a bare Exception at a damaged file
            raise UsageError(
                "tokenizer: give a tokenizer.json, a tokenizers.Tokenizer or a fast transformers tokenizer"
            ) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        digest = hashlib.sha256(self._tokenizer.to_str().encode()).hexdigest()
        self.identity = f"tokenizers sha256:{digest}"

    def offsets(self, text: str, /) -> Offsets:
        """See `Tokenizer`."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).offsets)


def chunks(
    document: Document, tokens: int = TOKENS, overlap: int = OVERLAP, tokenizer: Tokenizer | None = None
) -> Iterator[Chunk]:
    """The chunks of a document: `tokens` tokens each, the last one fewer, `overlap` shared with the one before.

    Args:
        tokenizer: None takes `WordPieces`.

    Raises:
        UsageError: no tokens, or an overlap that leaves nothing new; a tokenizer whose offsets lie outside the text.
    """
    if tokens < 1 or not 0 <= overlap < tokens:
        raise UsageError(
            f"chunks of {tokens} tokens that share {overlap}: tokens is at least 1, overlap less than tokens"
        )
    text, number = document.text, 0
    if not text:
        return
    starts = _starts((tokenizer or WordPieces()).offsets(text), len(text))
    count = len(starts) - 1
    for first in range(0, max(count - overlap, 1), tokens - overlap):
        last = min(first + tokens, count)
        start, end = int(starts[first]), int(starts[last])
        if start < end:  # a character of several tokens may leave one without any of its own
            name = f"{document.id}#{number}"
            yield Chunk(name, text[start:end], start, end, first, last - first, document.id, document.fields)
            number += 1


def _starts(offsets: Offsets, length: int) -> NDArray[np.int64]:
    """Where each token begins, and the end of the text; the first begins at 0, none before the one ahead of it."""
    found = np.fromiter((start for start, _ in offsets), np.int64, len(offsets))
    if found.size and (found.min() < 0 or found.max() > length):
        raise UsageError("the tokenizer gave offsets outside the text; give one whose offsets are characters")
    starts = np.maximum.accumulate(np.concatenate(([0], found[1:], [length])))
    pieces = np.maximum(-(-np.diff(starts) // WIDEST), 1)
    if pieces.max() == 1:
        return starts
    token = np.repeat(np.arange(len(pieces)), pieces)
    part = np.arange(len(token)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    return np.append(starts[token] + part * WIDEST, length)


# ── on disk ────────────────────────────────────────────────────────────────────────────────────

_SCHEMA = """
CREATE TABLE documents (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, fields TEXT NOT NULL);
CREATE TABLE chunks (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, document INTEGER NOT NULL,
  start INTEGER NOT NULL, end INTEGER NOT NULL, first INTEGER NOT NULL, tokens INTEGER NOT NULL);
CREATE TABLE texts (row INTEGER PRIMARY KEY, text TEXT NOT NULL);
"""
_READ = """SELECT c.row, c.id, t.text, c.start, c.end, c.first, c.tokens, d.id, d.fields
FROM chunks c JOIN texts t ON t.row = c.row JOIN documents d ON d.row = c.document WHERE c.row"""
ASKED = 500  # rows in one statement


def write_chunks(file: Path, documents: Iterable[Iterable[Chunk]]) -> int:
    """Write the chunks of a corpus into an SQLite file of their own; how many there were.

    Args:
        file: it must not be there.
        documents: the chunks of one document after the other; memory holds those of one.
    """
    count = 0
    connection = sqlite3.connect(file)
    try:
        connection.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + _SCHEMA
        )  # it is renamed or redone
        with connection:
            for number, found in enumerate(documents):
                rows = list(found)
                if rows:
                    fields = json.dumps(dict(rows[0].fields), ensure_ascii=False, sort_keys=True)
                    connection.execute(
                        "INSERT INTO documents VALUES (?, ?, ?)", (number, rows[0].document, fields)
                    )
                numbered = list(enumerate(rows, start=count))
                connection.executemany(
                    "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?)",
                    [(at, c.id, number, c.start, c.end, c.first, c.tokens) for at, c in numbered],
                )
                connection.executemany(
                    "INSERT INTO texts VALUES (?, ?)", [(at, c.text) for at, c in numbered]
                )
                count += len(rows)
    finally:
        connection.close()
    return count


class ChunkStore:
    """The chunks of a corpus, read as they are asked for. Rows are numbered from 0 in the order of the corpus.

    Args:
        file: as `write_chunks` made it; it is opened read-only; threads may share it.

    Raises:
        UsageError: it is no such file.
    """

    def __init__(self, file: Path) -> None:
        self._mutex = threading.Lock()
        try:
            self._connection = sqlite3.connect(
                f"{file.resolve().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
            )
            (self._count,) = self._connection.execute("SELECT count(*) FROM chunks").fetchone()
        except sqlite3.Error as error:
            raise UsageError(f"{file}: no store of chunks ({error}); build the index anew") from error

    def __len__(self) -> int:
        return int(self._count)

    def get(self, rows: Sequence[int]) -> list[Chunk]:
        """The chunks of these rows, in this order. KeyError: there is no such row."""
        found: dict[int, Chunk] = {}
        for part in _parts(rows):
            asked = f"{_READ} IN ({','.join(map(str, part))})"
            for row, name, text, start, end, first, tokens, document, fields in self._ask(asked):
                found[row] = Chunk(name, text, start, end, first, tokens, document, json.loads(fields))
        return [found[int(row)] for row in rows]

    def ids(self, rows: Sequence[int]) -> list[str]:
        """The ids of these rows, in this order. KeyError: there is no such row."""
        found: dict[int, str] = {}
        for part in _parts(rows):
            asked = f"SELECT row, id FROM chunks WHERE row IN ({','.join(map(str, part))})"  # noqa: S608 - whole numbers
            found.update(self._ask(asked))
        return [found[int(row)] for row in rows]

    def rows(self, ids: Sequence[str]) -> list[int]:
        """The rows of these ids, in this order. KeyError: there is no such id."""
        found = [self._ask("SELECT row FROM chunks WHERE id = ?", name) for name in ids]
        if missing := [name for name, one in zip(ids, found, strict=True) if not one]:
            raise KeyError(missing[0])
        return [int(one[0][0]) for one in found]

    def texts(self, start: int = 0, stop: int | None = None) -> Iterator[str]:
        """The texts from one row to before another, in order; memory holds `ASKED` of them."""
        last = len(self) if stop is None else stop
        for at in range(start, last, ASKED):
            rows = (at, min(at + ASKED, last))
            asked = "SELECT text FROM texts WHERE row >= ? AND row < ? ORDER BY row"
            yield from (text for (text,) in self._ask(asked, *rows))

    def order(self) -> NDArray[np.int32]:
        """(n,), the place of each row when all are sorted by id: what ties are broken by."""
        place = np.empty(len(self), np.int32)
        place[[row for (row,) in self._ask("SELECT row FROM chunks ORDER BY id")]] = np.arange(len(self))
        return place

    def __enter__(self) -> ChunkStore:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _ask(self, statement: str, *values: str | int) -> list[Any]:
        with self._mutex:
            return self._connection.execute(statement, values).fetchall()


def _parts(rows: Sequence[int]) -> Iterator[list[int]]:
    whole = [int(row) for row in rows]
    for at in range(0, len(whole), ASKED):
        yield whole[at : at + ASKED]

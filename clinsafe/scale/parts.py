"""A corpus cut into passages, parts and batches: the same ones in every run, whoever works on them.

A *part* is one output file; a *batch* is what `process` is called with. Both depend on the position of a passage alone,
not on workers or shards, so that all ways of running a job give the same files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clinsafe.content import sha256_file
from clinsafe.corpus import Layout, OnBad, Window, corpus_files, read_corpus, windows
from clinsafe.errors import UsageError

PART, BATCH = 1024, 32  # passages


@dataclass(frozen=True, slots=True)
class Cut:
    """How a corpus becomes passages and parts.

    Attributes:
        layout: which fields are read.
        words, overlap: of a passage, see `clinsafe.corpus.windows`.
        part, batch: passages in an output file, and in a call of `process`.
    """

    layout: Layout = Layout()  # noqa: RUF009 - frozen
    words: int = 200
    overlap: int = 50
    part: int = PART
    batch: int = BATCH

    def __post_init__(self) -> None:
        if self.words < 1 or not 0 <= self.overlap < self.words:
            raise UsageError(f"passages of {self.words} words that share {self.overlap}: "
                             "words is at least 1, overlap less than words")  # fmt: skip
        if not 1 <= self.batch <= self.part:
            raise UsageError(
                f"parts of {self.part} passages in batches of {self.batch}: a batch is 1 to a part's size"
            )

    def settings(self) -> dict[str, Any]:
        """As plain JSON."""
        layout = {"id": self.layout.id, "text": list(self.layout.text), "cluster": self.layout.cluster}
        return {
            "layout": layout,
            "words": self.words,
            "overlap": self.overlap,
            "part": self.part,
            "batch": self.batch,
        }


@dataclass(frozen=True, slots=True)
class Shard:
    """Which parts one of several runs works on: those whose number mod `of` is `index`.

    Attributes:
        index: from 0.
        of: number of shards.
    """

    index: int = 0
    of: int = 1

    @classmethod
    def parse(cls, given: str) -> Shard:
        """``2/8``: the third of eight.

        Raises:
            UsageError: another form, or no shard of that number.
        """
        index, _, of = given.partition("/")
        if not (
            index.isascii() and index.isdecimal() and of.isascii() and of.isdecimal() and int(index) < int(of)
        ):
            raise UsageError(
                f"shard {given!r}: give i/n, i from 0 to n-1 (0/4, 1/4, 2/4 and 3/4 make a whole)"
            )
        return cls(int(index), int(of))

    def has(self, part: int) -> bool:
        """Whether it works on this part."""
        return part % self.of == self.index


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive passages that go into one file; `number` from 0."""

    number: int
    rows: tuple[Window, ...]

    def batches(self, size: int) -> Iterator[tuple[int, Sequence[Window]]]:
        """(position of its first passage in the part, passages)."""
        for start in range(0, len(self.rows), size):
            yield start, self.rows[start : start + size]


def parts(corpus: Path, cut: Cut, on_bad: OnBad) -> Iterator[Part]:
    """The parts of a corpus in their order; one is in memory at a time.

    Raises:
        ClinsafeError: see `clinsafe.corpus.read_corpus`.
    """
    number, rows = 0, []
    for document in read_corpus(corpus, cut.layout, on_bad):
        for window in windows(document, cut.words, cut.overlap):
            rows.append(window)
            if len(rows) == cut.part:
                yield Part(number, tuple(rows))
                number, rows = number + 1, []
    if rows:
        yield Part(number, tuple(rows))


def corpus_identity(corpus: Path, told: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """What a corpus is, without its place: number of files and bytes, and a SHA-256 over names and contents.

    Args:
        corpus: file or folder.
        told: called with (files done, files).

    Raises:
        UsageError: no corpus.
    """
    files, size, digest = corpus_files(corpus), 0, hashlib.sha256()
    for done, (file, name) in enumerate(files, start=1):
        size += file.stat().st_size
        digest.update(f"{name}\0{sha256_file(file)}\n".encode())
        if told:
            told(done, len(files))
    return {"files": len(files), "bytes": size, "sha256": digest.hexdigest()}

"""The two corpora as documents: one text each, the one that the queries' offsets count in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from clinsafe.benchmarks.ordinary import MEDQUAD, PUBMEDQA, rows
from clinsafe.errors import UsageError

Corpus: TypeAlias = Literal["medquad", "pubmedqa"]
Texts: TypeAlias = Mapping[tuple[Corpus, str], str]
"""(corpus, document id) -> its whole text."""

FILES: Mapping[Corpus, str] = {"medquad": MEDQUAD, "pubmedqa": PUBMEDQA}
_TEXT: Mapping[Corpus, Callable[[Mapping[str, Any]], str]] = {
    "medquad": lambda row: str(row["answer"]),
    "pubmedqa": lambda row: " ".join([*row["contexts"], row["long_answer"]]),
}


def load_texts(folder: Path) -> dict[tuple[Corpus, str], str]:
    """All documents of both corpora, in the order of the files.

    Raises:
        UsageError: a file is missing, or a record lacks a field. ContentError: a file is damaged.
    """
    found: dict[tuple[Corpus, str], str] = {}
    for corpus, file in FILES.items():
        for number, row in enumerate(rows(folder / file), start=1):
            try:
                found[corpus, str(row["id"])] = _TEXT[corpus](row)
            except (KeyError, TypeError) as error:
                raise UsageError(
                    f"{folder / file}: record {number} has no usable {error}; it is not the file of that name"
                ) from error
    return found

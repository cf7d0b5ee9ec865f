"""Documents cut into passages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from clinsafe.corpus.values import Document
from clinsafe.errors import UsageError

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Window:
    """A passage of a document.

    Attributes:
        id: ``<document>#<n>``, n from 0.
        text: ``document.text[start:end]``.
        start, end: half-open character range in the document's text.
        document: id of the document.
        cluster: its cluster.
    """

    id: str
    text: str
    start: int
    end: int
    document: str
    cluster: str


def windows(document: Document, words: int = 200, overlap: int = 50) -> Iterator[Window]:
    """The passages of a document: `words` words each, `overlap` of them shared with the one before.

    Raises:
        UsageError: no words, or an overlap that leaves nothing new.
    """
    if words < 1 or not 0 <= overlap < words:
        raise UsageError(
            f"windows of {words} words that share {overlap}: words is at least 1, overlap less than words"
        )
    places = [match.span() for match in _WORD.finditer(document.text)]
    if not places:
        return
    for number, first in enumerate(range(0, max(len(places) - overlap, 1), words - overlap)):
        part = places[first : first + words]
        start, end = part[0][0], part[-1][1]
        yield Window(
            f"{document.id}#{number}", document.text[start:end], start, end, document.id, document.cluster
        )

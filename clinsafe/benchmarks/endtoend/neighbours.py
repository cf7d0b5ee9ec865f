"""A sentence among its neighbours: the two passages of a query, from the same document and with other company.

One passage has what follows the sentence, the other what precedes it; which has which changes from query to query, so
that no retriever gains from where the sentence stands. Where one side of the document is too short, the passage is
filled with what the other one left.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from clinsafe.benchmarks.endtoend.queries import Query
from clinsafe.text.sentences import split

FEWEST, MOST, CUT = 60, 90, 80  # words of a passage: at least, at most, and where a long neighbour is cut


class Pair(NamedTuple):
    """The right passage and the contradicting one."""

    right: str
    wrong: str


def pair_of(query: Query) -> Pair:
    """Both passages of a query; about 60 to 90 words each, fewer where the document has no more."""
    source = query.row.source
    before, after = query.document[: source.start], query.document[source.end :]
    back, ahead = _sentences(before)[::-1], _sentences(after)  # the nearest first
    right_ahead = int(hashlib.sha256(query.row.id.encode()).hexdigest(), 16) % 2 == 0
    right = _passage(query.true, back, ahead, forward=right_ahead)
    wrong = _passage(query.false, back, ahead, forward=not right_ahead)
    return Pair(right, wrong)


def _sentences(text: str) -> list[str]:
    return [text[piece.start : piece.end].strip() for piece in split(text)]


def _passage(sentence: str, back: Sequence[str], ahead: Sequence[str], *, forward: bool) -> str:
    """The sentence with neighbours of one side, and of the far end of the other where those are too few."""
    own, far = (ahead, back) if forward else (back, ahead)
    taken = _take(own, _words(sentence), from_end=not forward)
    total = _words(sentence) + sum(map(_words, taken))
    spare = _take(far[::-1], total, from_end=not forward) if total < FEWEST else []
    if forward:
        # spare comes from the beginning of the document, its first sentence first
        return " ".join([*spare, sentence.strip(), *taken])
    return " ".join([*reversed(taken), sentence.strip(), *reversed(spare)])


def _take(sentences: Sequence[str], words: int, *, from_end: bool) -> list[str]:
    """Neighbours, in the order given, until the passage has about as many words as it may."""
    taken: list[str] = []
    for one in sentences:
        if words >= FEWEST:
            break
        if words + _words(one) > MOST:
            taken.append(_cut(one, CUT - words, from_end=from_end))
            break
        taken.append(one)
        words += _words(one)
    return taken


def _cut(text: str, words: int, *, from_end: bool) -> str:
    parts = text.split()
    return " ".join(parts[-words:] if from_end else parts[:words])


def _words(text: str) -> int:
    return len(text.split())

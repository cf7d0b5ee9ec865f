"""Which shares speak of the same thing, and whether both can be true."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from clinsafe.mitigations.quantity_words.interval import apart
from clinsafe.mitigations.quantity_words.matter import (
    THIN,
    graded_none,
    same_count,
    same_matter,
    swapped,
    traded,
    turned_round,
)
from clinsafe.mitigations.quantity_words.sides import (
    LEAST,
    Nearness,
    Side,
    bounded,
    candidates,
    minor_keys,
    side_of,
)
from clinsafe.protocols import Fact, Finding, Severity

_CONTAINED = (
    0.75,
    0.6,
)  # share of the smaller statement found in the other: sentences apart, sentences close
_OVERLAP = (0.3, 0.12)  # of both together
_FAMILY = 0.05  # all/few beside always/rarely: like prefers like
_TIE = 0.06
_SHORT_OVERLAP = 0.35  # where one of two sentences says nothing but this
_WEAK_OVERLAP = 0.5  # a bare "no" must speak of very nearly the same thing
_SWAP_SCORE, _SWAP_GAP = 0.5, 0.5
_NO_GAP = 1e-9
_COUNT_SCORE = 0.7
_GROSS = 0.8


class Pair(NamedTuple):
    """Two facts on one matter; `gap` > 0 where both cannot be true."""

    score: float
    gap: float
    query: Fact
    passage: Fact
    turned: bool


def compare(query: Sequence[Fact], passage: Sequence[Fact], light: frozenset[str]) -> Iterator[Finding]:
    """Findings between two texts, at most one for each query fact, best aligned first; `light` keys weigh little.

    Where a text has too many different shares, a note at the end says how many were not compared.
    """
    (query, left_q), (passage, left_p) = bounded(query), bounded(passage)
    mine = [side_of(fact) for fact in query if not fact.normal["asked"]]
    near = Nearness()
    minor = minor_keys(query), minor_keys(passage)
    pairs = [
        pair
        for one, other, shared in candidates(mine, passage, light)
        if (pair := _pair(one, other, shared, near, minor, light))
    ]
    pairs.sort(key=lambda pair: -pair.score)
    agreed: dict[int, float] = {}
    for pair in pairs:
        if pair.gap <= _NO_GAP:
            agreed.setdefault(id(pair.query), pair.score)
            agreed.setdefault(id(pair.passage), pair.score)
    done: set[int] = set()
    for pair in pairs:
        best = max(agreed.get(id(pair.query), 0.0), agreed.get(id(pair.passage), 0.0))
        if id(pair.query) in done or (pair.gap > _NO_GAP and best >= pair.score - _TIE):
            continue
        done.add(id(pair.query))
        yield _finding(pair)
    if left_q and passage:
        yield _left_out("query", left_q, left_q[0], passage[0])
    if left_p and query:
        yield _left_out("passage", left_p, query[0], left_p[0])


def _pair(
    one: Side,
    other: Side,
    both: float,
    near: Nearness,
    minor: tuple[frozenset[str], frozenset[str]],
    light: frozenset[str],
) -> Pair | None:
    if both < 0:
        return Pair(_SWAP_SCORE, _SWAP_GAP, one.fact, other.fact, False) if swapped(one, other) else None
    if one.noun or other.noun:
        return _counts(one, other, light) if one.noun and other.noun else None
    first, second = one.mass, other.mass
    if one.whole and one.whole == other.whole:
        both, first, second = both + 1.0, first + 1.0, second + 1.0  # shares of sets of one size
    smaller = min(first, second) or 1.0
    contained, overlap = both / smaller, both / max(first + second - both, smaller)
    shared = one.scope & other.scope
    if shared <= one.head & other.head and one.mass and other.mass:
        return None  # one heading over two matters
    turned = turned_round(one, other, shared)
    brief = (one.short or other.short) and overlap >= _SHORT_OVERLAP

    def close() -> bool:
        return brief or near(one, other)

    if not _aligned(
        contained,
        overlap,
        one.bare or other.bare,
        turned,
        max(smaller, both),
        close,
    ):
        return None
    if turned and graded_none(one, other, shared):
        return None
    gap = apart(one.interval.turned() if turned else one.interval, other.interval)
    if gap > _NO_GAP and not turned and not same_matter(one, other, shared, light):
        return None
    if gap <= _NO_GAP and not turned and traded(one, other, shared, minor, light):
        gap = _SWAP_GAP
    score = (contained + overlap) / 2 + (_FAMILY if one.family == other.family else 0.0)
    return Pair(score, gap, one.fact, other.fact, turned)


def _counts(one: Side, other: Side, light: frozenset[str]) -> Pair | None:
    """Two bounds on a count."""
    if not same_count(one, other, light):
        return None
    return Pair(_COUNT_SCORE, apart(one.interval, other.interval), one.fact, other.fact, False)


def _aligned(
    contained: float, overlap: float, weak: bool, turned: bool, smaller: float, near: Callable[[], bool]
) -> bool:
    """Whether two statements share enough; `near` is asked only where the sentences around them decide."""
    least = LEAST if turned else _CONTAINED[True]
    if contained < least or overlap < (_WEAK_OVERLAP if weak else _OVERLAP[True]):
        return False
    alone = contained >= (LEAST if turned else _CONTAINED[False]) and overlap >= _OVERLAP[False]
    return (alone and smaller > THIN) or near()


def _finding(pair: Pair) -> Finding:
    conflict = pair.gap > _NO_GAP
    query, passage = pair.query, pair.passage
    asked, said = query.normal["share"], passage.normal["share"]
    severity: Severity = "note"
    sentence = "Both texts give shares that can be true together."
    if conflict:
        severity = "high" if pair.gap >= _GROSS / 2 else "moderate"
        opposite = " in words of opposite meaning" if pair.turned else ""
        sentence = (
            f'The query says "{query.cue}" ({asked}) of "{query.normal["about"]}"; the passage says '
            f'"{passage.cue}" ({said}) of "{passage.normal["about"]}"{opposite}: both cannot be true.'
        )
    return Finding(
        "quantifier",
        "conflict" if conflict else "compatible",
        "contradiction",
        severity,
        round(min(0.99, pair.score), 2),
        query.span,
        passage.span,
        f"{query.normal['about']}: {asked}",
        f"{passage.normal['about']}: {said}",
        passage.cue,
        passage.rule,
        sentence,
    )


def _left_out(side: str, left: Sequence[Fact], query: Fact, passage: Fact) -> Finding:
    return Finding(
        "quantifier",
        "not_comparable",
        "contradiction",
        "note",
        0.5,
        query.span,
        passage.span,
        query.normal["share"],
        passage.normal["share"],
        left[0].cue,
        "left_out",
        f'The {side} states too many different shares: {len(left)} of them, from "{left[0].cue}" on, '
        "were not compared.",
    )

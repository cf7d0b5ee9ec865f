"""Bounds on the work of a filter. What lies beyond a bound is never taken for compatible: the pair is *unchecked*."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from math import isqrt

from clinsafe.protocols import Fact, Finding, Span

MOST_PAIRS = 20_000  # pairs of facts of two texts; a query of 20 facts meets 1,000 of a passage
UNREAD = "unread"
"""Rule of a fact that stands for a part of a text that was not read to its end."""


class TooMuchToCompare(RuntimeError):
    """Two texts hold more than is read or compared, and what was compared does not conflict.

    Raised by a filter's `compare`; the stack then calls the pair unchecked.
    """


def unread(hazard: str, span: Span, keys: frozenset[str]) -> Fact:
    """The fact that something about these keys was left unread; ``keys`` must not be empty."""
    return Fact(hazard, span, {"type": UNREAD, "keys": keys}, "", UNREAD)


def within_bounds(
    query: Iterable[Fact],
    passage: Iterable[Fact],
    compare: Callable[[Sequence[Fact], Sequence[Fact]], list[Finding]],
) -> list[Finding]:
    """What `compare` finds between two texts, asked for at most `MOST_PAIRS` pairs of their facts.

    Raises:
        TooMuchToCompare: no conflict was found, and facts were left out or an unread part shares a key with the other
            side. A conflict stands whatever else the texts say: the pair is unsafe already.
    """
    ours, theirs = _distinct(query), _distinct(passage)
    read, read_there = _read(ours), _read(theirs)
    first, second = bounded(read, read_there)
    left = len(first) < len(read) or len(second) < len(read_there)
    left = left or _meets_unread(ours, theirs) or _meets_unread(theirs, ours)
    found = compare(first, second)
    if left and not any(finding.verdict == "conflict" for finding in found):
        raise TooMuchToCompare
    return found


def bounded(query: Sequence[Fact], passage: Sequence[Fact]) -> tuple[Sequence[Fact], Sequence[Fact]]:
    """Both sides, cut so that at most `MOST_PAIRS` pairs are left. Symmetric.

    Where there are too many, the longer side loses its last facts, down to the length of the shorter one; then both do.
    """
    if len(query) * len(passage) <= MOST_PAIRS:
        return query, passage
    shorter = min(len(query), len(passage), isqrt(MOST_PAIRS))
    longest = MOST_PAIRS // shorter
    return query[:longest], passage[:longest]


def _distinct(facts: Iterable[Fact]) -> list[Fact]:
    """Of facts with equal normal forms and rules the first."""
    kept: list[Fact] = []
    alike: dict[object, Fact] = {}  # most facts differ in their keys already, which are quicker to look up
    met: set[object] = set()
    for fact in facts:
        first = alike.setdefault((fact.rule, fact.normal.get("keys")), fact)
        if first is not fact:
            met.add(_whole(first))
            whole = _whole(fact)
            if whole in met:
                continue
            met.add(whole)
        kept.append(fact)
    return kept


def _whole(fact: Fact) -> object:
    return fact.rule, frozenset(fact.normal.items())


def _read(facts: Sequence[Fact]) -> list[Fact]:
    return [fact for fact in facts if fact.rule != UNREAD]


def _meets_unread(facts: Sequence[Fact], others: Sequence[Fact]) -> bool:
    """Whether an unread part of one side shares a key with anything on the other."""
    keys = frozenset(chain.from_iterable(fact.normal["keys"] for fact in facts if fact.rule == UNREAD))
    return bool(keys) and any(not keys.isdisjoint(other.normal["keys"]) for other in others)

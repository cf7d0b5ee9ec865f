"""What is compared of a fact, and which pairs of two texts may speak of one thing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from clinsafe.mitigations import align
from clinsafe.mitigations.quantity_words.interval import Interval
from clinsafe.protocols import Fact

CHIEF = 0.5  # a share above it is the larger one of its set
LEAST = 0.55  # share of the smaller statement that must be found in the other
_CLOSE = 0.3  # overlap of two whole sentences that speak of one thing; less is asked of their parts then
_LIGHT_WEIGHT = 0.3
_NO_GAP = 1e-9
_MANY, _MOST = 100, 300  # facts of one text


class Side(NamedTuple):
    """What is compared of a fact; all but the fact itself is the same in two equal ones."""

    fact: Fact
    scope: frozenset[str]
    minus: frozenset[str]
    sentence: frozenset[str]
    mass: float
    whole: float
    weak: bool
    bare: bool
    family: str
    interval: Interval
    short: bool
    head: frozenset[str]
    noun: str = ""
    turned: bool = False


def side_of(fact: Fact) -> Side:
    """The side of a fact that is compared."""
    normal = fact.normal
    return Side(
        fact,
        normal["scope_keys"],
        normal["minus_keys"],
        normal["sentence_keys"],
        normal["mass"],
        normal["whole"],
        normal["weak"],
        normal["bare"],
        normal["family"],
        Interval(normal["low"], normal["high"], normal["point"], normal["vague"]),
        normal["short"],
        normal["head_keys"],
        normal.get("noun", ""),
        normal.get("turned", False),
    )


def bounded(facts: Sequence[Fact]) -> tuple[Sequence[Fact], Sequence[Fact]]:
    """(one of each where a long text says the same over and over, what is left out so that time stays bounded)."""
    if len(facts) <= _MANY:
        return facts, ()
    seen: dict[tuple[Any, ...], Fact] = {}
    for fact in facts:
        if not fact.normal["asked"]:
            seen.setdefault(side_of(fact)[1:], fact)
    kept = list(seen.values())
    return kept[:_MOST], kept[_MOST:]


def candidates(
    mine: Sequence[Side], passage: Sequence[Fact], light: frozenset[str]
) -> Iterator[tuple[Side, Side, float]]:
    """Pairs that may speak of one thing, with the weight of what they share: one look-up for each shared key.

    The weight is -1 for two that share nothing, each of which lies within the other's sentence.
    """
    holders: dict[str, list[int]] = {}
    for place, side in enumerate(mine):
        for key in side.scope:
            holders.setdefault(key, []).append(place)
    wanted = frozenset(holders)
    weights = {key: _weight(key, light) for key in wanted}
    bounds = [LEAST * side.mass - _NO_GAP for side in mine]
    chief = [side for side in mine if side.interval.low > CHIEF and side.family == "det"]
    for fact in passage:
        normal = fact.normal
        if normal["asked"] or wanted.isdisjoint(normal["keys"]):
            continue
        other = None
        hits = wanted & normal["scope_keys"]
        if hits:
            bound, size = LEAST * normal["mass"] - _NO_GAP, normal["whole"]
            for place, both in _shared(hits, holders, weights).items():
                # a set of one size adds 1 to both sides; never less than what that asks is let through
                if both >= bound or both >= bounds[place] or (size and size == mine[place].whole):
                    other = other or side_of(fact)
                    yield mine[place], other, both
        if chief and normal["low"] > CHIEF and normal["family"] == "det":
            other = other or side_of(fact)
            yield from ((one, other, -1.0) for one in chief if _within(one, other))


def _shared(
    keys: frozenset[str], holders: Mapping[str, Sequence[int]], weights: Mapping[str, float]
) -> dict[int, float]:
    """The weight shared with each holder of any of these keys."""
    shared: dict[int, list[float]] = {}
    for key in keys:
        weight = weights[key]
        for place in holders[key]:
            shared.setdefault(place, []).append(weight)
    return {place: math.fsum(shared[place]) for place in sorted(shared)}


def _within(one: Side, other: Side) -> bool:
    first, second = one.scope - one.head, other.scope - other.head
    return first.isdisjoint(second) and first <= other.sentence and second <= one.sentence


def minor_keys(facts: Sequence[Fact]) -> frozenset[str]:
    """Keys of what a text gives the smaller share."""
    return frozenset().union(
        *(f.normal["scope_keys"] for f in facts if f.normal["high"] < CHIEF and "noun" not in f.normal)
    )


class Nearness:
    """Whether two sentences speak of one thing; each pair of sentences is weighed once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], bool] = {}

    def __call__(self, one: Side, other: Side) -> bool:
        """Whether their overlap is at least `_CLOSE`."""
        place = id(one.sentence), id(other.sentence)
        if place not in self._known:
            self._known[place] = one.sentence == other.sentence or (
                align.overlap(one.sentence, other.sentence) >= _CLOSE
            )
        return self._known[place]


def mass(keys: frozenset[str], light: frozenset[str]) -> float:
    """Total weight of keys, the same in whatever order a set gives them: how much it says that two share them."""
    return math.fsum([_weight(key, light) for key in keys])


@lru_cache(maxsize=32768)
def _weight(key: str, light: frozenset[str]) -> float:
    return _LIGHT_WEIGHT if key in light else align.weight(key.removeprefix("="))

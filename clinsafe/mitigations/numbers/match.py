"""Which facts of two texts disagree: among those that nothing settled, the best aligned pairs of one sort."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from clinsafe.mitigations.numbers.aligning import align, unit_swap
from clinsafe.mitigations.numbers.equal import relation
from clinsafe.mitigations.numbers.pairs import Index, Pair, index_of, names_of
from clinsafe.mitigations.numbers.settle import agreements
from clinsafe.protocols import Fact

_MANY, _MOST = 150, 400  # facts of one text
_VALUE = ("forms", "sign", "subject", "role", "quality_keys", "hours", "release")  # what a value is known by
_ADDED = frozenset(["time", "volume", "mass", "length", "units"])  # dimensions whose parts are given apart


@dataclass(frozen=True, slots=True)
class Matched:
    """What agrees, what conflicts, and the facts of either text that were left out, where it has too many."""

    agreed: list[Pair]
    conflicts: list[Pair]
    left_out: tuple[Sequence[Fact], Sequence[Fact]] = ((), ())


def match(query: Sequence[Fact], passage: Sequence[Fact], critical: Callable[[str], bool]) -> Matched:
    """Align the facts of two texts.

    Args:
        critical: whether the same total on another schedule is not the same for this drug.
    """
    sums = _sums(query), _sums(passage)
    (query, left_q), (passage, left_p) = _bounded(query), _bounded(passage)
    index = index_of(passage, {name for fact in query for name in names_of(fact.normal)})
    agreed, other_schedule, settled = agreements(query, passage, index, critical)
    open_q = [fact for fact in query if id(fact) not in settled]
    conflicts: list[Pair] = []
    if open_q:
        left = [
            pair
            for pair in other_schedule
            if id(pair.query) not in settled and id(pair.passage) not in settled
        ]
        left += _disagreements(open_q, index, settled)
        scored = [
            replace(pair, score=score)
            for pair in left
            if not _summed(pair, *sums) and (score := align(pair)) > 0
        ]
        conflicts = _once(_best(_without_covered(scored, agreed)))
    return Matched(agreed, conflicts, (left_q, left_p))


def _bounded(facts: Sequence[Fact]) -> tuple[Sequence[Fact], Sequence[Fact]]:
    """(one of each, what is left out): a chart says the same over and over, and time must stay bounded.

    Of facts that are equal in all but their place the first stays; in a long text one of each value of each subject.
    """
    kept = _first(facts, lambda normal: tuple(normal.values()))
    if len(kept) > _MANY:
        kept = _first(kept, lambda normal: tuple(normal[name] for name in _VALUE))
    return kept[:_MOST], kept[_MOST:]


def _first(facts: Sequence[Fact], what: Callable[[Any], tuple[Any, ...]]) -> list[Fact]:
    seen: dict[tuple[Any, ...], Fact] = {}
    for fact in facts:
        seen.setdefault(what(fact.normal), fact)
    return list(seen.values())


def _sums(facts: Sequence[Fact]) -> set[tuple[str, str, float]]:
    """(role, dimension, sum) of neighbouring values of one text: 500 mL and another 300 mL are 800 mL."""
    found: set[tuple[str, str, float]] = set()
    for fact, following in pairwise(facts):
        one, two = fact.normal, following.normal
        if one["role"] != two["role"] or not one["forms"] or not two["forms"] or one["sign"] or two["sign"]:
            continue
        form, second = one["forms"][0], two["forms"][0]
        if form[0] == second[0] and form[0] in _ADDED:
            found.add((one["role"], form[0], round(form[1] + second[1], 6)))
    return found


def _summed(pair: Pair, *sums: set[tuple[str, str, float]]) -> bool:
    """Whether one text gives the sum of what the other gives in parts."""
    form, second = pair.forms
    if form is None or second is None or pair.why != "value":
        return False
    role = pair.query.normal["role"]
    return (role, second[0], round(second[1], 6)) in sums[0] or (role, form[0], round(form[1], 6)) in sums[1]


def _disagreements(query: Sequence[Fact], index: Index, settled: set[int]) -> list[Pair]:
    """All pairs of facts that share a dimension and differ, or share a number and not the unit."""
    found: list[Pair] = []
    for fact in query:
        one: Any = fact.normal
        own = one["subject_keys"]
        for other_fact in _comparable(one, index, settled):
            other: Any = other_fact.normal
            if own and other["subject"] and own.isdisjoint(other["subject_keys"]):
                continue
            how, form, second = relation(one, other)
            if how in ("different", "reversed"):
                found.append(
                    Pair(fact, other_fact, 0.0, "limit" if how == "reversed" else "value", (form, second))
                )
            elif how == "apart" and unit_swap(one, other):
                found.append(Pair(fact, other_fact, 0.0, "unit", (one["forms"][0], other["forms"][0])))
    return found


def _comparable(one: Any, index: Index, settled: set[int]) -> list[Fact]:
    """Open facts of one dimension, one printed number or one subject."""
    found = {id(row[2]): row[2] for name in names_of(one) for row in index.get(name, ())}
    return [fact for key, fact in found.items() if key not in settled]


def _without_covered(scored: Sequence[Pair], agreed: Sequence[Pair]) -> list[Pair]:
    """A schedule that belongs to a dose whose daily total agrees is no conflict of its own."""
    totals = [
        pair
        for pair in agreed
        if pair.forms[0] and pair.forms[0][0].endswith("/time") and pair.query.normal["role"] == "dose"
    ]
    if not totals:
        return list(scored)
    hours_q = {pair.query.normal["hours"] for pair in totals}
    hours_p = {pair.passage.normal["hours"] for pair in totals}
    return [
        pair
        for pair in scored
        if pair.query.normal["role"] != "interval"
        or (pair.query.normal["hours"] not in hours_q and pair.passage.normal["hours"] not in hours_p)
    ]


def _best(scored: Sequence[Pair]) -> list[Pair]:
    """One to one, best first; ties by place, so that the order of the texts does not matter."""
    used: set[int] = set()
    found = []
    for pair in sorted(
        scored, key=lambda pair: (-round(pair.score, 6), pair.query.span.start + pair.passage.span.start)
    ):
        if id(pair.query) in used or id(pair.passage) in used:
            continue
        used |= {id(pair.query), id(pair.passage)}
        found.append(pair)
    return found


def _once(pairs: list[Pair]) -> list[Pair]:
    """A schedule that a dose already disagrees on is not told twice."""
    told = {
        (pair.query.normal["hours"], pair.passage.normal["hours"]) for pair in pairs if pair.why == "schedule"
    }
    return [
        pair
        for pair in pairs
        if pair.query.normal["role"] != "interval"
        or (pair.query.normal["hours"], pair.passage.normal["hours"]) not in told
    ]

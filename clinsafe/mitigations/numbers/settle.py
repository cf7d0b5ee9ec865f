"""What two texts agree on. Settled first, so that a number which both give never takes part in a conflict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clinsafe.mitigations.numbers.aligning import clash, denied
from clinsafe.mitigations.numbers.equal import close, forms_relation, relation
from clinsafe.mitigations.numbers.pairs import Index, Pair
from clinsafe.protocols import Fact

_DAILY_RATIO = 2.0
ROUGH, _SLACK = 0.1, 0.15  # wider than any tolerance of `equal`: what it lets through is looked at there
_TARGET = "aim:target"  # a value inside a target is no statement of the target


def agreements(
    query: Sequence[Fact], passage: Sequence[Fact], index: Index, critical: frozenset[str]
) -> tuple[list[Pair], list[Pair], set[int]]:
    """(what agrees, what agrees only in its daily total where that is not enough, ids of all that agree).

    Equal values settle first; a value inside a range or a limit settles only what no equal value has settled.
    """
    exact: list[Pair] = []
    inside: list[Pair] = []
    other_schedule: list[Pair] = []
    owned_q, owned_p = _owned(query), _owned(passage)
    for fact in query:
        one: Any = fact.normal
        for other_fact in _near(one, index):
            other: Any = other_fact.normal
            found, form, second = relation(one, other)
            if (
                found != "same"
                or denied(one) != denied(other)
                or _mistaken(one, other, owned_q, owned_p, form)
                or _by_chance(one, other, passage)
                or _by_chance(other, one, query)
            ):
                continue
            pair = _total(fact, other_fact, form, second, critical)
            if pair.why:
                other_schedule.append(pair)
            elif _equal(pair):
                exact.append(pair)
            elif (_TARGET in one["quality_keys"]) == (_TARGET in other["quality_keys"]):
                inside.append(pair)
    settled = {id(fact) for pair in exact for fact in (pair.query, pair.passage)}
    loose = [pair for pair in inside if id(pair.query) not in settled and id(pair.passage) not in settled]
    settled |= {id(fact) for pair in loose for fact in (pair.query, pair.passage)}
    return exact + loose, other_schedule, settled


def _equal(pair: Pair) -> bool:
    form, second = pair.forms
    if form is None or second is None:
        return True
    return (form[1] == form[2]) == (second[1] == second[2]) and (
        pair.query.normal["sign"] == pair.passage.normal["sign"]
        or close(form[1], second[1], ROUGH * abs(form[1]))
    )


def _owned(facts: Sequence[Fact]) -> set[tuple[str, str]]:
    """(subject, dimension) of what firmly belongs to a subject."""
    return {
        (fact.normal["subject"], fact.normal["forms"][0][0])
        for fact in facts
        if fact.normal["firm"] and fact.normal["subject"] and fact.normal["forms"]
    }


def _near(one: Mapping[str, Any], index: Index) -> list[Fact]:
    """Facts that may state the same: about equal in one dimension, or bare numbers that read alike."""
    found: dict[int, Fact] = {}
    for form in one["forms"]:
        low, high = form[1], form[2]
        wide = bool(one["sign"]) or low != high
        slack = ROUGH * abs(low) + _SLACK
        for low2, _, wide2, fact in index.get(form[0], ()):
            if wide or wide2 or -slack <= low - low2 <= slack:
                found[id(fact)] = fact
    for row in index.get(one["raw_name"], ()):
        found[id(row[3])] = row[3]
    return list(found.values())


def _mistaken(
    one: Any, other: Any, owned_q: set[tuple[str, str]], owned_p: set[tuple[str, str]], form: Any
) -> bool:
    """Equal numbers of two different drugs, where the other text gives each drug its own number."""
    if not one["subject"] or not other["subject"] or one["subject_keys"] & other["subject_keys"]:
        return False
    if not (one["firm"] and other["firm"]):
        return False
    dim = form[0] if form else ""
    return (one["subject"], dim) in owned_p or (other["subject"], dim) in owned_q


def _by_chance(one: Any, other: Any, others: Sequence[Fact]) -> bool:
    """A course of 3 days beside "for 7 days; recheck after 3 days": only another span of its text is of its sort.

    Args:
        others: facts of the text of `other`.
    """
    if one["role"] != "span" or other["role"] != "span" or one["relation"] != "length":
        return False
    if not other["checks"] or other["relation"] != "offset" or one["near_keys"] & other["near_keys"]:
        return False
    return any(
        fact.normal["role"] == "span"
        and fact.normal["relation"] == "length"
        and not one["near_keys"].isdisjoint(fact.normal["near_keys"])
        for fact in others
    )


def _other_schedule(one: Any, two: Any, form: Any) -> bool:
    """One amount of one drug, each with its schedule beside it, and the schedules differ."""
    if not (one["close"] and two["close"]) or form is None or form[0].endswith("/time"):
        return False
    if one["subject_keys"].isdisjoint(two["subject_keys"]):
        return False
    if not (one["hours"] and two["hours"]):
        return False  # an ambiguous schedule ("OD") has no hours
    times = [("interval", *each["hours"], "hour", 0.0, 1) for each in (one, two)]
    return forms_relation(times[0], times[1], "", "") == "different"


def _total(fact: Fact, other: Fact, form: Any, second: Any, critical: frozenset[str]) -> Pair:
    """Agreement, unless only the daily total agrees and the schedules may not be exchanged (decision D4)."""
    one, two = fact.normal, other.normal
    if _other_schedule(one, two, form):
        return Pair(fact, other, 1.0, "schedule", (form, second))
    totals = form and second and form[3] == "total" and second[3] == "total"
    if not totals or one["loose"] or two["loose"]:
        return Pair(fact, other, 1.0, "", (form, second))
    amounts = sorted((one["forms"][0][1], two["forms"][0][1]))
    equal = amounts[0] > 0 and amounts[1] / amounts[0] <= 1.01
    exchange = (
        max(one["hours"][1], two["hours"][1]) <= 24.5
        and amounts[0] > 0
        and amounts[1] / amounts[0] <= _DAILY_RATIO + 0.01
        and one["subject"] not in critical
        and two["subject"] not in critical
        and not clash(one["quality_keys"], two["quality_keys"])
    )
    return Pair(fact, other, 1.0, "" if equal or exchange else "schedule", (form, second))

"""What two texts agree on. Settled first, so that a number which both give never takes part in a conflict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clinsafe.mitigations.numbers.aligning import clash, denied
from clinsafe.mitigations.numbers.equal import close, forms_relation, relation
from clinsafe.mitigations.numbers.pairs import Index, Pair
from clinsafe.protocols import Fact

_DAILY_RATIO, _EQUAL = 2.01, 1.01  # of single doses, with rounding
_DAY = 24.0 + 1e-6  # hours
ROUGH, _SLACK = 0.1, 0.15  # wider than any tolerance of `equal`: what it lets through is looked at there
_TARGET = "aim:target"  # a value inside a target is no statement of the target


def agreements(
    query: Sequence[Fact], passage: Sequence[Fact], index: Index, critical: Callable[[str], bool]
) -> tuple[list[Pair], list[Pair], set[int]]:
    """(what agrees, what agrees only in its daily total where that is not enough, ids of all that agree).

    Equal values settle first; a value inside a range or a limit settles only what no equal value has settled.
    """
    exact: list[Pair] = []
    inside: list[Pair] = []
    other_schedule: list[Pair] = []
    owned_q, owned_p = _owned(query), _owned(passage)
    lengths_q, lengths_p = _lengths(query), _lengths(passage)
    for fact in query:
        one: Any = fact.normal
        for other_fact in _near(one, index):
            other: Any = other_fact.normal
            found, form, second = relation(one, other)
            if (
                found != "same"
                or denied(one) != denied(other)
                or _mistaken(one, other, owned_q, owned_p, form)
                or _by_chance(one, other, lengths_p)
                or _by_chance(other, one, lengths_q)
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
        slack = ROUGH * abs(low) + _SLACK + form[4]
        for low2, wide2, fact, half in index.get(form[0], ()):
            if wide or wide2 or abs(low - low2) <= slack + half:
                found[id(fact)] = fact
    for row in index.get(one["raw_name"], ()):
        found[id(row[2])] = row[2]
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


def _lengths(facts: Sequence[Fact]) -> list[frozenset[str]]:
    """The words near each span that is a length, each set of them once."""
    return list(
        {
            fact.normal["near_keys"]: None
            for fact in facts
            if fact.normal["role"] == "span" and fact.normal["relation"] == "length"
        }
    )


def _by_chance(one: Any, other: Any, lengths: Sequence[frozenset[str]]) -> bool:
    """A course of 3 days beside "for 7 days; recheck after 3 days": only another span of its text is of its sort.

    Args:
        lengths: the words near the spans of the text of `other`.
    """
    if one["role"] != "span" or other["role"] != "span" or one["relation"] != "length":
        return False
    if not other["checks"] or other["relation"] != "offset" or one["near_keys"] & other["near_keys"]:
        return False
    return any(not one["near_keys"].isdisjoint(near) for near in lengths)


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


def _total(fact: Fact, other: Fact, form: Any, second: Any, critical: Callable[[str], bool]) -> Pair:
    """Agreement, unless only the daily total agrees and the schedules may not be exchanged (decision D4)."""
    one, two = fact.normal, other.normal
    other_schedule = _other_schedule(one, two, form) or (
        form is not None and second is not None and _only_total(one, two, form, second, critical)
    )
    return Pair(fact, other, 1.0, "schedule" if other_schedule else "", (form, second))


def _only_total(one: Any, two: Any, form: Any, second: Any, critical: Callable[[str], bool]) -> bool:
    """Whether the two agree in their total only, and may not be exchanged.

    A rate ("105 mg per week") has no single dose: of it only the time it counts in is looked at, and for a critical
    drug whether it may be one dose a day ("80 mg every day"). "2 g in 24 h" is a total, however it is given.
    """
    if not form[0].endswith("/time") or "dose" not in (one["role"], two["role"]):
        return False
    hours = [max(each["hours"], default=each["rate"]) for each in (one, two)]
    if not all(hours) or hours[0] == hours[1]:
        return False
    if not (form[3] == "total" and second[3] == "total"):
        daily = (form[3].endswith("/day") and second[3] == "total") or (
            second[3].endswith("/day") and form[3] == "total"
        )
        strict = daily and (critical(one["subject"]) or critical(two["subject"]))
        return (one["drug"] or two["drug"]) and (max(hours) > _DAY or strict)
    amounts = sorted((one["forms"][0][1], two["forms"][0][1]))
    if amounts[1] <= amounts[0] * _EQUAL:
        return False
    return (
        max(hours) > _DAY
        or amounts[1] > _DAILY_RATIO * amounts[0]
        or critical(one["subject"])
        or critical(two["subject"])
        or one["release"] != two["release"]
        or clash(one["quality_keys"], two["quality_keys"])
    )

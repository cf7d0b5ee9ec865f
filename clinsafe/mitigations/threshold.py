"""A question for a limit ("is the potassium above 5.5?") against the value that a passage gives, by arithmetic."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from clinsafe.guarded import Stance
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.topic import Lines, bare, covered, heavy
from clinsafe.mitigations.wording import Passage, Worded
from clinsafe.protocols import Fact, Finding

_SIGNS = ("<", "<=", ">", ">=")
_FORMER = ("change:from", "time:past")
_TIMES = re.compile(
    r"\b(?:yesterday|today|now|this morning|overnight|on admission|at discharge|initially|then"
    r"|\d{1,2} : \d\d|day \d+|(?:mon|tues|wednes"
    r"|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october"
    r"|november|december)\b"
)
_AT_TIMES = re.compile(r"(\d+(?:\.\d+)?) (?:today|now|yesterday|this morning|last|at \d\d : \d\d|on \w+day)")
_BACKWARDS = re.compile(
    r"\b(?:today|now|currently|this morning)\b.*\b(?:yesterday|was|previously|before|last)\b"
    r"|, (?:down|up) from\b"
)
_CONFIDENCE = 0.8
_DAY = "mass/time"
_KINDS = {"dose", "measure"}
_ALIKE = 8.0  # a limit without a unit and a value with one are that much apart at most
Answer = tuple[Stance, tuple[Finding, ...]]
Interval = tuple[float, float]


def limits(claim: TextFacts) -> tuple[Fact, ...]:
    """The limits that are asked: numbers of a named thing with a comparator, or a range to lie in."""
    return tuple(
        fact
        for fact in claim.by_filter.get("numerical", ())
        if fact.normal.get("forms")
        and fact.normal["role"] in _KINDS
        and (fact.normal["sign"] in _SIGNS or _is_range(fact))
    )


def threshold(
    asked: Sequence[Fact],
    claim_keys: frozenset[str],
    facts: TextFacts,
    lines: Lines,
    words: Passage,
    barred: Callable[[Worded], bool],
) -> Answer | None:
    """What the passage's values say of the limits; None where it gives no value of that thing.

    Args:
        asked: see `limits`.
        claim_keys: all that the question names.
        barred: whether a sentence is about something else than what is asked.
    """
    told: list[Answer] = []
    for limit in asked:
        values = [fact for fact in facts.by_filter.get("numerical", ()) if _same_thing(limit, fact)]
        values = [fact for fact in values if _of_the_patient(fact, lines, words)]
        if words.sentences:
            values = [fact for fact in values if not barred(words.sentences[lines.at(fact.span)])]
        current = [fact for fact in values if not set(_FORMER) & set(fact.normal["quality_keys"])] or values
        current = _nearest(current, limit, claim_keys, lines)
        sides = [(side, fact) for fact in current if (side := _side(limit, fact, lines, words))]
        if not sides:
            return None
        last = sides[-1]
        several = len({side for side, _ in sides}) > 1 and not _goes_on(sides, lines, words)
        open_ = several or (len(values) == 1 and _untold(limit, last[1], lines, words))
        answer: Stance = "uncertain" if open_ else last[0]
        told.append((answer, (_finding(limit, last[1], answer),)))
    return _all_of(told)


def _all_of(told: Sequence[Answer]) -> Answer | None:
    """Every limit has to be met: one that is not denies."""
    for wanted in ("denies", "uncertain", "affirms"):
        for side, findings in told:
            if side == wanted:
                return side, findings
    return None


def _is_range(fact: Fact) -> bool:
    form = fact.normal["forms"][0]
    return bool(form[2] > form[1] and form[0] != "pair" and not fact.normal["sign"])


def _same_thing(limit: Fact, fact: Fact) -> bool:
    normal = fact.normal
    if not normal.get("forms") or normal["asked"] or {normal["role"], limit.normal["role"]} - _KINDS:
        return False
    if _shared(limit, fact) is None:
        return False
    if limit.normal["subject_keys"]:
        return bool(limit.normal["subject_keys"] & normal["subject_keys"])
    wanted = heavy(map(bare, limit.normal["near_keys"]))
    return not normal["subject_keys"] and bool(wanted) and wanted <= frozenset(map(bare, normal["near_keys"]))


def _of_the_patient(fact: Fact, lines: Lines, words: Passage) -> bool:
    at = lines.at(fact.span)
    said = lines.by_line.get(at, {}).get("negation", ())
    if any(one.normal.get("relative") or one.normal.get("asked") for one in said):
        return False
    if not words.sentences:
        return not any(one.normal.get("if") for one in said)
    return not (words.sentences[at].general or words.sentences[at].conditional)


def _nearest(values: list[Fact], limit: Fact, keys: frozenset[str], lines: Lines) -> list[Fact]:
    """Of several owners of one kind of value ("5 mm nodule", "11 mm cyst") those that stand by what is asked."""
    if len({fact.normal["raw"] for fact in values}) < 2:
        return values
    things = frozenset(map(bare, limit.normal["subject_keys"]))
    values = [fact for fact in values if things & lines.lines[lines.at(fact.span)].keys] or values
    wanted = heavy(keys) - frozenset(map(bare, limit.normal["subject_keys"]))
    if len({lines.at(fact.span) for fact in values}) == 1:
        return values
    firm = [fact for fact in values if covered(wanted, frozenset(map(bare, fact.normal["near_keys"])))]
    owned = [fact for fact in values if fact.normal["firm"]]
    return firm or owned or values


def _shared(limit: Fact, fact: Fact) -> tuple[Interval, Interval, bool] | None:
    """The limit, the value, and whether the value may be given several times a day."""
    mine = {form[0]: form for form in limit.normal["forms"]}
    theirs = {form[0]: form for form in fact.normal["forms"]}
    if _DAY in mine and _DAY in theirs:
        names = [_DAY]
    else:
        names = sorted(
            mine.keys() & theirs.keys() - {"pair"}, key=lambda name: mine[name][5] + theirs[name][5]
        )
    if not names and set(mine) == {"number"} and fact.normal["unit"]:
        bare_limit, value = (
            limit.normal["raw"],
            fact.normal["raw"],
        )  # asked without a unit: in that of the passage
        if value[0] and 1 / _ALIKE < bare_limit[0] / value[0] < _ALIKE:
            return bare_limit, _interval(fact, *value), False
    if not names:
        return None
    ours, other = mine[names[0]], theirs[names[0]]
    return (ours[1], ours[2]), _interval(fact, other[1], other[2]), _DAY in mine and _DAY not in theirs


def _interval(fact: Fact, low: float, high: float) -> Interval:
    sign = fact.normal["sign"]
    return (-math.inf, high) if sign[:1] == "<" else (low, math.inf) if sign[:1] == ">" else (low, high)


def _side(limit: Fact, fact: Fact, lines: Lines, words: Passage) -> Stance | None:
    shared = _shared(limit, fact)
    if shared is None:
        return None
    (low, high), (least, most), at_least = shared
    at = lines.at(fact.span)
    if words.sentences and words.sentences[at].open:
        return "uncertain"
    side = (
        _within(low, high, least, most)
        if _is_range(limit)
        else _beyond(limit.normal["sign"], low, least, most)
    )
    if at_least and (side == "affirms") != (limit.normal["sign"][:1] == ">"):
        return None  # how often it is given is not said, and the sum may lie on the other side
    return side


def _within(low: float, high: float, least: float, most: float) -> Stance:
    if low <= least and most <= high:
        return "affirms"
    return "denies" if most < low or least > high else "uncertain"


def _beyond(sign: str, limit: float, least: float, most: float) -> Stance:
    slack = abs(limit) * 1e-9
    if sign in (">", ">="):
        equal = sign == ">="
        if least > limit + slack or (equal and least >= limit - slack):
            return "affirms"
        return "denies" if most < limit - slack or (not equal and most <= limit + slack) else "uncertain"
    equal = sign == "<="
    if most < limit - slack or (equal and most <= limit + slack):
        return "affirms"
    return "denies" if least > limit + slack or (not equal and least >= limit - slack) else "uncertain"


def _goes_on(sides: Sequence[tuple[Stance, Fact]], lines: Lines, words: Passage) -> bool:
    """Whether the values are told as one course ("from 71 to 49"), of which the last one counts."""
    if len({lines.at(fact.span) for _, fact in sides}) != 1:
        return False
    text = words.sentences[lines.at(sides[0][1].span)].text if words.sentences else ""
    told = (
        any("change:from" in fact.normal["quality_keys"] for _, fact in sides)
        or len(_TIMES.findall(text)) > 1
    )
    return told and not _BACKWARDS.search(text)


def _untold(limit: Fact, fact: Fact, lines: Lines, words: Passage) -> bool:
    """Whether the sentence gives values at several times that lie on both sides ("9.2 yesterday, 14.1 today")."""
    if not words.sentences:
        return False
    values = [float(one) for one in _AT_TIMES.findall(words.sentences[lines.at(fact.span)].text)]
    edge = limit.normal["raw"][0]
    return len(values) > 1 and min(values) < edge < max(values)


def _finding(limit: Fact, fact: Fact, side: Stance) -> Finding:
    told = f"The passage gives {fact.normal['show']}; asked is {limit.normal['show']}."
    conflict = side == "denies"
    return Finding(
        "numerical", "conflict" if conflict else "compatible", "contradiction", "high" if conflict else "note",
        _CONFIDENCE, limit.span, fact.span, limit.normal["show"], fact.normal["show"], fact.cue, "stance.limit", told,
    )  # fmt: skip

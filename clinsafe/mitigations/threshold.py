"""A question for a limit ("is the potassium above 5.5?") against the value that a passage gives, by arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from clinsafe.guarded import Stance
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.topic import Lines, bare, covered, heavy
from clinsafe.mitigations.wording import Passage, Worded
from clinsafe.protocols import Fact, Finding, Span

_SIGNS = ("<", "<=", ">", ">=")
_FORMER = ("change:from", "time:past")
_CONFIDENCE = 0.8
_DAY = "mass/time"
Answer = tuple[Stance, tuple[Finding, ...]]
Interval = tuple[float, float]


def limits(claim: TextFacts) -> tuple[Fact, ...]:
    """The limits that are asked: numbers of a named thing with a comparator, or a range to lie in."""
    return tuple(
        fact
        for fact in claim.by_filter.get("numerical", ())
        if fact.normal.get("forms")
        and fact.normal["subject_keys"]
        and (fact.normal["sign"] in _SIGNS or _is_range(fact))
    )


def threshold(
    asked: Sequence[Fact],
    claim_keys: frozenset[str],
    place: Span,
    facts: TextFacts,
    lines: Lines,
    words: Passage,
    barred: Callable[[Worded], bool],
) -> Answer | None:
    """What the passage's values say of the limits; None where it gives no value of that thing.

    Args:
        asked: see `limits`.
        claim_keys: all that the question names.
        place: of the question.
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
        open_ = len({side for side, _ in sides}) > 1 and not _goes_on(sides, lines)
        side: Stance = "uncertain" if open_ else last[0]
        told.append((side, (_finding(limit, last[1], place, side),)))
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
    if not normal.get("forms") or normal["asked"] or normal["role"] != limit.normal["role"]:
        return False
    return bool(limit.normal["subject_keys"] & normal["subject_keys"]) and _shared(limit, fact) is not None


def _of_the_patient(fact: Fact, lines: Lines, words: Passage) -> bool:
    at = lines.at(fact.span)
    said = lines.by_line.get(at, {}).get("negation", ())
    if any(one.normal.get("if") or one.normal.get("relative") or one.normal.get("asked") for one in said):
        return False
    return not words.sentences or not (words.sentences[at].general or words.sentences[at].conditional)


def _nearest(values: list[Fact], limit: Fact, keys: frozenset[str], lines: Lines) -> list[Fact]:
    """Of several owners of one kind of value ("5 mm nodule", "11 mm cyst") those that stand by what is asked."""
    if len({fact.normal["raw"] for fact in values}) < 2:
        return values
    things = frozenset(map(bare, limit.normal["subject_keys"]))
    values = [fact for fact in values if things & lines.lines[lines.at(fact.span)].keys] or values
    wanted = heavy(keys) - frozenset(map(bare, limit.normal["subject_keys"]))
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
        names = sorted(mine.keys() & theirs.keys() - {"pair"}, key=lambda name: mine[name][5] + theirs[name][5])
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
    side = _within(low, high, least, most) if _is_range(limit) else _beyond(limit.normal["sign"], low, least, most)
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


def _goes_on(sides: Sequence[tuple[Stance, Fact]], lines: Lines) -> bool:
    """Whether the values are told as one course ("from 71 to 49"), of which the last one counts."""
    return len({lines.at(fact.span) for _, fact in sides}) == 1 and any(
        "change:from" in fact.normal["quality_keys"] for _, fact in sides
    )


def _finding(limit: Fact, fact: Fact, place: Span, side: Stance) -> Finding:
    told = f"The passage gives {fact.normal['show']}; asked is {limit.normal['show']}."
    conflict = side == "denies"
    return Finding(
        "numerical", "conflict" if conflict else "compatible", "contradiction", "high" if conflict else "note",
        _CONFIDENCE, limit.span, fact.span, limit.normal["show"], fact.normal["show"], fact.cue, "stance.limit", told,
    )  # fmt: skip

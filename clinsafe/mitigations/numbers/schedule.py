"""How often: words of the pack's table and what can be read in numbers. A schedule is the hours between two doses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clinsafe.mitigations.numbers.lexicon import Lexicon
from clinsafe.mitigations.numbers.pack import Unit
from clinsafe.mitigations.numbers.units import time_at
from clinsafe.mitigations.numbers.values import number_at
from clinsafe.text import Token

_DAY, _MOST_A_DAY = 24.0, 12
_ARTICLES = (["a"], ["an"], ["each"], ["every"])
_THINGS = 3  # words from a count to what is counted
_PER = frozenset(["a", "an", "per", "each", "every"])
_Q = re.compile(r"q(\d{1,3})(h|hr|hrs|hourly|d|days|w|wk|wks|weeks|min|mins|m)")
_Q_HOURS = {"h": 1.0, "d": 24.0, "w": 168.0, "m": 1 / 60}
_A = frozenset(["a", "an", "per", "each", "every", "in", "/", "during", "over"])


@dataclass(frozen=True, slots=True)
class Every:
    """A schedule at tokens ``[start, end)``: from `low` to `high` hours between doses; 0 where it has two readings."""

    start: int
    end: int
    low: float
    high: float
    rule: str
    needs_dose: bool = False


def counts(tokens: Sequence[Token], lexicon: Lexicon) -> bool:
    """Whether any word is there that a schedule which begins with a number needs; most tables hold none."""
    words = {token.lower for token in tokens}
    return not (words.isdisjoint(_PER) and words.isdisjoint(lexicon.sets["counted"]))


def schedule_at(tokens: Sequence[Token], index: int, lexicon: Lexicon, counted: bool = True) -> Every | None:
    """The schedule that begins at this token, or None.

    Args:
        counted: what `counts` says of the tokens.
    """
    lower = tokens[index].lower
    number = tokens[index].text[0].isdecimal()
    if not number and lower not in lexicon.sets["schedule_openers"] and lower[0] != "q":
        return None
    best = _from_table(tokens, index, lexicon)
    read = _times if lower in lexicon.pack.times else _READERS.get(lower)
    if read:
        found = read(tokens, index, lexicon)
        if found and (best is None or found.end > best.end):
            best = found
    if lower[0] == "q" and (coded := _coded(tokens, index)):
        return coded
    if counted and (number or lower in lexicon.words):
        found = _counted(tokens, index, lexicon)
        if found and (best is None or found.end > best.end):
            best = found
    return best or _weekdays(tokens, index, lexicon)


def _from_table(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> Every | None:
    found = lexicon.schedules.at(tokens, index)
    unclear = lexicon.ambiguous.at(tokens, index)
    if unclear and (found is None or unclear[0] >= found[0]):
        if tokens[index].text == "od":  # in capitals it needs no dose beside it
            return Every(index, unclear[0], 0.0, 0.0, unclear[1], True)
        return Every(index, unclear[0], 0.0, 0.0, unclear[1])
    if found is None:
        return None
    end, (rule, hours) = found
    cue = " ".join(token.lower for token in tokens[index:end])
    return Every(index, end, hours, hours, rule, cue in lexicon.sets["needs_dose"])


def _coded(tokens: Sequence[Token], index: int) -> Every | None:
    """ "q6h", "q12h", "q 8 h"."""
    match = _Q.fullmatch(tokens[index].lower)
    end = index + 1
    if match is None and tokens[index].lower == "q" and index + 2 < len(tokens):
        match = _Q.fullmatch("".join(token.lower for token in tokens[index : index + 3]))
        end = index + 3
    if match is None:
        return None
    hours = float(match[1]) * _Q_HOURS[match[2][0]]
    return Every(index, end, hours, hours, "schedule.coded") if hours else None


def _every(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> Every | None:
    """ "every 6 hours", "every 4 to 6 hours", "every second day", "each third week"."""
    at = index + 1
    if at >= len(tokens):
        return None
    many = lexicon.pack.ordinals.get(tokens[at].lower)
    if many and (unit := time_at(tokens, at + 1, lexicon)):
        return Every(index, unit[0], many * unit[1].factor, many * unit[1].factor, "schedule.every")
    if tokens[at].lower == "few":
        return None
    low, high, end = _range(tokens, at, lexicon)
    unit = time_at(tokens, end, lexicon) if end else None
    if unit is None or low <= 0:
        return None
    return Every(index, unit[0], low * unit[1].factor, high * unit[1].factor, "schedule.every")


def _range(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> tuple[float, float, int]:
    """(low, high, end) of "4", "4 to 6", "4-6"; end 0 if there is no number."""
    first = number_at(tokens, index, lexicon) if index < len(tokens) else None
    if first is None:
        return 0.0, 0.0, 0
    at = first.end
    if at + 1 < len(tokens) and tokens[at].lower in ("to", "-", "or"):
        second = number_at(tokens, at + 1, lexicon)
        if second and second.value >= first.value:
            return first.value, second.value, second.end
    return first.value, first.value, first.end


def _times(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> Every | None:
    """ "twice a week", "once in seven days", "once every 12 hours"."""
    count = lexicon.pack.times[tokens[index].lower]
    return _per_time(tokens, index, index + 1, count, lexicon)


def _per_time(tokens: Sequence[Token], index: int, at: int, count: float, lexicon: Lexicon) -> Every | None:
    if at < len(tokens) and tokens[at].text == "-":
        at += 1
    if at >= len(tokens) or count <= 0:
        return None
    lower = tokens[at].lower
    if lower in lexicon.pack.adverbs:
        hours = lexicon.pack.adverbs[lower]
        return Every(index, at + 1, hours / count, hours / count, "schedule.times")
    if lower not in _A:
        return None
    start = at + 1
    if start < len(tokens) and tokens[start].lower in ("a", "any", "each", "every", "the"):
        start += 1
        start += tokens[start].lower in ("waking", "calendar", "single") if start < len(tokens) else 0
    many = lexicon.pack.ordinals.get(tokens[start].lower) if start < len(tokens) else None
    if many and (unit := time_at(tokens, start + 1, lexicon)):
        return Every(
            index, unit[0], many * unit[1].factor / count, many * unit[1].factor / count, "schedule.times"
        )
    number = number_at(tokens, start, lexicon) if start < len(tokens) else None
    each, end = (number.value, number.end) if number else (1.0, start)
    unit = time_at(tokens, end, lexicon)
    if (
        unit is None
        or each <= 0
        or (lower == "in" and not number and tokens[at + 1].lower not in ("a", "the", "each", "every"))
    ):
        return None
    hours = each * unit[1].factor / count
    return Every(index, unit[0], hours, hours, "schedule.times")


def _counted(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> Every | None:
    """ "8-hourly", "4 to 6 hourly", "three times a day", "5 x day", "two days a week", "6-week intervals"."""
    counted = lexicon.sets["counted"]
    following = [token.lower for token in tokens[index + 1 : index + 8]]
    things = _things_in_time(tokens, index, lexicon)
    if things:
        return things
    if following[:1] not in _ARTICLES and not any(lower in counted for lower in following):
        return None
    low, high, end = _range(tokens, index, lexicon)
    if not end or end >= len(tokens) or low <= 0:
        return None
    at = end + 1 if tokens[end].text == "-" and end + 1 < len(tokens) else end
    lower = tokens[at].lower
    if lower in lexicon.pack.adverbs and lower not in ("daily", "nightly"):
        if at == end and _many_of_them(tokens, at + 1, lexicon):
            return None
        hours = lexicon.pack.adverbs[lower]
        return Every(index, at + 1, low * hours, high * hours, "schedule.hourly")
    unit = time_at(tokens, at, lexicon)
    if unit:
        return _units_of_time(tokens, index, unit, (low, high), lexicon)
    events = lexicon.sets["events"]
    if lower not in ("times", "time", "x") and lower not in events:
        if [lower] in _ARTICLES:
            return _so_many(tokens, index, at, (low, high), lexicon)
        at = _event(tokens, at, lexicon)
        if not at:
            return None
    found = _per_time(tokens, index, at + 1, high, lexicon)
    return Every(index, found.end, found.low, found.low * high / low, found.rule) if found else None


def _things_in_time(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> Every | None:
    """ "eight migraines a month", "two to three falls per week": how often something happens, no dose's schedule."""
    low, high, end = _range(tokens, index, lexicon)
    if not end or low <= 0 or not float(low).is_integer():
        return None
    for at in range(end, min(end + _THINGS, len(tokens) - 2)):
        lower = tokens[at].lower
        if not tokens[at].key or not lower.isalpha() or lexicon.units.at(tokens, at):
            return None
        if lower == "times" or lower in lexicon.sets["events"]:
            return None  # read as a schedule
        if lower.endswith("s") and len(lower) > 3 and tokens[at + 1].lower in _PER:
            unit = time_at(tokens, at + 2, lexicon)
            if unit is None or unit[1].factor < _DAY:
                return None
            hours = unit[1].factor
            return Every(index, unit[0], hours / high, hours / low, "schedule.events")
    return None


def _many_of_them(tokens: Sequence[Token], at: int, lexicon: Lexicon) -> bool:
    """ "three monthly injections": three, each a month after the last; "three-monthly injections" are not."""
    if at >= len(tokens) or not tokens[at].lower.endswith("s"):
        return False
    return tokens[at].lower in lexicon.sets["events"] or lexicon.units.at(tokens, at) is not None


def _event(tokens: Sequence[Token], at: int, lexicon: Lexicon) -> int:
    """Where "session" stands in "one dialysis session per week"; 0 if a unit or nothing that is counted follows."""
    for step in range(3):
        if at + step >= len(tokens):
            return 0
        lower = tokens[at + step].lower
        if step and lower in lexicon.sets["events"]:
            return at + step
        if not lower.isalpha() or lexicon.units.at(tokens, at + step):
            return 0
    return 0


def _so_many(
    tokens: Sequence[Token], index: int, at: int, many: tuple[float, float], lexicon: Lexicon
) -> Every | None:
    """ "about three a month": times, where what is counted was named before."""
    unit = time_at(tokens, at + 1, lexicon)
    if unit is None or unit[1].factor < _DAY or many[1] > _MOST_A_DAY:
        return None
    return Every(index, unit[0], unit[1].factor / many[1], unit[1].factor / many[0], "schedule.times")


def _units_of_time(
    tokens: Sequence[Token], index: int, unit: tuple[int, Unit], many: tuple[float, float], lexicon: Lexicon
) -> Every | None:
    """ "6-week intervals", "two days a week"."""
    end, one = unit
    if end >= len(tokens):
        return None
    low, high = many
    if tokens[end].lower in ("interval", "intervals"):
        return Every(index, end + 1, low * one.factor, high * one.factor, "schedule.interval")
    if one.id == "day" and tokens[end].lower in ("a", "per", "each", "every", "/", "out"):
        week = time_at(tokens, end + 1, lexicon)
        if week and week[1].id in ("week", "month", "fortnight"):
            return Every(index, week[0], week[1].factor / high, week[1].factor / low, "schedule.days")
    return None


def _intervals(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> Every | None:
    """ "at intervals of 240 minutes", "an interval of 4 weeks"."""
    if index + 1 >= len(tokens) or tokens[index + 1].lower != "of":
        return None
    low, high, end = _range(tokens, index + 2, lexicon)
    unit = time_at(tokens, end, lexicon) if end else None
    if unit is None or low <= 0:
        return None
    return Every(index, unit[0], low * unit[1].factor, high * unit[1].factor, "schedule.interval")


def _weekdays(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> Every | None:
    """ "on Mondays", "each Friday", "Mondays, Wednesdays and Fridays": so many a week."""
    days = lexicon.sets["weekdays"]
    at = index + 1 if tokens[index].lower in ("every", "each") else index
    if at >= len(tokens) or tokens[at].lower not in days:
        return None
    if at == index and not tokens[at].lower.endswith("s"):
        return None
    if at > index and index and tokens[index].text == "-":
        return None
    count, end = 1, at + 1
    while end + 1 < len(tokens) and tokens[end].lower in (",", "and", "&", "/"):
        step = (
            end + 2
            if tokens[end].text == "," and tokens[end + 1].lower == "and" and end + 2 < len(tokens)
            else end + 1
        )
        if tokens[step].lower not in days:
            break
        count, end = count + 1, step + 1
    return Every(index, end, 168 / count, 168 / count, "schedule.weekdays")


_READERS = {
    "every": _every,
    "each": _every,
    "q": _every,
    "interval": _intervals,
    "intervals": _intervals,
}

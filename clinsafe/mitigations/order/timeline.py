"""Order from points in time: clock times, weekdays, dates, years, "day 3", "two weeks ago", "for six months"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from clinsafe.mitigations.order.fact import Event, order_fact
from clinsafe.mitigations.order.scan import Range, Scan
from clinsafe.protocols import Fact
from clinsafe.text import Reading

_MOST = 12  # points of one sentence; where there are more the sentence is told as unread
_YEARS = (1900, 2100)


class Point(NamedTuple):
    """A point in time at tokens ``at``; only points of one scale compare."""

    at: Range
    scale: str
    value: float


def timeline(reading: Reading, scan: Scan) -> Iterator[Fact]:
    """Facts of every two clauses of a sentence that have different points of one scale."""
    points = _points(scan)
    if len(points) < 2:
        return
    events = [(point, _event(scan, point)) for point in points]
    for one, early in events:
        for other, late in events:
            if one.scale == other.scale and one.value < other.value and early and late:
                fact = order_fact(reading, scan, early, late, other.at, f"timeline.{one.scale}")
                if fact:
                    yield fact


def is_point(scan: Scan, at: int) -> bool:
    """Whether a point in time, and no event, begins at this token ("since March")."""
    if at >= len(scan.tokens):
        return False
    token, words = scan.tokens[at], scan.rules.timeline
    named = token.text[0].isupper() and (token.lower in words.months or token.lower in words.weekdays)
    return named or token.is_number


def _points(scan: Scan) -> list[Point]:
    found: list[Point] = []
    at = 0
    pointers, units = scan.rules.pointers, scan.rules.timeline.units
    while at < len(scan.tokens):
        lower = scan.tokens[at].lower
        if lower[0] not in "0123456789" and lower not in pointers and lower not in units:
            at += 1
            continue
        point = _named(scan, at) or _number(scan, at) or _elliptic(scan, at, found)
        if point and len(found) == _MOST:
            scan.cut = True
            break
        if point:
            found.append(point)
        at = point.at[1] if point else at + 1
    return found


def _named(scan: Scan, at: int) -> Point | None:
    """A weekday, or a unit with a number after it ("day 3", "week 12")."""
    words, token = scan.rules.timeline, scan.tokens[at]
    if token.lower in words.weekdays and token.text[0].isupper():
        return Point((at, at + 1), "weekday", words.weekdays[token.lower])
    if (
        token.lower in words.months
        and at
        and token.text[0].isupper()
        and scan.tokens[at - 1].lower in words.near
    ):
        return Point((at, at + 1), "date", words.months[token.lower] * 31)
    if token.lower in words.days:
        return Point((at, at + 1), "today", words.days[token.lower])
    unit = words.units.get(token.lower)
    if unit and at + 1 < len(scan.tokens):
        number = scan.rules.lexicon.number(scan.tokens[at + 1]) if scan.tokens[at + 1].is_number else None
        if number is not None:
            return Point((at, at + 2), "counted" if unit > 1 else token.lower, unit * number)
    return None


def _number(scan: Scan, at: int) -> Point | None:
    tokens, words = scan.tokens, scan.rules.timeline
    number = scan.rules.lexicon.number(tokens[at])
    if number is None or at + 1 >= len(tokens):
        return _year(scan, at)
    after = tokens[at + 1]
    if (
        after.text == ":"
        and at + 2 < len(tokens)
        and len(tokens[at + 2].text) == 2
        and tokens[at + 2].is_number
    ):
        minutes = scan.rules.lexicon.number(tokens[at + 2]) or 0.0
        return Point((at, at + 3), "clock", number + minutes / 60) if number < 24 and minutes < 60 else None
    if after.lower in words.months and after.text[0].isupper() and 1 <= number <= 31:
        return Point((at, at + 2), "date", words.months[after.lower] * 31 + number)
    return _span(scan, at, number) or _year(scan, at)


def _span(scan: Scan, at: int, number: float) -> Point | None:
    """ "Two weeks ago", "for six months", "3-day history of": how long ago a thing began."""
    tokens, words = scan.tokens, scan.rules.timeline
    unit = at + 2 if tokens[at + 1].text == "-" and at + 2 < len(tokens) else at + 1
    hours = scan.rules.lexicon.hours(tokens[unit])
    if not hours:
        return None
    ago = unit + 1 < len(tokens) and (
        tokens[unit + 1].lower in words.ago or (tokens[unit + 1].lower == "of" and at == scan.segment(at)[0])
    )
    lasting = at > 0 and (
        tokens[at - 1].lower in words.lasting
        or (
            tokens[at - 1].lower in ("the", "about", "some")
            and at > 1
            and tokens[at - 2].lower in words.lasting
        )
    )
    if not ago and not lasting:
        return None
    return Point((at, unit + 2 if ago else unit + 1), "ago", -hours * number)


def _elliptic(scan: Scan, at: int, found: Sequence[Point]) -> Point | None:
    """ "Fever for five days and a rash for two": the unit is that of the span before."""
    number = scan.rules.lexicon.number(scan.tokens[at])
    if not found or found[-1].scale != "ago" or number is None or not at:
        return None
    before = next(
        (i for i in range(found[-1].at[0], found[-1].at[1]) if scan.tokens[i].lower[0].isalnum()), at
    )
    unit = next(
        (h for i in range(before, found[-1].at[1]) if (h := scan.rules.lexicon.hours(scan.tokens[i]))), 0
    )
    ends = at + 1 >= len(scan.tokens) or not scan.tokens[at + 1].text[0].isalnum()
    return Point((at, at + 1), "ago", -unit * number) if ends and scan.tokens[at - 1].lower == "for" else None


def _year(scan: Scan, at: int) -> Point | None:
    text = scan.tokens[at].text
    if len(text) == 4 and text.isdigit() and _YEARS[0] <= int(text) < _YEARS[1]:
        before = scan.tokens[at - 1].lower if at else ""
        last = at + 1 >= len(scan.tokens) or scan.soft(at + 1) or scan.tokens[at + 1].text in ";.:-"
        if before in ("in", "since", "from", "(") or (last and at and scan.keys[at - 1]):
            return Point((at, at + 1), "year", float(text))
    return None


def _event(scan: Scan, point: Point) -> Event | None:
    left, right = scan.chunk(*point.at)
    ranges = ((left, point.at[0]), (point.at[1], right))
    if scan.bare(*ranges[0]) and scan.bare(*ranges[1]):
        return None
    main = ranges[1] if scan.bare(*ranges[0]) else ranges[0]
    return Event(scan.keyset(*ranges), scan.core(main, False), scan.named(*ranges))

"""Two sentences of different named days: values that changed, or a state that began and ended, contradict nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMES = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?"
)
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_NAMES}|may)\b")
_MONTH_FIRST = re.compile(rf"\b({_NAMES}|may) (\d{{1,2}})(?:st|nd|rd|th)?\b(?![./\d])")
_ISO = re.compile(r"\b\d{4}-(\d{2})-(\d{2})\b")
_SLASHED = re.compile(r"(?<![\d/])(\d{1,2})/(\d{1,2})(?:/\d{2,4})?(?![\d/])")
# "may" and "march" alone are verbs; as a month they follow "in" or head a line.
_MONTH = re.compile(rf"\b({_NAMES})\b|(?:\b(?:in|since|from|by|until|early|late) |^)(may)\b(?=[ ,.:;]|$)")
_WEEKDAY = re.compile(r"\b(mon|tues|wednes|thurs|fri|satur|sun)day\b")
_COUNTED = re.compile(r"\b(day|week|month|visit) (\d{1,3})\b")
_WH = re.compile(r"\b(?:what|which|how (?:high|low|much|many|long|heavy|tall|big|large|often|fast))\b")
_BEGAN = re.compile(
    r"\b(?:start(?:ed|s)?|commenced|began|begun|initiated|introduced|diagnosed|inserted|admitted)\b"
)
_ENDED = re.compile(
    r"\b(?:stopped|discontinued|ceased|weaned|ended|withdrawn|tailed off|resolved|in remission|removed|finished"
    r"|completed|cured|came off|taken off)\b"
)


@dataclass(frozen=True, slots=True)
class Days:
    """The days that words name.

    Attributes:
        dates: (month, day); day 0 where only the month is named.
        others: weekdays and counted days ("day 3"), each as (kind, value).
    """

    dates: frozenset[tuple[int, int]]
    others: frozenset[tuple[str, str]]

    def __bool__(self) -> bool:
        """Whether any is named."""
        return bool(self.dates or self.others)

    def apart(self, other: Days) -> bool:
        """Whether both name days that can be told apart, and none is the same."""
        if self.dates and other.dates:
            return not any(_same(one, there) for one in self.dates for there in other.dates)
        kinds = {kind for kind, _ in self.others} & {kind for kind, _ in other.others}
        return bool(kinds) and self.others.isdisjoint(other.others)


def days(text: str) -> Days:
    """The days that a text in lower case names."""
    dates = {(_month(name), int(day)) for day, name in _DAY_FIRST.findall(text)}
    dates |= {(_month(name), int(day)) for name, day in _MONTH_FIRST.findall(text)}
    dates |= {(int(month), int(day)) for month, day in _ISO.findall(text)}
    dates |= {(int(month), int(day)) for day, month in _SLASHED.findall(text) if 0 < int(month) < 13}
    whole = {month for month, _ in dates}
    for one, other in _MONTH.findall(text):
        if _month(one or other) not in whole:
            dates.add((_month(one or other), 0))
    others = {("weekday", name) for name in _WEEKDAY.findall(text)}
    return Days(frozenset(dates), frozenset(others | set(_COUNTED.findall(text))))


def dateless(asked: str) -> bool:
    """Whether a question in lower case asks for a value and names no day."""
    return _WH.search(asked) is not None and not days(asked)


def began_and_ended(one: str, other: str) -> bool:
    """Whether one sentence tells of a begin and the other of an end, at different named days."""
    first, second = days(one), days(other)
    ends = [_ENDED.search(text) is not None for text in (one, other)]
    began = other if ends[0] else one
    return ends[0] != ends[1] and _BEGAN.search(began) is not None and first.apart(second)


def _month(name: str) -> int:
    return _MONTHS.index(name[:3]) + 1


def _same(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] == other[0] and (one[1] == other[1] or not one[1] or not other[1])

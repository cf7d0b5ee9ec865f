"""Shares as intervals in [0, 1]: turned round, named, compared."""

from __future__ import annotations

from typing import NamedTuple

_ALL, _NONE = 0.97, 0.03  # bounds of "all" and "none"
_PARTLY = 0.01  # the least gap between all or none and a figure that is neither
_POINT = 0.02  # a figure stands for itself give or take this much
_LEAST = 0.0005  # a count above none
_SOFT = 0.1  # a vague word may lie this far from a figure
_NAMES = (
    (0.97, 1.0, "all"),
    (0.75, 1.0, "nearly all"),
    (0.5, 1.0, "most"),
    (0.0, 0.02, "none"),
    (0.0, 0.26, "hardly any"),
    (0.0, 0.4, "few"),
    (0.4, 0.6, "half"),
    (0.0, 0.5, "less than half"),
    (0.0, 0.97, "not all"),
)


class Interval(NamedTuple):
    """Closed bounds of a share. `point`: from a figure; `vague`: from a word with soft bounds."""

    low: float
    high: float
    point: bool = False
    vague: bool = False

    def turned(self) -> Interval:
        """The share of the rest."""
        return Interval(round(1 - self.high, 6), round(1 - self.low, 6), self.point, self.vague)

    @property
    def name(self) -> str:
        """The word nearest to it."""
        if self.point:
            return f"{(self.low + self.high) / 2:.0%}"
        return next((name for low, high, name in _NAMES if low <= self.low and self.high <= high), "some")


def at(share: float) -> Interval:
    """The interval of one exact figure."""
    return Interval(max(0.0, share - _POINT), min(1.0, share + _POINT), True)


def at_count(part: float, whole: float) -> Interval:
    """The interval of a count: 39 of 40 are neither all nor none."""
    found = at(part / whole)
    if not 0 < part < whole:
        return found
    return Interval(max(found.low, _LEAST), min(found.high, 1 - _LEAST), True)


def apart(one: Interval, other: Interval) -> float:
    """The gap between two shares; 0 or less where both can be true."""
    gap = max(one.low - other.high, other.low - one.high)
    if (_whole(one) and _partly(other)) or (_whole(other) and _partly(one)):
        return max(gap, _PARTLY)
    if (one.vague and (other.point or other.vague is False)) or (other.vague and one.point):
        soft = _SOFT if one.point or other.point else 0.0
        return gap - soft
    return gap


def _whole(share: Interval) -> bool:
    """Whether it is all or none, in words."""
    return not share.point and (
        (share.low >= _ALL and share.high == 1) or (share.low == 0 and share.high <= _NONE)
    )


def _partly(share: Interval) -> bool:
    """Whether it is a count of some but not all."""
    return share.point and share.low > 0 and share.high < 1

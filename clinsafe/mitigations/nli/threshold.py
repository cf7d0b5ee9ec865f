"""The smallest threshold that keeps false alarms within a limit, and whether it is worth anything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from clinsafe.stats import Estimate, Figure, NotMeasured, rate, rate_of

STEP = 1e-6  # thresholds are told to six places, so that a file holds exactly what was measured
UNREADABLE = math.inf
"""Strength of a safe pair that could not be checked: an alarm at any threshold."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold, or why there is none.

    Attributes:
        value: in (0, 1); None where there is none.
        recall: share of conflicting pairs told at it (of the best that could be tried, where there is none).
        false_alarm: share of cases with an alarm on a safe pair at it.
        reason: why there is none, "" otherwise.
    """

    value: float | None
    recall: Figure
    false_alarm: Figure
    reason: str = ""


def choose(conflict: Sequence[float], safe: Sequence[float], *, limit: float, least: float) -> Threshold:
    """The smallest threshold whose false-alarm bound keeps the limit.

    Args:
        conflict: probability of contradiction of the conflicting pair of each case, in [0, 1].
        safe: the highest one of the safe pairs of each case; `UNREADABLE` where one could not be checked.
        limit: for the one-sided 95 % Clopper-Pearson bound of the share of cases with an alarm.
        least: no threshold below it.
    """
    allowed = most_alarms(len(safe), limit)
    if allowed is None:
        few = NotMeasured("too few cases", len(safe))
        return Threshold(None, few, few, f"{len(safe)} cases cannot show a false-alarm rate within {limit:g} even "
                         f"without any alarm; at least {fewest(limit)} are needed")  # fmt: skip
    ranked = sorted(safe, reverse=True)
    value = least if allowed >= len(ranked) else max(least, _above(ranked[allowed]))
    recall, alarm = _at(value, conflict), _at(value, safe)
    if value >= 1:
        why = f"more than {allowed} of {len(safe)} cases raise a false alarm even at the highest threshold"
        return Threshold(None, recall, alarm, why)
    if not _tells_apart(recall, alarm):
        why = "the model does not tell contradictions from paraphrases: recall is not above false alarms beyond doubt"
        return Threshold(None, recall, alarm, why)
    return Threshold(value, recall, alarm)


def most_alarms(n: int, limit: float) -> int | None:
    """How many of n cases may raise an alarm within the limit; None: not even none of them shows it."""
    allowed = None
    for k in range(n + 1):
        bound = rate_of(k, n)
        if not isinstance(bound, Estimate) or bound.upper is None or bound.upper > limit:
            break
        allowed = k
    return allowed


def fewest(limit: float) -> int:
    """Cases needed to show the limit if none raises an alarm."""
    return math.ceil(math.log(0.05) / math.log1p(-limit))


def _above(value: float) -> float:
    """The lowest step above a value."""
    if math.isinf(value):
        return value
    steps = math.floor(value / STEP)
    while (found := round(steps * STEP, 6)) <= value:  # a division may round either way
        steps += 1
    return found


def _at(threshold: float, strengths: Sequence[float]) -> Figure:
    return rate([strength >= threshold for strength in strengths])


def _tells_apart(recall: Figure, alarm: Figure) -> bool:
    """Whether the lower bound of recall lies above the upper bound of false alarms, each one-sided 95 %."""
    if not isinstance(recall, Estimate) or not isinstance(alarm, Estimate):
        return False
    return recall.lower is not None and alarm.upper is not None and recall.lower > alarm.upper

"""The scale of certainty (decision D4) and when two levels contradict each other."""

from __future__ import annotations

from enum import IntEnum

from clinsafe.protocols import Severity


class Level(IntEnum):
    """How certain a thing is said to be. `HYPOTHETICAL` is off the scale: it is spoken of, not claimed."""

    HYPOTHETICAL = -1
    EXCLUDED = 0
    UNLIKELY = 1
    POSSIBLE = 2
    PROBABLE = 3
    ASSERTED = 4
    CONFIRMED = 5

    @property
    def word(self) -> str:
        """The level as a clinician reads it."""
        return self.name.lower()


HEDGED = (Level.UNLIKELY, Level.POSSIBLE, Level.PROBABLE)
SAYS = {
    Level.HYPOTHETICAL: "speaks of {} only as something that might happen",
    Level.EXCLUDED: "says that {} is excluded",
    Level.UNLIKELY: "calls {} unlikely",
    Level.POSSIBLE: "calls {} only possible",
    Level.PROBABLE: "calls {} probable",
    Level.ASSERTED: "states {} as a fact",
    Level.CONFIRMED: "calls {} confirmed",
}


def contradict(one: int, other: int) -> bool:
    """Two or more steps apart; *confirmed* against *probable* is two. Both must be on the scale."""
    return abs(one - other) >= 2


def severity(one: int, other: int) -> Severity:
    """How much may follow from mistaking one level for the other."""
    low, high = min(one, other), max(one, other)
    if low <= Level.UNLIKELY and high >= Level.ASSERTED:
        return "critical"
    return "high" if high >= Level.ASSERTED and low == Level.POSSIBLE else "moderate"

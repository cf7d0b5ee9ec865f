"""What the readers hand on: an argument, and a relation with its two arguments."""

from __future__ import annotations

from typing import NamedTuple


class Bag(NamedTuple):
    """One argument: tokens ``[start, end)``, the keys among them, and whether a pronoun stands there."""

    start: int
    end: int
    keys: frozenset[str]
    pronoun: bool = False

    def without(self, keys: frozenset[str]) -> Bag:
        """The same argument without some keys."""
        return self._replace(keys=self.keys - keys)

    def people(self) -> Bag:
        """The same argument, people alone."""
        return self._replace(keys=frozenset(key for key in self.keys if key[0] == "@"))


NOTHING = Bag(0, 0, frozenset())


_OPEN = "effect|effects|"  # how the cues of an effect without a direction begin


class Edge(NamedTuple):
    """One relation; either argument may be empty, not both. Tokens ``[start, end)`` are the cue.

    With `reason`, it tells why something was stopped: its denial says nothing for the use.
    """

    relation: str
    source: Bag
    target: Bag
    negative: bool
    start: int
    end: int
    cue: str
    rule: str
    reason: bool = False

    @property
    def open(self) -> bool:
        """Whether it only names an effect, none or any, good or bad: "the effect of A on B"."""
        return self.cue.startswith(_OPEN)


def words(text: str) -> frozenset[str]:
    """The words of a line, as a set."""
    return frozenset(text.split())

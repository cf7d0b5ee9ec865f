"""A share given in figures."""

from __future__ import annotations

from typing import NamedTuple

from clinsafe.mitigations.quantity_words.interval import Interval


class Figure(NamedTuple):
    """A share given in figures at tokens ``[start, end)``; `whole` is the size of the set, 0 if not given.

    `named` is the first token of the words that name the set, if they stand apart; else -1.
    """

    start: int
    end: int
    interval: Interval
    label: str
    rule: str
    whole: float = 0
    named: int = -1

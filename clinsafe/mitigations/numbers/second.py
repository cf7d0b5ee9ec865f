"""quantulum3 as a guarded second reader for numbers that the grammar left. Off unless asked for.

Its unit classifier does not load beside a current scikit-learn, so it is switched off; every exception is caught; it
sees one short sentence at a time and never a long run of digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from clinsafe.errors import MissingDependency

LONGEST = 300  # characters of a sentence; longer ones are left alone
_LONGEST_NUMBER = 12
_NO_UNIT = frozenset(["", "dimensionless", "unk"])


class Leftover(NamedTuple):
    """A quantity at characters ``[start, end)`` of the sentence."""

    start: int
    end: int
    value: float
    unit: str


class SecondReader:
    """Reads what is left of a sentence.

    Raises:
        MissingDependency: quantulum3 is not installed.
    """

    def __init__(self) -> None:
        try:
            import quantulum3.classifier as classifier
            from quantulum3 import parser
        except ImportError as error:
            raise MissingDependency(
                "the second reader", "quantulum3", "pip install 'clinsafe[quantulum]'"
            ) from error
        classifier.USE_CLF = False
        self._parse: Any = parser.parse

    def read(self, text: str, taken: Sequence[tuple[int, int]]) -> list[Leftover]:
        """Quantities with a unit outside the ranges that are taken; none where quantulum3 fails."""
        if len(text) > LONGEST or not any(sign.isdecimal() for sign in text) or _long_number(text):
            return []
        try:
            found = [(one.span, float(one.value), str(one.unit.name)) for one in self._parse(text)]
        except Exception:  # noqa: BLE001 - it fails in many ways on clinical text
            return []
        return [
            Leftover(start, end, value, unit)
            for (start, end), value, unit in found
            if unit not in _NO_UNIT and not any(start < stop and begin < end for begin, stop in taken)
        ]


def _long_number(text: str) -> bool:
    run = 0
    for sign in text:
        run = run + 1 if sign.isdecimal() else 0
        if run > _LONGEST_NUMBER:
            return True
    return False

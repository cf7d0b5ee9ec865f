"""The unit after a number, part by part: mg, mg/kg, mcg/kg/min, g per 24 hours, x 10^9/L, (g/day).

A unit becomes a dimension ("mass/weight"), a factor to base units, and the hours of a rate; mg/kg never a bare ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clinsafe.mitigations.numbers.lexicon import Lexicon
from clinsafe.mitigations.numbers.pack import Unit
from clinsafe.mitigations.numbers.values import glued, number_at
from clinsafe.text import Token

_SKIP = 6  # words between the unit and its "per": "milligrams of albumin for each millimole"
_DAY = 24.0
_LEAST = 1e-30  # base units; no unit is smaller or, turned round, larger
_SPOONFUL = 5.0  # mL; a strength is given in so much, a dilution in more
_SOLUTES = frozenset(["mass", "units", "mole", "eq"])
_BREAKS = frozenset(
    [
        ",",
        ";",
        ".",
        "(",
        ")",
        "and",
        "or",
        "then",
        "with",
        "plus",
        ":",
        "over",
        "to",
        "once",
        "twice",
        "thrice",
        "times",
    ]
)


@dataclass(frozen=True, slots=True)
class Measure:
    """A unit as read.

    Attributes:
        end: token after it.
        dim: what is measured, in parts ("mass/volume"); "" for a bare number.
        factor, offset: base value = number * factor + offset.
        show: as printed in a finding.
        hours: of a rate ("per day": 24), else 0.
        form: it is a dose form. pint: its name in the pint library.
        volume: mL that it is in ("mg/5 mL", "100 mg in 5 mL": 5), else 0.
    """

    end: int
    dim: str
    factor: float
    offset: float
    show: str
    hours: float = 0.0
    form: bool = False
    pint: str = ""
    volume: float = 0.0


def measure_at(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> Measure | None:
    """The unit that begins at this token (after an optional hyphen or bracket), or None."""
    start = index
    if index >= len(tokens):
        return None
    bracket = tokens[index].text == "(" and index + 1 < len(tokens)
    if bracket or (
        tokens[index].text == "-"
        and glued(tokens, index)
        and glued(tokens, index + 1 if index + 1 < len(tokens) else index)
    ):
        start = index + 1
    found = _atom(tokens, start, lexicon)
    if found is None:
        return _bare_per(tokens, index, lexicon)
    end, unit = found
    if unit.only_per and not _per_follows(tokens, end, lexicon):
        return None
    measure = _denominators(tokens, end, unit, lexicon)
    if bracket:
        if measure.end >= len(tokens) or tokens[measure.end].text != ")":
            return None
        measure = _moved(measure, measure.end + 1)
    return measure


def _moved(measure: Measure, end: int) -> Measure:
    return replace(measure, end=end, pint="")


def _atom(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> tuple[int, Unit] | None:
    found = lexicon.units.at(tokens, index)
    if found is None:
        return None
    end, unit = found
    if unit.id == "degree" and end < len(tokens) and tokens[end].text == "of":
        return None
    return end, unit


def _bare_per(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> Measure | None:
    """ "70/min", "240,000/µL", "12 per minute": a count per something."""
    found = lexicon.per.at(tokens, index)
    if found is None or tokens[index].lower not in ("/", "per"):
        return None
    below = _denominator(tokens, found[0], lexicon)
    if below is None:
        return None
    end, unit, number = below
    if unit.kind == "time":
        if unit.id not in ("minute", "second"):
            return None
        return Measure(end, "beats", 1.0, 0.0, f"/{unit.id}", unit.factor * number)
    if unit.kind not in ("volume", "field of view"):
        return None
    return Measure(end, f"count/{unit.kind}", 1 / (unit.factor * number), 0.0, f"/{unit.id}")


def _per_follows(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> bool:
    if index < len(tokens) and lexicon.per.at(tokens, index):
        return True
    return _far_per(tokens, index, lexicon) > 0


def _denominators(tokens: Sequence[Token], end: int, unit: Unit, lexicon: Lexicon) -> Measure:
    dim, factor, offset, show, hours = unit.kind, unit.factor, unit.offset, unit.id, unit.hours
    first, volume = end, 0.0
    while True:
        begin = _joined(tokens, end, dim, lexicon)
        if not begin and end == first:
            begin = _far_per(tokens, end, lexicon)
        below = _denominator(tokens, begin, lexicon) if begin else None
        if below is None:
            break
        stop, part, number = below
        if part.kind == "time":
            if hours or dim == "time":
                break
            halved = [token.lower for token in tokens[stop : stop + 3]] == ["and", "a", "half"]
            number, stop = (number + 0.5, stop + 3) if halved else (number, stop)
            hours = part.factor * number
            show += f"/{part.id}" if number == 1 else f"/{number:g} {part.id}"
        elif number in lexicon.pack.ignored_denominators:
            pass
        else:
            kind = "weight" if part.id in ("kg", "lb") else part.kind
            if part.form or kind in ("doses", "puff"):
                kind = ""
            share = 1.0 if kind in ("weight", "") else part.factor * number
            if not _LEAST < factor / share < 1 / _LEAST:
                break
            factor /= share
            dim = f"{dim}/{kind}" if kind else dim
            volume = part.factor * number if part.kind == "volume" and number != 1 else volume
            if part.id == "lb":
                factor /= 0.4535924
            show += f"/{part.id}" if number == 1 else f"/{number:g} {part.id}"
        end = stop
    return Measure(
        end, dim, factor, offset, show, hours, unit.form, unit.pint if end == first else "", volume
    )


def _joined(tokens: Sequence[Token], end: int, dim: str, lexicon: Lexicon) -> int:
    """Where the denominator begins if one follows at once, else 0."""
    if end >= len(tokens):
        return 0
    found = lexicon.per.at(tokens, end)
    if found and dim != "time":
        return found[0]
    if tokens[end].lower in ("in", "over", "within") and dim != "time":
        below = _denominator(tokens, end + 1, lexicon)  # "2 g in 24 h"
        if below and dim in _SOLUTES and tokens[end].lower == "in" and below[1].kind == "volume":
            return end + 1 if below[1].factor * below[2] <= _SPOONFUL else 0  # "100 mg in 5 mL"
        return end + 1 if below and below[1].kind == "time" and below[1].factor * below[2] == _DAY else 0
    if tokens[end].lower in ("a", "an", "each", "every") and dim != "time" and end + 1 < len(tokens):
        unit = _single(tokens, end + 1, lexicon)
        return end + 1 if unit and unit[1].kind == "time" and unit[1].id not in ("month", "year") else 0
    return 0


def _single(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> tuple[int, Unit] | None:
    """The unit here, unless it is the ordinal of "every second day"."""
    if tokens[index].lower in lexicon.pack.ordinals and time_at(tokens, index + 1, lexicon):
        return None
    return lexicon.units.at(tokens, index)


def _far_per(tokens: Sequence[Token], end: int, lexicon: Lexicon) -> int:
    """ "50 copies of HIV-1 RNA per mL": where the denominator begins, else 0."""
    if end >= len(tokens) or tokens[end].lower != "of":
        return 0
    for at in range(end + 1, min(end + 1 + _SKIP, len(tokens))):
        lower = tokens[at].lower
        if lower in _BREAKS or lower in lexicon.words or (lower[0].isdecimal() and not glued(tokens, at)):
            return 0
        found = lexicon.per.at(tokens, at)
        begin = found[0] if found else at + 1 if lower in ("each", "every") else 0
        if begin and begin < len(tokens):
            if _single(tokens, begin, lexicon) is None and not found:
                return 0
            unit = _denominator(tokens, begin, lexicon)
            return begin if unit and (unit[1].kind != "time" or unit[2] == 1) else 0
    return 0


def _denominator(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> tuple[int, Unit, float] | None:
    if index >= len(tokens):
        return None
    number = 1.0
    start = index
    found = None
    if tokens[index].text[0].isdecimal() or tokens[index].lower in lexicon.words:
        read = number_at(tokens, index, lexicon)
        if read is None or read.value <= 0:
            return None
        number, start = read.value, read.end
    elif tokens[index].lower in ("a", "an"):
        start = index + 1
    if start < len(tokens):
        if tokens[start].text == "-" and start + 1 < len(tokens):
            start += 1
        found = lexicon.units.at(tokens, start)
    if found is None or found[1].offset:
        return None
    return found[0], found[1], number


def time_at(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> tuple[int, Unit] | None:
    """A unit of time at this token ("-hour", "days"), with (end, unit); None if there is none."""
    if index < len(tokens) and tokens[index].text == "-" and index + 1 < len(tokens):
        index += 1
    if index >= len(tokens):
        return None
    found = lexicon.units.at(tokens, index)
    return found if found and found[1].kind == "time" else None

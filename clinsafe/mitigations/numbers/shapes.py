"""The shapes of a quantity beside number and unit: ranges, pairs, ratios, shares, feet and inches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clinsafe.mitigations.numbers.exclude import clock_or_date, text_at
from clinsafe.mitigations.numbers.lexicon import Lexicon
from clinsafe.mitigations.numbers.units import Measure, measure_at
from clinsafe.mitigations.numbers.values import Number, glued, number_at
from clinsafe.text import Token

_JOINTS = frozenset(["/", "over", ":", "per", "in", "'", "out", "of", "for"])
_SHARES = frozenset([10.0, 100.0, 1000.0, 10000.0, 100000.0, 1000000.0])
_COMPOUND = {
    "foot": ("inch",), "stone": ("lb",), "lb": ("oz",), "hour": ("minute",), "week": ("day",), "day": ("hour",),
    "year": ("month",), "month": ("week", "day"), "minute": ("second",),
}  # fmt: skip


@dataclass(slots=True)
class Quantity:
    """A number with its unit at tokens ``[start, end)``.

    Attributes:
        low, high: as printed; equal for one number. sign: "<" or ">" for a limit.
        measure: its unit, None for a bare number.
        kind: value, pair (a/b), ratio (1:N), share (a per b), count (a of b), part (a quarter of b).
        second: the other number of a pair, ratio, share, count or part. times: how many of it ("four 75 mg tablets").
        lead: where the words of its limit begin, -1 without. strength: a dose form follows ("75 mg tablets").
    """

    start: int
    end: int
    low: float
    high: float
    sign: str = ""
    measure: Measure | None = None
    kind: str = "value"
    second: float = 0.0
    times: float = 1.0
    decimals: int = 0
    words: bool = False
    notes: tuple[str, ...] = ()
    lead: int = -1
    strength: bool = False


def special_of(tokens: Sequence[Token], number: Number, lexicon: Lexicon) -> Quantity | None:
    """Pairs, ratios, shares, feet and inches."""
    at = number.end
    joint = text_at(tokens, at)
    for _ in range(2):  # "34 bleeds per 100", "34 bleeds occurred for every 100"
        if joint.isalpha() and joint not in _JOINTS and not lexicon.units.at(tokens, at):
            at, joint = at + 1, text_at(tokens, at + 1)
    if at > number.end and joint not in ("per", "for"):
        return None
    if joint not in _JOINTS:
        return None
    skip = at + 1
    while joint in ("in", "out", "for", "per", "of") and text_at(tokens, skip) in (
        "of",
        "every",
        "each",
        "a",
        "the",
    ):
        skip += 1
    other = number_at(tokens, skip, lexicon) if skip < len(tokens) else None
    if other is None:
        return None
    if joint == "'":
        return _feet(tokens, number, other)
    if joint in ("/", "over"):
        return _pair(tokens, number, other, joint, lexicon)
    if joint == ":":
        return Quantity(number.start, other.end, number.value, number.value, kind="ratio", second=other.value)
    return _share(tokens, number, other, joint, lexicon)


def _feet(tokens: Sequence[Token], number: Number, other: Number) -> Quantity | None:
    if not (glued(tokens, number.end) and 3 <= number.value <= 7 and other.value < 12):
        return None
    end = other.end
    while text_at(tokens, end) in ('"', "'"):
        end += 1
    inches = number.value * 12 + other.value
    return Quantity(number.start, end, inches, inches, "", Measure(end, "length", 25.4, 0.0, "inch"))


def _pair(
    tokens: Sequence[Token], number: Number, other: Number, joint: str, lexicon: Lexicon
) -> Quantity | None:
    """ "120/80", "140 over 90 mmHg", "500/125 mg"."""
    measure = measure_at(tokens, other.end, lexicon)
    if measure and measure.dim == "time":
        measure = None
    if joint == "over":
        pressure = number.value >= 50 and 20 <= other.value < number.value <= 320
        if not pressure or (measure and measure.dim != "pressure"):
            return None
    elif not (glued(tokens, number.end) and glued(tokens, other.start)) or text_at(tokens, other.end) == "/":
        return None  # set apart, or a date or a chain of parts
    end = measure.end if measure else other.end
    return Quantity(number.start, end, number.value, number.value, "", measure, "pair", other.value)


def _share(
    tokens: Sequence[Token], number: Number, other: Number, joint: str, lexicon: Lexicon
) -> Quantity | None:
    """ "18 per 100", "1 in 20", "24 of 30"."""
    if other.value < number.value or other.value <= 0 or measure_at(tokens, other.end, lexicon):
        return None
    rounded = other.value in _SHARES
    if joint in ("per", "for") and not rounded:
        return None
    if joint == "in" and not rounded and number.value != 1 and text_at(tokens, number.end + 1) != "every":
        return None
    if joint == "of" and 0 < number.value < 1:  # "a quarter of the 48"
        part = number.value * other.value
        return Quantity(number.start, other.end, part, part, kind="part", second=other.value)
    kind = "count" if joint in ("of", "out") and not rounded else "share"
    return Quantity(number.start, other.end, number.value, number.value, kind=kind, second=other.value)


def spread(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> int:
    """End of the number in "57 ± 11" or "57 +/- 11", where `index` is after the first one; 0 without one."""
    if text_at(tokens, index) == "±":
        at = index + 1
    elif [text_at(tokens, index + step) for step in range(3)] == ["+", "/", "-"]:
        at = index + 3
    else:
        return 0
    other = number_at(tokens, at, lexicon) if at < len(tokens) else None
    return other.end if other else 0


def extend(tokens: Sequence[Token], quantity: Quantity, lexicon: Lexicon) -> None:
    """A range ("2-4 mg", "2 mg to 4 mg", "between 15 and 25"), or feet with inches."""
    at = quantity.end
    joint = text_at(tokens, at)
    before = text_at(tokens, quantity.start - 1)
    if joint in ("to", "-", "or", "through") or (joint == "and" and before == "between"):
        change = (
            joint == "to"
            and before == "from"
            and text_at(tokens, quantity.start - 2) not in lexicon.sets["range_words"]
        )
        if at + 1 < len(tokens) and not change and text_at(tokens, at + 1) != "a":
            _range(tokens, quantity, at + 1, lexicon)
    else:
        _compound(tokens, quantity, at + (joint == "and"), lexicon)


def _range(tokens: Sequence[Token], quantity: Quantity, at: int, lexicon: Lexicon) -> None:
    negative = text_at(tokens, at) in ("-", "minus")
    other = number_at(tokens, at + negative, lexicon) if at + negative < len(tokens) else None
    if other is None or clock_or_date(tokens, other, lexicon):
        return
    value = -other.value if negative else other.value
    measure = measure_at(tokens, other.end, lexicon)
    end = measure.end if measure else other.end
    own = quantity.measure
    if own and (measure is None or measure.dim != own.dim):
        return
    if own and measure and own.show != measure.show:  # "500 mg to 1 g" is 500 to 1000 mg
        value = (value * measure.factor + measure.offset - own.offset) / own.factor
        measure = own
    if value > quantity.high:
        quantity.high, quantity.end, quantity.measure = value, end, measure
        quantity.decimals = max(quantity.decimals, other.decimals)


def _compound(tokens: Sequence[Token], quantity: Quantity, at: int, lexicon: Lexicon) -> None:
    measure = quantity.measure
    if measure is None or measure.show not in _COMPOUND or at >= len(tokens):
        return
    other = number_at(tokens, at, lexicon)
    small = measure_at(tokens, other.end, lexicon) if other else None
    inches = other is not None and measure.show == "foot" and text_at(tokens, other.end) in ('"', "in")
    if other is None or not (inches or (small and small.show in _COMPOUND[measure.show])):
        return
    factor = small.factor if small else 25.4
    quantity.low = quantity.high = quantity.low + other.value * factor / measure.factor
    quantity.end = small.end if small else other.end + 1

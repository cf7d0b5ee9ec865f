"""Parts of a usual dose ("half the starting dose", "halve the dose") and numbered days ("drain out on day 4")."""

from __future__ import annotations

from collections.abc import Sequence

from clinsafe.mitigations.numbers.exclude import text_at
from clinsafe.mitigations.numbers.lexicon import Lexicon
from clinsafe.mitigations.numbers.shapes import Quantity
from clinsafe.mitigations.numbers.units import Measure
from clinsafe.mitigations.numbers.values import Number
from clinsafe.text import Token

DAY_NUMBER = "day number"
_DOSES = frozenset(["dose", "doses", "dosage", "dosages", "dosing"])
_BETWEEN = frozenset(["of", "the", "his", "her", "their", "a", "its", "your", "-"])
_REACH = 4  # words between a part and "dose"
_HALVED_REACH = 6  # words between "halved" and "dose"
_LAST_DAY = 120  # a larger number names no day of an illness
_MORE = frozenset(["and", "or", "to", "-", "–", ",", "/", "&", ":", "of"])


def part_of_dose(tokens: Sequence[Token], number: Number, lexicon: Lexicon) -> Quantity | None:
    """ "Three quarters of the usual dose" is 75 % of it; "reduced by a quarter" is left alone."""
    before = text_at(tokens, number.start - 1)
    if before == "a":
        before = text_at(tokens, number.start - 2)
    if not number.words or not 0 < number.value < 1 or before == "by":
        return None
    for at in range(number.end, min(number.end + _REACH, len(tokens))):
        lower = tokens[at].lower
        if lower in _DOSES:
            return _percent(number.start, at + 1, number.value * 100)
        if lower not in _BETWEEN and lower not in lexicon.sets["usual_doses"]:
            return None
    return None


def halved(tokens: Sequence[Token], index: int) -> list[Quantity]:
    """ "Halve the dose", "the dose was halved"; empty where no dose stands near."""
    near = tokens[max(0, index - _HALVED_REACH) : index + _HALVED_REACH]
    return [_percent(index, index + 1, 50.0)] if any(token.lower in _DOSES for token in near) else []


def _percent(start: int, end: int, value: float) -> Quantity:
    value = round(value, 1)
    return Quantity(start, end, value, value, "", Measure(end, "%", 1.0, 0.0, "%"), words=True)


def day_number(tokens: Sequence[Token], number: Number) -> Quantity | None:
    """The 4 of "drain out on day 4"; a heading ("Day 3: …") and a series ("day 1 and 8") name no one day."""
    start, end = number.start, number.end
    whole = number.value.is_integer() and 0 < number.value <= _LAST_DAY
    if not whole or text_at(tokens, start - 1) not in ("day", "pod") or text_at(tokens, start - 2) == "per":
        return None
    if not text_at(tokens, start - 2).isalpha():
        return None
    joins = text_at(tokens, end) in _MORE and (
        text_at(tokens, end) in (":", "-", "–") or text_at(tokens, end + 1)[:1].isdecimal()
    )
    if joins or text_at(tokens, start - 3)[:1].isdecimal() or text_at(tokens, end) in ("and", "or"):
        return None
    measure = Measure(end, DAY_NUMBER, 1.0, 0.0, "day")
    return Quantity(start, end, number.value, number.value, "", measure, kind="day")

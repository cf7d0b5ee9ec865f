"""One walk through a sentence: quantities with their units and limits, and schedules. Knows no drug."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from clinsafe.mitigations.numbers.exclude import aged, clock_or_date, is_age, names_something, text_at
from clinsafe.mitigations.numbers.lexicon import Lexicon
from clinsafe.mitigations.numbers.parts import day_number, halved, part_of_dose
from clinsafe.mitigations.numbers.schedule import Every, counts, schedule_at
from clinsafe.mitigations.numbers.shapes import Quantity, extend, special_of, spread
from clinsafe.mitigations.numbers.units import Measure, measure_at
from clinsafe.mitigations.numbers.values import Number, glued, number_at
from clinsafe.text import Token

_MOST = 400  # quantities of one sentence; a longer one is cut before, and each takes a number and a unit
_FROM_NOW = frozenset(("from", word) for word in ("now", "today", "then", "this", "tomorrow"))
_SHARED = frozenset([",", "and", "or", "to", "then", "/"])


@dataclass(slots=True)
class Scanned:
    """What a sentence holds; `counted`: whether numbers in it may begin schedules."""

    quantities: list[Quantity] = field(default_factory=list)
    schedules: list[Every] = field(default_factory=list)
    counted: bool = True


def scan(tokens: Sequence[Token], lexicon: Lexicon) -> Scanned:
    """Quantities and schedules of a sentence, left to right; what is read as one of them is not read again."""
    found = Scanned(counted=counts(tokens, lexicon))
    index, sign, signed_at, signed_from = 0, "", -1, 0
    openers = lexicon.sets["openers"]
    while index < len(tokens) and len(found.quantities) < _MOST:
        token = tokens[index]
        lower = token.lower
        digit = lower[0].isdecimal()
        if not (digit or lower in openers or lower[0] == "q") or (
            lower in ".-" and not text_at(tokens, index + 1)[:1].isdecimal()
        ):
            index += 1
            continue
        limit = None if digit else lexicon.before.at(tokens, index)
        if limit and lower == "up" and _raises(tokens, index, lexicon):
            limit = None  # "stepped up to 200 mg"
        if limit:
            sign, signed_at, signed_from = limit[1], limit[0] + (text_at(tokens, limit[0]) == "="), index
            index = signed_at
            continue
        count, signed = len(found.quantities), index == signed_at
        index = _step(tokens, index, sign if signed else "", found, lexicon)
        if signed and len(found.quantities) > count:
            found.quantities[-1].lead = signed_from
    return found


def _raises(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> bool:
    before = tokens[max(0, index - 8) : index]
    return any(token.lower in lexicon.sets["raising"] or token.lower.endswith("ped") for token in before)


def _step(tokens: Sequence[Token], index: int, sign: str, found: Scanned, lexicon: Lexicon) -> int:
    """Read what begins here; the next token to look at."""
    lower = tokens[index].lower
    spans = lower in ("a", "an") and _is_span(tokens, index, lexicon)
    every = None if spans else schedule_at(tokens, index, lexicon, found.counted)
    if every:
        found.schedules.append(every)
        return every.end
    if lower in ("a", "an"):
        return _article(tokens, index, found, lexicon)
    if lower in lexicon.sets["halving"]:
        found.quantities += halved(tokens, index)
        return index + 1
    return _number(tokens, index, sign, found, lexicon)


def _number(tokens: Sequence[Token], index: int, sign: str, found: Scanned, lexicon: Lexicon) -> int:
    """Read the number that begins here; the next token to look at."""
    lower, start = tokens[index].lower, index
    negative = lower == "minus" or (lower == "-" and not glued(tokens, index))
    if negative:
        index += 1
        if index >= len(tokens) or (lower == "-" and not glued(tokens, index)):
            return index
    elif lower == "-":
        return index + 1
    number = number_at(tokens, index, lexicon)
    if number is None:
        return index + 1
    end = clock_or_date(tokens, number, lexicon)
    if end:
        return end
    if negative:
        number = number._replace(value=-number.value, start=start)
    quantity = _quantity(tokens, number, sign, lexicon)
    if quantity is None:
        return number.end
    _append(tokens, found, quantity, lexicon)
    return quantity.end


def _is_span(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> bool:
    """Whether "a week" is so long and no schedule: "for a fortnight", "a year from now", "a month later"."""
    if text_at(tokens, index - 1) in lexicon.sets["span_before"]:
        return True
    after = [text_at(tokens, index + step) for step in (2, 3)]
    return after[0] in lexicon.sets["span_surely_after"] or tuple(after) in _FROM_NOW


def _article(tokens: Sequence[Token], index: int, found: Scanned, lexicon: Lexicon) -> int:
    """ "in a week", "an hour later", "half an hour" is read elsewhere: one of a unit of time."""
    whole = text_at(tokens, index + 1) in lexicon.sets["whole_spans"]  # "a whole week", "a full year"
    unit = lexicon.units.at(tokens, index + 1 + whole)
    if unit is None or unit[1].kind != "time":
        return index + 1
    before, after = text_at(tokens, index - 1), text_at(tokens, unit[0])
    if after[:1].isdecimal():
        return unit[0]  # "a day 3 peak"
    if whole or before in lexicon.sets["span_before"] or after in lexicon.sets["span_after"]:
        measure = measure_at(tokens, index + 1 + whole, lexicon)
        if measure and not is_age(tokens, index, measure, lexicon):
            more = _and_a_half(tokens, measure.end)
            many = 1.5 if more else 1.0
            found.quantities.append(Quantity(index, more or measure.end, many, many, "", measure, words=True))
            return more or unit[0]
    return unit[0]


def _and_a_half(tokens: Sequence[Token], index: int) -> int:
    """The end of "and a half" at this token ("a month and a half"), else 0."""
    words = [text_at(tokens, index + step) for step in range(3)]
    return index + 3 if words == ["and", "a", "half"] else 0


def _quantity(tokens: Sequence[Token], number: Number, sign: str, lexicon: Lexicon) -> Quantity | None:
    start = number.start
    part = part_of_dose(tokens, number, lexicon)
    if part:
        return part
    measure = _measure(tokens, number, lexicon)
    after = spread(tokens, measure.end if measure else number.end, lexicon)
    if after:  # "57 ± 11 %" is one value
        measure = measure_at(tokens, after, lexicon) or (replace(measure, end=after) if measure else None)
        number = number._replace(end=after)
    if (
        measure
        and measure.dim == "time"
        and text_at(tokens, start - 1) in lexicon.sets["labels"]
        and text_at(tokens, measure.end)[:1].isdecimal()
    ):
        return None  # "cycle 1 day 1"
    special = None if measure else special_of(tokens, number, lexicon)
    if special:
        special.sign = special.sign or sign
        return special
    quantity = Quantity(
        start, measure.end if measure else number.end, number.value, number.value, sign, measure,
        decimals=number.decimals, words=number.words, notes=(number.note,) if number.note else (),
    )  # fmt: skip
    extend(tokens, quantity, lexicon)
    if quantity.measure is None:
        quantity.measure = _borrowed(tokens, quantity.end, lexicon)
    if quantity.measure is None and (
        names_something(tokens, number, lexicon) or aged(tokens, start, lexicon)
    ):
        return day_number(tokens, number)
    if (
        quantity.measure
        and quantity.measure.dim == "time"
        and is_age(tokens, start, quantity.measure, lexicon)
    ):
        quantity.kind = "age"
    _limit(tokens, quantity, lexicon)
    return quantity


def _borrowed(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> Measure | None:
    """The unit of the next number, where two or more share one: "from 212 to 14 mg/L", "24.6 and 24.4 mm"."""
    for _ in range(3):
        if text_at(tokens, index) not in _SHARED:
            return None
        index += 1
        index += text_at(tokens, index) in ("and", "then", "or", "to")
        number = number_at(tokens, index, lexicon) if index < len(tokens) else None
        if number is None or clock_or_date(tokens, number, lexicon):
            return None
        measure = _measure(tokens, number, lexicon)
        if measure:
            return None if measure.dim in ("time", "doses") or measure.form else measure
        index = number.end
    return None


def _degrees(tokens: Sequence[Token], number: Number, lexicon: Lexicon) -> Measure | None:
    """ "T 38.5 C": a letter that is a unit only at a body's temperature; "97F" is a woman of 97."""
    if number.end >= len(tokens) or number.words:
        return None
    limits = lexicon.pack.bare_degrees.get(tokens[number.end].text)
    if limits is None or not limits[0] <= number.value <= limits[1]:
        return None
    if glued(tokens, number.end) and not number.decimals:
        return None
    unit = lexicon.named[f"°{tokens[number.end].text}"]
    return Measure(number.end + 1, unit.kind, unit.factor, unit.offset, unit.id)


def _measure(tokens: Sequence[Token], number: Number, lexicon: Lexicon) -> Measure | None:
    at = number.end
    if number.words and 0 < number.value < 1:
        at += text_at(tokens, at) == "of"
        at += text_at(tokens, at) in ("a", "an", "the")
    return measure_at(tokens, at, lexicon) or _degrees(tokens, number, lexicon)


def _limit(tokens: Sequence[Token], quantity: Quantity, lexicon: Lexicon) -> None:
    after = lexicon.after.at(tokens, quantity.end)
    measure = quantity.measure
    if after and not quantity.sign:
        quantity.sign, quantity.end = after[1], after[0]
    if (
        quantity.sign == ">"
        and measure
        and measure.dim == "time"
        and text_at(tokens, quantity.start - 1) == "over"
    ):
        quantity.sign = ""


def _append(tokens: Sequence[Token], found: Scanned, quantity: Quantity, lexicon: Lexicon) -> None:
    """Join "four 75 mg tablets" and "2 x 75 mg", then keep it."""
    previous = found.quantities[-1] if found.quantities else None
    if previous and previous.measure and quantity.measure is None and quantity.kind == "value":
        gap = [token.lower for token in tokens[previous.end : quantity.start]]
        if gap[-1:] == ["to"] and len(gap) <= 2:
            quantity.measure = previous.measure  # "from 6.2 mmol/L down to 2.1"
    if (
        previous
        and previous.measure is None
        and previous.kind == "value"
        and quantity.measure
        and previous.low <= 30
    ):
        gap = [token.lower for token in tokens[previous.end : quantity.start]]
        if gap in (["x"], ["*"]):
            if quantity.measure.dim == "length":
                previous.measure = quantity.measure
            else:
                found.quantities.pop()
                quantity.times, quantity.start = previous.low, previous.start
        elif (
            len(gap) <= 3
            and all(word.isalpha() for word in gap)
            and _form_follows(tokens, quantity.end, lexicon)
            and float(previous.low).is_integer()
        ):
            found.quantities.pop()
            quantity.times = previous.low
            quantity.start = previous.start if len(gap) == 0 else quantity.start
    if previous and previous.measure and quantity.measure and quantity.measure.hours and quantity.times == 1:
        words = [token.lower for token in tokens[previous.end : quantity.start]]
        if (
            (previous.measure.form or previous.measure.dim == "doses")
            and words[:1] == ["of"]
            and len(words) <= 4
        ):
            quantity.times = previous.high  # "two doses of ibuprofen 400 mg a day"
    quantity.strength = (
        quantity.measure is not None
        and not quantity.measure.form
        and _form_follows(tokens, quantity.end, lexicon)
    )
    found.quantities.append(quantity)


def _form_follows(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> bool:
    for at in range(index, min(index + 4, len(tokens))):
        if tokens[at].text in ",;.:":
            return False
        unit = lexicon.units.at(tokens, at)
        if unit and unit[1].form:
            return True
    return False

"""One number at one place: digits, thousands, decimal commas, powers of ten, fractions and number words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import log10
from typing import NamedTuple

from clinsafe.mitigations.numbers.lexicon import Lexicon
from clinsafe.text import Token

_LONGEST = 15  # digits; a longer run names something and counts nothing
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DENOMINATORS = frozenset(["2", "3", "4", "5", "8", "10"])
_PARTS = frozenset(["quarters", "thirds", "tenths", "halves"])
_LOST_POWERS = {"103": 3.0, "106": 6.0, "109": 9.0, "1012": 12.0}


class Number(NamedTuple):
    """A number read at tokens ``[start, end)``.

    Attributes:
        value: the number. decimals: place of the last printed digit, below 0 before the point ("4.1 x 10^9": -8).
        words: written in words. note: ``naked``, ``trailing`` or ``comma`` where it is written dangerously.
    """

    start: int
    end: int
    value: float
    decimals: int = 0
    words: bool = False
    note: str = ""


@lru_cache(maxsize=8192)
def digits(text: str) -> tuple[float, int, str] | None:
    """(value, decimals, note) of a token of digits, points and commas; None if it is no number."""
    if len(text) > _LONGEST:
        return None
    note = ""
    if "," in text:
        if _THOUSANDS.fullmatch(text) and not text.startswith("0"):
            text = text.replace(",", "")
        elif text.count(",") == 1 and "." not in text:
            text, note = text.replace(",", "."), "comma"
        else:
            return None
    if text.count(".") > 1:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    decimals = len(text.partition(".")[2])
    if decimals and text.endswith("0") and not note and float(text).is_integer():
        note = "trailing"
    return value, decimals, note


def glued(tokens: Sequence[Token], index: int) -> bool:
    """Whether this token follows the one before without a space."""
    return index > 0 and tokens[index - 1].end == tokens[index].start


def number_at(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> Number | None:
    """The number that begins at this token, without its sign; None if there is none."""
    token = tokens[index]
    first = token.text[0]
    if first.isdecimal():
        found = _written(tokens, index)
    elif token.text == "." and _is_naked(tokens, index):
        read = digits("0." + tokens[index + 1].text) if tokens[index + 1].text.isdecimal() else None
        found = Number(index, index + 2, read[0], read[1], False, "naked") if read else None
    elif (
        token.lower in lexicon.words
        or token.lower in lexicon.pack.multipliers
        or token.lower in lexicon.pack.fractions
    ):
        return _spelled(tokens, index, lexicon)
    else:
        return None
    return _times(tokens, found, lexicon) if found else None


def _is_naked(tokens: Sequence[Token], index: int) -> bool:
    after = index + 1 < len(tokens) and tokens[index + 1].text[0].isdecimal() and glued(tokens, index + 1)
    return after and not (glued(tokens, index) and tokens[index - 1].text[-1].isalnum())


def _written(tokens: Sequence[Token], index: int) -> Number | None:
    read = digits(tokens[index].text)
    if read is None:
        return None
    value, decimals, note = read
    end = index + 1
    if not decimals:
        value, end = _groups(tokens, index, value)
    fraction = _fraction(tokens, end - 1 if end == index + 1 else end)
    if end == index + 1 and fraction:
        return Number(index, index + 3, fraction, 2)
    if end < len(tokens) and not decimals and (part := _fraction(tokens, end)) and not glued(tokens, end):
        return Number(index, end + 3, value + part, 2)
    return Number(index, end, value, decimals, False, note)


def _groups(tokens: Sequence[Token], index: int, value: float) -> tuple[float, int]:
    """Thousands set apart by one space: 240 000."""
    if len(tokens[index].text) > 3 or "," in tokens[index].text:
        return value, index + 1
    end = index + 1
    while (
        end < len(tokens)
        and len(tokens[end].text) == 3
        and tokens[end].text.isdecimal()
        and tokens[end].start - tokens[end - 1].end == 1
    ):
        end += 1
    if end == index + 1 or (
        tokens[index + 1].text != "000" and end == index + 2 and not _counted(tokens, end)
    ):
        return value, index + 1
    read = digits("".join(token.text for token in tokens[index:end]))
    return (read[0], end) if read else (value, index + 1)


def _counted(tokens: Sequence[Token], index: int) -> bool:
    return index < len(tokens) and tokens[index].lower in (
        "/",
        "per",
        "copies",
        "cells",
        "iu",
        "units",
        "international",
    )


def _fraction(tokens: Sequence[Token], index: int) -> float:
    """Value of "1/2" at this token, 0 if there is none."""
    if index + 2 >= len(tokens) or tokens[index + 1].text != "/":
        return 0.0
    top, bottom = tokens[index].text, tokens[index + 2].text
    if bottom not in _DENOMINATORS or not top.isdecimal() or len(top) > 1 or not glued(tokens, index + 2):
        return 0.0
    if index + 3 < len(tokens) and tokens[index + 3].text == "/":
        return 0.0
    return int(top) / int(bottom) if 0 < int(top) < int(bottom) and int(bottom) <= 8 else 0.0


def _times(tokens: Sequence[Token], number: Number, lexicon: Lexicon) -> Number:
    """What multiplies it: "5 million", "4.1 x 10^9", "1e3"."""
    index = number.end
    if index >= len(tokens):
        return number
    lower = tokens[index].lower
    if lower in lexicon.pack.multipliers:
        many = lexicon.pack.multipliers[lower]
        return _scaled(number, index + 1, number.value * many, log10(many))
    power, end = power_at(tokens, index)
    if end:
        return _scaled(number, end, float(f"{number.value * 10**power:.12g}"), power)
    if (
        number.value == 10
        and number.end == number.start + 1
        and lower in ("^", "*")
        and index + 1 < len(tokens)
    ):
        read = digits(tokens[index + 1].text)
        if read and read[0] <= 15:
            return number._replace(end=index + 2, value=10 ** read[0])
    return number


def _scaled(number: Number, end: int, value: float, power: float) -> Number:
    """Its last printed digit moves with it: 4.1 x 10^9 is printed to 10^8."""
    return number._replace(end=end, value=value, decimals=number.decimals - round(power))


def power_at(tokens: Sequence[Token], index: int) -> tuple[float, int]:
    """(power, end) of "x 10^9" in its many spellings; end 0 if there is none."""
    lower = tokens[index].lower
    rest = [token.lower for token in tokens[index : index + 7]]
    if lower.startswith("e") and lower[1:].isdecimal() and len(lower) <= 3 and glued(tokens, index):
        return float(lower[1:]), index + 1
    if lower in ("x", "*"):
        rest = rest[1:]
        start = index + 1
    elif lower.startswith("x1") and lower[1:].isdecimal():
        rest[0] = lower[1:]
        start = index
    else:
        return 0.0, 0
    if not rest:
        return 0.0, 0
    if rest[0] in _LOST_POWERS and len(rest) > 1 and rest[1] in ("/", "per"):
        return _LOST_POWERS[rest[0]], start + 1
    if rest[0] != "10":
        return 0.0, 0
    return _power_sign(rest, start)


def _power_sign(rest: Sequence[str], start: int) -> tuple[float, int]:
    signs = {"^": 2, "*": 2, "e": 2, "(": 2}
    if len(rest) > 2 and rest[1] in signs:
        at = 2
        minus = rest[at] == "-" and len(rest) > 3
        at += minus
        read = digits(rest[at]) if rest[at][0].isdecimal() else None
        if read and read[0] <= 15:
            end = start + at + 1
            closed = rest[1] == "(" and at + 1 < len(rest) and rest[at + 1] == ")"
            return (-read[0] if minus else read[0]), end + closed
    if len(rest) > 2 and rest[1] in ("3", "6", "9", "12") and rest[2] in ("/", "per"):
        return float(rest[1]), start + 2
    return 0.0, 0


def _spelled(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> Number | None:
    """A number in words: "twenty-five", "one hundred and twenty", "two and a half", "two point five"."""
    total, end = _whole(tokens, index, lexicon)
    if end > index:
        value, end = _tail(tokens, total, end, lexicon)
        return Number(index, end, value, 0, True)
    lower = tokens[index].lower
    if lower in lexicon.pack.fractions and lower != "third":
        return Number(index, index + 1, lexicon.pack.fractions[lower], 2, True)
    if lower in ("dozen", "hundred", "thousand") and lower in lexicon.pack.multipliers:
        return Number(index, index + 1, lexicon.pack.multipliers[lower], 0, True)
    return None


def _whole(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> tuple[float, int]:
    total = part = 0.0
    at = end = index
    while at < len(tokens) and at - index < 14:
        lower = tokens[at].lower
        if lower in lexicon.words:
            value = lexicon.words[lower]
            if end > index and not _continues(part, value) and not (total and not part):
                break
            part += value
        elif lower in lexicon.pack.multipliers and end > index:
            many = lexicon.pack.multipliers[lower]
            if many >= 1000:
                total, part = total + part * many, 0.0
            else:
                part *= many
        elif end > index and lower in ("-", "and") and _goes_on(tokens, at, part, total, lexicon):
            at += 1
            continue
        else:
            break
        at += 1
        end = at
    return total + part, end


def _goes_on(tokens: Sequence[Token], at: int, part: float, total: float, lexicon: Lexicon) -> bool:
    if at + 1 >= len(tokens) or tokens[at + 1].lower not in lexicon.words:
        return False
    value = lexicon.words[tokens[at + 1].lower]
    if tokens[at].lower == "-":
        return _continues(part, value) and part % 100 >= 20
    return (part >= 100 and part % 100 == 0 and value < 100) or (total >= 1000 and part == 0 and value < 1000)


def _continues(part: float, value: float) -> bool:
    """Whether a word of this value can go on a number of that value: twenty + five, hundred + twenty."""
    if value >= 10:
        return part >= 100 and part % 100 == 0
    return value > 0 and part >= 20 and part % 10 == 0


def _tail(tokens: Sequence[Token], value: float, end: int, lexicon: Lexicon) -> tuple[float, int]:
    lowers = [token.lower for token in tokens[end : end + 4]]
    if lowers[:1] == ["point"]:
        text = ""
        at = 1
        while at < len(lowers) and lowers[at] in lexicon.words and lexicon.words[lowers[at]] < 10:
            text += str(int(lexicon.words[lowers[at]]))
            at += 1
        return (value + float("0." + text), end + at) if text else (value, end)
    if lowers[:2] == ["and", "a"] and len(lowers) > 2 and lowers[2] in lexicon.pack.fractions:
        return value + lexicon.pack.fractions[lowers[2]], end + 3
    parts = lexicon.pack.fractions
    if lowers[:1] and lowers[0] in _PARTS and lowers[0] in parts:
        return value * parts[lowers[0]], end + 1
    if lowers[:1] == ["-"] and len(lowers) > 1 and lowers[1] in _PARTS and lowers[1] in parts:
        return value * parts[lowers[1]], end + 2
    return value, end

"""Numbers that are no quantities of the claim: clock times, dates, labels (stage 3), names (COVID-19), ages."""

from __future__ import annotations

from collections.abc import Sequence

from clinsafe.mitigations.numbers.lexicon import Lexicon
from clinsafe.mitigations.numbers.units import Measure
from clinsafe.mitigations.numbers.values import Number, glued
from clinsafe.text import Token

_COMPARED = frozenset(
    ["<", ">", "=", "≥", "≤", "or", "least", "at", "most", "over", "under", "above", "below", "than", "more", "less",
     "about", "approximately", "around", "up"]
)  # fmt: skip


def text_at(tokens: Sequence[Token], index: int) -> str:
    """Lower-cased token, "" beyond either end."""
    return tokens[index].lower if 0 <= index < len(tokens) else ""


def clock_or_date(tokens: Sequence[Token], number: Number, lexicon: Lexicon) -> int:
    """End of the clock time or date that begins with this number, else 0."""
    return _clock(tokens, number, lexicon) or _date(tokens, number, lexicon)


def _clock(tokens: Sequence[Token], number: Number, lexicon: Lexicon) -> int:
    at = number.end
    after = text_at(tokens, at)
    if number.words and after in ("past", "to") and number.value in (0.25, 0.5):
        return at + 2
    if after == ":" and number.value < 25 and len(text_at(tokens, at + 1)) == 2 and glued(tokens, at + 1):
        minutes = tokens[at + 1].text
        if minutes.isdecimal() and int(minutes) < 60:
            return at + 2
    if number.value < 25 and after in lexicon.sets["clock"]:
        return at + 1
    if (
        number.value < 13
        and after in ("a", "p")
        and text_at(tokens, at + 1) == "."
        and text_at(tokens, at + 2) == "m"
    ):
        return at + 3
    return 0


def _date(tokens: Sequence[Token], number: Number, lexicon: Lexicon) -> int:
    at = number.end
    months = lexicon.sets["months"]
    if number.words or number.decimals:
        return 0
    after = text_at(tokens, at)
    if after in ("st", "nd", "rd", "th") and glued(tokens, at):
        return at + 1
    if after in months and number.value <= 31 and after not in ("mar", "may"):
        return at + 1
    if after in ("may", "mar") and number.value <= 31 and tokens[at].text[0].isupper():
        return at + 1
    if after in ("/", "-", ".") and text_at(tokens, at + 2) == after and glued(tokens, at):
        third = text_at(tokens, at + 3)
        if (
            text_at(tokens, at + 1).isdecimal()
            and third.isdecimal()
            and len(third) in (2, 4)
            and number.value <= 2100
        ):
            return at + 4
    whole = number.value.is_integer() and (number.value <= 31 or 1900 <= number.value < 2100)
    if whole and text_at(tokens, number.start - 1) in months:
        return at
    return at if _year(tokens, number) else 0


def _year(tokens: Sequence[Token], number: Number) -> bool:
    text = tokens[number.start].text
    if len(text) != 4 or not text.isdecimal() or not 1900 <= number.value < 2100:
        return False
    before = text_at(tokens, number.start - 1)
    return before in (
        "in",
        "since",
        "from",
        "of",
        "by",
        "until",
        "during",
        "year",
        "before",
        "after",
        "to",
        "and",
        "(",
        ",",
        "early",
        "late",
    )


def names_something(tokens: Sequence[Token], number: Number, lexicon: Lexicon) -> bool:
    """Whether a number without a unit is a label or part of a name."""
    start, at = number.start, number.end
    before = text_at(tokens, start - 1)
    if (
        before == "-"
        and glued(tokens, start)
        and start >= 2
        and glued(tokens, start - 1)
        and tokens[start - 2].text[-1].isalpha()
    ):
        return True
    if at < len(tokens) and glued(tokens, at) and tokens[at].text[0].isalpha() and not number.words:
        return True
    if before in ("-", ".", ":", "(", "#"):
        before = text_at(tokens, start - 2) if before != "#" else "#"
    return before in lexicon.sets["labels"] and not number.decimals


def is_age(tokens: Sequence[Token], start: int, measure: Measure, lexicon: Lexicon) -> bool:
    """Whether this span of time is an age or a gestation."""
    at = measure.end
    while text_at(tokens, at) in ("'", "s", "-"):
        at += 1
    if text_at(tokens, at) in lexicon.sets["age_after"]:
        return True
    if text_at(tokens, at) in ("/", "o", "of", "post"):
        following = text_at(tokens, at + 1)
        if following == "life" and measure.show in ("month", "year"):
            return False  # "gave 22 months of life"
        if following in lexicon.sets["age_of"] or following in ("o",) or text_at(tokens, at) == "o":
            return True
    return aged(tokens, start, lexicon)


def aged(tokens: Sequence[Token], start: int, lexicon: Lexicon) -> bool:
    """Whether words before the number make it an age ("aged 84", "a man of 81")."""
    for _ in range(4):  # "aged >= 65", "aged at least 65", "aged over 65"
        if text_at(tokens, start - 1) not in _COMPARED:
            break
        start -= 1
    before, second = text_at(tokens, start - 1), text_at(tokens, start - 2)
    if before in lexicon.sets["age_before"]:
        return True
    return before in ("of", "to", "and", "from", "-", "between") and (
        f"{second} {before}" in lexicon.sets["age_before"] or second in ("ages", "aged", "age")
    )

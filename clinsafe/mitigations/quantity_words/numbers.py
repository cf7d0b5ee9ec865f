"""Numbers in digits and in words, and whether they count things or measure them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from clinsafe.mitigations.quantity_words.lexicon import Lexicon
from clinsafe.text.tokens import Token

_FILLED = 4  # words between "of" and the size of the set


class Number(NamedTuple):
    """A whole or decimal number at tokens ``[start, end)``."""

    start: int
    end: int
    value: float


def numbers(tokens: Sequence[Token], lexicon: Lexicon) -> list[Number]:
    """All numbers, in digits or words, left to right; linear."""
    found: list[Number] = []
    words = lexicon.pack.numbers
    done = 0
    for index, token in enumerate(tokens):
        digit = token.text[0].isdigit()
        if index < done or not (digit or token.lower in words or token.lower == "a"):
            continue
        value = _digits(token) if digit else _word(tokens, index, lexicon)
        if value is None:
            continue
        done = index + 1
        if value >= 20 and not digit:
            done, value = _compound(tokens, index, value, lexicon)
        found.append(Number(index, done, value))
    return found


def _article(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> float | None:
    """ "a third of", "a quarter had": one third, one quarter."""
    after = [token.lower for token in tokens[index + 1 : index + 3]]
    return (
        1.0 if len(after) == 2 and after[0] in lexicon.pack.parts and of_or_verb(after[1], lexicon) else None
    )


def of_or_verb(word: str, lexicon: Lexicon) -> bool:
    """Whether a word after a fraction makes it a share: "a third of", "a third had"."""
    return word == "of" or word in lexicon.pack.count_verbs


def _digits(token: Token) -> float | None:
    plain = token.text.replace(",", "") if len(token.text) < 12 else ""
    try:
        return float(plain)
    except ValueError:
        return None


def _word(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> float | None:
    if tokens[index].lower == "one" and index and tokens[index - 1].lower in lexicon.each_before:
        return None  # "every one of", "no one": no number
    if tokens[index].lower == "a":
        return _article(tokens, index, lexicon)
    return lexicon.pack.numbers.get(tokens[index].lower)


def _compound(tokens: Sequence[Token], index: int, tens: float, lexicon: Lexicon) -> tuple[int, float]:
    at_ = index + 2 if index + 1 < len(tokens) and tokens[index + 1].text == "-" else index + 1
    unit = lexicon.pack.numbers.get(tokens[at_].lower, 0) if at_ < len(tokens) else 0
    return (at_ + 1, tens + unit) if 0 < unit < 10 else (index + 1, tens)


def whole_after(tokens: Sequence[Token], end: int, lexicon: Lexicon) -> float:
    """The size of the set named right after a share: "all five", "few of the ten"; 0 for none."""
    end = past_fillers(tokens, end, lexicon)
    near = numbers(tokens[end : end + 3], lexicon)
    if not near or near[0].start or near[0].value < 2 or measured(tokens[end : end + 4], near[0], lexicon):
        return 0
    return near[0].value


def past_fillers(tokens: Sequence[Token], at: int, lexicon: Lexicon) -> int:
    """The first token from `at` on that is no filler ("of the last 6"); looks a few words ahead."""
    stop = min(len(tokens), at + _FILLED)
    while at < stop and tokens[at].lower in lexicon.pack.fillers:
        at += 1
    return at


def measured(tokens: Sequence[Token], number: Number, lexicon: Lexicon) -> bool:
    """Whether a unit follows, or the number is one of a series ("day 3"), so that it counts nothing."""
    after = tokens[number.end].lower if number.end < len(tokens) else ""
    return (
        after in lexicon.not_after or labelled(tokens, number, lexicon) or number.value != int(number.value)
    )


def labelled(tokens: Sequence[Token], number: Number, lexicon: Lexicon) -> bool:
    """Whether the word before makes it one of a series ("day 3"); "at six weeks one in ten" does not."""
    if not number.start or tokens[number.start - 1].lower not in lexicon.not_before:
        return False
    first = tokens[number.start - 2] if number.start >= 2 and plural(tokens[number.start - 1].lower) else None
    return first is None or not (first.is_number or first.lower in lexicon.pack.numbers)


def plural(word: str) -> bool:
    """Whether a word looks like a plural."""
    return len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))

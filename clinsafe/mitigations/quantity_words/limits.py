"""Bounds on a count: "at least eight sessions", "no more than four doses", "two or fewer relapses".

A bound is read as counts from ``low`` to ``high`` of what is counted, brought into [0, 1] so that it is compared like a
share; only bounds on the same counted noun are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from clinsafe.mitigations.cues import Match
from clinsafe.mitigations.quantity_words.interval import Interval
from clinsafe.mitigations.quantity_words.lexicon import Cue, Lexicon
from clinsafe.mitigations.quantity_words.numbers import Number, numbers, plural
from clinsafe.text.tokens import Token

FAMILY = "limit"
_HALF = 20.0  # the count that comes to lie at one half
_LARGEST = 400  # a larger count is a laboratory's
_NOUN_REACH = 4  # words from the count to what is counted
_TOTALS = frozenset(
    ["of", "in", "out", "/", "%", "percent", "per", "-", "–", "to", ".", "×", "x", "°", "+", "*"]
)
_OWNERS = frozenset(["the", "his", "her", "their", "your", "my", "these", "those", "its"])
_STOPS = frozenset(
    [",", ";", ":", "(", ")", ".", "and", "or", "per", "with", "for", "on", "from", "at", "by"]
)


class Limit(NamedTuple):
    """A bound at tokens ``[start, end)`` on the count of `noun`, a key; `label` names it."""

    start: int
    end: int
    interval: Interval
    label: str
    noun: str


def limits(
    tokens: Sequence[Token], cues: Mapping[int, Match[Cue]], taken: frozenset[int], lexicon: Lexicon
) -> Iterator[Limit]:
    """The bounds of a sentence, left to right; `taken` are tokens of shares."""
    before = {match.end: match for match in cues.values() if match.value.kind in ("more", "less")}
    for number in numbers(tokens, lexicon):
        if number.start in taken or number.value != int(number.value) or not 0 < number.value <= _LARGEST:
            continue
        bound = _bound(tokens, number, before, lexicon)
        if bound is None:
            continue
        start, end, upward, closed = bound
        noun = _noun(tokens, max(end, number.end), lexicon, number.value == 1)
        if noun < 0:
            continue
        low = number.value + (0 if closed else 1) if upward else 0
        high = number.value - (0 if closed else 1)
        interval = Interval(_place(low), 1.0 if upward else _place(high))
        label = f"at least {low:.0f}" if upward else f"at most {high:.0f}"
        yield Limit(start, max(end, number.end), interval, label, tokens[noun].key)


def _place(count: float) -> float:
    """A count on the way from 0 to 1, evenly enough that neighbours stay apart."""
    return round(count / (count + _HALF), 6)


def _bound(
    tokens: Sequence[Token], number: Number, before: Mapping[int, Match[Cue]], lexicon: Lexicon
) -> tuple[int, int, bool, bool] | None:
    """(first token, token behind, whether from below, whether the count itself is in)."""
    match = before.get(number.start)
    after = [token.lower for token in tokens[number.end : number.end + 2]]
    if match is not None:
        closed = match.cue in lexicon.closed
        return match.start, number.end, match.value.kind == "more", closed
    if len(after) == 2 and after[0] == "or" and after[1] in lexicon.upward | lexicon.downward:
        return number.start, number.end + 2, after[1] in lexicon.upward, True
    return _late(tokens, number, lexicon)


def _late(tokens: Sequence[Token], number: Number, lexicon: Lexicon) -> tuple[int, int, bool, bool] | None:
    """ "eight sessions or more", "seven sessions at the most"."""
    noun = _noun(tokens, number.end, lexicon)
    if noun < 0:
        return None
    words = tuple(token.lower for token in tokens[noun + 1 : noun + 4])
    if words[:1] == ("or",) and len(words) > 1 and words[1] in lexicon.upward | lexicon.downward:
        return number.start, number.end, words[1] in lexicon.upward, True
    for phrase, upward in lexicon.late:
        if words[: len(phrase)] == phrase:
            return number.start, number.end, upward, True
    return None


def _noun(tokens: Sequence[Token], at: int, lexicon: Lexicon, single: bool = False) -> int:
    """Where the word for what is counted stands, or -1: a plural near (or a known single thing), no unit, no total."""
    if at < len(tokens) and tokens[at].lower == "of":
        if at + 1 >= len(tokens) or tokens[at + 1].lower not in _OWNERS:
            return -1
        at += 2
    for place in range(at, min(at + _NOUN_REACH, len(tokens))):
        token = tokens[place]
        if token.lower in _STOPS or token.lower in _TOTALS or token.is_number:
            return -1
        if token.lower in lexicon.not_after or token.lemma in lexicon.not_after:
            return -1
        if plural(token.lower) or token.lower in lexicon.plurals or (single and token.key in lexicon.sets):
            return place
    return -1

"""Where one statement ends and the next begins: parts of a sentence, and the part that one share speaks of."""

from __future__ import annotations

from collections.abc import Sequence

from clinsafe.mitigations.quantity_words.lexicon import Lexicon
from clinsafe.text.tokens import Token

_ALWAYS = frozenset("—?!|")
_SPACED = frozenset(";:,()[]-")  # a break only beside a space: t(9;22) and 1,000 stay whole
_BOUND = frozenset([("but", "all"), ("but", "nothing")])


def segments(tokens: Sequence[Token], lexicon: Lexicon) -> list[tuple[int, int]]:
    """Half-open token ranges between breaks, in order, none empty."""
    parts: list[tuple[int, int]] = []
    start = 0
    opened: list[bool] = []
    for index, token in enumerate(tokens):
        breaks = _breaks(tokens, index, token, lexicon)
        if token.text in "([":
            opened.append(breaks)
        elif token.text in ")]" and opened:
            breaks = opened.pop()  # t(9;22) stays whole to its end
        if breaks:
            if index > start:
                parts.append((start, index))
            start = index + 1
    if start < len(tokens):
        parts.append((start, len(tokens)))
    return parts


def _breaks(tokens: Sequence[Token], index: int, token: Token, lexicon: Lexicon) -> bool:
    before = tokens[index - 1].lower if index else ""
    after = tokens[index + 1].lower if index + 1 < len(tokens) else ""
    if token.lower in lexicon.breaks:
        return (token.lower, before) not in _BOUND and (token.lower, after) != ("yet", "to")
    if token.lower == "and":
        return after in lexicon.pronouns
    if token.text in _ALWAYS:
        return True
    return token.text in _SPACED and _beside_space(tokens, index)


def _beside_space(tokens: Sequence[Token], index: int) -> bool:
    token = tokens[index]
    after = index + 1 >= len(tokens) or tokens[index + 1].start > token.end
    before = index == 0 or tokens[index - 1].end < token.start
    if token.text == "-":
        return before and after
    return after or (before and token.text in "([")


def scopes(
    tokens: Sequence[Token], part: tuple[int, int], shares: Sequence[tuple[int, int]], lexicon: Lexicon
) -> list[tuple[int, int]]:
    """For each share of a part, in order, the tokens it speaks of: cut at a joining word between two shares."""
    ranges = []
    start = part[0]
    for index, share in enumerate(shares):
        last = index + 1 == len(shares)
        cut = -1 if last else _cut(tokens, share[1], shares[index + 1][0], lexicon)
        ranges.append((start, cut))
        start = cut if cut >= 0 else start
    end = part[1]
    for index in range(len(ranges) - 1, -1, -1):  # a share without a cut after it goes on to the next cut
        begin, cut = ranges[index]
        end = cut if cut >= 0 else end
        ranges[index] = (begin, end)
    return ranges


def _cut(tokens: Sequence[Token], start: int, end: int, lexicon: Lexicon) -> int:
    """The last joining word in ``[start, end)``, or -1."""
    return next((i for i in range(end - 1, start - 1, -1) if lexicon.joins.at(tokens, i)), -1)

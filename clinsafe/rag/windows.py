"""Tokens, and runs of whole sentences: where in a passage an answer was found.

Sentences are those of `clinsafe.text`; that is quick enough because only passages that may hold the answer are split.
In normalised, lower-case text it joins two sentences after a letter that stands alone ("hepatitis c. it …").
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from clinsafe.text.sentences import split

TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_][^\W_]*")
"""A number with its decimals, or a word; ``5mg`` is two, ``b12`` one, signs are none."""
Range: TypeAlias = tuple[int, int]
"""Half-open range of characters."""
_NEXT = re.compile(r"[\W_]")


def tokens(text: str) -> list[str]:
    """The tokens of a text, in order, with repeats."""
    return TOKEN.findall(text)


def sentences(text: str) -> list[Range]:
    """Where the sentences stand that hold a token; a text with tokens has at least one."""
    found = [
        (one.start, one.end)
        for one in split(text)
        if text[one.start].isalnum() or TOKEN.search(text, one.start, one.end)
    ]
    return found or ([(0, len(text))] if TOKEN.search(text) else [])


def runs(places: Sequence[Range], size: int) -> list[Range]:
    """All runs of `size` neighbouring sentences, in order; one run where there are no more than that."""
    if len(places) <= size:
        return [(places[0][0], places[-1][1])] if places else []
    return [(places[at][0], places[at + size - 1][1]) for at in range(len(places) - size + 1)]


def covering(places: Sequence[Range], start: int, end: int) -> Range:
    """The shortest run of sentences that holds ``[start, end)``; it reaches into a bullet where the match does."""
    touched = [place for place in places if place[0] < end and start < place[1]]
    return (min(start, touched[0][0]), max(end, touched[-1][1])) if touched else (start, end)


def find_words(text: str, wanted: str) -> int:
    """Where `wanted` stands first in `text` with no word, number or accent cut in two; -1 for nowhere.

    ``5 mg`` is not in ``0.5 mg``, ``art`` not in ``heart``.
    """
    at = text.find(wanted)
    while at >= 0:
        if not _inside(text, at) and not _inside(text, at + len(wanted)):
            return at
        following = _NEXT.search(text, at)  # a word that begins wrongly holds no right beginning
        at = text.find(wanted, max(at + 1, following.start() if following else len(text)))
    return -1


def _inside(text: str, at: int) -> bool:
    """Whether a cut before character `at` goes through a word, a number, or a letter and its accent."""
    before, after = text[at - 1 : at], text[at : at + 1]
    if not before or not after:
        return False
    if after.isalnum():
        if before.isalnum() or unicodedata.category(before)[0] == "M":
            return True
        return before in ".," and after.isdecimal() and text[max(at - 2, 0) : at - 1].isdecimal()
    if unicodedata.category(after)[0] == "M":
        return True
    return after in ".," and before.isdecimal() and text[at + 1 : at + 2].isdecimal()


def best_run(
    text: str, places: Sequence[Range], wanted: Mapping[str, int], size: int, least: int
) -> tuple[int, int, int]:
    """The run of sentences that holds most of the wanted tokens.

    Runs are of `size` sentences, or of as many as it takes to hold `least` of the tokens; the first of equal ones.

    Args:
        text: the passage.
        places: its sentences.
        wanted: token -> how often it is wanted.
        size: of a run, at least.
        least: how many tokens (with repeats) the run should hold.

    Returns:
        Start, end, and how many of the wanted tokens stand in it. The whole text where no run of sentences is enough.
    """
    held = [[token for token in TOKEN.findall(text, *place) if token in wanted] for place in places]
    shortest, _ = _slide(held, wanted, 0, least)
    if not shortest:
        have = Counter(tokens(text))
        return 0, len(text), sum(min(have[token], count) for token, count in wanted.items())
    size = min(max(size, shortest), len(places))
    best, first = _slide(held, wanted, size, 0)
    return places[first][0], places[first + size - 1][1], best


def _slide(
    held: Sequence[Sequence[str]], wanted: Mapping[str, int], size: int, least: int
) -> tuple[int, int]:
    """With a size: the most tokens that a run of it holds, and where it begins. Without: the shortest run that holds
    `least`, 0 for none, and where it begins."""
    have = dict.fromkeys(wanted, 0)
    matched = begin = place = 0
    best = -1 if size else 0
    for at, names in enumerate(held):
        for name in names:
            matched += have[name] < wanted[name]
            have[name] += 1
        while begin <= at and (at - begin >= size if size else matched >= least):
            if not size and (not best or at - begin + 1 < best):
                best, place = at - begin + 1, begin
            for name in held[begin]:
                have[name] -= 1
                matched -= have[name] < wanted[name]
            begin += 1
        if size and at - begin + 1 == size and matched > best:
            best, place = matched, begin
    return best, place

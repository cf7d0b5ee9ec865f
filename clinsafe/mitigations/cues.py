"""Cue phrases over tokens: longest match first, found in one walk through a sentence.

The cues lie in one tree of words, so that a token that opens no cue costs one look-up, however many cues there are.

A cue is words with spaces, matched on lower-cased tokens. ``~exclude`` matches any form of a word by its lemma;
``a|b`` either; ``..`` up to three tokens between, none a ; or a full stop: "~rule .. out" finds "ruled that out".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from clinsafe.text.tokens import TOKEN, Token, lemma_of

T = TypeVar("T")
GAP = ".."
WIDEST_GAP = 3
STOPS = frozenset(";.")


class Match(NamedTuple, Generic[T]):
    """A cue found at tokens ``[start, end)``; `value` is what the table holds for it."""

    start: int
    end: int
    cue: str
    value: T


class _Node(Generic[T]):
    """One word of a cue; `here` is the cue that ends at it."""

    __slots__ = ("gap", "here", "lemmas", "words")

    def __init__(self) -> None:
        self.words: dict[str, _Node[T]] = {}
        self.lemmas: dict[str, _Node[T]] = {}
        self.gap: _Node[T] | None = None
        self.here: tuple[int, str, T] | None = None


class CueTable(Generic[T]):
    """Finds the cues of a pack.

    Args:
        cues: (cue, value) pairs; of two that match at one place the longer wins, then the one with more words, then the
            earlier in the file.

    Raises:
        ValueError: a cue does not begin and end with a word, or a part of it is more than one token.
    """

    def __init__(self, cues: Iterable[tuple[str, T]]) -> None:
        self._root: _Node[T] = _Node()
        for cue, value in cues:
            parts = cue.lower().split()
            if not parts or GAP in (parts[0], parts[-1]):
                raise ValueError(f"a cue must begin and end with a word, got {cue!r}")
            self._add(self._root, parts, (len(parts) - parts.count(GAP), cue, value))

    def find(self, tokens: Sequence[Token]) -> list[Match[T]]:
        """All matches, left to right, not overlapping; at each place the longest."""
        found: list[Match[T]] = []
        words, lemmas = self._root.words, self._root.lemmas
        index, count = 0, len(tokens)
        while index < count:
            token = tokens[index]
            match = self.at(tokens, index) if token.lower in words or token.lemma in lemmas else None
            if match is None:
                index += 1
            else:
                found.append(match)
                index = match.end
        return found

    def at(self, tokens: Sequence[Token], index: int) -> Match[T] | None:
        """The longest cue that begins at this token, or None."""
        end, best = 0, None
        waiting = _steps(self._root, tokens, index)
        for node, at in waiting:  # grows while it is walked
            here = node.here
            if here is not None and (best is None or (at, here[0]) > (end, best[0])):
                end, best = at, here
            waiting += _steps(node, tokens, at)
            if node.gap is not None:
                for skip in range(WIDEST_GAP + 1):
                    waiting += _steps(node.gap, tokens, at + skip)
                    if at + skip >= len(tokens) or tokens[at + skip].text in STOPS:
                        break
        return None if best is None else Match(index, end, best[1], best[2])

    def _add(self, node: _Node[T], parts: Sequence[str], cue: tuple[int, str, T]) -> None:
        if not parts:
            node.here = node.here or cue
        elif parts[0] == GAP:
            node.gap = node.gap or _Node()
            self._add(node.gap, parts[1:], cue)
        else:
            for name in parts[0].split("|"):
                word = name.removeprefix("~")
                pieces = TOKEN.findall(word)
                if len(pieces) != 1:
                    apart = " ".join(pieces)
                    what = f"{name!r} in the cue {cue[1]!r} is {len(pieces)} tokens"
                    raise ValueError(f"{what}; write them apart, as in {apart!r}")
                table, key = (node.lemmas, lemma_of(word)) if name.startswith("~") else (node.words, word)
                self._add(table.setdefault(key, _Node()), parts[1:], cue)


def _steps(node: _Node[T], tokens: Sequence[Token], at: int) -> list[tuple[_Node[T], int]]:
    if at >= len(tokens):
        return []
    token = tokens[at]
    nodes = (node.words.get(token.lower), node.lemmas.get(token.lemma))
    return [(one, at + 1) for one in nodes if one is not None]

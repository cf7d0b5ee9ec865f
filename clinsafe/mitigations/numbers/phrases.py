"""Phrases looked up by their first two words; the longest match wins. Linear, without regular expressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from clinsafe.text import Token

T = TypeVar("T")
_Rows = list[tuple[int, tuple[str, ...], T]]


class Phrases(Generic[T]):
    """Word sequences (in any case, or exactly as written) and what they mean.

    Args:
        rows: (words with spaces, meaning). Of two rows for one phrase the first holds.
        exact: rows whose letters must match as written.
    """

    def __init__(self, rows: Iterable[tuple[str, T]], exact: Iterable[tuple[str, T]] = ()) -> None:
        self._single: dict[str, T] = {}
        self._longer: dict[str, dict[str, _Rows[T]]] = {}
        for phrase, value in rows:
            words = tuple(phrase.lower().split())
            if len(words) == 1:
                self._single.setdefault(words[0], value)
            else:
                self._longer.setdefault(words[0], {}).setdefault(words[1], []).append(
                    (len(words), words, value)
                )
        for seconds in self._longer.values():
            for found in seconds.values():
                found.sort(key=lambda row: -row[0])
        self._exact = dict(exact)
        self.openers = frozenset([*self._single, *self._longer, *(word.lower() for word in self._exact)])

    def at(self, tokens: Sequence[Token], index: int) -> tuple[int, T] | None:
        """(end, meaning) of the longest phrase that begins here, or None."""
        if index >= len(tokens):
            return None
        token = tokens[index]
        first = token.lower
        seconds = self._longer.get(first)
        if seconds is not None and index + 1 < len(tokens):
            for size, words, value in seconds.get(tokens[index + 1].lower, ()):
                if size == 2 or _follows(tokens, index, size, words):
                    return index + size, value
        exact = self._exact.get(token.text) if self._exact else None
        if exact is not None:
            return index + 1, exact
        single = self._single.get(first)
        return None if single is None else (index + 1, single)


def _follows(tokens: Sequence[Token], index: int, size: int, words: tuple[str, ...]) -> bool:
    if index + size > len(tokens):
        return False
    return all(tokens[index + at].lower == words[at] for at in range(2, size))

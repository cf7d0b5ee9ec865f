"""Abbreviations to full terms, from ``mitigations/abbreviations.yaml``: the table that the filters read too.

What is ambiguous there stays as it is written. Places are found by plain search, so a long text costs as many passes as
it holds different abbreviations, and no more.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from clinsafe.content import Content
from clinsafe.rag.normalising.gate import in_word
from clinsafe.text.vocabulary import Abbreviation, Abbreviations

_SYMBOLS = "./&+-'"
_LETTERS = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True)
class _Entry:
    """One abbreviation: what to search for, where, and what to write."""

    short: str
    long: str
    any_case: bool

    def places(self, text: str, low: str) -> list[tuple[int, int, str]]:
        """(start, end, new text), never inside a word."""
        where = low if self.any_case else text
        size, found = len(self.short), []
        start = where.find(self.short)
        while start >= 0:
            end = start + size
            if not _touches(text, start - 1) and not _touches(text, end) and not self._said(low, end):
                found.append((start, end, self.long))
            start = where.find(self.short, end)
        return found

    def _said(self, low: str, end: int) -> bool:
        """Whether the rest of a full term that begins with the abbreviation stands there already."""
        rest = self.long[len(self.short) :].lower()
        begins = self.long.lower().startswith(self.short.lower())
        return bool(rest) and begins and low.startswith(rest, end)


def _touches(text: str, at: int) -> bool:
    return 0 <= at < len(text) and in_word(text[at])


@dataclass(frozen=True, slots=True)
class Expander:
    """Spells abbreviations out.

    Attributes:
        openers: pieces of which a text must hold one (`clinsafe.rag.normalising.gate`).
        symbols: signs of which a text must hold one, for abbreviations without a letter.
        lower: short forms that are read in lower case only: ``mets`` are metastases, METs are not.
    """

    openers: frozenset[bytes]
    symbols: str
    lower: tuple[str, ...]
    _by_piece: dict[bytes, list[_Entry]] = field(repr=False)
    _by_symbol: dict[str, list[_Entry]] = field(repr=False)

    def expand(self, text: str, low: str, hits: AbstractSet[bytes]) -> str:
        """The text with abbreviations spelled out.

        Args:
            text: as written.
            low: its lower case, of the same length.
            hits: its pieces, at least those of `openers`.
        """
        found: list[tuple[int, int, str]] = []
        for piece in hits & self.openers:
            for entry in self._by_piece[piece]:
                if entry.short in (low if entry.any_case else text):
                    found += entry.places(text, low)
        for symbol in self.symbols:
            if symbol in text:
                for entry in self._by_symbol[symbol]:
                    if entry.short in (low if entry.any_case else text):
                        found += entry.places(text, low)
        return _replaced(text, found) if found else text


def _replaced(text: str, found: list[tuple[int, int, str]]) -> str:
    """The first place wins, and of those that begin there the longest: ``stage IV`` before ``IV``."""
    found.sort(key=lambda place: (place[0], -place[1]))
    parts, done = [], 0
    for start, end, new in found:
        if start >= done:
            parts += [text[done:start], new]
            done = end
    parts.append(text[done:])
    return "".join(parts)


def load_expander(content: Content) -> Expander:
    """The expander of a content tree.

    Raises:
        ContentError: the file is malformed.
    """
    rows = content.yaml("mitigations/abbreviations.yaml", Abbreviations).abbreviations
    by_piece: dict[bytes, list[_Entry]] = {}
    by_symbol: dict[str, list[_Entry]] = {}
    for row in rows:
        if not row.long:
            continue
        entry = _Entry(row.short.lower() if row.any_case else row.short, row.long, row.any_case)
        piece = _telling(row.short)
        if piece is not None:
            by_piece.setdefault(piece, []).append(entry)
        else:
            by_symbol.setdefault(_symbol(row.short), []).append(entry)
    lower = tuple(row.short for row in rows if _in_lower_case_only(row))
    return Expander(frozenset(by_piece), "".join(by_symbol), lower, by_piece, by_symbol)


def _in_lower_case_only(row: Abbreviation) -> bool:
    return bool(row.long) and not row.any_case and row.short == row.short.lower() != row.short.upper()


def _telling(short: str) -> bytes | None:
    """The run of letters by which it is looked for: its last of two or more, ``stage IV`` by "iv", else its last.

    It stands alone in a text wherever the abbreviation does. The last is mostly the rarer one.
    """
    runs = _LETTERS.findall(short.lower())
    found = [run for run in runs if len(run) > 1] or runs
    return str(found[-1]).encode() if found else None


def _symbol(short: str) -> str:
    """The rarest sign of a short form without a letter of ASCII: one of `_SYMBOLS`, a digit, a letter outside ASCII."""
    for letter in short:
        if letter in _SYMBOLS or letter.isdigit() or not letter.isascii():
            return letter
    return short[0]

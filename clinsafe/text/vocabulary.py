"""The words of the reader: abbreviations to spell out and synonyms to treat as one, from ``mitigations/*.yaml``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field

from clinsafe.content import Content, Record
from clinsafe.errors import ContentError
from clinsafe.text.tokens import TOKEN, Token, lemma_of, stem_of

_REMEMBERED = 100_000  # words whose lemma and key are kept
Words = Annotated[str, Field(min_length=1, max_length=120, pattern=r"\S")]


class Abbreviation(Record):
    """One abbreviation.

    Attributes:
        short: as written; matched in this case only, unless it is all lower case and `any_case` is true.
        long: what it stands for; "" where `ambiguous` has several readings.
        ambiguous: the readings of one that is not spelled out, for the reader of this file.
        any_case: match in any case.
        note: why, for the reader of this file.
    """

    short: Words
    long: str = ""
    ambiguous: tuple[Words, ...] = ()
    any_case: bool = False
    note: str = ""


class Abbreviations(Record):
    """``mitigations/abbreviations.yaml``."""

    abbreviations: tuple[Abbreviation, ...]


class Synonyms(Record):
    """``mitigations/synonyms.yaml``.

    Attributes:
        phrases: several words -> the words they are read as ("heart attack" -> "myocardial infarction").
        groups: name -> words that align as one. The name becomes their key.
    """

    phrases: Mapping[Words, Words]
    groups: Mapping[Words, tuple[Words, ...]]


class Openers:
    """Whether an abbreviation or phrase may begin with this token: most words are refused by one look-up."""

    def __init__(self, exact: Iterable[str], lower: Iterable[str]) -> None:
        self._exact, self._lower = frozenset(exact), frozenset(lower)

    def __contains__(self, text: str) -> bool:
        return text in self._exact or text in self._lower or text.lower() in self._lower


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Look-ups by first token. Both are matched token by token, the longest first."""

    exact: Mapping[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]]
    lower: Mapping[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]]
    keys: Mapping[str, str]
    openers: Openers
    _seen: dict[str, tuple[str, str, str, bool]] = field(default_factory=dict, repr=False)

    def key(self, lower: str) -> str:
        """Canonical key of a lower-cased word."""
        stem = stem_of(lower)
        return self.keys.get(stem, stem)

    def tokens(self, text: str, start: int, end: int) -> list[Token]:
        """The tokens of ``text[start:end]``, abbreviations and phrases spelled out."""
        found = [(m.group(), m.start(), m.end()) for m in TOKEN.finditer(text, start, end)]
        tokens: list[Token] = []
        index, count = 0, len(found)
        while index < count:
            text, begin, stop = found[index]
            lower, lemma, key, opens = self._seen.get(text) or self._learn(text)
            size, long = self._match(found, index) if opens else (0, ())
            if size:
                stop = found[index + size - 1][2]
                for word in long:
                    lower, lemma, key, _ = self._seen.get(word) or self._learn(word)
                    tokens.append(Token(word, lower, begin, stop, lemma, key))
                index += size
            else:
                tokens.append(Token(text, lower, begin, stop, lemma, key))
                index += 1
        return tokens

    def _learn(self, text: str) -> tuple[str, str, str, bool]:
        """Lower case, lemma and key of a word, and whether an abbreviation or phrase may begin with it."""
        lower = text.lower()
        known = (lower, lemma_of(lower), self.key(lower), text in self.openers)
        if len(self._seen) < _REMEMBERED:
            self._seen[text] = known
        return known

    def _match(self, found: list[tuple[str, int, int]], index: int) -> tuple[int, tuple[str, ...]]:
        first = found[index][0]
        best: tuple[int, tuple[str, ...]] = (0, ())
        for short, long in self.exact.get(first, ()):
            size = len(short)
            if (
                size > best[0]
                and tuple([text for text, _, _ in found[index : index + size]]) == short
                and all(_close(found, at) for at in range(index + 1, index + size))
            ):
                best = size, long
        for short, long in self.lower.get(first.lower(), ()):
            size = len(short)
            if (
                size > best[0]
                and tuple([text.lower() for text, _, _ in found[index : index + size]]) == short
            ):
                best = size, long
        return best


def _close(found: list[tuple[str, int, int]], index: int) -> bool:
    """Whether this token follows the one before it without more than one space."""
    return found[index][1] - found[index - 1][2] <= 1


def load_vocabulary(content: Content | None = None) -> Vocabulary:
    """Read both files; the overlay wins file by file."""
    content = content or Content()
    short = content.yaml("mitigations/abbreviations.yaml", Abbreviations)
    same = content.yaml("mitigations/synonyms.yaml", Synonyms)
    _refuse_faults(content, short, same)
    exact: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
    lower: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
    for entry in short.abbreviations:
        if not entry.long:
            continue
        shape = tuple(TOKEN.findall(entry.short.lower() if entry.any_case else entry.short))
        (lower if entry.any_case else exact).setdefault(shape[0], []).append(
            (shape, tuple(TOKEN.findall(entry.long)))
        )
    for phrase, meaning in same.phrases.items():
        shape = tuple(TOKEN.findall(phrase.lower()))
        lower.setdefault(shape[0], []).append((shape, tuple(TOKEN.findall(meaning))))
    keys = {stem_of(word.lower()): f"={name}" for name, group in same.groups.items() for word in group}
    return Vocabulary(_longest(exact), _longest(lower), keys, Openers(exact, lower))


def _refuse_faults(content: Content, short: Abbreviations, same: Synonyms) -> None:
    """A short form or a word given twice, and a word that has no key: each would silently do nothing."""
    seen: set[str] = set()
    path = content.path("mitigations/abbreviations.yaml")
    for entry in short.abbreviations:
        if entry.short in seen:
            raise ContentError(
                path, _last_line(path, entry.short), "short", f"{entry.short!r} is given twice"
            )
        seen.add(entry.short)
    path = content.path("mitigations/synonyms.yaml")
    groups: dict[str, str] = {}
    for name, group in same.groups.items():
        for word in group:
            stem = stem_of(word.lower()) if " " not in word else ""
            if not stem:
                what = f"{word!r} cannot align: a group holds single words with a meaning; several words go to phrases"
            elif groups.setdefault(stem, name) != name:
                what = f"{word!r} is in group {groups[stem]!r} already"
            else:
                continue
            raise ContentError(path, _last_line(path, name), f"groups.{name}", what)


def _last_line(path: Path, word: str) -> int | None:
    """1-based line of the last entry that begins with this word."""
    shape = re.compile(rf"(?:short: |^ +){re.escape(word)}\b")
    lines = enumerate(path.read_text(encoding="utf-8").split("\n"), start=1)
    return max((number for number, line in lines if shape.search(line)), default=None)


def _longest(
    table: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]],
) -> dict[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]]:
    return {first: tuple(sorted(rows, key=lambda row: -len(row[0]))) for first, rows in table.items()}

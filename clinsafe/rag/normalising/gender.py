"""Gender phrasing: women, ladies and female patients are one thing, men and male patients another; never both."""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from clinsafe.rag.normalising.gate import beginnings, gate, in_word
from clinsafe.rag.normalising.wordlist import GenderWords, any_of

_AROUND = 40  # characters on either side in which a phrase may stand that is kept
_BEFORE = 24  # characters that are looked at before a word


@dataclass(frozen=True, slots=True)
class GenderPhrases:
    """The step.

    Attributes:
        gate: pieces of which a text must hold one.
    """

    gate: frozenset[bytes]
    _phrase: re.Pattern[str]
    _any_case: _Around
    _small: _Around
    _new: dict[str, tuple[str, str, str]]
    _one_person: frozenset[str]
    _as_written: frozenset[str]
    _beginnings: tuple[str, ...]

    def unify(self, text: str, low: str, hits: AbstractSet[bytes]) -> str:
        """The text with one phrase for each sex.

        Args:
            text: as written.
            low: its lower case, of the same length.
            hits: its pieces, at least those of `gate`.
        """
        if hits.isdisjoint(self.gate):
            return text
        parts, done, past = [], 0, 0
        for start in beginnings(low, self._beginnings):
            match = self._phrase.match(low, start) if start >= past else None
            if match is None:
                continue
            past = match.end()
            new = self._one(text, low, start, past)
            if new is not None:
                parts += [text[done:start], new]
                done = past
        if not parts:
            return text
        parts.append(text[done:])
        return "".join(parts)

    def _one(self, text: str, low: str, start: int, end: int) -> str | None:
        inside = start > 0 and (in_word(text[start - 1]) or text[start - 1] in "-'’")
        if inside or text[start:end] in self._as_written:
            return None
        # What is in lower case is read by patterns for lower case, which are quicker.
        around, read = (self._small, low) if text.isascii() else (self._any_case, text)
        if around.keeps(read[max(0, start - _AROUND) : end + _AROUND], min(start, _AROUND)):
            return None
        said, *persons = low[start:end].split()
        if around.refuses(read[max(0, start - _BEFORE) : start], "" if persons else said):
            return None
        one, many, alone = self._new[said]
        if not persons:
            return alone
        return one if persons[-1] in self._one_person else many


@dataclass(frozen=True, slots=True)
class _Around:
    """What stands around a word and keeps it as it is written."""

    _kept: re.Pattern[str]
    _after: re.Pattern[str]
    _needs: dict[str, re.Pattern[str]]

    def keeps(self, around: str, at: int) -> bool:
        """Whether the word at this place is part of a phrase that is kept."""
        return any(found.start() <= at < found.end() for found in self._kept.finditer(around))

    def refuses(self, before: str, said: str) -> bool:
        """Whether what precedes the word makes it say more than the sex, or a word it needs is not there."""
        needs = self._needs.get(said)
        return self._after.search(before) is not None or (needs is not None and not needs.search(before))


def _around(words: GenderWords, flags: re.RegexFlag) -> _Around:
    def written(some: Iterable[str]) -> str:
        return any_of(some if flags else map(str.lower, some))

    return _Around(
        re.compile(rf"(?<!\w){written(words.kept)}(?!\w)", flags),
        re.compile(rf"(?<!\w){written(words.after)}\s{{0,3}}$", flags),
        {
            word: re.compile(rf"(?<!\w){written(before)}[\s-]\s{{0,2}}$", flags)
            for word, before in words.needs_before.items()
        },
    )


def gender_phrases(words: GenderWords, as_written: Iterable[str] = ()) -> GenderPhrases:
    """The step with these words; `as_written` are other words in capitals (MEN is a syndrome)."""
    new: dict[str, tuple[str, str, str]] = {}  # for one person, for many, and without a person's noun
    opening: list[str] = []
    for sex in words.sexes.values():
        opening += [sex.adjective, *sex.one_words, *sex.many_words]
        new.update(dict.fromkeys(sex.one_words, (sex.one, sex.many, sex.one)))
        new.update(dict.fromkeys(sex.many_words, (sex.one, sex.many, sex.many)))
        new[sex.adjective] = (sex.one, sex.many, sex.adjective)
    person = rf"(?:\s{{1,3}}{any_of([*words.one_person, *words.many_persons])}(?!\w))"
    adjectives = [sex.adjective for sex in words.sexes.values()]
    said = any_of(word for word in opening if word not in adjectives)
    phrase = rf"(?:{any_of(adjectives)}{person}+|{said}{person}*)(?![\w\-]|['’]\w?)"
    return GenderPhrases(
        gate(opening),
        re.compile(phrase),
        _around(words, re.IGNORECASE),
        _around(words, re.NOFLAG),
        new,
        frozenset(words.one_person),
        frozenset(as_written),
        tuple(dict.fromkeys(word.split()[0] for word in opening)),
    )

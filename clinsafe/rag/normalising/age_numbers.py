"""Which numbers of a text may be ages: nearly all are refused here, before a pattern of many words looks at them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, TypeAlias

from clinsafe.rag.normalising.wordlist import AgeWords, any_of

Strength: TypeAlias = Literal["plain", "loose", "bare"]
STRENGTHS: tuple[Strength, ...] = ("plain", "loose", "bare")
NUMBER = re.compile(r"[0-9](?<![\w/±^\u0300-\u036f][0-9])(?<![0-9][.,:][0-9])[0-9]{0,2}(?![0-9]|[.,/:][0-9])")
"""A number of up to three digits that is no part of a decimal, a fraction, a time or a name (B12)."""
RANGE = r"\s{0,3}(?P<join>-|–|—|to\b|through\b|and\b)\s{0,3}(?P<high>\d{1,3})(?!\d|[.,]\d)"
_SPACES = frozenset((*range(9, 14), *range(28, 33)))
_FLAT = bytes(  # every digit is 0, letters are small, a space is a space
    48 if 48 <= byte < 58 else 32 if byte in _SPACES else byte + 32 if 65 <= byte < 91 else byte
    for byte in range(256)
)
_SHORT = 2  # letters of a word that stands in every text: looked for by the one before it
_WORD = 12  # characters of a last word, at most
_TWO_WORDS = 72
_SIGNS = "<>=≥≤⩾⩽≧≦"


@dataclass(frozen=True, slots=True)
class AgeNumbers:
    """Finds them.

    Attributes:
        bounds: pieces that it looks for.
    """

    bounds: frozenset[bytes]
    _odd_bounds: tuple[str, ...]
    _followed: re.Pattern[bytes]
    _preceded: Mapping[str, re.Pattern[str]]
    _signs: tuple[str, ...]
    _last_words: Mapping[str, tuple[str, ...]]

    def of(self, text: str, low: str, hits: AbstractSet[bytes]) -> Iterable[tuple[int, int]]:
        """Where numbers stand, in order; of a text of ASCII those alone that may be part of a threshold or a range.

        Args:
            text: as written.
            low: its lower case, of the same length.
            hits: its pieces, at least those of `bounds`.
        """
        if not text.isascii():
            return (match.span() for match in NUMBER.finditer(text))
        # One letter for all digits is found ten times faster than ten, and plain words faster than patterns.
        found = {match.span() for match in self._followed.finditer(text.encode().translate(_FLAT))}
        for word in (*self._odd_bounds, *(word.decode() for word in hits & self.bounds)):
            at = low.find(word)
            while at >= 0:
                match = self._preceded[word].match(low, at)
                number = NUMBER.match(low, match.end()) if match is not None else None
                if number is not None:
                    found.add(number.span())
                at = low.find(word, at + 1)
        return sorted(found)

    def may_be_bound(self, text: str, start: int) -> bool:
        """Whether what precedes the number may be a bound."""
        at = start - 1
        while at > start - 4 and at >= 0 and (text[at].isspace() or text[at] == "-"):
            at -= 1
        if at < 0 or not text[at].isalpha():
            return at >= 0 and text[at] in _SIGNS and text.endswith(self._signs, max(0, at - 3), at + 1)
        word = text[max(0, at - _WORD) : at + 1].rpartition(" ")[2].lower()
        before = self._last_words.get(word)
        if not before:
            return before is not None
        begin = at + 1 - len(word)
        return text[max(0, begin - _TWO_WORDS) : begin].rstrip().lower().endswith(before)


def age_numbers(words: AgeWords, said: Sequence[str]) -> AgeNumbers:
    """Build it.

    Args:
        words: the lists of ``benchmarks/rag/normalisation.yaml``.
        said: its units, and what says "years old".
    """
    phrases = [phrase for group in words.before.values() for phrase in group]
    signs = tuple(phrase for phrase in phrases if not phrase[-1].isalpha())
    last = _last_words(phrases)
    preceded = _preceded(last, signs)
    pieces = {word for word in preceded if word.isascii() and word.isalpha()}
    return AgeNumbers(
        bounds=frozenset(word.encode() for word in pieces),
        _odd_bounds=tuple(word for word in preceded if word not in pieces),
        _followed=_followed(words, said),
        _preceded=preceded,
        _signs=signs,
        _last_words={word: tuple(before) for word, before in last.items()},
    )


def _last_words(phrases: Iterable[str]) -> dict[str, list[str]]:
    """Last word of a bound -> the words of which one precedes it; [] where none has to."""
    last: dict[str, list[str]] = {"age": [], "ages": [], "of": ["age", "ages"]}  # over the age of 65
    for phrase in phrases:
        *before, word = phrase.lower().split()
        if word[-1].isalpha():
            known = last.setdefault(word, before[-1:])
            if known and before:
                known.append(before[-1])
            else:
                known.clear()
    return last


def _followed(words: AgeWords, said: Sequence[str]) -> re.Pattern[bytes]:
    """`NUMBER` where a range, a plus or the first word of a bound follows, of a text made of `_FLAT`."""
    after = [
        phrase for name in STRENGTHS for group in getattr(words.after, name).values() for phrase in group
    ]
    first = any_of(phrase.lower().split()[0] for phrase in after)
    units, old = any_of(map(str.lower, said)), any_of(map(str.lower, (*words.old, *words.years_old)))
    ranged = RANGE.replace("?P<join>", "?:").replace("?P<high>", "?:").replace(r"\d", "0")
    begins = r"0(?<![\w/^]0)(?<!0[.,:]0)0{0,2}(?!0|[.,/:]0)"
    said_so = rf"(?:'?s(?!\w))?(?:[ -]{{0,3}}{units}(?:[ -]{{1,3}}{old})?)?,? {{0,3}}{first}"
    return re.compile(rf"{begins}(?= ?\+|{said_so}|{ranged})".encode())


def _preceded(last: Mapping[str, Sequence[str]], signs: Iterable[str]) -> dict[str, re.Pattern[str]]:
    """What to look for -> what has to stand there up to the number: last signs, and words of `_last_words`."""
    made: dict[str, list[str]] = {}
    for phrase in filter(str.isascii, signs):
        rarest = phrase.lstrip("=")[:1] or phrase[-1]  # most "=" are no bound
        made.setdefault(rarest, []).append(re.escape(phrase[phrase.index(rarest) :]))
    for word, before in last.items():
        if not word.isascii():
            continue
        said = re.escape(word)
        if len(word) > _SHORT or not before:
            made.setdefault(word, []).append(said)
        else:
            for one in before:
                made.setdefault(one, []).append(rf"{re.escape(one)}\s{{1,3}}{said}")
    return {word: re.compile(rf"(?:{'|'.join(said)})[\s-]{{0,3}}(?=[0-9])") for word, said in made.items()}


def _is_piece(word: str) -> bool:
    return word.isascii() and word.isalpha()

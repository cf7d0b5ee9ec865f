"""Thresholds of age to one phrase: "aged ≥65 years", "65 years or older" and "aged 65+" are "age at least 65 years".

Each number is looked at once, with some characters on either side, so a text of digits costs no more than its length.
Over and at least stay apart, as do under and at most; an exact age ("a 65-year-old") is no threshold.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from clinsafe.rag.normalising.age_patterns import AgePatterns, Left, Right, age_patterns
from clinsafe.rag.normalising.gate import gate
from clinsafe.rag.normalising.wordlist import AgeWords, Bound


@dataclass(frozen=True, slots=True)
class AgeThresholds:
    """The step.

    Attributes:
        gate: pieces that it looks for.
    """

    gate: frozenset[bytes]
    _openers: frozenset[bytes]  # of which a text must hold one
    _words: AgeWords
    _patterns: AgePatterns
    _small: AgeThresholds | None = (
        None  # for texts of ASCII, read in lower case: patterns of any case are slow
    )

    def unify(self, text: str, low: str, hits: AbstractSet[bytes]) -> str:
        """The text with one phrase for each threshold and range.

        Args:
            text: as written.
            low: its lower case, of the same length.
            hits: its pieces, at least those of `gate`.
        """
        if hits.isdisjoint(self._openers):
            return text
        if self._small is not None and low.isascii() and text.isascii():
            return self._small._unify(text, low, low, hits)
        return self._unify(text, text, low, hits)

    def _unify(self, text: str, read: str, low: str, hits: AbstractSet[bytes]) -> str:
        parts, done = [], 0
        for start, end in self._patterns.numbers.of(text, low, hits):
            bounded = self._patterns.numbers.may_be_bound(read, start)
            if start < done or not (bounded or self._patterns.may_be_said(read, end)):
                continue
            found = self._range(read, start, end) or self._threshold(read, start, end, bounded)
            if found is not None and found[0] >= done and not self._patterns.is_cut(read, found[1]):
                glued = found[0] > done and text[found[0] - 1].isalnum()  # those>70
                parts += [text[done : found[0]], " " if glued else "", found[2]]
                done = found[1]
        if not parts:
            return text
        parts.append(text[done:])
        return "".join(parts)

    # ── ranges ─────────────────────────────────────────────────────────────────────────────────

    def _range(self, text: str, start: int, end: int) -> tuple[int, int, str] | None:
        right = self._patterns.right_of_range(text, start, end)
        if right is None or right.bound is not None or right.plus:
            return None
        low, high = int(text[start:end]), right.high
        if not (low < high <= self._largest(right)):
            return None
        left = self._patterns.left_of_range(text, start)
        if left is None or (right.joined_by_and and not left.between):
            return None
        if not self._range_is_of_age(text, left, right) or left.refused:
            return None
        return left.begin, right.end, f"age {low} to {high} {right.unit or 'years'}"

    def _range_is_of_age(self, text: str, left: Left, right: Right) -> bool:
        if right.old:
            return True
        if left.anchored:
            return right.unit is not None or not self._patterns.measured(text, right.end)
        if right.unit is None or self._patterns.is_span_after(text, right.end):
            return False
        if left.people:
            return True
        bare = right.unit == "years" and right.high >= self._words.bare_from
        return bare and not left.span

    # ── thresholds ─────────────────────────────────────────────────────────────────────────────

    def _threshold(self, text: str, start: int, end: int, bounded: bool) -> tuple[int, int, str] | None:
        right = self._patterns.right_of(text, end, bounded)
        if right is None:
            return None
        number = int(text[start:end])
        left = self._patterns.left_of(text, start, bounded)
        if left is None or number > self._largest(right):
            return None
        bound = self._bound(left, right)
        if bound is None or not self._is_of_age(text, number, bound, left, right) or left.refused:
            return None
        words = self._words.bounds[bound]
        return left.begin, right.end, f"age {words} {number} {right.unit or 'years'}"

    @staticmethod
    def _bound(left: Left, right: Right) -> Bound | None:
        after: Bound | None = "at_least" if right.plus else right.bound
        if right.plus and right.bound is not None:
            return None
        if left.bound is not None and after is not None:
            return None  # ">65 years or older" says two things
        return left.bound or after

    def _largest(self, right: Right) -> int:
        return self._words.largest[right.unit or "years"]

    def _is_of_age(self, text: str, number: int, bound: Bound, left: Left, right: Right) -> bool:
        if right.old:
            return True
        if right.group:  # "the over-65s"
            return bound in ("over", "under") and left.group
        if right.unit is None:
            return self._is_unitless_age(text, number, left, right)
        if left.anchored or right.strength == "plain":
            return True
        if right.strength == "bare" or self._patterns.is_span_after(text, right.end):
            return False
        if left.people:
            worded_over = left.bound == "over" and not left.symbol
            return not worded_over or number >= self._words.over_from
        if right.strength == "loose":
            return right.unit == "years" and not left.span
        signed = left.symbol or right.plus
        return signed and right.unit == "years" and number >= self._words.bare_from and not left.span

    def _is_unitless_age(self, text: str, number: int, left: Left, right: Right) -> bool:
        if left.anchored:
            found = not self._patterns.measured(text, right.end)
        elif right.strength is not None and right.strength != "loose":
            found = right.strength == "plain"
        else:
            small = left.bound in ("over", "at_least") and number < self._words.adult_from
            found = not small and self._patterns.ends(text, right.end) and left.people
        return found and not left.babies  # theirs may be months


def age_thresholds(words: AgeWords) -> AgeThresholds:
    """The step with these words."""
    units = [word for group in words.units.values() for word in group]
    opening = [*units, *words.old, *words.years_old, *words.anchors, *words.people]
    opening += ["older", "younger", "over", "under"]
    patterns, small = age_patterns(words), age_patterns(_lowered(words), any_case=False)
    single = {word[0].lower().encode() for word in opening if not word[1:2].isalpha()}  # y, y/o
    openers = gate(opening) | single
    every = openers | patterns.numbers.bounds
    return AgeThresholds(every, openers, words, patterns, AgeThresholds(every, openers, words, small))


def _lowered(words: AgeWords) -> AgeWords:
    return AgeWords.model_validate_json(words.model_dump_json().lower())

"""What stands left and right of a number that may be an age, read by patterns made of a list of words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

from clinsafe.rag.normalising.age_numbers import RANGE, STRENGTHS, AgeNumbers, Strength, age_numbers
from clinsafe.rag.normalising.gate import in_word
from clinsafe.rag.normalising.wordlist import AgeWords, Bound, Unit, any_of

_WINDOW = 72  # characters to the left of a number
_NEAR = 32  # characters in which a word may stand that tells of a time span, or of infants
_PEOPLE = 40  # people, and "who are"
_CLOSE = 14  # the first number of a range
_BOUNDS: tuple[Bound, ...] = ("at_least", "over", "at_most", "under")
_UNITS: tuple[Unit, ...] = ("years", "months", "weeks", "days")
_OF_TIME = (*_UNITS, "years_old", "old")
_NAMED: Mapping[str, tuple[Strength, Bound]] = {
    f"{strength}_{bound}": (strength, bound) for strength in STRENGTHS for bound in _BOUNDS
}
_OLDER = re.compile(r"(?<!\w)(?:older|younger)(?!\w)", re.IGNORECASE)  # speaks of age by itself
_OF_AGE = re.compile(r"(?:\bthe\s{1,3})?\bages?(?:\s{1,3}of)?$")
_LAST = re.compile(r"(?:[^\W\d_]+|[<>=≥≤⩾⩽≧≦]+)$")
_PART = re.compile(r"\d\s{0,3}(?:-|–|—|to|through)\s{0,3}$", re.IGNORECASE)


class Right(NamedTuple):
    """What follows a number: ``end`` is the place behind it."""

    end: int
    unit: Unit | None
    old: bool
    plus: bool
    group: bool
    bound: Bound | None
    strength: Strength | None
    high: int = 0
    joined_by_and: bool = False


@dataclass(frozen=True, slots=True)
class Left:
    """What precedes a number; what is not asked for is not looked for.

    Attributes:
        begin: where the threshold begins, "aged" included.
        bound: what it says of the number.
        symbol: whether by a sign.
        anchored: whether "aged" and the like stand there.
        between: whether "between" does.
    """

    begin: int
    bound: Bound | None
    symbol: bool
    anchored: bool
    between: bool
    _head: str
    _before_anchor: str
    _hyphen: bool
    _patterns: AgePatterns

    @property
    def people(self) -> bool:
        """Whether people stand right before it."""
        return self._patterns.people.search(self._head[-_PEOPLE:]) is not None

    @property
    def babies(self) -> bool:
        """Whether infants stand near: their age may be in months."""
        return self._patterns.babies.search(self._head[-_NEAR:]) is not None

    @property
    def group(self) -> bool:
        """Whether "the over-65s" is written in a way that cannot mean seconds."""
        return self._hyphen or self._patterns.group.search(self._head[-_NEAR:]) is not None

    @property
    def refused(self) -> bool:
        """Whether it is denied."""
        return self._patterns.refused.search(self._before_anchor[-_NEAR:]) is not None

    @property
    def span(self) -> bool:
        """Whether a word near it says that years are a time span."""
        return self._patterns.span_before.search(self._head[-_NEAR:]) is not None


@dataclass(frozen=True, slots=True)
class AgePatterns:
    """Patterns made of the words; see `age_patterns`."""

    _by_last: Mapping[str, tuple[tuple[str, Bound], ...]]
    _anchors: tuple[str, ...]
    _between: re.Pattern[str]
    _anchor: re.Pattern[str]
    people: re.Pattern[str]
    babies: re.Pattern[str]
    group: re.Pattern[str]
    refused: re.Pattern[str]
    span_before: re.Pattern[str]
    _span_after: re.Pattern[str]
    _begins: re.Pattern[str]
    _after: re.Pattern[str]
    _after_range: re.Pattern[str]
    _old: re.Pattern[str]
    _ends: re.Pattern[str]
    _measure: re.Pattern[str]
    numbers: AgeNumbers

    # ── the number itself ──────────────────────────────────────────────────────────────────────

    def may_be_said(self, text: str, end: int) -> bool:
        """Whether a unit, a plus, another number, "or" or "and" follows: most numbers are refused here."""
        return self._begins.match(text, end) is not None

    # ── right ──────────────────────────────────────────────────────────────────────────────────

    def right_of(self, text: str, end: int, bounded: bool) -> Right | None:
        """What follows a single number; None where it says nothing and nothing before it does."""
        match = cast("re.Match[str]", self._after.match(text, end))
        if not bounded and match["plus"] is None and match.lastgroup not in _NAMED:
            return None
        return self._read(match)

    def is_cut(self, text: str, end: int) -> bool:
        """Whether a word, or the phrase, goes on where reading stopped (``75aged``, ``75 of age``)."""
        return end < len(text) and (in_word(text[end]) or self._old.match(text, end) is not None)

    def right_of_range(self, text: str, start: int, end: int) -> Right | None:
        """What follows the first number of a range; None where there is none, or nothing could make ages of it."""
        match = self._after_range.match(text, end)
        if match is None:
            return None
        if all(match[name] is None for name in _OF_TIME):
            near = text[max(0, start - _WINDOW) : start].lower()
            if "age" not in near and not any(word in near for word in self._anchors):
                return None
        return self._read(match)

    @staticmethod
    def _read(match: re.Match[str]) -> Right:
        unit = next((unit for unit in _UNITS if match[unit] is not None), None)
        years_old = match["years_old"] is not None
        strength, bound = _NAMED.get(match.lastgroup or "", (None, None))
        ranged = "high" in match.re.groupindex
        return Right(
            end=match.end(),
            unit="years" if years_old else unit,
            old=years_old or match["old"] is not None,
            plus=match["plus"] is not None,
            group=match["group"] is not None,
            bound=bound,
            strength=strength,
            high=int(match["high"]) if ranged else 0,
            joined_by_and=ranged and match["join"].lower() == "and",
        )

    # ── left ───────────────────────────────────────────────────────────────────────────────────

    def left_of(self, text: str, start: int, bounded: bool) -> Left | None:
        """What precedes a single number; None where it is the second of a range."""
        window = text[max(0, start - _WINDOW) : start]
        if _PART.search(window[-_CLOSE:]) is not None:
            return None
        found = self._bound_of(window) if bounded else None
        if found is None:
            return self._left(start, window, window)
        head, bound, phrase, aged = found
        aged = aged or _OLDER.search(phrase) is not None
        return self._left(start, window, head, bound, symbol=not phrase[-1].isalpha(), aged=aged)

    def _bound_of(self, window: str) -> tuple[str, Bound, str, bool] | None:
        """(what precedes the bound, the bound, its words, whether "the age of" follows them)."""
        near = window.lower().rstrip(" -\t\n")
        aged = _OF_AGE.search(near[-_CLOSE:])
        head = near if aged is None else near[: len(near) - len(aged.group())].rstrip()
        last = _LAST.search(head[-_CLOSE:])
        for phrase, bound in self._by_last.get(last.group(), ()) if last is not None else ():
            begin = len(head) - len(phrase)
            if head.endswith(phrase) and not (phrase[0].isalpha() and _inside(head, begin)):
                return window[:begin], bound, phrase, aged is not None
        return None

    def left_of_range(self, text: str, start: int) -> Left | None:
        """What precedes the first number of a range; None where a bound does, or it is the second of another."""
        window = text[max(0, start - _WINDOW) : start]
        if _PART.search(window[-_CLOSE:]) is not None:
            return None
        if self.numbers.may_be_bound(text, start) and self._bound_of(window) is not None:
            return None
        match = self._between.search(window[-_NEAR:])
        if match is None:
            return self._left(start, window, window)
        head = window[: len(window) - len(match.group())]
        between = match["between"].lower() == "between"
        return self._left(start, window, head, aged=match["of_age"] is not None, between=between)

    def _left(
        self,
        start: int,
        window: str,
        head: str,
        bound: Bound | None = None,
        *,
        symbol: bool = False,
        aged: bool = False,
        between: bool = False,
    ) -> Left:
        near = head[-_NEAR:]
        aging = any(word in near.lower() for word in self._anchors)
        anchor = self._anchor.search(near) if aging else None
        begin = len(head) if anchor is None else len(head) - len(near) + anchor.start()
        joined = anchor is not None and "between" in anchor.group().lower()
        return Left(
            begin=start - len(window) + begin,
            bound=bound,
            symbol=symbol,
            anchored=aged or anchor is not None,
            between=between or joined,
            _head=head,
            _before_anchor=head[:begin],
            _hyphen=window.endswith("-"),
            _patterns=self,
        )

    # ── what follows ───────────────────────────────────────────────────────────────────────────

    def is_span_after(self, text: str, end: int) -> bool:
        """Whether what follows says that years are a time span (``years ago``)."""
        return self._span_after.match(text, end) is not None

    def ends(self, text: str, end: int) -> bool:
        """Whether the phrase ends behind a number without a unit."""
        return self._ends.match(text, end) is not None

    def measured(self, text: str, end: int) -> bool:
        """Whether a number without a unit is one of something else (``65 kg``, ``6 or 12 months``)."""
        return self._measure.match(text, end) is not None


def age_patterns(words: AgeWords, *, any_case: bool = True) -> AgePatterns:
    """Build them.

    Args:
        words: the lists of ``benchmarks/rag/normalisation.yaml``.
        any_case: False for texts in lower case; `words` are, too.
    """
    flags = re.IGNORECASE if any_case else re.NOFLAG
    of_age = r"(?P<of_age>(?:the\s{1,3})?ages?\s{1,3}(?:of\s{1,3})?)?"
    ends = rf"(?=\s{{0,3}}(?:$|[;:)\]!?]|[.,](?!\d)|{any_of(words.ends)}(?!\w|\s{{1,3}}\d)))"
    units = "|".join(rf"(?P<{unit}>{any_of(words.units[unit])})(?!\w)" for unit in _UNITS)
    unit = (
        rf"(?:[\s-]{{0,3}}(?P<years_old>{any_of(words.years_old)})(?!\w)|"
        rf"[\s-]{{0,3}}(?:{units})(?:[\s-]{{1,3}}(?P<old>{any_of(words.old)})(?!\w))?)?"
    )
    after = (
        rf"(?P<plus>\s?\+)?(?P<group>['’]?s(?!\w))?{unit}"
        rf"(?:,?\s{{0,3}}(?:{_after_words(words, ends)}))?"
    )
    said = [*(word for group in words.units.values() for word in group), *words.years_old]
    people = rf"(?<!\w){any_of(words.people)}(?:\s{{1,3}}{any_of(words.people_joins)})?[\s(,]{{0,3}}$"
    phrases = [word for group in words.before.values() for word in group]
    anchors = rf"(?<![\w-]){any_of(words.anchors)}(?:\s{{0,3}}{any_of(words.joins)}){{0,2}}[\s(]{{0,3}}$"
    more = rf"(?:and|or|to|,)\s{{1,3}}(?:age\s{{1,3}})?(?:{any_of(phrases)}\s{{0,3}})?"
    return AgePatterns(
        _by_last=_by_last(words.before),
        _anchors=tuple(word.lower() for word in words.anchors),
        _between=re.compile(rf"(?<![\w-])(?P<between>between|from)\s{{1,3}}{of_age}$", flags),
        _anchor=re.compile(anchors, flags),
        people=re.compile(people, flags),
        babies=re.compile(rf"(?<!\w){any_of(words.babies)}(?!\w)", flags),
        group=re.compile(rf"(?<!\w){any_of(words.groups)}\s{{1,3}}$", flags),
        refused=re.compile(rf"(?:(?<!\w){any_of(words.refused)}|n['’]t)\s{{1,3}}$", flags),
        span_before=re.compile(rf"(?<!\w){any_of(words.span_before)}(?!\w)", flags),
        _span_after=re.compile(rf"['’]?[\s-]{{1,3}}{any_of(words.span_after)}(?!\w)", flags),
        _begins=re.compile(
            rf"{RANGE}|\s?\+|,?[\s-]{{1,3}}(?:or|and)\s|[\s-]{{0,3}}{any_of(said)}(?!\w)", flags
        ),
        _after=re.compile(after, flags),
        _after_range=re.compile(RANGE + after, flags),
        _old=re.compile(rf"[\s-]{{1,3}}{any_of([*words.old, *words.years_old])}(?!\w)", flags),
        _ends=re.compile(ends, flags),
        _measure=re.compile(rf"\s{{0,3}}(?:{any_of(words.measures)}(?!\w)|{more}\d)", flags),
        numbers=age_numbers(words, said),
    )


def _by_last(table: Mapping[Bound, tuple[str, ...]]) -> dict[str, tuple[tuple[str, Bound], ...]]:
    """Last word, or signs, of a phrase -> the phrases that end so, the longest first."""
    made: dict[str, list[tuple[str, Bound]]] = {}
    for bound in _BOUNDS:
        for phrase in table[bound]:
            last = _LAST.search(phrase.lower())
            made.setdefault(last.group() if last else phrase, []).append((phrase.lower(), bound))
    return {last: tuple(sorted(found, key=lambda one: -len(one[0]))) for last, found in made.items()}


def _inside(text: str, begin: int) -> bool:
    return begin > 0 and (text[begin - 1].isalnum() or text[begin - 1] in "_-")


def _after_words(words: AgeWords, ends: str) -> str:
    groups = []
    for strength in STRENGTHS:
        table: Mapping[Bound, tuple[str, ...]] = getattr(words.after, strength)
        stop = ends if strength != "plain" else r"(?!\w)"
        groups += [
            rf"(?P<{strength}_{bound}>{any_of(table[bound])}){stop}" for bound in _BOUNDS if table.get(bound)
        ]
    return "|".join(groups)

"""What stands left and right of a number that may be an age, read by patterns made of a list of words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, cast

from clinsafe.rag.normalising.gate import in_word
from clinsafe.rag.normalising.wordlist import AgeWords, Bound, Unit, any_of

Strength: TypeAlias = Literal["plain", "loose", "bare"]
_WINDOW = 72  # characters to the left of a number
_NEAR = 32  # characters in which a word may stand that tells of a time span, or of infants
_PEOPLE = 40  # people, and "who are"
_SHORT = 2  # letters of a word that stands in every text: looked for by the one before it
_CLOSE = 14  # the first number of a range
_BOUNDS: tuple[Bound, ...] = ("at_least", "over", "at_most", "under")
_UNITS: tuple[Unit, ...] = ("years", "months", "weeks", "days")
_OF_TIME = (*_UNITS, "years_old", "old")
_STRENGTHS: tuple[Strength, ...] = ("plain", "loose", "bare")
_NAMED: Mapping[str, tuple[Strength, Bound]] = {
    f"{strength}_{bound}": (strength, bound) for strength in _STRENGTHS for bound in _BOUNDS
}
NUMBER = re.compile(r"[0-9](?<![\w/±^\u0300-\u036f][0-9])(?<![0-9][.,:][0-9])[0-9]{0,2}(?![0-9]|[.,/:][0-9])")
"""A number of up to three digits that is no part of a decimal, a fraction, a time or a name (B12)."""
_FLAT = bytes(  # digits are 0, letters are small, all spaces are spaces
    48
    if 48 <= byte < 58
    else byte + 32
    if 65 <= byte < 91
    else 32
    if 9 <= byte < 14 or 28 <= byte < 32
    else byte
    for byte in range(256)
)
_RANGE = r"\s{0,3}(?P<join>-|–|—|to\b|through\b|and\b)\s{0,3}(?P<high>\d{1,3})(?!\d|[.,]\d)"
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
    _last_words: frozenset[str]
    _signs: tuple[str, ...]
    _before_last: Mapping[str, tuple[str, ...]]
    _followed: re.Pattern[bytes]
    _preceded: Mapping[str, re.Pattern[str]]
    bounds: frozenset[bytes]
    _odd_bounds: list[str]

    # ── the number itself ──────────────────────────────────────────────────────────────────────

    def numbers(self, text: str, low: str, hits: AbstractSet[bytes]) -> Iterable[tuple[int, int]]:
        """Where the numbers stand; of a text of ASCII those alone that may be part of a threshold or a range.

        Args:
            text: as written.
            low: its lower case, of the same length.
            hits: its pieces, at least those of `bounds`.
        """
        if not text.isascii():
            return (match.span() for match in NUMBER.finditer(text))
        # One letter for all digits is found ten times faster than ten, and plain words faster than patterns.
        found = {match.span() for match in self._followed.finditer(text.encode().translate(_FLAT))}
        for word in [word.decode() for word in hits & self.bounds] + self._odd_bounds:
            pattern, at = self._preceded[word], low.find(word)
            while at >= 0:
                match = pattern.match(low, at)
                number = NUMBER.match(low, match.end()) if match is not None else None
                if number is not None:
                    found.add(number.span())
                at = low.find(word, at + 1)
        return sorted(found)

    def may_bound(self, text: str, start: int) -> bool:
        """Whether what precedes the number may be a bound: most numbers are refused here."""
        at = start - 1
        while at > start - 4 and at >= 0 and (text[at].isspace() or text[at] == "-"):
            at -= 1
        if at < 0 or not text[at].isalpha():
            return at >= 0 and text[at] in "<>=≥≤⩾⩽≧≦" and text.endswith(self._signs, max(0, at - 3), at + 1)
        word = text[max(0, at - 12) : at + 1].rpartition(" ")[2].lower()
        if word not in self._last_words:
            return False
        before = self._before_last.get(word)
        begin = at + 1 - len(word)
        return before is None or text[max(0, begin - _WINDOW) : begin].rstrip().lower().endswith(before)

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
        if self.may_bound(text, start) and self._bound_of(window) is not None:
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
    last = _last_words(phrases)
    anchors = rf"(?<![\w-]){any_of(words.anchors)}(?:\s{{0,3}}{any_of(words.joins)}){{0,2}}[\s(]{{0,3}}$"
    more = rf"(?:and|or|to|,)\s{{1,3}}(?:age\s{{1,3}})?(?:{any_of(phrases)}\s{{0,3}})?"
    signs = tuple(phrase for phrase in phrases if not phrase[-1].isalpha())
    preceded = _preceded(last, signs)
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
            rf"{_RANGE}|\s?\+|,?[\s-]{{1,3}}(?:or|and)\s|[\s-]{{0,3}}{any_of(said)}(?!\w)", flags
        ),
        _after=re.compile(after, flags),
        _after_range=re.compile(_RANGE + after, flags),
        _old=re.compile(rf"[\s-]{{1,3}}{any_of([*words.old, *words.years_old])}(?!\w)", flags),
        _ends=re.compile(ends, flags),
        _measure=re.compile(rf"\s{{0,3}}(?:{any_of(words.measures)}(?!\w)|{more}\d)", flags),
        _last_words=frozenset(last),
        _signs=signs,
        _before_last={word: tuple(before) for word, before in last.items() if before},
        _followed=_followed(words, said),
        _preceded=preceded,
        bounds=frozenset(word.encode() for word in preceded if _is_piece(word)),
        _odd_bounds=[word for word in preceded if not _is_piece(word)],
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
        phrase for name in _STRENGTHS for group in getattr(words.after, name).values() for phrase in group
    ]
    first = any_of(phrase.lower().split()[0] for phrase in after)
    units, old = any_of(map(str.lower, said)), any_of(map(str.lower, (*words.old, *words.years_old)))
    ranged = _RANGE.replace("?P<join>", "?:").replace("?P<high>", "?:").replace(r"\d", "0")
    begins = r"0(?<![\w/^]0)(?<!0[.,:]0)0{0,2}(?!0|[.,/:]0)"
    said_so = rf"(?:'?s(?!\w))?(?:[ -]{{0,3}}{units}(?:[ -]{{1,3}}{old})?)?,? {{0,3}}{first}"
    return re.compile(rf"{begins}(?= ?\+|{said_so}|{ranged})".encode())


def _preceded(last: Mapping[str, Sequence[str]], signs: Iterable[str]) -> dict[str, re.Pattern[str]]:
    """What to look for -> what has to stand there up to the number: last signs, and words of `_last_words`."""
    made: dict[str, list[str]] = {}
    for phrase in signs:
        rarest = phrase.lstrip("=")[:1] or phrase[-1]  # most "=" are no bound
        made.setdefault(rarest, []).append(re.escape(phrase[phrase.index(rarest) :]))
    for word, before in last.items():
        said = re.escape(word)
        if len(word) > _SHORT or not before:
            made.setdefault(word, []).append(said)
        else:
            for one in before:
                made.setdefault(one, []).append(rf"{re.escape(one)}\s{{1,3}}{said}")
    return {word: re.compile(rf"(?:{'|'.join(said)})[\s-]{{0,3}}(?=[0-9])") for word, said in made.items()}


def _is_piece(word: str) -> bool:
    return word.isascii() and word.isalpha()


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
    for strength in _STRENGTHS:
        table: Mapping[Bound, tuple[str, ...]] = getattr(words.after, strength)
        stop = ends if strength != "plain" else r"(?!\w)"
        groups += [
            rf"(?P<{strength}_{bound}>{any_of(table[bound])}){stop}" for bound in _BOUNDS if table.get(bound)
        ]
    return "|".join(groups)

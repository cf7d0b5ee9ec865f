"""One sentence made ready: keys of its tokens, its stops, and the cues found in it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from clinsafe.mitigations.cues import Match
from clinsafe.mitigations.order.pack import StatusRule
from clinsafe.mitigations.order.rules import Phase, Rank, Rules, Sign
from clinsafe.text import Sentence, Token
from clinsafe.text.tokens import stem_of

Range = tuple[int, int]
_HARD = frozenset(";:.!?—|")
_MOST_CUES = 60  # cues of one table in a sentence; what has more is a list or noise, and is told as unread
_WIDEST = 30  # tokens of a clause to each side
_CORE = 3  # content words of a name
_BOUNDED = ("order", "ranks", "status", "phases")
_DIGITS = "0123456789"
_SOFT = frozenset(",()[]")


class Scan:
    """A sentence as the rules see it. Positions are token indices; ranges are half-open.

    Attributes:
        keys: event keys of each token; none for numbers before a unit of time.
        hard: positions of ; : . and the like, with -1 and the length at the ends.
        cues: order cues, left to right.
        cut: whether something in it is left unread.
    """

    def __init__(
        self,
        sentence: Sentence,
        rules: Rules,
        found: Mapping[str, Sequence[Match[Any]]],
        pointed: bool = False,
        prefixed: bool = False,
    ) -> None:
        self.sentence = sentence
        self.pointed = pointed
        self.prefixed = prefixed
        self.cut = any(len(found[name]) > _MOST_CUES for name in _BOUNDED)
        self.rules = rules
        self.tokens: Sequence[Token] = sentence.tokens
        self.ranks: Sequence[Match[Rank]] = found["ranks"][:_MOST_CUES]
        self.phases: Sequence[Match[Phase]] = found["phases"][:_MOST_CUES]
        self.found: Sequence[Match[StatusRule]] = found["status"][:_MOST_CUES]
        self.keys = [rules.lexicon.keys(token) for token in self.tokens]
        self._marks: Sequence[Match[frozenset[str]]] = [m for m in found["marks"] if not self._leads_on(m)]
        self._lasting = found["lifelong"]
        self._soft: list[bool] | None = None
        self._starts = [match.start for match in self._marks]
        self.hard = [-1, *self._hard_stops(), len(self.tokens)]
        self.cues: Sequence[Match[Sign]] = [m for m in found["order"][:_MOST_CUES] if not self._lone(m)]
        self._drop_times()

    def _leads_on(self, mark: Match[frozenset[str]]) -> bool:
        """Whether a word of being over is none: "is off apixaban", "the back pain", "keep the infusion running"."""
        if "done" not in mark.value:
            return False
        last, grammar = self.tokens[mark.end - 1].lower, self.rules.grammar
        particle = last in grammar.directions or (last in grammar.particles and mark.end - mark.start > 1)
        named = mark.end < len(self.tokens) and bool(self.keys[mark.end])
        return (particle and named) or any(
            m.start < mark.start < m.end and m.value.state == "on" and m.value.axis == "treatment"
            for m in self.found
        )

    def _lone(self, cue: Match[Sign]) -> bool:
        """Whether a cue of exchange has no word that parts its two things ("plasma exchange")."""
        special = self.rules.special
        if cue.cue in special.before_state and any(
            m.start == cue.end and m.value.state != "none" for m in self.found
        ):
            return True  # "since stopped"
        if cue.cue in special.before_number and cue.end < len(self.tokens):
            return self.rules.lexicon.number(self.tokens[cue.end]) is not None  # "and last two days"
        if not cue.value.between:
            return False
        low, high = self.segment(cue.start)
        around = self.tokens[cue.end : min(high, cue.end + _WIDEST)]
        if "to" in cue.value.between:
            around = [*around, *self.tokens[max(low, cue.start - _WIDEST) : cue.start]]
        return not any(token.lower in cue.value.between for token in around)

    def _hard_stops(self) -> list[int]:
        tokens, last = self.tokens, len(self.tokens) - 1
        stops = []
        for i, token in enumerate(tokens):
            if token.text in _HARD:
                if not (0 < i < last and token.text in ":." and self._inside(i)):
                    stops.append(i)
            elif (
                token.text == "-"
                and 0 < i < last
                and tokens[i - 1].end < token.start
                and token.end < tokens[i + 1].start
            ):
                stops.append(i)
        return stops

    def _inside(self, at: int) -> bool:
        """Whether a colon or dot stands inside a time, a number or an abbreviation ("b.d.")."""
        before, token, after = self.tokens[at - 1], self.tokens[at], self.tokens[at + 1]
        if before.is_number and after.is_number:
            return True
        return token.text == "." and (token.end == after.start or len(before.text) == 1)

    def _drop_times(self) -> None:
        lexicon = self.rules.lexicon
        for i in range(1, len(self.tokens)):
            if self.tokens[i - 1].lower[0] in _DIGITS and lexicon.hours(self.tokens[i]):
                self.keys[i - 1] = ()

    # ── ranges ───────────────────────────────────────────────────────────────────────────────

    def segment(self, at: int) -> Range:
        """The range between the hard stops around a position."""
        return self.hard[bisect_right(self.hard, at - 1) - 1] + 1, self.hard[bisect_left(self.hard, at)]

    def chunk(self, start: int, end: int) -> Range:
        """The clause around ``[start, end)``: to the nearest comma, bracket or clause word."""
        low, high = self.segment(start)
        left, right = start, end
        low, high = max(low, start - _WIDEST), min(high, end + _WIDEST)
        while left > low and not self.soft(left - 1):
            left -= 1
        while right < high and not self.soft(right):
            right += 1
        return left, right

    def soft(self, at: int) -> bool:
        """Whether a clause ends at this token: a comma, a bracket, "and", "which" …"""
        if self._soft is None:
            starts = self.rules.clause_starts
            self._soft = [token.text in _SOFT or token.lower in starts for token in self.tokens]
        return self._soft[at]

    def comma(self, start: int, end: int) -> int:
        """Position of the first comma in a range, or -1."""
        return next((i for i in range(start, end) if self.tokens[i].text == ","), -1)

    def keyset(self, *ranges: Range) -> frozenset[str]:
        """All event keys in some ranges."""
        return frozenset(key for start, end in ranges for keys in self.keys[start:end] for key in keys)

    def core(self, part: Range, last: bool) -> frozenset[str]:
        """Keys of the name of an event: the first words, up to a preposition, of the first or last clause."""
        start, end = self.clause(part, last)
        if sum(bool(keys) for keys in self.keys[start:end]) <= _CORE:
            return self.keyset((start, end))
        keys: list[str] = []
        count = 0
        for i in range(start, end):
            if count and (count == _CORE or self.soft(i) or self.tokens[i].lower in self.rules.prepositions):
                break
            keys += self.keys[i]
            count += bool(self.keys[i])
        return frozenset(keys)

    def well(self, part: Range) -> bool:
        """Whether what a range names was found well ("urine clear"), unlike in "given on clear skin"."""
        named = False
        for i in range(*part):
            lower = self.tokens[i].lower
            if lower in self.rules.well:
                return True
            if named and lower in self.rules.prepositions:
                return False
            named = named or bool(self.keys[i])
        return False

    def clause(self, part: Range, last: bool) -> Range:
        """The last or first clause of a range that names something."""
        start, end = part
        for i in range(end - 1, start, -1) if last else range(start + 1, end):
            if last and self.soft(i - 1) and not self.bare(i, end):
                return i, end
            if not last and self.soft(i) and not self.bare(start, i):
                return start, i
        return part

    def bare(self, start: int, end: int) -> bool:
        """Whether a range has no event keys."""
        return not any(self.keys[start:end])

    def named(self, *ranges: Range) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The words that name something in some ranges, with their keys."""
        return tuple(
            (self.tokens[i].text, self.keys[i])
            for start, end in ranges
            for i in range(start, end)
            if self.keys[i]
        )

    def lasts(self, keys: frozenset[str]) -> bool:
        """Whether keys name a lifelong condition or allergy, of which a history is current: by a word or a phrase."""
        lifelong = self.rules.lifelong
        return any(
            not keys.isdisjoint(own) and stem_of(token.lower) in lifelong
            for token, own in zip(self.tokens, self.keys, strict=True)
            if own
        ) or any(not keys.isdisjoint(self.keyset((m.start, m.end))) for m in self._lasting)

    def words(self, *ranges: Range) -> str:
        """A short readable name of what stands in some ranges."""
        found = [
            self.tokens[i].text
            for start, end in ranges
            for i in range(start, end)
            if self.keys[i] and self.tokens[i].text[0].isalnum()
        ]
        return " ".join(found[:6])

    # ── words that decide ────────────────────────────────────────────────────────────────────

    def marks(self, start: int, end: int) -> frozenset[str]:
        """Labels of the deciding words in a range: not, delay, needless, done, done_weak, undone, unseen."""
        found: set[str] = set()
        for match in self._within(start, end):
            found |= match.value
        found.discard("pseudo")
        return frozenset(found)

    def negated(self, start: int, end: int) -> bool:
        """Whether an odd number of negators stands in a range."""
        return sum("not" in match.value for match in self._within(start, end)) % 2 == 1

    def withheld(self, start: int, end: int) -> bool:
        """Whether a range says that a thing is not done; "do not omit" says that it is."""
        return self.negated(start, end) and not self.stopping(start, end, True)

    def stopping(self, start: int, end: int, said: bool = False) -> bool:
        """Whether a range says that a treatment is stopped or left out; with `said`, whatever its negation."""
        off = any(
            m.start >= start
            and m.end <= end
            and m.cue not in self.rules.special.particles
            and not (said and self._negative(m.cue))
            and not m.value.weak
            and m.value.state == "off"
            and m.value.axis == "treatment"
            for m in self.found
        )
        return off and (said or not self.negated(start, end))

    def _negative(self, cue: str) -> bool:
        """Whether a cue holds its own negation ("no further doses")."""
        return cue.removeprefix("~be ").partition(" ")[0] in self.rules.grammar.negative

    def now(self, start: int, end: int) -> bool:
        """Whether the clause of a cue speaks of the time of writing ("is still withheld")."""
        left, right = self.chunk(start, end)
        return any(m.value.now and left <= m.start and m.end <= right for m in self.found)

    def later(self, start: int, end: int) -> bool:
        """Whether a verb orders a thing for after an event ("restart once the INR is back"), not of what was done."""
        before = self.tokens[start - 1].lower if start else ""
        ordered = before == "be" or self.tokens[start].lower == self.tokens[start].lemma
        _, high = self.segment(start)
        return ordered and any(end <= c.start < high and c.value.kind == "after" for c in self.cues)

    def at_once(self, start: int, end: int) -> bool:
        """Whether a thing is to be done now, not after an event."""
        left, right = self.chunk(start, end)
        now = self.rules.grammar.at_once
        return any(t.lower in now for t in self.tokens[left:right]) and not self.later(start, end)

    def going_on(self, start: int, end: int) -> bool:
        """Whether a range says that a treatment is continued."""
        return not self.negated(start, end) and any(
            start <= m.start and m.end <= end and m.value.going and m.value.state == "on" for m in self.found
        )

    def _within(self, start: int, end: int) -> Sequence[Match[frozenset[str]]]:
        """Deciding words that begin in a range; "not … yet" may reach beyond it."""
        first, last = bisect_left(self._starts, start), bisect_left(self._starts, end)
        return self._marks[first:last]

    # ── spans of time ────────────────────────────────────────────────────────────────────────

    def spans(self, at: int) -> bool:
        """Whether a word of number stands before a unit of time ("many years", "several more weeks")."""
        units = [
            token for token in self.tokens[at + 1 : at + 3] if token.lower not in self.rules.grammar.more
        ][:1]
        return any(self.rules.lexicon.hours(unit) for unit in units)

    def span_before(self, at: int) -> tuple[float, int]:
        """A span of time that ends at this position ("two days" in "two days before"): hours and where it begins."""
        lexicon = self.rules.lexicon
        if at < 2:
            return 0.0, at
        hours, number = lexicon.hours(self.tokens[at - 1]), lexicon.number(self.tokens[at - 2])
        if not hours or number is None or number <= 0:
            return 0.0, at
        if at >= 3 and self.tokens[at - 3].lower in self.rules.grammar.half and number == 1:
            return hours / 2, at - 3
        return hours * number, at - 2

    def span_after(self, at: int, end: int) -> float:
        """A span of time after "by" ("by roughly ten years"): hours, or 0."""
        for i in range(at, min(end, at + 12, len(self.tokens))):
            if self.tokens[i].lower in self.rules.grammar.by:
                return next(
                    (
                        hours
                        for j in range(i + 3, min(i + 6, len(self.tokens)) + 1)
                        if (hours := self.span_before(j)[0])
                    ),
                    0.0,
                )
        return 0.0

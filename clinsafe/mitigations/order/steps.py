"""Order of steps: "A, then B", "A first, B last", "(1) A, (2) B", "B; A had been done beforehand"."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TypeVar

from clinsafe.mitigations.cues import Match
from clinsafe.mitigations.order.fact import Event, event, order_fact
from clinsafe.mitigations.order.rules import Rank, Sign
from clinsafe.mitigations.order.scan import Range, Scan
from clinsafe.protocols import Fact
from clinsafe.text import Reading

T = TypeVar("T")
_MARKS = frozenset(",()")
_MOST_STEPS = 12  # steps of one sentence; where there are more the sentence is told as unread
_LIST = 10  # tokens of a short list
_LONGEST = 60  # tokens of a list


def steps(reading: Reading, scan: Scan, before: Scan | None) -> Iterator[Fact]:
    """Facts of the sequel cues of a sentence; `before` is the sentence before it."""
    for index, cue in enumerate(scan.cues):
        kind = _kind(scan, cue)
        if kind not in ("then", "earlier") and not _follows(scan, cue):
            continue
        if cue.cue in scan.rules.special.already and not _alone(scan, cue):
            continue
        sides = _sides(scan, index)
        if sides is None:
            continue
        rest, own = sides
        own_event, rest_event = event(scan, (own,)), event(scan, (rest,), True)
        if not rest_event.keys and before is not None:
            rest_event = event(before, (before.segment(max(0, len(before.tokens) - 2)),), True)
        early, late = (rest_event, own_event) if kind != "earlier" else (own_event, rest_event)
        hours = scan.span_before(cue.start)[0]
        fact = order_fact(reading, scan, early, late, (cue.start, cue.end), cue.value.rule, "before", hours)
        if fact:
            yield fact


def _kind(scan: Scan, cue: Match[Sign]) -> str:
    """The kind of a cue; "before" and "after" with nothing behind them are steps ("feed started after")."""
    _, high = scan.segment(cue.start)
    closes = cue.end >= high or scan.tokens[cue.end].text in _MARKS
    return scan.rules.special.alone.get(cue.cue, cue.value.kind) if closes else cue.value.kind


def _alone(scan: Scan, cue: Match[Sign]) -> bool:
    """Whether no other word of order stands in the segment of "a swab had already been taken"."""
    low, high = scan.segment(cue.start)
    others = [c for c in scan.cues if low <= c.start < high and c is not cue and c.value.kind != "none"]
    return low > 0 and not any(c.value.kind not in ("with", "then") or c.start < cue.start for c in others)


def listed(reading: Reading, scan: Scan) -> Iterator[Fact]:
    """Facts of "A, B and C, in that order"."""
    for cue in scan.cues:
        if cue.value.kind != "listed":
            continue
        low, _ = scan.segment(cue.start)
        end = cue.start
        if scan.bare(low, end) and low >= 2:
            low, end = scan.segment(low - 2)
        parts, start = [], max(low, end - _LONGEST)
        scan.cut = scan.cut or not scan.bare(low, start)
        for i in range(start, end + 1):
            if i == end or scan.soft(i):
                if not scan.bare(start, i):
                    parts.append(event(scan, ((start, i),)))
                start = i + 1
        for early, late in pairwise(_first(scan, parts)):
            fact = order_fact(reading, scan, early, late, (cue.start, cue.end), cue.value.rule)
            if fact:
                yield fact


def _follows(scan: Scan, cue: Match[Sign]) -> bool:
    """ "Lipid checks follow": nothing stands after the verb."""
    _, high = scan.segment(cue.start)
    return (
        cue.value.kind == "trailed"
        and cue.cue in scan.rules.special.closing
        and (cue.end >= high or scan.soft(cue.end))
    )


def _sides(scan: Scan, index: int) -> tuple[Range, Range] | None:
    """(the step before, the step that the cue speaks of)."""
    cue = scan.cues[index]
    low, high = scan.segment(cue.start)
    start = scan.span_before(cue.start)[1]
    low = max([low, *(c.end for c in scan.cues[:index] if c.value.kind == cue.value.kind and c.end <= start)])
    plain = cue.cue in scan.rules.special.plain
    before = scan.tokens[start - 1] if start > low else None
    joined = before is None or before.text in _MARKS or before.text in scan.rules.grammar.joins
    opens = plain or joined or scan.soft(start - 1)
    after = cue.end + 1 if cue.end < high and scan.tokens[cue.end].text == "," else cue.end
    stop = _end_of_own(scan, index, after, high)
    closes = cue.end >= high or (scan.soft(cue.end) and not opens and not plain)
    if not closes and (opens or _verb_follows(scan, cue, high)) and not scan.bare(after, stop):
        own = (after if opens else _subject(scan, low, start), stop)
        rest = (low, own[0] if not opens else start)
    else:
        left = _own_start(scan, low, start)
        own, rest = (left, start), (low, left)
    if scan.bare(*own):
        return None
    if scan.bare(*rest):
        rest = _rest_elsewhere(scan, cue, high, own)
    return rest, own


def _own_start(scan: Scan, low: int, start: int) -> int:
    """Where the step begins that a cue closes: at the last clause, or at a "with" before it."""
    left, beside = start, scan.rules.grammar.beside
    while left > low and not (scan.soft(left - 1) and not scan.bare(left, start)):
        left -= 1
    for i in range(start - 1, left, -1):
        if scan.tokens[i].lower in beside and not scan.bare(left, i) and not scan.bare(i, start):
            return i
    for i in range(left - 1, max(low, left - _LIST), -1):
        if scan.tokens[i].lower in beside and scan.tokens[i - 1].text == "," and not scan.bare(low, i):
            return i  # "A, with B and C afterwards"
    return left


def _verb_follows(scan: Scan, cue: Match[Sign], high: int) -> bool:
    """Whether the cue stands inside its clause ("she subsequently developed a rash")."""
    return cue.end < high and not scan.soft(cue.end)


def _subject(scan: Scan, low: int, start: int) -> int:
    left = start
    while left > low and not scan.soft(left - 1):
        left -= 1
    return left


def _end_of_own(scan: Scan, index: int, start: int, high: int) -> int:
    for i in range(start, high):
        if scan.tokens[i].text == "," and not scan.bare(start, i):
            return i
        if i > start and any(
            c.start == i and c.value.kind == "then" for c in scan.cues[index + 1 : index + 3]
        ):
            return i
    return high


def _rest_elsewhere(scan: Scan, cue: Match[Sign], high: int, own: Range) -> Range:
    """The other step where none stands left of the cue: the segment before, or for "first" what follows."""
    if (
        cue.value.kind == "earlier"
        and cue.end < high
        and not scan.bare(cue.end, high)
        and own[1] <= cue.start
    ):
        return cue.end, high
    segment_start = scan.segment(cue.start)[0]
    return scan.segment(segment_start - 2) if segment_start >= 2 else (0, 0)


# ── numbered steps ───────────────────────────────────────────────────────────────────────────────


def ranked(reading: Reading, scan: Scan) -> Iterator[Fact]:
    """Facts of "FOLFOX first-line, FOLFIRI second" and of "(1) A, (2) B"."""
    marks = _first(scan, [cue for cue in scan.ranks if not cue.value.bare or _at_edge(scan, cue)])
    steps_ = []
    for cue in marks:
        chunk = scan.chunk(cue.start, cue.end)
        keys = event(scan, ((chunk[0], cue.start), (cue.end, chunk[1])))
        if keys.keys:
            steps_.append((cue, keys))
    for one, early in steps_:
        for other, late in steps_:
            if one.value.rank < other.value.rank:
                at = (other.start, other.end)
                fact = order_fact(reading, scan, early, late, at, other.value.rule)
                if fact:
                    yield fact
    yield from _only_first(reading, scan, steps_)
    yield from _numbered(reading, scan)


def _only_first(reading: Reading, scan: Scan, steps_: list[tuple[Match[Rank], Event]]) -> Iterator[Fact]:
    """ "Hydrocortisone first, levothyroxine when replete": the clause after a lone "first" comes later."""
    if len(steps_) != 1 or steps_[0][0].value.rank != 1:
        return
    cue, early = steps_[0]
    fact = _opened_by_condition(reading, scan, cue)
    if fact:
        yield fact
        return
    _, right = scan.chunk(cue.start, cue.end)
    low, high = scan.segment(cue.start)
    if (
        right + 1 < high
        and not scan.bare(right + 1, high)
        and not any(
            c.start >= low and c.end <= high and c.value.kind in ("then", "before", "after", "until")
            for c in scan.cues
        )
    ):
        late = event(scan, ((right + 1, high),))
        fact = order_fact(reading, scan, early, late, (cue.start, cue.end), cue.value.rule)
        if fact:
            yield fact


def _opened_by_condition(reading: Reading, scan: Scan, cue: Match[Rank]) -> Fact | None:
    """ "If Y is needed, do X first": what the opening clause speaks of comes after."""
    low, high = scan.segment(cue.start)
    if scan.tokens[low].lower not in scan.rules.grammar.conditions or (
        cue.end < high and not scan.bare(cue.end, high)
    ):
        return None
    comma = scan.comma(low, cue.start)
    if comma < 0 or scan.bare(low, comma) or scan.bare(comma, cue.start):
        return None
    early, late = event(scan, ((comma + 1, cue.start),)), event(scan, ((low, comma),))
    return order_fact(reading, scan, early, late, (cue.start, cue.end), cue.value.rule)


def _first(scan: Scan, parts: list[T]) -> list[T]:
    """The first steps; where there are more, the sentence was not read to its end."""
    scan.cut = scan.cut or len(parts) > _MOST_STEPS
    return parts[:_MOST_STEPS]


def _at_edge(scan: Scan, cue: Match[Rank]) -> bool:
    low, high = scan.segment(cue.start)
    closes = cue.end >= high or scan.soft(cue.end)
    opens = cue.start <= low or scan.soft(cue.start - 1)
    return (closes and not opens) or (opens and not closes and cue.start <= low)


def _numbered(reading: Reading, scan: Scan) -> Iterator[Fact]:
    tokens = scan.tokens
    starts = [
        i
        for i in range(len(tokens) - 1)
        if tokens[i + 1].text in (")", ".") and tokens[i].lower.isdigit() and len(tokens[i].lower) == 1
    ]
    first = 2 if scan.sentence.bullet else 1  # the number of a list item is cut off
    expected = [i for n, i in enumerate(starts, first) if tokens[i].lower == str(n)]
    if len(expected) + first < 3 or len(expected) != len(starts):
        return
    if first == 2:
        expected.insert(0, -2)
    ends = [*(i - 1 for i in expected[1:]), len(tokens)]
    parts = _first(scan, [event(scan, ((i + 2, end),)) for i, end in zip(expected, ends, strict=True)])
    for n, early in enumerate(parts):
        for late in parts[n + 1 :]:
            at = (expected[n + 1], expected[n + 1] + 1) if n + 1 < len(expected) else (0, 1)
            fact = order_fact(reading, scan, early, late, at, "rank.numbered")
            if fact:
                yield fact

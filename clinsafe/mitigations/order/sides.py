"""What stands where: the main part of a joining cue, and the thing named after it."""

from __future__ import annotations

from typing import NamedTuple

from clinsafe.mitigations.cues import Match
from clinsafe.mitigations.order.fronted import cleft, fronted, joined
from clinsafe.mitigations.order.rules import Sign
from clinsafe.mitigations.order.scan import Range, Scan
from clinsafe.mitigations.order.timeline import is_point

_WIDEST = 18  # tokens of the thing named after a cue
_LONGEST = 50  # tokens of the main part
_DIVIDES = frozenset(
    ["before", "after", "until", "led", "trailed", "when", "then", "earlier", "pair", "pair_back"]
)


class Sides(NamedTuple):
    """The main part and the thing named after the cue."""

    main: tuple[Range, ...]
    object: Range
    fronted: bool


def prepositional(scan: Scan, index: int) -> Sides | None:
    """Parts of "X before Y", "Before Y, X" and "X, before Y, X"."""
    cue = scan.cues[index]
    low, high = scan.segment(cue.start)
    low = max(_after_earlier_cue(scan, index, low), cue.start - _LONGEST)
    named = _object(scan, index, high)
    if scan.bare(*named) and pronoun(scan, *named):
        return _referring(scan, cue, low)
    if scan.bare(*named) and cue.cue in scan.rules.special.absolute:
        return _absolute(scan, cue, named[1], low, high)
    if scan.bare(*named) or (cue.cue in scan.rules.special.before_point and is_point(scan, cue.end)):
        return None
    start = scan.span_before(cue.start)[1]
    parts = cleft(scan, cue, named, high)
    if parts:
        return Sides(*parts, True)
    if scan.bare(low, start) or joined(scan, start, low):
        end = _stop(scan, index, named[1] + 1, high)
        parts = fronted(scan, named, high, end)
        if parts:
            return Sides(*parts, True)
        if scan.bare(low, start):
            return _across(scan, low, named)
    main: tuple[Range, ...] = ((low, cue.start),)
    if scan.tokens[cue.start - 1].text == "," and named[1] < high and scan.tokens[named[1]].text == ",":
        main = (*main, (named[1] + 1, _stop(scan, index, named[1] + 1, high)))
    return Sides(main, named, False)


def _referring(scan: Scan, cue: Match[Sign], low: int) -> Sides | None:
    """Parts of "A given, B not until that was in": A is named, B is the clause of the cue."""
    start = cue.start
    while start > low and not (scan.soft(start - 1) and not scan.bare(start, cue.start)):
        start -= 1
    if scan.bare(start, cue.start) or scan.bare(low, start):
        return None
    named = scan.clause((low, start - 1), True)
    return Sides(((start, cue.start),), named, False)


def _absolute(scan: Scan, cue: Match[Sign], end: int, low: int, high: int) -> Sides | None:
    """Parts of "Y having been done, X" and "X, Y having been done"."""
    start = cue.start
    while start > low and scan.tokens[start - 1].text != ",":
        start -= 1
    main = (end + 1, high) if end < high and scan.tokens[end].text == "," else (low, max(low, start - 1))
    if scan.bare(start, cue.start) or scan.bare(*main):
        return None
    return Sides((main,), (start, cue.start), main[0] > cue.start)


def verbal(scan: Scan, index: int) -> Sides | None:
    """Parts of "X preceded Y"."""
    cue = scan.cues[index]
    low, high = scan.segment(cue.start)
    if cue.end >= high or scan.soft(cue.end):
        return None
    low = max(_after_earlier_cue(scan, index, low), cue.start - _LONGEST)
    named = _object(scan, index, high)
    if scan.bare(*named) or scan.bare(low, cue.start):
        return None
    return Sides(((low, cue.start),), named, False)


def paired(scan: Scan, index: int) -> Sides | None:
    """Parts of "switched from A to B" and "exchanged A for B"."""
    cue = scan.cues[index]
    _, high = scan.segment(cue.start)
    for i in range(cue.end, min(high, cue.end + _WIDEST)):
        if scan.tokens[i].lower in cue.value.between and not scan.bare(cue.end, i):
            named = (i + 1, _next_stop(scan, i + 1, high))
            return None if scan.bare(*named) else Sides(((cue.end, i),), named, True)
    low = scan.segment(cue.start)[0]
    named = _object(scan, index, high)
    if cue.value.kind == "pair" and "to" in cue.value.between and not scan.bare(*named):
        back = next((i for i in range(cue.start, low, -1) if scan.tokens[i - 1].lower == "to"), 0)
        if back and not scan.bare(back, cue.start):
            return Sides((named,), (back, cue.start), True)
    return None


def _next_stop(scan: Scan, start: int, high: int) -> int:
    for i in range(start, high):
        stops = scan.tokens[i].text in ",()[]" or scan.tokens[i].lower in scan.rules.object_stops
        if stops and not scan.bare(start, i):
            return i
    return high


def accompanied(scan: Scan, index: int) -> Sides | None:
    """Parts of "X with Y already done"; only where Y says that it was or was not over."""
    cue = scan.cues[index]
    _, high = scan.segment(cue.start)
    named = _object(scan, index, high)
    if not scan.marks(cue.end, named[1]) & {"done", "undone"}:
        return None
    return prepositional(scan, index)


def _object(scan: Scan, index: int, high: int) -> Range:
    start = scan.cues[index].end
    end = _stop(scan, index, start, min(high, start + _WIDEST))
    listed = 0
    for i in range(start, end):
        token = scan.tokens[i]
        if token.text in ",()[]" and i > start and i >= listed:
            listed = _list_end(scan, i, end)
            if not listed:
                return start, i
        ends = token.lower in scan.rules.object_stops or _verb_joined(scan, i, end)
        if ends and not scan.bare(start, i):
            return start, i
    return start, end


def _verb_joined(scan: Scan, at: int, end: int) -> bool:
    """Whether an "and" goes on with a verb of the main clause ("after surgery and is now well")."""
    if scan.tokens[at].lower not in scan.rules.grammar.lists:
        return False
    auxiliary = scan.rules.grammar.auxiliary
    return any(
        scan.tokens[i].lower in auxiliary and scan.bare(at, i) for i in range(at + 1, min(at + 3, end))
    )


def _list_end(scan: Scan, comma: int, end: int) -> int:
    """Where the next thing of "A, B and C" begins after this comma, or 0 where no list goes on."""
    if scan.tokens[comma].text != ",":
        return 0
    for i in range(comma + 1, min(end, comma + 6)):
        token = scan.tokens[i]
        if token.text == "," or token.lower in scan.rules.grammar.lists:
            return i + 1 if i > comma + 1 else 0
        if not scan.keys[i] and token.text.isalpha():
            return 0
    return 0


def _stop(scan: Scan, index: int, start: int, end: int) -> int:
    """Where the next dividing cue begins, at most `end`."""
    for cue in scan.cues[index + 1 :]:
        if cue.start >= end:
            break
        if (
            cue.start > start
            and cue.value.kind in _DIVIDES
            and cue.cue not in scan.rules.special.already
            and not scan.bare(start, cue.start)
        ):
            return cue.start
    return end


def _after_earlier_cue(scan: Scan, index: int, low: int) -> int:
    """Where the main part can begin: after the thing that an earlier cue of the segment named."""
    here = scan.cues[index].start
    for cue in reversed(scan.cues[:index]):
        if cue.start < low:
            break
        if cue.value.kind in _DIVIDES and cue.value.kind != "when":
            comma = scan.comma(cue.end, here)
            start = comma + 1 if comma >= 0 else cue.end
            return start if not scan.bare(start, here) else low
    return low


def pronoun(scan: Scan, start: int, end: int) -> bool:
    """Whether a range is "it" or "that was done", which stand for something named before."""
    grammar = scan.rules.grammar
    word = scan.tokens[start].lower if start < end else ""
    following = scan.tokens[start + 1].lower if start + 1 < end else ""
    return (
        word in grammar.they
        or any(t.lower in grammar.results for t in scan.tokens[start:end])
        or (word in grammar.these and (not following or following in grammar.auxiliary))
    )


def _across(scan: Scan, low: int, named: Range) -> Sides | None:
    """Parts of "Pre-op: stop metformin" and the like: the main part stands before the hard stop."""
    if low < 2:
        return None
    before = scan.segment(low - 2)
    return None if scan.bare(*before) else Sides((before,), named, False)

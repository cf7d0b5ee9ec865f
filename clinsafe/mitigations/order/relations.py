"""Order of two events from the words that join them: before, after, until, when, followed by …"""

from __future__ import annotations

from collections.abc import Iterator

from clinsafe.mitigations.cues import Match
from clinsafe.mitigations.order.fact import Event, event, order_fact
from clinsafe.mitigations.order.rules import Sign
from clinsafe.mitigations.order.scan import Range, Scan
from clinsafe.mitigations.order.sides import Sides, accompanied, paired, prepositional, pronoun, verbal
from clinsafe.protocols import Fact
from clinsafe.text import Reading

_PREPOSITIONS = frozenset(["before", "after", "until", "unless", "when", "during"])
_FORWARD = frozenset(["led", "pair"])


def relations(reading: Reading, scan: Scan) -> Iterator[Fact]:
    """Facts of all joining cues of a sentence."""
    for index, cue in enumerate(scan.cues):
        kind = cue.value.kind
        if kind in _PREPOSITIONS:
            sides = prepositional(scan, index)
        elif kind in ("led", "trailed"):
            sides = verbal(scan, index)
        elif kind in ("pair", "pair_back"):
            sides = paired(scan, index)
        elif kind == "with":
            sides = accompanied(scan, index)
        else:
            continue
        if sides is None:
            continue
        forward = _forward(scan, cue, sides)
        if forward is None:
            continue
        main, named = _events(scan, cue, sides, forward)
        early, late = (main, named) if forward else (named, main)
        hours = scan.span_before(cue.start)[0] or scan.span_after(cue.end, sides.object[1] + 6)
        relation = "during" if kind == "during" and forward else "before"
        at, rule = (cue.start, cue.end), cue.value.rule
        facts = [order_fact(reading, scan, early, late, at, rule, relation, hours)]
        if forward and kind == "until" and scan.going_on(*_near(scan, sides)):
            facts.append(order_fact(reading, scan, named, main._replace(off=True), at, rule))
        yield from filter(None, facts)


def _events(scan: Scan, cue: Match[Sign], sides: Sides, forward: bool) -> tuple[Event, Event]:
    """The events of both parts. What is "withheld until Y" is given after Y, not withheld after it."""
    main, named = event(scan, sides.main, not sides.fronted), event(scan, _meant(scan, cue, sides))
    waits = cue.value.kind == "until" and not forward and "delay" in scan.marks(*_near(scan, sides))
    return main._replace(off=main.off and not waits), named


def _meant(scan: Scan, cue: Match[Sign], sides: Sides) -> tuple[Range, ...]:
    """Where the thing named stands: "it" and "that" stand for what was named before."""
    start, end = sides.object
    if not pronoun(scan, start, end):
        return (sides.object,)
    low, _ = scan.segment(cue.start)
    if sides.fronted:
        return (scan.segment(low - 2), sides.object) if low >= 2 else (sides.object,)
    return (sides.object,)


def _forward(scan: Scan, cue: Match[Sign], sides: Sides) -> bool | None:
    """True if the main part comes first, False if the thing named does, None if nobody can say."""
    kind = cue.value.kind
    near = _near(scan, sides)
    if kind in ("before", "until"):
        marks = scan.marks(*near)
        if kind == "until" and "delay" in marks:
            return scan.negated(*near)  # "need not wait until"
        withheld = scan.withheld(*near)
        return None if withheld and "needless" in marks else not withheld
    if kind == "unless":
        said = not cue.value.proven or scan.marks(cue.end, sides.object[1] + 2) & {"done", "done_weak"}
        return False if said and scan.negated(*near) else None
    if kind == "after":
        return None if scan.negated(*near) else False
    if kind in ("when", "with"):
        return _by_marks(scan, cue, sides)
    if kind == "during":
        return _seen_during(scan, near, cue.value.spans)
    if kind in ("led", "trailed") and scan.negated(*near):
        return True if cue.value.waits else None
    return kind in _FORWARD


def _verbal(scan: Scan, start: int, end: int) -> bool:
    """Whether a range holds a word that names no thing, as verbs do ("and take counts" against "and ramipril")."""
    return any(
        scan.tokens[i].key and not scan.keys[i] and scan.tokens[i].text.isalpha() for i in range(start, end)
    )


def _seen_during(scan: Scan, near: Range, throughout: bool) -> bool | None:
    """What went unnoticed during an operation came to light after it; "throughout" alone puts nothing in order."""
    marks = scan.marks(*near)
    if "unseen" in marks:
        return False
    return None if throughout or "not" in marks else True


def _near(scan: Scan, sides: Sides) -> Range:
    """The part of the main clause whose negation counts for the cue."""
    start, end = sides.main[-1] if sides.fronted else sides.main[0]
    if sides.fronted:
        comma = scan.comma(start, end)
        return start, comma if comma > start else end
    for i in range(end - 1, start, -1):
        token = scan.tokens[i - 1]
        if token.text == "," or token.lower == "but" or (token.lower == "and" and _verbal(scan, i, end)):
            return i, end
    return start, end


def _by_marks(scan: Scan, cue: Match[Sign], sides: Sides) -> bool | None:
    named = scan.marks(cue.end, sides.object[1])
    strong = "done" in named or "undone" in named
    if cue.value.kind == "with":
        if not strong:
            return None
        return "undone" in named and not ("done" in named and "not" not in named)
    return _order_of(scan.marks(*_near(scan, sides)), named)


def _order_of(main: frozenset[str], named: frozenset[str]) -> bool | None:
    """Which part of "main when named" was over first; the plainest sign decides."""
    for part, first in ((named, False), (main, True)):
        if "undone" in part or ("not" in part and ("done" in part or "done_weak" in part)):
            return not first
    for label in ("done", "done_weak"):
        if label in named and label not in main:
            return False
        if label in main and label not in named:
            return True
    return None

"""Cues that open their sentence: "Before Y, X", "After Y X was …", "It was only after Y that X"."""

from __future__ import annotations

from clinsafe.mitigations.cues import Match
from clinsafe.mitigations.order.rules import Sign
from clinsafe.mitigations.order.scan import Range, Scan

Parts = tuple[tuple[Range, ...], Range]  # the main part, the thing named
_JOINS = frozenset(["and", "but", "while", "whereas", "though", "although"])
_WIDEST = 18  # tokens of the thing named


def fronted(scan: Scan, named: Range, high: int, stop: int) -> Parts | None:
    """Both parts where the cue stands first. `stop` is where the main part ends after a comma."""
    end = named[1]
    if end < high and scan.tokens[end].text == ",":
        return None if scan.bare(end + 1, stop) else (((end + 1, stop),), named)
    if end == high and end + 1 < len(scan.tokens) and scan.tokens[end].text == ":":
        after = scan.segment(end + 1)
        return None if scan.bare(*after) else ((after,), named)
    if end < high and not scan.soft(end) and not scan.bare(end, high):
        return ((end, high),), named
    split = _split(scan, named)
    if split is None or scan.bare(named[0], split) or scan.bare(split, high):
        return None
    return ((split, high),), (named[0], split)


def joined(scan: Scan, start: int, low: int) -> bool:
    """Whether a cue may open a clause that "and" or "but" joins to the one before ("…, and after Y he X")."""
    if start - 1 <= low or scan.tokens[start - 1].lower not in _JOINS:
        return False
    return not any(cue.end in (start - 1, start - 2) for cue in scan.cues)


def cleft(scan: Scan, cue: Match[Sign], named: Range, high: int) -> Parts | None:
    """Both parts of "It was only after Y that X"."""
    if not any(token.lower == "it" for token in scan.tokens[max(0, cue.start - 4) : cue.start]):
        return None
    for i in range(named[0] + 1, min(high, named[0] + _WIDEST)):
        if scan.tokens[i].lower == "that" and not scan.bare(named[0], i) and not scan.bare(i, high):
            return ((i + 1, high),), (named[0], i)
    return None


def _split(scan: Scan, named: Range) -> int | None:
    """Where the main clause begins after "After surgery" without a comma."""
    keyed = [i for i in range(*named) if scan.keys[i]]
    if not keyed:
        return None
    for i in range(keyed[0] + 1, named[1]):
        word = scan.tokens[i].lower
        if word in scan.rules.grammar.auxiliary:
            before = [k for k in keyed if k < i]
            inverted = named[0] > 1 and scan.tokens[named[0] - 2].lower in ("only", "not")
            return i if inverted or len(before) == 1 else before[-1]
        if word in scan.rules.grammar.subjects and scan.tokens[i - 1].lower not in scan.rules.grammar.links:
            return i
        if not scan.keys[i] and any(match.start == i for match in scan.found):
            return i
    return None

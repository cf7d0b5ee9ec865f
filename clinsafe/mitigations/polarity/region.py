"""Parts of a sentence that a cue signs or leaves undecided."""

from __future__ import annotations

from clinsafe.mitigations.polarity.line import MAYBE, QUALIFIER, Line
from clinsafe.mitigations.polarity.rules import AND, COMMA, STOP
from clinsafe.mitigations.polarity.scope import Scope

REACH = 12  # tokens a verb negation looks ahead for its verb; other walks are multiples of it
WALK = 5 * REACH  # tokens the longest walk goes


def shade_clause(line: Line, start: int, end: int, number: int) -> None:
    """Words of the same clause are neither said nor denied."""
    low, high = start, end
    while low > 0 and line.kind[low - 1] not in (STOP, COMMA) and start - low < 2 * REACH:
        low -= 1
    while high < len(line.tokens) and line.kind[high] not in (STOP, COMMA, AND) and high - end < 2 * REACH:
        high += 1
    line.shade(low, high, number)


def apply(line: Line, scope: Scope, value: int, state: int, number: int) -> None:
    """Sign the words of a scope."""
    for at in scope.heads:
        line.put(at, value, state, number)
    for at in scope.maybe:
        line.put(at, value, MAYBE, number)
    for at in scope.qualifiers:
        line.put(at, value, QUALIFIER, number)
    if value < 0:
        for at in scope.tail:
            line.shade(at, at + 1, number)


def ends_piece(line: Line, index: int) -> bool:
    """Whether a piece (comma to comma) ends before this token."""
    return index >= len(line.tokens) or line.kind[index] in (STOP, COMMA)


def piece_end(line: Line, index: int) -> int:
    """Where the piece that holds this token ends; no farther than a walk goes."""
    last = min(len(line.tokens), index + WALK)
    while index < last and index < len(line.tokens) and line.kind[index] not in (COMMA, STOP):
        index += 1
    return index

"""Exceptions: what is taken out of a denial, or put into it."""

from __future__ import annotations

from clinsafe.mitigations.polarity.ahead import ahead
from clinsafe.mitigations.polarity.behind import behind
from clinsafe.mitigations.polarity.line import SHADED, SIGNED, Line, Op
from clinsafe.mitigations.polarity.region import REACH, piece_end
from clinsafe.mitigations.polarity.rules import PREP, RELATIVE


def exception(line: Line, number: int, op: Op) -> None:
    """The other sign than the clause has, or the same; nothing where the clause has none."""
    clause = _governing(line, op)
    if op.cue.id == "but-not":
        clause = clause or 1
        if (
            op.end < len(line.tokens)
            and line.kind[op.end] == PREP
            and line.lower(op.end) not in ("to", "of", "for")
        ):
            return
    if not clause:
        line.shade(op.end, piece_end(line, op.end), number)
        return
    if op.cue.same and not any(
        line.among(at, "whole") for at in range(max(0, op.start - 2 * REACH), op.start)
    ):
        return
    if op.cue.same and any(
        line.kind[at] == RELATIVE for at in range(op.end, min(op.end + 3, len(line.tokens)))
    ):
        return  # "no fruit, grapefruit included, whose juice is forbidden"
    value = clause if op.cue.same else -clause
    after = op.end + (op.end < len(line.tokens) and line.kind[op.end] == PREP)
    scope = ahead(line, after, False) if op.cue.reach == "after" else behind(line, op.start)
    if op.cue.id == "except":
        _leave_open(line, op)
    for at in scope.heads:
        line.sign[at] = 1
        line.put(at, value, SIGNED, number)


def _leave_open(line: Line, op: Op) -> None:
    """ "no symptoms apart from palpitations": there are symptoms."""
    for at in range(op.start - 1, max(-1, op.start - REACH), -1):
        cue = line.lexical[at]
        if (line.state[at] == SIGNED and line.sign[at] < 0) or (cue is not None and cue.about):
            line.state[at] = SHADED
            return


def _governing(line: Line, op: Op) -> int:
    """-1 if what the exception qualifies is denied (or normal), 1 if it is to be done, 0 if unclear."""
    low = max(0, op.start - 2 * REACH)
    for at in range(op.start - 1, low - 1, -1):
        if line.state[at] == SIGNED:
            return 1 if line.sign[at] > 0 else -1
        cue = line.lexical[at]
        if cue is not None and (cue.sign < 0 or cue.about):
            return -1
        acting = line.op(at)
        if acting is not None and acting.cue.kind == "predicate":
            to_do = acting.cue.id in ("given", "permitted", "permits")
            if to_do or acting.sign < 0:
                return acting.sign
    return int(any(line.among(at, "whole") for at in range(low, op.start)))

"""Predicates: words that say of another thing that it is there, is over, is to be done or left."""

from __future__ import annotations

from clinsafe.mitigations.polarity.ahead import ahead
from clinsafe.mitigations.polarity.behind import behind
from clinsafe.mitigations.polarity.line import OPEN, SHADED, SIGNED, Line, Op
from clinsafe.mitigations.polarity.region import REACH, WALK, apply, ends_piece, shade_clause
from clinsafe.mitigations.polarity.rules import (
    AND,
    COMMA,
    DET,
    HELP,
    HYPHEN,
    MARK,
    NUMBER,
    OP,
    PREP,
    STOP,
    WORD,
)
from clinsafe.mitigations.polarity.scope import Scope, head, of_test

_DONE = frozenset(("given", "withheld"))


def predicate(line: Line, number: int, op: Op) -> None:
    """Sign what a predicate speaks about."""
    if op.cue.weak and op.flip > 0:
        return
    state = OPEN if op.cue.open and op.flip < 0 else SIGNED
    value = 1 if state == OPEN else op.sign
    before = _before(line, op)
    if before and op.cue.id == "over" and (_transitive(line, op) or _when(line, op)):
        shade_clause(line, op.start, op.end, number)
        return
    start = _start(line, op)
    scope = _find(line, op, before, start)
    if _taken_up(line, op, scope) or scope is None:
        if op.sign < 0:
            shade_clause(line, start, op.end, number)
        return
    if _of_no_patient(line, op) or _time(line, op, scope):
        return
    if _aside(line, op):
        line.shade(min([*scope.heads, *scope.qualifiers], default=op.start), scope.end, number)
        return
    scope.heads = [of_test(line, at) if op.cue.id in _DONE else at for at in scope.heads]
    apply(line, scope, value, state, number)
    if op.cue.with_ and op.end < len(line.tokens) and line.lower(op.end) in op.cue.with_:
        apply(line, ahead(line, op.end + 1, False), value, state, number)
    if op.flip < 0 or op.sign < 0:
        shade_clause(line, start, op.end, number)
    if op.cue.noun and op.sign < 0:  # "migraine is a bar to the pill": what bars is no matter of this rule
        line.shade(behind(line, start).end, start, number)


def _no_subject(line: Line, op: Op, scope: Scope | None) -> bool:
    """ "... *and restarted* a week later": neither a subject nor an object of its own."""
    if scope is None:
        return True
    at = _over_helpers(line, op.start - 1)
    joined = line.kind[at] in (COMMA, STOP, AND)
    return all((joined and one < op.start) or line.among(one, "spans") for one in scope.heads)


def _over_helpers(line: Line, at: int) -> int:
    least = max(0, at - WALK)
    while at > least and line.kind[at] == HELP:
        at -= 1
    return at


def _taken_up(line: Line, op: Op, scope: Scope | None) -> bool:
    """ "held before the procedure *and resumed* after it": what was held is not held for good."""
    if op.cue.id != "resumed" or op.flip < 0 or not _no_subject(line, op, scope):
        return False
    held = {at for at, other in enumerate(line.ops) if other.start < op.start and other.cue.id == "withheld"}
    for at in range(max(0, op.start - WALK), op.start):
        if line.rule[at] in held and line.state[at] == SIGNED:
            line.state[at] = SHADED
    return True


def _of_no_patient(line: Line, op: Op) -> bool:
    """ "CMV-negative units" names a product, "patients with surgery were excluded" tells of a study."""
    if op.words == "- negative":
        return not ends_piece(line, op.end)
    people = range(max(0, op.start - REACH), op.start)
    return op.cue.id == "excluded" and any(line.among(at, "people") for at in people)


def _transitive(line: Line, op: Op) -> bool:
    """ "settled the diagnosis", "has gone for culture": not over."""
    if op.end >= len(line.tokens):
        return False
    return (
        line.kind[op.end] in (DET, WORD, NUMBER)
        or line.lower(op.end) in ("it", "them")
        or (
            op.words.endswith("gone")
            and line.lower(op.end) in ("for", "to", "into", "through", "up", "in", "on", "down", "home")
        )
    )


def _when(line: Line, op: Op) -> bool:
    """ "until the treatment is over": when, not whether."""
    for at in range(op.start - 1, max(-1, op.start - REACH), -1):
        if line.among(at, "when"):
            return True
        if line.kind[at] == COMMA or line.lower(at) in (";", "that", "but"):
            return False
    return False


def _time(line: Line, op: Op, scope: Scope) -> bool:
    """ "ten days of headache had passed": it is the time that is over."""
    if op.cue.id != "over":
        return False
    of = (at - 1 for last in scope.heads for at in range(last - 3, last) if line.lower(at) == "of")
    return any(line.among(at, "spans") for at in (*scope.heads, *of))


def _aside(line: Line, op: Op) -> bool:
    """ "within a year of *stopping* it", "a drug used to *terminate* it": no claim that it is so."""
    if op.flip < 0 or op.cue.reach == "join" or not op.start:
        return False
    before = line.lower(op.start - 1)
    if line.lower(op.start).endswith("ing"):
        return line.kind[op.start - 1] == PREP and before != "with"
    return (
        before == "to"
        and op.sign < 0
        and not (line.kind[op.start - 2] == HELP if op.start > 1 else True)
        and not line.among(op.start - 2, "told")
    )


def _start(line: Line, op: Op) -> int:
    """Where the predicate begins, with the negation that turned it round."""
    by = line.ops[op.flipped_by] if op.flipped_by >= 0 else None
    return min(op.start, by.start) if by is not None and by.cue.reach == "verb" else op.start


def _before(line: Line, op: Op) -> bool:
    reach = op.cue.reach
    if reach == "before":
        return not _attributive(line, op)
    return reach == "either" and line.passive(op)


def _attributive(line: Line, op: Op) -> bool:
    """ "*absent* bowel sounds": an adjective before its noun."""
    before = line.kind[op.start - 1] if op.start else STOP
    if line.among(op.start, "have") or line.among(op.start, "be"):
        return False  # "staff *had passed* norovirus"
    if op.end >= len(line.tokens) or line.kind[op.end] != WORD:
        return False
    return before != HELP and not (before == OP and line.ops[line.op_at[op.start - 1]].cue.reach == "verb")


def _find(line: Line, op: Op, before: bool, start: int) -> Scope | None:
    """The scope in its usual direction, else in the other one."""
    if op.cue.reach == "join":
        return _joined(line, op)
    if before and op.cue.id == "given" and op.end < len(line.tokens) and line.kind[op.end] in (WORD, DET):
        given = ahead(line, op.end, False)  # "should not be offered physiotherapy"
        if given.heads:
            return given
    first = behind(line, start) if before else ahead(line, op.end, op.cue.list, both=True)
    if before and not first.heads:
        first = _earlier_subject(line, start)
    if first.heads:
        return first
    if op.cue.reach == "after" or (op.cue.reach == "before" and before):
        return None
    base = line.tokens[op.start].lower == line.tokens[op.start].lemma
    if op.cue.reach == "either" and not before and base and not ends_piece(line, op.end):
        return None  # "sedation hold from eight"
    other = ahead(line, _skip_with(line, op), False) if before else behind(line, start)
    return other if other.heads else None


def _earlier_subject(line: Line, start: int) -> Scope:
    """ "X may be used here *but is contraindicated* there": the subject of the clause before."""
    at = _over_helpers(line, start - 1)
    scope = Scope()
    if at < 1 or not line.among(at, "joins") or (at == start - 1 and line.lower(at) != "but"):
        return scope
    least = max(0, start - WALK)
    while at > least and (line.kind[at - 1] != STOP or line.lower(at - 1) == "but"):
        at -= 1
    run = []
    for index in range(at, start):
        if line.kind[index] in (WORD, NUMBER, HYPHEN, MARK, DET):
            run.append(index)
        else:
            break
    found = head(line, run)
    if found is not None:
        scope.heads.append(found)
    return scope


def _skip_with(line: Line, op: Op) -> int:
    return op.end + (op.end < len(line.tokens) and line.lower(op.end) in op.cue.with_)


def _joined(line: Line, op: Op) -> Scope | None:
    at = head(line, [op.start - 1]) if op.start else None
    scope = Scope()
    if at is None:
        return None
    scope.heads.append(at)
    return scope

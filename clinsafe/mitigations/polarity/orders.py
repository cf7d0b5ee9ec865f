"""Orders to exclude: "please rule out sepsis", "sepsis should be excluded" leave the matter open, they deny nothing."""

from __future__ import annotations

from clinsafe.mitigations.polarity.ahead import ahead
from clinsafe.mitigations.polarity.behind import behind
from clinsafe.mitigations.polarity.line import Line, Op
from clinsafe.mitigations.polarity.region import REACH, WALK, ends_piece, shade_clause
from clinsafe.mitigations.polarity.rules import AND, COLON, COMMA, HYPHEN, NUMBER, PREP, STOP


def orders(line: Line) -> None:
    """Turn each predicate that an order asks to exclude with into a cue that leaves its scope open."""
    for op in line.ops:
        asked = op.cue.kind == "predicate" and op.cue.open and op.cue.reach == "either"
        if asked and op.cue.sign < 0 < op.flip and _ordered(line, op):
            op.cue = op.cue._replace(kind="open", sign=0)
        elif op.cue.kind == "exception" and op.cue.reach == "after" and _needed(line, op):
            op.cue = op.cue._replace(kind="open", reach="either")


def leave_open(line: Line, number: int, op: Op) -> None:
    """Leave what a cue speaks about undecided: the subject of a passive order, else what follows."""
    if op.words in line.rules.sets["hangs_on"] and (op.cue.kind == "pseudo" or ends_piece(line, op.end)):
        shade_clause(line, op.start, op.end, number)  # "film *pending*"
        return
    if op.cue.reach == "either" and (line.passive(op) or not ahead(line, op.end, op.cue.list).heads):
        shade_clause(line, op.start, op.end, number)
        line.shade(behind(line, op.start).end, op.start, number)
        return
    scope = ahead(line, op.end, op.cue.list, both=op.cue.list)
    line.shade(op.end, scope.end, number)


def _ordered(line: Line, op: Op) -> bool:
    if _taken_out(line, op):
        return False
    lower = line.lower(op.start)
    before = _over_adverbs(line, op.start - 1)
    if lower.endswith("ing"):
        return line.among(before, "needs")
    if lower == line.tokens[op.start].lemma:
        return _imperative(line, op.start) or _after_modal(line, op.start)
    return line.lower(before) in ("be", "get") and _after_modal(line, before)


def _needed(line: Line, op: Op) -> bool:
    """ "Sepsis *needs excluding*": no exception is made of what is not named."""
    gerund = line.lower(op.start).endswith("ing") and ends_piece(line, op.end)
    return gerund and line.among(_over_adverbs(line, op.start - 1), "needs")


def _taken_out(line: Line, op: Op) -> bool:
    """ "should be excluded *from* the diet": a thing is taken out, no question is settled."""
    for at in range(op.end, min(op.end + REACH, len(line.tokens))):
        if line.kind[at] in (STOP, COMMA):
            return False
        if line.lower(at) == "from":
            return True
    return False


def _over_adverbs(line: Line, at: int) -> int:
    while at >= 0 and (line.lower(at).endswith("ly") or line.among(at, "pleas")):
        at -= 1
    return at


def _after_modal(line: Line, index: int) -> bool:
    """ "*must* rule out", "*needs to* be excluded", "sepsis *to* be excluded"; not "is thought to be excluded"."""
    at = _over_adverbs(line, index - 1)
    if line.among(at, "orders"):
        return True
    if line.lower(at) == "you":
        return True  # "could you exclude"
    if line.lower(at) != "to":
        return False
    return not line.among(_over_adverbs(line, at - 1), "reported")


def _imperative(line: Line, index: int) -> bool:
    """Whether a verb in its base form opens its clause: "rule out polyps", "plan: exclude polyps"."""
    at = _over_adverbs(line, index - 1)
    if at < 0 or line.kind[at] in (STOP, COMMA, COLON):
        return True
    if line.kind[at] == HYPHEN:
        return at == 0 or line.tokens[at - 1].end < line.tokens[at].start
    if line.kind[at] == NUMBER:
        return at == 0
    return line.kind[at] == AND and _opens_with_an_order(line, at)


def _opens_with_an_order(line: Line, stop: int) -> bool:
    """ "*Repeat* the scan and exclude polyps": the clause before "and" is an order itself."""
    low, least = stop, max(0, stop - WALK)
    while low > least and line.kind[low - 1] not in (STOP, COMMA, COLON, PREP):
        low -= 1
    while low < stop and line.among(low, "pleas"):
        low += 1
    first = line.op(low)
    token = line.tokens[low]
    return first is not None and first.cue.kind == "predicate" and token.lower == token.lemma

"""Signs the words of one sentence: which are denied, affirmed, left open, or merely stand near a negation.

Cues first turn one another round ("does *not* *deny*", "*no* *contraindication* to"); then each acts on its scope. A
word's sign is the product of all that act on it, so that two negations make an affirmation without a rule for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from clinsafe.mitigations.polarity.ahead import ahead
from clinsafe.mitigations.polarity.behind import behind
from clinsafe.mitigations.polarity.exceptions import exception
from clinsafe.mitigations.polarity.line import SIGNED, Line, Op
from clinsafe.mitigations.polarity.orders import leave_open, orders
from clinsafe.mitigations.polarity.predicates import predicate
from clinsafe.mitigations.polarity.prepare import prepare
from clinsafe.mitigations.polarity.region import REACH, WALK, apply, ends_piece, piece_end, shade_clause
from clinsafe.mitigations.polarity.rules import (
    AND,
    COLON,
    COMMA,
    HELP,
    HYPHEN,
    MARK,
    OP,
    OR,
    PREP,
    RELATIVE,
    STOP,
    WORD,
    Rules,
)
from clinsafe.mitigations.polarity.scope import of_test
from clinsafe.mitigations.polarity.turning import turn
from clinsafe.text.tokens import Token


def sign(tokens: Sequence[Token], rules: Rules) -> Line:
    """Sign a sentence. Linear in its length: every walk is bounded."""
    line = prepare(tokens, rules)
    _affix_objects(line)
    if not line.ops:
        return line
    _answers(line)
    if _needs(line):
        return line
    for number, op in enumerate(line.ops):
        if op.cue.reach == "verb" and op.cue.kind == "negator":
            _elided(line, op.start, op.end, number)
        turn(line, number, op)
    orders(line)
    for number, op in enumerate(line.ops):
        _act(line, number, op)
    return line


def _needs(line: Line) -> bool:
    """ "Without cover it should not be done": what is needed for what, and no denial of either."""
    first = line.ops[0]
    if first.start or first.cue.id != "without" or not any(op.cue.reach == "verb" for op in line.ops):
        return False
    line.shade(0, len(line.tokens), 0)
    for op in line.ops:
        op.flip = 0
    return True


def _affix_objects(line: Line) -> None:
    """ "unbridged by heparin", "inactive against enterococci": what the adjective denies is not said of these."""
    for index, cue in enumerate(line.lexical):
        if cue is None or cue.sign > 0 or index + 1 >= len(line.tokens) or line.kind[index + 1] != PREP:
            continue
        if line.among(index + 1, "objects"):
            line.shade(index + 1, piece_end(line, index + 1), -1)


def _answers(line: Line) -> None:
    """ "Joint swelling: none": the value signs the words before the colon, and is no cue for what follows."""
    size = len(line.tokens)
    for index in range(1, size - 1):
        dash = line.kind[index] == HYPHEN and line.tokens[index - 1].end < line.tokens[index].start
        if not (dash or line.kind[index] == COLON):
            continue
        match = line.rules.answers.at(line.tokens, index + 1)
        if match is None or (match.end < size and line.kind[match.end] not in (COMMA, STOP)):
            continue
        begin, least = index, max(0, index - WALK)
        while begin > least and line.kind[begin - 1] not in (COMMA, STOP, COLON):
            begin -= 1
        run = [at for at in range(begin, index) if line.kind[at] == WORD]
        _cancel(line, match.start, match.end)
        line.ops.append(Op(match.start, match.end, match.value, match.cue))
        number = len(line.ops) - 1
        for at in run:
            if _ends_item(line, at, index):
                line.put(at, match.value.sign, SIGNED, number)


def _ends_item(line: Line, index: int, stop: int) -> bool:
    """The last word of an item of the list before the colon."""
    return index + 1 == stop or line.kind[index + 1] in (AND, OR)


def _cancel(line: Line, start: int, end: int) -> None:
    for number in {line.op_at[at] for at in range(start, end)} - {-1}:
        line.ops[number].flip = 0
    line.op_at[start:end] = [-1] * (end - start)
    line.kind[start:end] = [MARK] * (end - start)
    line.lexical[start:end] = [None] * (end - start)


def _act(line: Line, number: int, op: Op) -> None:
    kind = op.cue.kind
    if not op.flip:
        return
    if kind == "predicate":
        predicate(line, number, op)
    elif kind == "negator" and op.cue.reach == "phrase":
        _phrase(line, number, op)
    elif kind == "exception":
        exception(line, number, op)
    elif kind == "pseudo" or kind == "open":
        leave_open(line, number, op)
    elif kind == "history":
        line.past.update(range(op.end, piece_end(line, op.end)))
        if op.words in line.rules.sets["looks_back"]:
            line.past.update(range(max(0, op.start - 6), op.start))
    elif kind == "relative":
        line.other.update(range(op.end, piece_end(line, op.end)))


def _phrase(line: Line, number: int, op: Op) -> None:
    if op.cue.id == "nothing" and _nothing_in(line, number, op):
        return
    _elided(line, op.start, op.end, number)
    scope = ahead(line, op.end, op.cue.list)
    _hung_on(line, scope.end, number)
    if not scope.heads and ends_piece(line, op.end):  # "ibuprofen no"
        scope = behind(line, op.start)
    if _in_phrase(line, op) or (
        op.cue.id in ("without", "absence") and op.flipped_by < 0 and _denied_before(line, op)
    ):
        line.shade(op.end, scope.end, number)  # "found in no sample", "no flare passes without ulcers"
        shade_clause(line, op.start, op.end, number)
        return
    if op.cue.id in ("neither", "nor") and _says_else(line, scope.end):
        line.shade(op.end, scope.end, number)  # "neither the lens nor the cornea was injured"
        shade_clause(line, op.start, op.end, number)
        return
    if op.cue.id == "no" and _denial_in(line, scope.end):
        line.shade(op.end, scope.end, number)  # "no components may be issued unirradiated"
        return
    then = line.op(scope.end) if scope.end < len(line.tokens) else None
    direct = then is not None and not scope.tail and then.cue.kind == "predicate"
    if then is not None and direct and op.cue.id in ("no", "neither", "nothing") and then.flip > 0:
        if then.sign < 0 and line.tokens[then.start].lower == line.tokens[then.start].lemma:
            line.shade(op.end, scope.end, number)  # "no sedation hold"
            return
        gerund = line.lower(then.start).endswith("ing")
        if (
            then.cue.weak and then.cue.reach == "either" and not gerund and not line.passive(then)
        ):  # "no sample showed growth"
            line.shade(op.end, scope.end, number)
            apply(line, ahead(line, then.end, False), -1, SIGNED, number)
            return
    if _done(line, scope.end):
        scope.heads = [of_test(line, at) for at in scope.heads]
    apply(line, scope, op.sign, SIGNED, number)


def _done(line: Line, at: int) -> bool:
    """ "no blood cultures *were sent*": whether a verb of what is done follows."""
    while at < len(line.tokens) and line.kind[at] == HELP:
        at += 1
    then = line.op(at) if at < len(line.tokens) else None
    return then is not None and then.cue.id == "given"


def _elided(line: Line, start: int, end: int, number: int) -> None:
    """ "pain on exertion, *none at* rest", "given for this, *not in* that": the thing before is said with a limit."""
    if start < 2 or end >= len(line.tokens) or line.kind[start - 1] not in (COMMA, STOP):
        return
    if line.kind[end] != PREP or line.ops[line.op_at[start]].cue.id not in (
        "nothing",
        "not",
        "without",
        "but-not",
    ):
        return
    low, least = start - 1, max(0, start - WALK)
    while low > least and line.kind[low - 1] not in (COMMA, STOP):
        low -= 1
    line.shade(low, start - 1, number)


def _hung_on(line: Line, index: int, number: int) -> None:
    """ "no edge *at which* cancer remained": what is said of the denied thing is denied with it, not affirmed."""
    if any(at < len(line.tokens) and line.kind[at] == RELATIVE for at in (index, index + 1)):
        line.shade(index, piece_end(line, index), number)


def _nothing_in(line: Line, number: int, op: Op) -> bool:
    """ "*nothing* in the biopsy suggested malignancy": what it did not suggest is denied."""
    if op.end >= len(line.tokens) or line.kind[op.end] != PREP:
        return False
    for at in range(op.end, min(op.end + REACH, len(line.tokens))):
        then = line.op(at)
        if then is not None and then.cue.id == "shows" and then.flip > 0:
            line.shade(op.end, at, number)
            apply(line, ahead(line, then.end, False), -1, SIGNED, number)
            return True
        if then is not None or line.kind[at] in (STOP, COMMA):
            return False
    return False


def _says_else(line: Line, start: int) -> bool:
    """Whether a verb or adjective that is no cue is said of what is denied, so that it is that which is denied."""
    for at in range(start, piece_end(line, start) - 1):
        if line.among(at, "be"):
            while at + 1 < len(line.tokens) and line.kind[at + 1] == HELP:
                at += 1
            return at + 1 < len(line.tokens) and line.kind[at + 1] == WORD
    return False


def _denial_in(line: Line, start: int) -> bool:
    """Whether a signed word further on in the piece denies too."""
    for at in range(start, piece_end(line, start)):
        cue = line.lexical[at]
        if cue is not None and cue.sign < 0:
            return True
        if line.kind[at] in (AND, OR):
            return False
    return False


def _in_phrase(line: Line, op: Op) -> bool:
    """ "found *in no* sample", "*in neither* eye": the clause is denied, not the sample."""
    if op.start < 2 or line.kind[op.start - 1] != PREP:
        return False
    return op.words.startswith(("none", "neither")) or (op.cue.id == "no" and line.kind[op.start - 2] == OP)


def _denied_before(line: Line, op: Op) -> bool:
    for at in range(op.start - 1, max(-1, op.start - REACH), -1):
        if line.kind[at] in (STOP, COMMA):
            return False
        other = line.op(at)
        if other is not None and other.cue.kind == "negator":
            return True
    return False

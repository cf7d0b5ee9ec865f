"""Cues that turn one another round: "does *not* *deny*", "*no* *contraindication* to"."""

from __future__ import annotations

from collections.abc import Sequence

from clinsafe.mitigations.polarity.ahead import ahead
from clinsafe.mitigations.polarity.behind import behind
from clinsafe.mitigations.polarity.line import SIGNED, Line, Op
from clinsafe.mitigations.polarity.region import REACH, WALK, apply, shade_clause
from clinsafe.mitigations.polarity.rules import (
    AND,
    COLON,
    COMMA,
    DET,
    HELP,
    HYPHEN,
    MARK,
    NUMBER,
    OP,
    OR,
    PREP,
    RELATIVE,
    STOP,
    WORD,
)


def turn(line: Line, number: int, op: Op) -> None:
    """Let a negator turn the cue it stands before, or deny the verb or adjective after it."""
    if op.cue.kind == "predicate" and op.flip:
        _over_noun(line, number, op)
    if op.cue.kind != "negator" or not op.flip:
        return
    if (op.cue.reach == "verb" or op.cue.id == "no") and _until(line, op):
        _undo(line, op, number)
        return
    need = _needed(line, op)
    if need is not None:
        _undo(line, op, number)
        need.flip, need.flipped_by = -need.flip, number
        return
    if op.cue.reach == "phrase" and _of_subject(line, number, op):
        return
    target = _verb_target(line, op) if op.cue.reach == "verb" else _noun_target(line, op)
    if target is not None:
        target.flip *= -op.flip
        target.flipped_by = number
        op.flip = 0
        line.shade(op.start, target.start, number)
    elif op.cue.reach == "verb" and op.flip < 0:
        shade_clause(line, op.start, op.start, number)  # "never failed to bring": no denial
        op.flip = 0
    elif op.cue.reach == "verb":
        _deny_predicate(line, number, op)


def _over_noun(line: Line, number: int, op: Op) -> None:
    """ "*waived* the *need for* consent", "*withdrew permission for* it": a verb about a cue that is a noun."""
    verb = op.cue.reach == "either" or op.cue.id == "over"
    if op.cue.weak or not verb or op.cue.open or line.be_before(op.start):
        return
    for at in range(op.end, min(op.end + _OVER, len(line.tokens))):
        target = line.op(at)
        if target is not None:
            if target.cue.noun and target.start == at:
                target.flip *= op.sign
                if op.sign > 0:
                    target.cue = target.cue._replace(weak=False)  # "did *not waive* the need for consent"
                target.flipped_by, op.flip = number, 0
                line.shade(behind(line, op.start).end, op.start, number)
            return
        if line.kind[at] not in (DET, WORD):
            return


_OVER = 4  # tokens from a verb to the noun it speaks of


def _of_subject(line: Line, number: int, op: Op) -> bool:
    """ "*no* test has excluded it", "*neither* A nor B rules it out": the matter is left open."""
    if op.cue.id not in _SUBJECTS:
        return False
    for at in range(op.end, min(op.end + 2 * REACH, len(line.tokens))):
        then = line.op(at)
        if then is None:
            if not _in_subject(line, at):
                return False
            continue
        if then.cue.kind in ("history", "open", "relative") or then.cue.id == "nor" or then.words == "~do":
            continue
        if not (then.cue.kind == "predicate" and then.cue.open and then.cue.sign < 0) or then.start == op.end:
            return False
        if line.passive(then) and not line.be_before(then.start):
            return False  # "no fever, sepsis excluded"
        if then.flipped_by < 0:  # else "neither" has turned it before "nor"
            then.flip, then.flipped_by = -then.flip, number
        op.flip = 0
        line.shade(op.start, then.start, number)
        return True
    return False


_SUBJECTS = frozenset(("no", "nothing", "neither", "nor"))
_WITHIN = frozenset(("of", "in", "on", "at", "from", "to", "for", "by", "among", "so"))


def _in_subject(line: Line, at: int) -> bool:
    """Whether this token may stand between a negated subject and its verb."""
    kind = line.kind[at]
    if kind == PREP:
        return line.lower(at) in _WITHIN
    return kind in (WORD, HELP, DET, MARK, HYPHEN, NUMBER, OR)


def _undo(line: Line, op: Op, number: int) -> None:
    """Take a negation out, with the cue it would have turned round."""
    target = _verb_target(line, op)
    if target is not None:
        target.flip = 0
    op.flip = 0
    shade_clause(line, op.start, op.end, number)


def _until(line: Line, op: Op) -> bool:
    """ "not given *until* ...", "had not been taken *yet*": a matter of order, not of whether."""
    if op.words.endswith("yet") and _earlier(line, op):
        return True
    for at in range(op.end, min(op.end + 2 * REACH, len(line.tokens))):
        aside = line.kind[at] == COMMA and at + 1 < len(line.tokens) and line.kind[at + 1] == RELATIVE
        ends = line.kind[at] in (STOP, COLON) or (line.kind[at] == COMMA and op.cue.id == "no") or aside
        if ends and not line.among(at, "until"):
            return False
        if line.among(at, "until"):
            return True
    return False


def _earlier(line: Line, op: Op) -> bool:
    """ "*had* not yet been taken": of a time that is past; "has not yet been taken" is so now."""
    return any(line.lower(at) in ("had", "when") for at in range(max(0, op.start - REACH), op.end + REACH))


def _needed(line: Line, op: Op) -> Op | None:
    """ "is *not* started *without* cover", "*no* child is sedated *without* cover": what is needed for what."""
    if op.cue.reach != "verb" and op.cue.id != "no":
        return None
    said, hung = 0, False
    for at in range(op.end, min(op.end + 2 * REACH, len(line.tokens))):
        then = line.op(at)
        if then is not None and then.cue.id == "without" and then.flip > 0:
            acts = op.cue.reach == "verb" or _acts(line, op.end, at)
            return then if said and acts and not hung and not line.among(at - 1, "people") else None
        if then is not None and then.cue.kind == "negator":
            return None
        if line.kind[at] in (STOP, COLON, COMMA, AND):
            return None
        said += line.kind[at] in (WORD, OP)
        hung = (hung or line.lower(at) in _HUNG) and line.op_at[at] < 0
    return None


_HUNG = frozenset(("in", "for", "among", "of", "with"))  # "not given *for a fracture* without displacement"


def _acts(line: Line, start: int, end: int) -> bool:
    """Whether a verb stands here: "no child *should be sedated*", not "no pain"."""
    return any(
        line.op_at[at] >= 0 or line.among(at, "be") or line.among(at, "orders") for at in range(start, end)
    )


def _verb_target(line: Line, op: Op) -> Op | None:
    for index in range(op.end, min(op.end + REACH, len(line.tokens))):
        kind = line.kind[index]
        if kind == OP:
            other = line.op(index)
            if other is not None and other.cue.kind in ("history", "open", "relative"):
                continue
            return other if other is not None and other.cue.kind in ("predicate", "negator") else None
        if kind not in (HELP, DET, PREP, MARK):
            return None
    return None


def _noun_target(line: Line, op: Op) -> Op | None:
    """A cue word that itself is the noun: "no *contraindication* to"."""
    for index in range(op.end, min(op.end + 6, len(line.tokens))):
        kind = line.kind[index]
        if kind == OP:
            other = line.op(index)
            if other is None or other.start != index:
                return None
            if other.cue.noun or (index == op.end and other.cue.kind == "negator" and not op.cue.list):
                return other
            if other.cue.kind == "predicate" and line.lower(index - 1) == "to" and index > op.end + 1:
                return other  # "no reason to interrupt"
            if index == op.end and other.cue.kind == "predicate" and line.lower(index).endswith("ing"):
                return other  # "without stopping"
            return None
        if kind not in (WORD, HELP, DET, MARK, HYPHEN) and line.lower(index) != "to":
            return None
    return None


def _deny_predicate(line: Line, number: int, op: Op) -> None:
    """ "has *not* vomited", "is *not* swollen", "is *not* on warfarin": no cue follows, the next words are denied."""
    index, size, noun = op.end, min(len(line.tokens), op.end + WALK), False
    while index < size and line.kind[index] in (HELP, DET, PREP, MARK):
        noun = noun or line.kind[index] in (DET, PREP) or line.among(index, "have")
        index += 1
    run = []
    while index < size and line.kind[index] in (WORD, HYPHEN, MARK):
        run.append(index)
        index += 1
    op.flip = 0
    if not run:
        said = op.start and line.kind[op.start - 1] not in (STOP, COMMA, NUMBER)
        if said and (index >= size or line.kind[index] in (STOP, COMMA)):  # "IgG detected, IgM not"
            apply(line, behind(line, op.start), -1, SIGNED, number)
            _shade_said(line, op.start, number)
        return
    if index < size and line.kind[index] == OP and line.ops[line.op_at[index]].cue.reach == "join":
        line.ops[line.op_at[index]].flip = 0  # "need not be CMV-negative"
    if noun:
        apply(line, ahead(line, run[0], False), -1, SIGNED, number)
    else:
        line.put(_predicate_word(line, run), -1, SIGNED, number)
        _either_or(line, index, number)
    shade_clause(line, op.start, index, number)


def _shade_said(line: Line, start: int, number: int) -> None:
    """ "The right was *tender*; the left was not": a word whose denial is meant elsewhere is not said of the whole."""
    for at in range(start - 1, max(-1, start - REACH), -1):
        if line.lexical[at] is not None:
            line.shade(at, at + 1, number)


def _predicate_word(line: Line, run: Sequence[int]) -> int:
    """The verb or adjective: the first word, the last part of a compound, or the first signed word."""
    for at in run:
        if line.lexical[at] is not None:
            return at
    place = 0
    while place + 2 < len(run) and line.kind[run[place + 1]] == HYPHEN:
        place += 2
    return run[place]


def _either_or(line: Line, index: int, number: int) -> None:
    """ "not tender or swollen": the next is denied too."""
    if index + 1 < len(line.tokens) and line.kind[index] == OR and line.kind[index + 1] == WORD:
        line.put(index + 1, -1, SIGNED, number)

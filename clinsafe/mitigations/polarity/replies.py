"""Questions with their answer: "Any chest pain? No.", "Is she allergic? She is not." claim what they settle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clinsafe.mitigations.polarity.ahead import ahead
from clinsafe.mitigations.polarity.line import SIGNED, Line, Op
from clinsafe.mitigations.polarity.rules import (
    COLON,
    COMMA,
    HELP,
    HYPHEN,
    OP,
    RELATIVE,
    STOP,
    Cue,
    Rules,
)
from clinsafe.text.reading import Sentence
from clinsafe.text.tokens import Token

_ENDS = (COMMA, STOP, HYPHEN, COLON)
_WORDS = {1: "yes", -1: "no"}


def reply(tokens: Sequence[Token], rules: Rules) -> tuple[int, int]:
    """The sign of the answer that a sentence begins with, and where it ends; (0, 0) for none."""
    match = rules.replies.at(tokens, 0) if tokens else None
    if match is None:
        return 0, 0
    kind = rules.classes.get(tokens[match.end].lower, OP) if match.end < len(tokens) else STOP
    if match.value.sign < 0 and kind not in _ENDS:
        return 0, 0
    return match.value.sign, match.end + (kind in _ENDS)


def asked(sentence: Sentence, rules: Rules) -> bool:
    """Whether a sentence asks whether something is so, not what it is."""
    first = sentence.tokens[0].lower
    return (
        sentence.mood == "question"
        and rules.classes.get(first) != RELATIVE
        and first not in rules.sets["asks"]
    )


def without_reply(sentence: Sentence, end: int) -> Sentence:
    """The sentence less the answer it begins with."""
    return replace(sentence, tokens=sentence.tokens[end:])


def answered(line: Line, value: int) -> None:
    """Sign what was asked by its answer."""
    size = len(line.tokens)
    if line.lower(size - 1) == "?":
        op = line.op(size - 1)
        if op is not None:
            op.flip = 0
        line.op_at[size - 1] = -1
    if value > 0:
        return
    number = len(line.ops)
    line.ops.append(Op(size - 1, size - 1, Cue("negator", "answer", -1), _WORDS[value]))
    signed = [at for at in range(size) if line.state[at] == SIGNED]
    for at in signed:
        line.sign[at] = -line.sign[at]
    if not signed:
        for at in ahead(line, _topic(line), True).heads:
            line.put(at, -1, SIGNED, number)
    line.shade(0, size, number)


def _topic(line: Line) -> int:
    """Where what is asked begins: behind "does she", "is there", "did he take"."""
    at = 0
    while at < len(line.tokens) and (line.kind[at] == HELP or line.op_at[at] >= 0):
        at += 1
    return at

"""What a statement hangs on: a condition, a date, a count. Such a statement is no plain claim that a thing is there."""

from __future__ import annotations

from collections.abc import Sequence

from clinsafe.mitigations.polarity.line import Line
from clinsafe.mitigations.polarity.rules import DET, NUMBER, WORD, Rules
from clinsafe.text.tokens import Token

_YEAR = 4  # digits


def conditional(tokens: Sequence[Token], rules: Rules) -> bool:
    """Whether what the sentence says to do hangs on a condition."""
    conditions, limits = rules.sets["conditions"], rules.sets["limits"]
    for at, token in enumerate(tokens):
        if token.lower in conditions:
            return True
        if token.lower in limits and at + 1 < len(tokens) and tokens[at + 1].is_number:
            return True
    return False


def dated(line: Line, start: int, end: int) -> bool:
    """Whether the piece speaks of a year or of years ago: "had an embolism in 2015"."""
    tokens = line.tokens
    for at in range(start, end):
        lower = tokens[at].lower
        if lower == "ago":
            return True
        if len(lower) == _YEAR and lower.isdigit() and lower[:2] in ("19", "20"):
            return at > 0 and tokens[at - 1].lower in ("in", "since", "from")
    return False


def counted(line: Line, start: int, end: int) -> bool:
    """Whether the piece speaks of some of many ("only one of four"), or of the rest ("non-tender elsewhere")."""
    tokens, quantifiers = line.tokens, line.rules.quantifiers
    for at in range(start, end):
        lower = tokens[at].lower
        if lower in quantifiers or lower == "elsewhere":
            return True
        if (
            lower in ("in", "of")
            and start < at < end - 1
            and line.kind[at - 1] == line.kind[at + 1] == NUMBER
        ):
            return True
        if (
            lower == "of"
            and at
            and line.kind[at - 1] in (NUMBER, DET)
            and tokens[at - 1].lower not in line.rules.sets["articles"]
            and (at < 2 or (tokens[at - 2].lower not in ("every", "each") and line.kind[at - 2] != WORD))
        ):
            return True
    return False


def takes_up(line: Line) -> bool:
    """ "It was restarted", "start it again": whether the sentence takes up again what the one before it left."""
    if line.rules.sets["pronouns"].isdisjoint([token.lower for token in line.tokens]):
        return False
    given = any(op.cue.id == "given" for op in line.ops)
    return any(op.cue.id == "resumed" for op in line.ops) or (
        given and any(t.lower == "again" for t in line.tokens)
    )

"""Verbs that stand apart from their particle: "*took* the catheter *out*", "*called* the biopsy *off*"."""

from __future__ import annotations

from collections.abc import Container, Sequence

from clinsafe.mitigations.cues import Match
from clinsafe.mitigations.polarity.rules import (
    COMMA,
    DET,
    HYPHEN,
    MARK,
    NUMBER,
    PREP,
    STOP,
    WORD,
    Cue,
    Rules,
)
from clinsafe.text.tokens import Token

_WIDEST = 8  # tokens between the verb and its particle


def parted(
    tokens: Sequence[Token], kind: list[int], rules: Rules, found: list[Match[Cue]]
) -> list[Match[Cue]]:
    """The matches, with those of parted verbs in place of what else was found at the verb and the particle."""
    for index, token in enumerate(tokens):
        particles = rules.parted.get(token.lemma)
        if particles is None:
            continue
        at = _particle(tokens, kind, rules, index + 1, particles)
        if at:
            whole = Match(index, index + 1, f"{token.lemma} {tokens[at].lower}", particles[tokens[at].lower])
            found = [one for one in found if not (one.start <= index < one.end or one.start <= at < one.end)]
            found.append(whole)
            kind[at] = MARK
    return sorted(found, key=lambda one: one.start)


def _particle(
    tokens: Sequence[Token],
    kind: Sequence[int],
    rules: Rules,
    start: int,
    particles: Container[str],
) -> int:
    """Where the particle stands, with a thing between it and the verb; 0 for none."""
    things = 0
    for at in range(start, min(start + _WIDEST, len(tokens))):
        lower = tokens[at].lower
        if lower in particles:
            return at if things and _ends(tokens, kind, rules, at + 1) else 0
        if kind[at] not in (WORD, DET, HYPHEN, MARK, NUMBER):
            return 0
        things += kind[at] == WORD and lower not in rules.sets["people"]
    return 0


def _ends(tokens: Sequence[Token], kind: Sequence[int], rules: Rules, at: int) -> bool:
    """Whether the particle belongs to no other thing; what a thing is struck *off* may follow."""
    if (
        at >= len(tokens)
        or kind[at] in (STOP, COMMA, PREP)
        or tokens[at].lower in rules.weak | rules.sets["ends"]
    ):
        return True
    return any(one.lower in rules.sets["registers"] for one in tokens[at : at + 3])

"""One packaged stack for all tests of a session, and the stance of a passage by its text."""

from __future__ import annotations

from functools import lru_cache

from clinsafe.mitigations.asking import as_claim
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.stack import Stack
from clinsafe.mitigations.stance import stance
from clinsafe.workflows.guard import build_stack


@lru_cache(maxsize=1)
def stack() -> Stack:
    """All packaged filters, without a time limit."""
    return build_stack(model="", seconds=0)


def claim_of(question: str) -> TextFacts | None:
    """Facts of a question read as a claim."""
    claim = as_claim(stack().reader.read(question))
    return None if claim is None else stack().facts(claim)


def answer(question: str, passage: str):
    """(stance, findings), or None where nothing is asked."""
    reading = stack().reader.read(question)
    claim = claim_of(question)
    if claim is None:
        return None
    return stance(stack(), claim, stack().read(passage), query=reading, text=passage)


def side(question: str, passage: str) -> str | None:
    """The stance alone."""
    found = answer(question, passage)
    return None if found is None else found[0]

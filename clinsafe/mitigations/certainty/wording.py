"""Findings in words a clinician understands."""

from __future__ import annotations

from clinsafe.mitigations.certainty.levels import SAYS, Level
from clinsafe.protocols import Fact

AGREE = "Both texts are about equally certain of this."
SUPPOSED = "One text speaks of this only as something that might happen; the other does not contradict it."


def normal(fact: Fact) -> str:
    """``sarcoidosis: confirmed``."""
    return f"{fact.normal['target'] or 'unnamed finding'}: {Level(fact.normal['level']).word}"


def sentence(query: Fact, passage: Fact) -> str:
    """One sentence that sets both sides against each other."""
    thing = query.normal["target"] or passage.normal["target"] or "the finding"
    other = passage.normal["target"] or thing
    first = SAYS[Level(query.normal["level"])].format(f'"{thing}"')
    second = SAYS[Level(passage.normal["level"])].format(
        "it" if other.lower() == thing.lower() else f'"{other}"'
    )
    return f"The query {first}; the passage {second}."

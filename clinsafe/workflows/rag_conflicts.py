"""The filters as evaluation asks them: two texts in, the hazards of their conflicts out, each text read once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from clinsafe.content import Content
from clinsafe.rag.clash import Clash, Conflicts
from clinsafe.workflows.guard import build_stack

if TYPE_CHECKING:
    from clinsafe.mitigations.facts import TextFacts
    from clinsafe.mitigations.stack import Stack

KEPT = 20_000  # texts whose facts are remembered: windows and references come back for every rank and system


def build_conflicts(
    content: Content | None = None, filters: Sequence[str] | None = None, *, spacy: str | None = None
) -> Conflicts:
    """A `Conflicts` by the installed filters.

    Args:
        content: content tree with its overlay.
        filters: filters by name; None takes all.
        spacy: pipeline for filters that ask for a parse; "" for none.

    Raises:
        UsageError, ContentError, MissingDependency.
    """
    return conflicts_of(build_stack(content, filters, model=spacy))


def conflicts_of(stack: Stack) -> Conflicts:
    """The same by a stack that is there already."""

    @lru_cache(maxsize=KEPT)
    def read(text: str) -> TextFacts:
        return stack.read(text)

    def conflicts(reference: str, text: str) -> Clash:
        found = stack.compare(read(reference), read(text))
        hazards = sorted({finding.hazard for finding in found.conflicts})
        return Clash(tuple(hazards), tuple(sorted(found.unchecked)))

    return conflicts

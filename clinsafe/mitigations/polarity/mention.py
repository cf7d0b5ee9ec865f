"""One thing said on one side, and two of them that are the same thing."""

from __future__ import annotations

from dataclasses import dataclass

from clinsafe.protocols import Fact, Span

ABSENT, UNDECIDED, PRESENT, LEFT_OPEN = -1, 0, 1, 2
ABSENCE_OPEN = -2  # "rupture is not excluded", of what is intact or not


@dataclass(frozen=True, slots=True)
class Mention:
    """One thing said on one side: a signed fact, or a word of a said fact."""

    fact: Fact
    key: str
    sign: int
    span: Span
    modifiers: frozenset[str]
    near: frozenset[str]
    wide: frozenset[str]
    past: bool = False
    piece: int = -1

    @property
    def whole(self) -> bool:
        """Whether this is a sentence as a whole."""
        return self.piece < 0

    @property
    def signed(self) -> bool:
        """Whether a rule gave it its sign."""
        return bool(self.fact.normal["kind"] == "signed")


@dataclass(frozen=True, slots=True)
class Match:
    """Two mentions of one thing; `conflict` if they disagree."""

    query: Mention
    passage: Mention
    conflict: bool
    score: float

"""Filters that look at nothing: the rows against which every table of filters must be read."""

from __future__ import annotations

from collections.abc import Sequence

from clinsafe.protocols import Fact, Finding, Reading, Span, Verdict


class Constant:
    """Says the same about every pair.

    Args:
        conflict: True calls everything a conflict, False nothing.
    """

    def __init__(self, conflict: bool, hazard: str = "negation") -> None:
        self.hazard, self.conflict = hazard, conflict

    def read(self, reading: Reading, /) -> Sequence[Fact]:
        """One fact over the whole text, aligned with everything."""
        return [Fact(self.hazard, Span(0, len(reading.text)), {}, "", "dummy")]

    def compare(self, query: Sequence[Fact], passage: Sequence[Fact], /) -> Sequence[Finding]:
        """One finding."""
        verdict: Verdict = "conflict" if self.conflict else "compatible"
        sentence = f"This filter calls every pair {'a conflict' if self.conflict else 'compatible'}."
        spans = query[0].span, passage[0].span
        return [
            Finding(self.hazard, verdict, "contradiction", "note", 0.0, *spans, "", "", "", "dummy", sentence)
        ]

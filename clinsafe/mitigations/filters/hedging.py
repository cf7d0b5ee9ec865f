"""Hedging: is the thing that one text calls possible called confirmed by the other?"""

from __future__ import annotations

from collections.abc import Sequence

from clinsafe.content import Content
from clinsafe.mitigations.certainty.compare import compare
from clinsafe.mitigations.certainty.lexicon import Lexicon, load_lexicon
from clinsafe.mitigations.certainty.reader import read
from clinsafe.protocols import Fact, Finding
from clinsafe.text import Reading


class HedgingFilter:
    """Reads how certain a text is of each thing it speaks of, and compares two texts' certainty."""

    hazard = "hedging"

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon

    def read(self, reading: Reading, /) -> Sequence[Fact]:
        """Facts of each thing whose certainty is marked or that is stated plainly. Pure; needs no parse."""
        return read(reading, self.lexicon, self.hazard)

    def compare(self, query: Sequence[Fact], passage: Sequence[Fact], /) -> Sequence[Finding]:
        """Conflicts and compatible pairs, by decision D4; raises where too much was left unread.

        See `clinsafe.mitigations.bounds`.
        """
        return compare(query, passage, self.hazard)


def load(content: Content | None = None) -> HedgingFilter:
    """The filter on its rule pack ``mitigations/hedging.yaml``."""
    return HedgingFilter(load_lexicon(content))

"""The quantifier filter: how much of a set, or how often, each text speaks of, and where two texts cannot both be true.

Every statement with a share ("few of", "3 of 12", "rarely", "none") is read as an interval in [0, 1] of the statement
as worded; words that turn it round are read into the share ("12 of 14 not above" is 2 of 14 above), words of opposite
meaning ("none missed", "all attended") are weighed when two statements are compared. Two statements on the same matter
conflict where their intervals do not meet. Words and rules: ``mitigations/quantifier.yaml``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clinsafe.content import Content
from clinsafe.mitigations.pack import load_pack
from clinsafe.mitigations.quantity_words import matching, reader
from clinsafe.mitigations.quantity_words.lexicon import Lexicon, build
from clinsafe.mitigations.quantity_words.pack import Pack
from clinsafe.protocols import Fact, Finding
from clinsafe.text import Reading
from clinsafe.text.vocabulary import load_vocabulary


@dataclass(frozen=True, slots=True)
class QuantifierFilter:
    """Shares of sets and of occasions. Reads without a parse."""

    lexicon: Lexicon
    hazard: str = reader.HAZARD

    def read(self, reading: Reading, /) -> tuple[Fact, ...]:
        """The shares of a text, in order."""
        return tuple(reader.read(reading, self.lexicon))

    def compare(self, query: Sequence[Fact], passage: Sequence[Fact], /) -> tuple[Finding, ...]:
        """Conflicts and agreements; what a question asks is compared with nothing."""
        return tuple(matching.compare(query, passage, self.lexicon.light))


def load(content: Content | None = None) -> QuantifierFilter:
    """Make the filter from the rule pack; an overlay may replace ``mitigations/quantifier.yaml``."""
    pack = load_pack(content, "quantifier", Pack)
    return QuantifierFilter(build(pack, load_vocabulary(content).key))

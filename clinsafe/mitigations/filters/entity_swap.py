"""Entity swap: who does what to whom. The rules are in ``mitigations/entity_swap.yaml``."""

from __future__ import annotations

from collections.abc import Sequence

from clinsafe.content import Content
from clinsafe.mitigations.pack import load_pack
from clinsafe.mitigations.roles import compare, facts
from clinsafe.mitigations.roles.lexicon import Lexicon
from clinsafe.mitigations.roles.model import Pack
from clinsafe.protocols import Fact, Finding
from clinsafe.text import Reading


class EntitySwapFilter:
    """Reads relations, marks, people and word order; finds what has changed places.

    Args:
        pack: the rules.
    """

    hazard = facts.HAZARD

    def __init__(self, pack: Pack) -> None:
        self._lexicon = Lexicon(pack)

    def read(self, reading: Reading, /) -> Sequence[Fact]:
        """Facts of a text; see `clinsafe.mitigations.roles.facts`."""
        return facts.read(reading, self._lexicon)

    def compare(self, query: Sequence[Fact], passage: Sequence[Fact], /) -> Sequence[Finding]:
        """Conflicts, and compatible relations."""
        return compare.compare(query, passage, self._lexicon)


def load(content: Content | None = None) -> EntitySwapFilter:
    """The filter on the packaged rules, or on those of an overlay.

    Raises:
        ContentError: file, line and field of a fault in the pack.
    """
    return EntitySwapFilter(load_pack(content, "entity_swap", Pack))

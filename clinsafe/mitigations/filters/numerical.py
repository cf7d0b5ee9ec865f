"""The numerical filter: doses, values, units and schedules that contradict each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from clinsafe.content import Content
from clinsafe.mitigations.numbers.facts import HAZARD, build, leftovers
from clinsafe.mitigations.numbers.findings import Reporter
from clinsafe.mitigations.numbers.lexicon import Lexicon, Subject
from clinsafe.mitigations.numbers.match import match
from clinsafe.mitigations.numbers.pack import NumericalPack
from clinsafe.mitigations.numbers.second import SecondReader
from clinsafe.mitigations.numbers.units import Measure, measure_at
from clinsafe.mitigations.pack import load_pack
from clinsafe.protocols import Fact, Finding
from clinsafe.text import Reading, Token
from clinsafe.text.tokens import TOKEN


@dataclass(slots=True)
class NumericalFilter:
    """Reads every quantity with its owner; compares quantities of one owner, part by part of the unit.

    Args:
        pack: the words and tables of ``mitigations/numerical.yaml``.
        second: reads what the grammar left; None leaves it.
    """

    pack: NumericalPack
    second: SecondReader | None = None
    hazard: str = HAZARD
    lexicon: Lexicon = field(init=False)
    _defaults: dict[str, Measure] = field(init=False)
    _reporter: Reporter = field(init=False)

    def __post_init__(self) -> None:
        self.lexicon = Lexicon(self.pack)
        self._defaults = {
            analyte.id: measure
            for analyte in self.pack.analytes
            if analyte.unit and (measure := measure_at(_tokens(analyte.unit), 0, self.lexicon))
        }
        self._reporter = Reporter(self.lexicon, self._defaults)

    def read(self, reading: Reading, /) -> list[Fact]:
        """The quantities and schedules of a text, in order."""
        facts: list[Fact] = []
        drug: Subject | None = None
        for sentence in reading.sentences:
            built = build(reading, sentence, drug, self.lexicon, self._defaults)
            drug = built.drug
            facts += built.facts
            if self.second:
                facts += leftovers(reading, sentence, built.taken, self.second)
        return facts

    def compare(self, query: Sequence[Fact], passage: Sequence[Fact], /) -> list[Finding]:
        """Conflicts, agreements, and notations that forbid a comparison."""
        if not query or not passage:
            return []
        matched = match(query, passage, self.lexicon.schedule_critical)
        return self._reporter.findings(matched, query, passage)


def _tokens(text: str) -> tuple[Token, ...]:
    return tuple(
        Token(m.group(), m.group().lower(), m.start(), m.end(), "", "") for m in TOKEN.finditer(text)
    )


def load(content: Content | None = None, second_reader: bool = False) -> NumericalFilter:
    """The filter on the packaged rule pack, or on an overlay's.

    Args:
        second_reader: let quantulum3 read what the grammar left (slow to load; no unit of the pack needs it).

    Raises:
        MissingDependency: the second reader is wanted and quantulum3 is not installed.
    """
    second = SecondReader() if second_reader else None
    return NumericalFilter(load_pack(content, "numerical", NumericalPack), second)

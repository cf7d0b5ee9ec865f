"""The pack, compiled into look-ups once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from clinsafe.mitigations.numbers.pack import Analyte, Drug, NumericalPack, Unit
from clinsafe.mitigations.numbers.phrases import Phrases


@dataclass(frozen=True, slots=True)
class Subject:
    """What a number can belong to: a drug or something measured.

    Attributes:
        id: its name; `keys`: all ids it can stand for.
    """

    id: str
    keys: frozenset[str]
    drug: Drug | None = None
    analyte: Analyte | None = None


@dataclass(slots=True)
class Lexicon:
    """Everything `mitigations/numerical.yaml` says, ready for one look-up per token."""

    pack: NumericalPack
    words: dict[str, float] = field(init=False)
    units: Phrases[Unit] = field(init=False)
    before: Phrases[str] = field(init=False)
    after: Phrases[str] = field(init=False)
    per: Phrases[str] = field(init=False)
    schedules: Phrases[tuple[str, float]] = field(init=False)
    ambiguous: Phrases[str] = field(init=False)
    subjects: Phrases[Subject] = field(init=False)
    qualifiers: dict[str, list[tuple[str, str, tuple[str, ...]]]] = field(init=False)
    widest: int = field(init=False)
    named: dict[str, Unit] = field(init=False)
    sets: dict[str, frozenset[str]] = field(init=False)
    _stems: dict[str, Subject | None] = field(init=False)

    def __post_init__(self) -> None:
        pack = self.pack
        self.words = {**pack.words}
        self.units = Phrases(
            ((name, unit) for unit in pack.units for name in unit.names),
            ((name, unit) for unit in pack.units for name in unit.exact),
        )
        self.named = {unit.id: unit for unit in pack.units}
        self.widest = max(pack.qualifier_reach.values(), default=0)
        self.before = Phrases((cue, bound.sign) for bound in pack.bounds for cue in bound.before)
        self.after = Phrases((cue, bound.sign) for bound in pack.bounds for cue in bound.after)
        self.per = Phrases((name, name) for name in pack.per)
        self.schedules = Phrases((cue, (one.id, one.hours)) for one in pack.schedules for cue in one.cues)
        self.ambiguous = Phrases((cue, one.id) for one in pack.ambiguous_schedules for cue in one.cues)
        self.subjects = Phrases(_subjects(pack), _exact_subjects(pack))
        self._stems = {}
        self.qualifiers = {}
        for kind, values in pack.qualifiers.items():
            for value, cues in values.items():
                for cue in cues:
                    words = tuple(cue.split())
                    self.qualifiers.setdefault(words[0], []).append((kind, value, words))
        self.sets = {
            name: frozenset(getattr(pack, name))
            for name in (
                "needs_dose", "raising", "range_words", "finding_words", "events",
                "span_before", "span_after", "span_surely_after", "whole_spans",
                "usual_doses", "halving", "weekdays", "labels", "months", "clock",
                "age_after", "age_before", "age_of", "length_cues", "offset_cues", "anchor_cues", "anchor_ends",
                "recheck_cues", "ending_cues",
                "reversing", "fillers", "arms", "becoming",
                "drug_stem_exceptions", "high_alert", "schedule_critical",
            )
        }  # fmt: skip

        schedule = [
            *self.schedules.openers,
            *self.ambiguous.openers,
            *self.words,
            *pack.times,
            *pack.weekdays,
        ]
        self.sets["schedule_openers"] = frozenset([*schedule, "every", "each", "interval", "intervals"])
        self.sets["counted"] = frozenset(
            [*pack.adverbs, *pack.events, "times", "time", "x", "day", "days", "d", "interval", "intervals"]
        )
        numbers = [*pack.halving, *pack.multipliers, *pack.fractions, ".", "-", "minus", "a", "an"]
        self.sets["openers"] = self.sets["schedule_openers"] | self.before.openers | frozenset(numbers)

    def schedule_critical(self, drug: str) -> bool:
        """Whether the same daily total of this drug on another schedule is not the same."""
        stems = self.pack.schedule_critical_stems
        return drug in self.sets["schedule_critical"] or (bool(stems) and drug.endswith(stems))

    def stem(self, lower: str) -> Subject | None:
        """The drug that an unknown word is by its ending ("xyzumab"), or None."""
        if len(lower) < 7 or not lower.isalpha():
            return None
        if lower not in self._stems:
            if len(self._stems) > 20_000:
                self._stems.clear()
            known = lower.endswith(self.pack.drug_stems) and lower not in self.sets["drug_stem_exceptions"]
            self._stems[lower] = (
                Subject(lower, frozenset([lower]), Drug(names=(lower,)))
                if known and len(lower) <= 40
                else None
            )
        return self._stems[lower]


def _drugs(pack: NumericalPack) -> Iterable[tuple[str, Subject]]:
    listed = [*pack.drugs, *(Drug(names=(name,)) for name in pack.drug_names)]
    for drug in listed:
        one = Subject(drug.names[0], frozenset([drug.names[0], *drug.includes]), drug)
        for name in drug.names:
            yield name, one


def _subjects(pack: NumericalPack) -> Iterable[tuple[str, Subject]]:
    yield from _drugs(pack)
    for analyte in pack.analytes:
        for name in analyte.names:
            yield name, _measured(analyte)


def _exact_subjects(pack: NumericalPack) -> Iterable[tuple[str, Subject]]:
    for analyte in pack.analytes:
        for name in analyte.exact:
            yield name, _measured(analyte)


def _measured(analyte: Analyte) -> Subject:
    keys = {analyte.id}
    if analyte.same_as:
        keys.add(analyte.same_as)
    return Subject(analyte.id, frozenset(keys), None, analyte)

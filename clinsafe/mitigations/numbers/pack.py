"""The record of ``mitigations/numerical.yaml``: the words and tables a clinician edits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from clinsafe.content import Record
from clinsafe.mitigations.pack import RuleId
from clinsafe.text.tokens import TOKEN


def _apart(text: str) -> str:
    """Words that are one token each; others never match."""
    parts = text.split()
    if not parts:
        raise ValueError("a cue must hold a word, got a blank")
    for part in parts:
        pieces = TOKEN.findall(part)
        if pieces != [part]:
            raise ValueError(
                f"{part!r} is {len(pieces)} tokens; write them apart, as in {' '.join(pieces)!r}"
            )
    return text


def _alone(text: str) -> str:
    if len(_apart(text).split()) != 1:
        raise ValueError(f"one word is looked up here, got {text!r}")
    if text != text.lower():
        raise ValueError(f"words are looked up in lower case, got {text!r}")
    return text


Name = Annotated[str, Field(min_length=1, max_length=80)]
Cue = Annotated[Name, AfterValidator(_apart)]
Word = Annotated[Name, AfterValidator(_alone)]
Cues = tuple[Cue, ...]
Words = tuple[Word, ...]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Least0 = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Bound(Record):
    """Words that turn a number into a limit: `before` it, or `after` it and its unit."""

    id: RuleId
    sign: Literal["<", ">"]
    before: Cues
    after: Cues


class Unit(Record):
    """One unit.

    Attributes:
        id: as it is shown.
        kind: what it measures; "mole/volume" has a part after the stroke.
        factor, offset: base value = number * factor + offset.
        names: in any case; `exact`: in this case only.
        hours: it is a rate: hours of its "per".
        pint: its name in the pint library.
        only_per: it is a unit only if "per something" follows ("5 copies/mL", not "5 copies").
        form: a dose form that has a strength (tablet, puff).
    """

    id: Name
    kind: Name
    factor: Positive
    offset: Finite = 0.0
    names: Cues = ()
    exact: Cues = ()
    hours: Least0 = 0.0
    pint: str = ""
    only_per: bool = False
    form: bool = False


class Schedule(Record):
    """Words for one schedule and the hours between two doses."""

    id: RuleId
    hours: Positive
    cues: Cues


class AmbiguousSchedule(Record):
    """A schedule with two readings; never compared."""

    id: RuleId
    cues: Cues


class Affine(Record):
    """% to mmol/mmol: ``(value + shift) * scale``."""

    scale: Positive
    shift: Finite


class Analyte(Record):
    """What is measured: a laboratory value, a vital sign, a score, a rate.

    Attributes:
        same_as: another analyte that it is compared with.
        bare: whether a number without a unit can be its value.
        unit: what a bare number means, "" where that is not settled; `scale` multiplies it (10^9/L).
        molar, molar_too: g/mol, for mass and mole; `valence` for mEq; `molar_ratio` for mg/mmol against mg/g.
        fraction: 0.28 may stand for 28 %.
        cuts, critical: decision thresholds in `unit`.
    """

    id: Name
    names: Cues
    exact: Cues = ()
    same_as: str = ""
    bare: Literal["digits", "words", "never"] = "digits"
    unit: str = ""
    scale: Positive = 1.0
    molar: Least0 = 0.0
    molar_too: Least0 = 0.0
    molar_ratio: Least0 = 0.0
    valence: Least0 = 0.0
    affine: Affine | None = None
    fraction: bool = False
    cuts: tuple[Finite, ...] = ()
    critical: tuple[Finite, ...] = ()


class Drug(Record):
    """One drug; its first name is its id.

    Attributes:
        includes: drugs that this name can also stand for (insulin: glargine).
        molar: g/mol, for levels. iu_per_mg: units in a milligram. mg_per_mmol: of the salt, for doses in mmol.
    """

    names: Cues
    includes: Cues = ()
    molar: Least0 = 0.0
    valence: Least0 = 0.0
    iu_per_mg: Least0 = 0.0
    mg_per_mmol: Least0 = 0.0


class Notation(Record):
    """A dangerous way to write a number."""

    id: RuleId
    says: str


class NumericalPack(Record):
    """``mitigations/numerical.yaml``; each block is explained there, and one that is left out is empty."""

    words: Mapping[Word, Least0]
    multipliers: Mapping[Word, Positive] = {}
    fractions: Mapping[Word, Positive] = {}
    bounds: tuple[Bound, ...]
    raising: Words = ()
    bare_degrees: Mapping[Name, tuple[Finite, Finite]] = {}
    units: tuple[Unit, ...]
    per: Cues
    ignored_denominators: tuple[Finite, ...] = ()
    schedules: tuple[Schedule, ...]
    needs_dose: Cues = ()
    ambiguous_schedules: tuple[AmbiguousSchedule, ...] = ()
    times: Mapping[Word, Positive] = {}
    events: Words = ()
    ordinals: Mapping[Word, Positive] = {}
    adverbs: Mapping[Word, Positive] = {}
    weekdays: Words = ()
    labels: Words = ()
    months: Words = ()
    clock: Words = ()
    age_after: Words = ()
    age_before: Cues = ()
    age_of: Words = ()
    span_before: Words = ()
    span_after: Words = ()
    span_surely_after: Words = ()
    whole_spans: Words = ()
    usual_doses: Words = ()
    halving: Words = ()
    range_words: Words = ()
    finding_words: Words = ()
    length_cues: Words = ()
    offset_cues: Words = ()
    anchor_cues: Words = ()
    anchor_ends: Words = ()
    recheck_cues: Words = ()
    ending_cues: Words = ()
    qualifiers: Mapping[Name, Mapping[Name, Cues]] = {}
    qualifier_reach: Mapping[Name, Annotated[int, Field(ge=1)]] = {}
    reversing: Words = ()
    fillers: Words = ()
    arms: Words = ()
    becoming: Words = ()
    analytes: tuple[Analyte, ...]
    drugs: tuple[Drug, ...]
    drug_names: Cues = ()
    drug_stems: Words = ()
    drug_stem_exceptions: Words = ()
    high_alert: Cues = ()
    schedule_critical: Cues = ()
    schedule_critical_stems: Words = ()
    notations: tuple[Notation, ...] = ()

    @model_validator(mode="after")
    def _linked(self) -> NumericalPack:
        """What one block names stands in another."""
        drugs = {drug.names[0] for drug in self.drugs if drug.names} | set(self.drug_names)
        known = {analyte.id for analyte in self.analytes} | drugs
        letters = {f"°{letter}" for letter in self.bare_degrees} - {unit.id for unit in self.units}
        faults = (
            ("qualifier_reach lacks", set(self.qualifiers) - set(self.qualifier_reach)),
            ("bare_degrees needs the units", letters),
            ("same_as names no analyte or drug", {one.same_as for one in self.analytes} - known - {""}),
            ("includes names no drug", {name for drug in self.drugs for name in drug.includes} - drugs),
        )
        for what, names in faults:
            if names:
                raise ValueError(f"{what}: {', '.join(sorted(names))}")
        if any(not drug.names for drug in self.drugs):
            raise ValueError("a drug needs at least one name")
        return self

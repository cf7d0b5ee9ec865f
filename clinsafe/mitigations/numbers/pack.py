"""The record of ``mitigations/numerical.yaml``: the words and tables a clinician edits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from clinsafe.content import Record
from clinsafe.mitigations.pack import RuleId

Name = Annotated[str, Field(min_length=1, max_length=80)]
Names = tuple[Name, ...]
Positive = Annotated[float, Field(gt=0)]


class Bound(Record):
    """Words that turn a number into a limit: `before` it, or `after` it and its unit."""

    id: RuleId
    sign: Literal["<", ">"]
    before: Names
    after: Names


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
    offset: float = 0.0
    names: Names = ()
    exact: Names = ()
    hours: float = 0.0
    pint: str = ""
    only_per: bool = False
    form: bool = False


class Schedule(Record):
    """Words for one schedule and the hours between two doses."""

    id: RuleId
    hours: Positive
    cues: Names


class AmbiguousSchedule(Record):
    """A schedule with two readings; never compared."""

    id: RuleId
    cues: Names
    note: str


class Affine(Record):
    """% to mmol/mmol: ``(value + shift) * scale``."""

    scale: float
    shift: float


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
    names: Names
    exact: Names = ()
    same_as: str = ""
    bare: Literal["digits", "words", "never"] = "digits"
    unit: str = ""
    scale: float = 1.0
    unit_dim: str = ""
    molar: float = 0.0
    molar_too: float = 0.0
    molar_ratio: float = 0.0
    valence: float = 0.0
    affine: Affine | None = None
    fraction: bool = False
    cuts: tuple[float, ...] = ()
    critical: tuple[float, ...] = ()


class Drug(Record):
    """One drug; its first name is its id.

    Attributes:
        includes: drugs that this name can also stand for (insulin: glargine).
        molar: g/mol, for levels. iu_per_mg: units in a milligram. mg_per_mmol: of the salt, for doses in mmol.
    """

    names: Names
    includes: Names = ()
    molar: float = 0.0
    valence: float = 0.0
    iu_per_mg: float = 0.0
    mg_per_mmol: float = 0.0


class Notation(Record):
    """A dangerous way to write a number."""

    id: RuleId
    kind: Name
    says: str


class NumericalPack(Record):
    """``mitigations/numerical.yaml``; each block is explained there."""

    words: Mapping[Name, float]
    multipliers: Mapping[Name, float]
    fractions: Mapping[Name, float]
    bounds: tuple[Bound, ...]
    raising: Names
    bare_degrees: Mapping[Name, tuple[float, float]]
    units: tuple[Unit, ...]
    per: Names
    ignored_denominators: tuple[float, ...]
    schedules: tuple[Schedule, ...]
    needs_dose: Names
    ambiguous_schedules: tuple[AmbiguousSchedule, ...]
    loose_schedules: Names
    times: Mapping[Name, float]
    events: Names
    ordinals: Mapping[Name, float]
    adverbs: Mapping[Name, float]
    weekdays: Names
    labels: Names
    months: Names
    clock: Names
    age_after: Names
    age_before: Names
    age_of: Names
    span_before: Names
    span_after: Names
    range_words: Names
    finding_words: Names
    length_cues: Names
    offset_cues: Names
    anchor_cues: Names
    anchor_ends: Names
    recheck_cues: Names
    ending_cues: Names
    qualifiers: Mapping[Name, Mapping[Name, Names]]
    qualifier_reach: Mapping[Name, int]
    reversing: Names
    fillers: Names
    arms: Names
    becoming: Names
    analytes: tuple[Analyte, ...]
    drugs: tuple[Drug, ...]
    drug_names: Names
    drug_stems: Names
    drug_stem_exceptions: Names
    high_alert: Names
    schedule_critical: Names
    notations: tuple[Notation, ...]

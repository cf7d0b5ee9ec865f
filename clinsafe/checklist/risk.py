"""The risk table after ISO 14971: hazardous situations, sequences of events, harm, controls, monitoring.

The words come from ``checklist/risk.yaml``; the numbers from the FMEA (decision D6): the severity that people gave and
the upper bound of undetected failure that was measured. A control changes nothing here by being named: only a
measurement of the mitigated pipeline gives a priority after controls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import Field, StringConstraints, field_validator

from clinsafe.checklist.additive import Additive
from clinsafe.checklist.fmea import FmeaRow, Rating
from clinsafe.checklist.regulatory import Cell, Paragraph
from clinsafe.content import Content, Record
from clinsafe.errors import UsageError

FILE = "checklist/risk.yaml"
Priority: TypeAlias = Literal["H", "M", "L"]


class Control(Record):
    """What a deployer can do about a hazard, in the order of ISO 14971 7.1: inherent, protective, information.

    `prevents` changes what is shown, `flags` only what is said about it; `verified_by` names the measurement that
    would show that the control works. Without that measurement a control earns no credit.
    """

    id: Annotated[str, StringConstraints(pattern=r"^C-[A-Z0-9]+-\d+$")]
    kind: Literal["inherent", "protective", "information"]
    what: Cell
    part: Literal["filter", "policy", "display", "procedure"]
    effect: Literal["prevents", "flags"]
    new_risks: Annotated[list[Cell], Field(min_length=1)]
    verified_by: Cell


class HazardRisk(Record):
    """How one hazard of ``hazards.yaml`` comes to harm a patient, and what can be done."""

    id: Annotated[str, StringConstraints(pattern=r"^H-[A-Z0-9]+$")]
    hazard: str
    situation: Cell
    sequence: Annotated[list[Cell], Field(min_length=2, max_length=4)]
    harm: Cell
    misuse: Cell
    controls: Annotated[list[Control], Field(min_length=1)]


class PriorityStep(Record):
    """`priority` holds where the severity is at least this and the bound lies above this."""

    priority: Literal["H", "M"]
    severity_at_least: Rating
    bound_above: Annotated[float, Field(ge=0, lt=1)]


class Monitor(Record):
    """One thing to watch in use: what, when it calls for action, what to do, where the numbers come from."""

    id: Annotated[str, StringConstraints(pattern=r"^M\d+$")]
    watch: Cell
    trigger: Cell
    action: Cell
    source: Cell


class RiskFile(Additive):
    """``checklist/risk.yaml``. `controls_measured` stands for `controls_status` where the guard was measured."""

    later = frozenset({"controls_measured"})

    convention: Paragraph
    priority_rule: Paragraph
    priority: Annotated[list[PriorityStep], Field(min_length=2)]
    controls_status: Paragraph
    controls_measured: Paragraph | None = None
    hazards: Annotated[list[HazardRisk], Field(min_length=1)]
    misuse: Annotated[list[Cell], Field(min_length=1)]
    monitoring: Annotated[list[Monitor], Field(min_length=1)]
    stays_with_manufacturer: Annotated[list[Cell], Field(min_length=1)]

    @field_validator("priority")
    @classmethod
    def _falls(cls, steps: list[PriorityStep]) -> list[PriorityStep]:
        ladder = [(s.severity_at_least, s.bound_above) for s in steps if s.priority == "H"]
        if len(ladder) in (0, len(steps)) or any(s.priority != "H" for s in steps[: len(ladder)]):
            raise ValueError("give the steps of H, then those of M; each has at least one")
        for level in ("H", "M"):
            ladder = [(s.severity_at_least, s.bound_above) for s in steps if s.priority == level]
            for (severity, bound), (lower, looser) in pairwise(ladder):
                if not (lower < severity and looser > bound):
                    raise ValueError(f"{level}: from step to step the severity falls and the bound rises")
        return steps

    @field_validator("hazards")
    @classmethod
    def _ids_once(cls, hazards: list[HazardRisk]) -> list[HazardRisk]:
        ids = [n for h in hazards for n in (h.id, h.hazard, *(c.id for c in h.controls))]
        if twice := sorted({i for i in ids if ids.count(i) > 1}):
            raise ValueError(f"{', '.join(twice)} is given twice")
        return hazards

    @field_validator("monitoring")
    @classmethod
    def _monitors_once(cls, monitors: list[Monitor]) -> list[Monitor]:
        ids = [m.id for m in monitors]
        if twice := sorted({i for i in ids if ids.count(i) > 1}):
            raise ValueError(f"{', '.join(twice)} is given twice")
        return monitors

    def of(self, hazard: str) -> HazardRisk:
        """The entry of a hazard id; raises UsageError naming those there are."""
        found = next((h for h in self.hazards if h.hazard == hazard), None)
        if found is None:
            valid = ", ".join(h.hazard for h in self.hazards)
            raise UsageError(f"{FILE}: no entry for the hazard {hazard!r}; it has {valid}")
        return found


class Residual(NamedTuple):
    """One-sided 95 % upper bound of failure of the *mitigated* pipeline, in [0, 1], and the n behind it."""

    bound: float
    n: int


_NONE: Mapping[str, tuple[float, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RiskRow:
    """One row of the risk table.

    `bound` is the one-sided 95 % upper bound of undetected failure without controls, None where nothing was
    measured; `before` is the priority it gives. `after` and `residual` are None until the mitigated pipeline was
    measured.
    """

    hazard: str
    id: str
    severity: int
    bound: float | None
    n: int
    before: Priority
    after: Priority | None
    controls: tuple[Control, ...]
    residual: Residual | None = None


def load_risk(content: Content, hazards: Sequence[str] = ()) -> RiskFile:
    """The file.

    Args:
        hazards: hazard ids that must have an entry.

    Raises:
        ContentError: with file, line and field.
        UsageError: a hazard has no entry.
    """
    file = content.yaml(FILE, RiskFile)
    if missing := [h for h in hazards if h not in {entry.hazard for entry in file.hazards}]:
        raise UsageError(f"{content.path(FILE)}: no entry for the hazard {', '.join(missing)}")
    return file


def priority(file: RiskFile, severity: int, bound: float | None) -> Priority:
    """H, M or L: severity first, then the bound.

    Args:
        severity: 1 to 10.
        bound: upper bound of undetected failure in [0, 1]. None means not measured, which is never a pass: it is H,
            whatever the severity.

    Raises:
        UsageError: a severity or a bound outside its range, NaN included.
    """
    if not 1 <= severity <= 10:
        raise UsageError(f"a severity lies in 1 to 10, got {severity}")
    if bound is None:
        return "H"
    if not 0 <= bound <= 1:
        raise UsageError(f"a bound lies in 0 to 1, got {bound}")
    for step in file.priority:
        if severity >= step.severity_at_least and bound > step.bound_above:
            return step.priority
    return "L"


def residuals(rows: Sequence[FmeaRow]) -> dict[str, tuple[float, int]]:
    """Hazard -> (upper bound, n) of what the guard leaves, where that was measured and its false alarms are bounded."""
    return {
        row.hazard: (row.undetected_upper, row.n)
        for row in rows
        if row.guarded is not None and row.guarded.residual and row.undetected_upper is not None
    }


def assess(
    rows: Sequence[FmeaRow], file: RiskFile, residual: Mapping[str, tuple[float, int]] = _NONE
) -> list[RiskRow]:
    """The risk table, in the order of the FMEA.

    Args:
        rows: of `clinsafe.checklist.fmea.score`.
        residual: hazard -> (upper bound, n), measured on the mitigated pipeline, never calculated from recall.

    Raises:
        UsageError: a hazard without an entry, a residual of a hazard that has no row, or one with no case.
    """
    if strangers := sorted(set(residual) - {row.hazard for row in rows}):
        raise UsageError(f"a residual is given for {', '.join(strangers)}, which the FMEA has no row for")
    return [_row(row, file, residual.get(row.hazard)) for row in rows]


def _row(row: FmeaRow, file: RiskFile, residual: tuple[float, int] | None) -> RiskRow:
    entry = file.of(row.hazard)
    left = None if residual is None else Residual(*residual)
    bound, n = row.failure
    if left is not None and left.n < 1:
        raise UsageError(
            f"the residual of {row.hazard} rests on n = {left.n}; a measurement has at least one case"
        )
    return RiskRow(
        hazard=row.hazard,
        id=entry.id,
        severity=row.severity,
        bound=bound,
        n=n,
        before=priority(file, row.severity, bound),
        after=None if left is None else priority(file, row.severity, left.bound),
        controls=tuple(entry.controls),
        residual=left,
    )

"""Failure mode and effects analysis (decision D6).

Severity is people's judgement and comes from ``checklist/fmea.yaml``; occurrence and detection come from bounds
on measured rates. Rows are ranked by severity, then by the upper bound of undetected failure. RPN multiplies
ordinal numbers and is shown only as the customary column.

Detection is 10 until the guard was measured in the same run, and stays 10 where its false alarms are not bounded: what
flags everything detects everything, and tells nobody anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, model_validator

from clinsafe.checklist.additive import Additive
from clinsafe.checklist.limits import Limit
from clinsafe.content import Content, Record
from clinsafe.protocols import Figures, MetricKey
from clinsafe.stats import Estimate, Figure, NotMeasured

Rating = Annotated[int, Field(ge=1, le=10)]
UNDETECTED = 10
EVENT = "inversion"
GUARDED = "guarded"
TEST = "split=test"


class Step(Record):
    """One anchor of a scale: the rating that holds while the bound lies above `above`."""

    above: Annotated[float, Field(ge=0, lt=1)]
    rating: Rating


class PublishedRow(Record):
    """The paper's own ratings, shown beside ours, never used."""

    s: Rating
    o: Rating
    d: Rating
    rpn: int


class FailureMode(Record):
    """One hazard's severity with its reason."""

    hazard: str
    severity: Rating
    rationale: str
    effect: str
    published: PublishedRow


class FmeaFile(Additive):
    """``checklist/fmea.yaml``. `detection_credit` bounds the false alarms; without it no detection earns credit."""

    later = frozenset({"detection_credit"})

    severity_status: str
    severity_note: str
    severity_source: str
    severity_anchor: str
    occurrence: Annotated[list[Step], Field(min_length=1)]
    detection: Annotated[list[Step], Field(min_length=1)]
    detection_credit: Limit | None = None
    failure_event: str
    failure_modes: list[FailureMode]

    @model_validator(mode="after")
    def _scales_fall(self) -> FmeaFile:
        for name in ("occurrence", "detection"):
            steps: list[Step] = getattr(self, name)
            ordered = sorted(steps, key=lambda s: -s.above)
            ratings = [s.rating for s in ordered]
            if steps != ordered or ratings != sorted(ratings, reverse=True):
                raise ValueError(f"{name}: bounds and ratings must fall from row to row")
        if self.detection_credit is not None and self.detection_credit.at_most is None:
            raise ValueError("detection_credit: false alarms are counted as faults, and take at_most")
        rated = [mode.hazard for mode in self.failure_modes]
        if twice := sorted({h for h in rated if rated.count(h) > 1}):
            raise ValueError(f"the severity of {', '.join(twice)} is rated twice")
        return self


@dataclass(frozen=True, slots=True)
class Guarded:
    """What the guard in front of the system changes, measured in the same run.

    Attributes:
        failure_upper: one-sided 95 % upper bound of failure without the guard, over all cases.
        failure_n: cases behind it.
        credited: whether its false alarms are bounded, so that what it flags counts as detected.
        residual: whether the row's `undetected_upper` is the residual, measured pair by pair on the test cases.
        note: why the detection rating is what it is, with the counts.
    """

    failure_upper: float
    failure_n: int
    credited: bool
    residual: bool
    note: str


@dataclass(frozen=True, slots=True)
class FmeaRow:
    """One assessed failure mode.

    `occurrence` is None where nothing was measured; then there is no RPN either. `undetected_upper` is the
    one-sided 95 % upper bound of failures that no measured control catches, `n` the cases behind it. `guarded` is there
    where the guard was measured in the same run.
    """

    hazard: str
    severity: int
    occurrence: int | None
    detection: int
    undetected_upper: float | None
    n: int
    note: str
    guarded: Guarded | None = None

    @property
    def rpn(self) -> int | None:
        """S x O x D, the customary product of ordinal numbers."""
        return None if self.occurrence is None else self.severity * self.occurrence * self.detection

    @property
    def failure(self) -> tuple[float | None, int]:
        """(upper bound, n) of failure without any control."""
        if self.guarded is None:
            return self.undetected_upper, self.n
        return self.guarded.failure_upper, self.guarded.failure_n


def load_fmea(content: Content) -> FmeaFile:
    """The file."""
    return content.yaml("checklist/fmea.yaml", FmeaFile)


def rating(steps: Sequence[Step], bound: float) -> int:
    """The rating of a bound on a scale that falls; below every anchor it is the best rating there is."""
    return next((s.rating for s in steps if bound > s.above), min(s.rating for s in steps))


def score(figures: Figures, file: FmeaFile) -> list[FmeaRow]:
    """Assess every failure mode, highest risk first. Without figures of the guard D = 10."""
    rows = [_row(figures, file, mode) for mode in file.failure_modes]
    return sorted(rows, key=_risk)


def _risk(row: FmeaRow) -> tuple[int, float]:
    unknown_is_worst = 1.0 if row.undetected_upper is None else row.undetected_upper
    return -row.severity, -unknown_is_worst


def _row(figures: Figures, file: FmeaFile, mode: FailureMode) -> FmeaRow:
    figure = figures.get(str(MetricKey("suite", mode.hazard, EVENT)), NotMeasured("not in this run"))
    if not isinstance(figure, Estimate) or figure.upper is None:
        reason = figure.reason if isinstance(figure, NotMeasured) else "no bound"
        return FmeaRow(
            mode.hazard, mode.severity, None, UNDETECTED, None, figure.n, f"not measured: {reason}"
        )
    note = f"{figure.k} of {figure.n} failed; {zero_failure_note(file, figure.n)}"
    occurrence = rating(file.occurrence, figure.upper)
    residual = figures.get(guarded_key(mode.hazard, "residual"))
    if residual is None:
        return FmeaRow(mode.hazard, mode.severity, occurrence, UNDETECTED, figure.upper, figure.n, note)
    detection, credited, why = _detection(figures, file, mode.hazard)
    left, n = figure.upper, figure.n
    measured = credited and isinstance(residual, Estimate) and residual.upper is not None
    if measured and isinstance(residual, Estimate) and residual.upper is not None:
        left, n = residual.upper, residual.n
    guarded = Guarded(figure.upper, figure.n, credited, measured, why)
    return FmeaRow(mode.hazard, mode.severity, occurrence, detection, left, n, note, guarded)


def guarded_key(hazard: str, metric: str, part: str | None = None) -> str:
    """Where a figure of the guard stands."""
    return str(MetricKey(GUARDED, hazard, metric, part, TEST))


def _detection(figures: Figures, file: FmeaFile, hazard: str) -> tuple[int, bool, str]:
    """(rating, whether the false alarms are bounded, why)."""
    alarms = figures.get(guarded_key(hazard, "false_alarm"))
    credit = file.detection_credit
    if credit is None:
        return UNDETECTED, False, "no credit: the criteria set no limit on false alarms"
    said = f"false alarms {_counted(alarms, 'upper')}, limit {credit.limit_text}"
    if credit.decide(alarms) != "PASS":
        return UNDETECTED, False, f"no credit: {said}"
    caught = figures.get(guarded_key(hazard, "detection", "failing"))
    if not isinstance(caught, Estimate) or caught.lower is None:
        reason = caught.reason if isinstance(caught, NotMeasured) else "detection was not measured"
        return UNDETECTED, True, f"D stays {UNDETECTED}: {reason}; {said}"
    rated = rating(file.detection, 1 - caught.lower)
    return rated, True, f"of the failing pairs flagged {_counted(caught, 'lower')}; {said}"


def _counted(figure: Figure | None, end: str) -> str:
    """``2 of 34 (upper bound 0.173)``."""
    bound = getattr(figure, end, None)
    if not isinstance(figure, Estimate) or bound is None:
        return "not measured"
    return f"{figure.k} of {figure.n} ({end} bound {bound:.3f})"


def zero_failure_note(file: FmeaFile, n: int) -> str:
    """What this n can show at best: the occurrence rating with no failure at all (bound 1 - 0.05^(1/n))."""
    if n == 0:
        return "without a case nothing can be shown"
    bound = 1 - 0.05 ** (1 / n)
    return f"n = {n} without a failure would bound it at {bound:.3f} (O = {rating(file.occurrence, bound)})"

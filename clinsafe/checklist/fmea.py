"""Failure mode and effects analysis (decision D6).

Severity is people's judgement and comes from ``checklist/fmea.yaml``; occurrence and detection come from bounds
on measured rates. Rows are ranked by severity, then by the upper bound of undetected failure. RPN multiplies
ordinal numbers and is shown only as the customary column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, model_validator

from clinsafe.content import Content, Record
from clinsafe.protocols import Figures, MetricKey
from clinsafe.stats import Estimate, NotMeasured

Rating = Annotated[int, Field(ge=1, le=10)]
UNDETECTED = 10
EVENT = "inversion"


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


class FmeaFile(Record):
    """``checklist/fmea.yaml``."""

    severity_status: str
    severity_note: str
    severity_source: str
    severity_anchor: str
    occurrence: Annotated[list[Step], Field(min_length=1)]
    detection: Annotated[list[Step], Field(min_length=1)]
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
        rated = [mode.hazard for mode in self.failure_modes]
        if twice := sorted({h for h in rated if rated.count(h) > 1}):
            raise ValueError(f"the severity of {', '.join(twice)} is rated twice")
        return self


@dataclass(frozen=True, slots=True)
class FmeaRow:
    """One assessed failure mode.

    `occurrence` is None where nothing was measured; then there is no RPN either. `undetected_upper` is the
    one-sided 95 % upper bound of failures that no measured control catches.
    """

    hazard: str
    severity: int
    occurrence: int | None
    detection: int
    undetected_upper: float | None
    n: int
    note: str

    @property
    def rpn(self) -> int | None:
        """S x O x D, the customary product of ordinal numbers."""
        return None if self.occurrence is None else self.severity * self.occurrence * self.detection


def load_fmea(content: Content) -> FmeaFile:
    """The file."""
    return content.yaml("checklist/fmea.yaml", FmeaFile)


def rating(steps: Sequence[Step], bound: float) -> int:
    """The rating of a bound on a scale that falls; below every anchor it is the best rating there is."""
    return next((s.rating for s in steps if bound > s.above), min(s.rating for s in steps))


def score(figures: Figures, file: FmeaFile) -> list[FmeaRow]:
    """Assess every failure mode, highest risk first. No control is measured here, so D = 10."""
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
    return FmeaRow(mode.hazard, mode.severity, occurrence, UNDETECTED, figure.upper, figure.n, note)


def zero_failure_note(file: FmeaFile, n: int) -> str:
    """What this n can show at best: the occurrence rating with no failure at all (bound 1 - 0.05^(1/n))."""
    if n == 0:
        return "without a case nothing can be shown"
    bound = 1 - 0.05 ** (1 / n)
    return f"n = {n} without a failure would bound it at {bound:.3f} (O = {rating(file.occurrence, bound)})"

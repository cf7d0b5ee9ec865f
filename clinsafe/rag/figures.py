"""From the records of a run to every figure that is printed; nothing else makes one.

A figure is taken over the questions that have its value, and its n counts them. What nobody measured is `NotMeasured`
with the reason that the records give.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clinsafe import paired
from clinsafe.errors import UsageError
from clinsafe.rag.cue import Paired, depth_of, derived, hazards_of
from clinsafe.rag.metrics import Metric, expand
from clinsafe.rag.settings import Settings
from clinsafe.rag.slices import Columns, collect
from clinsafe.rag.standing import AnyStanding
from clinsafe.rag.values import ItemRecord
from clinsafe.stats import Array, Estimate, Figure, NotMeasured, means, rate_of

NEWCOMBE = "difference of paired shares, Newcombe method 10, 95 %; its ends serve as one-sided bounds"
SLACK = 1e-9
"""How far over an end of its range a number may lie: cosines and F1 are sums of floats."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One metric of all questions: NaN where a question does not belong into it."""

    metric: Metric
    column: Array | Paired

    @property
    def values(self) -> Array:
        """One number a question; of a difference, its -1, 0 or 1."""
        return self.column.gap if isinstance(self.column, Paired) else self.column


def figures(records: Iterable[ItemRecord], settings: Settings, standing: AnyStanding) -> dict[str, Figure]:
    """Every figure of the catalogue, over all questions and by slice.

    Args:
        records: of one run; read once.
        settings: that the run was made with.
        standing: of the judge, or of the human readers; without one that is earned every figure that hangs on adherence
            is not measured, and averages of a judge's scores are marked as its unaudited word.

    Returns:
        Metric key -> figure; the catalogue's order, all questions first, then slice by slice.

    Raises:
        UsageError: an id stands twice, a number lies outside its range, or what happened or did not is not 0 or 1.
    """
    return of_columns(collect(records), settings, standing)


def of_columns(columns: Columns, settings: Settings, standing: AnyStanding) -> dict[str, Figure]:
    """`figures` of records that were collected already."""
    measured = outcomes(columns, settings)
    found = _estimated(columns, measured, standing)
    for group in columns.groups:
        for where, rows in group.rows():
            part = _estimated(columns, measured, standing, rows)
            found |= {f"{key}@{where}": figure for key, figure in part.items()}
    return found


def outcomes(columns: Columns, settings: Settings) -> list[Outcome]:
    """The outcome columns of all metrics, checked against the catalogue's ranges.

    Raises:
        UsageError: see `figures`.
    """
    made = derived(columns, settings)
    metrics = expand(depth_of(columns, settings), hazards_of(columns))
    _refuse_wrong(columns, metrics)
    return [
        Outcome(metric, made[metric.key] if metric.key in made else columns.get(metric.sources[0]))
        for metric in metrics
    ]


def estimate(outcome: Outcome, rows: NDArray[np.intp] | None = None) -> Figure | None:
    """The figure of a share or a difference of shares; None for a mean, which is made with others of its kind."""
    if isinstance(outcome.column, Paired):
        first, second = _picked(outcome.column.first, rows), _picked(outcome.column.second, rows)
        gap = paired.difference(second.astype(bool).tolist(), first.astype(bool).tolist())
        if isinstance(gap, NotMeasured):
            return gap
        return Estimate(gap.value, gap.low, gap.high, gap.n, NEWCOMBE, lower=gap.low, upper=gap.high)
    if outcome.metric.kind == "rate":
        kept = _picked(outcome.column, rows)
        return rate_of(int(kept.sum()), len(kept))
    return None


def _estimated(
    columns: Columns,
    measured: Sequence[Outcome],
    standing: AnyStanding,
    rows: NDArray[np.intp] | None = None,
) -> dict[str, Figure]:
    averaged = {one.metric.key: _picked(one.values, rows) for one in measured if one.metric.kind == "mean"}
    averages = means(averaged)  # type: ignore[arg-type]  # arrays do as sequences
    found: dict[str, Figure] = {}
    for one in measured:
        figure = estimate(one, rows)
        figure = averages[one.metric.key] if figure is None else figure
        if isinstance(figure, NotMeasured):
            figure = NotMeasured(_reason(columns, one.metric, rows), 0)
        found[one.metric.key] = judged(figure, one.metric, standing)
    return found


def judged(figure: Figure, metric: Metric, standing: AnyStanding) -> Figure:
    """The figure, if the judge's standing allows it, with a word on whose judgement it is."""
    if not metric.judged:
        return figure
    if metric.judged == "standing" and not standing.earned:
        return NotMeasured(standing.reason, figure.n)
    if isinstance(figure, NotMeasured):
        return figure
    # The audit is of adherence; on other scores of the same judge it says nothing.
    audited = metric.judged == "standing" or metric.key.endswith(".adherence")
    word = standing.word if audited else "a judge's word; the audit is of adherence alone"
    return replace(figure, method=f"{figure.method}; {word}")


def _picked(column: Array, rows: NDArray[np.intp] | None) -> Array:
    column = column if rows is None else column[rows]
    kept: Array = column[~np.isnan(column)]
    return kept


def _reason(columns: Columns, metric: Metric, rows: NDArray[np.intp] | None) -> str:
    names: list[str] = []
    for source in metric.sources:
        any_of = [f"conflict.{hazard}" for hazard in columns.ends("conflict.")]
        names += (any_of or ["conflict"]) if source == "conflict.{any}" else [source]
    absent = [name for name in names if not len(_picked(columns.get(name), rows))]
    if said := columns.why(absent or names, rows):
        return said
    return f"no value of {absent[0]} was recorded" if absent else f"there are no {metric.of}"


def _refuse_wrong(columns: Columns, metrics: Sequence[Metric]) -> None:
    """Values outside the range of the figure that they become; a share's are 0 or 1."""
    ranges: dict[str, tuple[float, float, bool]] = {
        "adherence": (0.0, 1.0, False),
        "fuzzy": (0.0, 1.0, False),
    }
    for metric in metrics:
        for source in metric.sources:
            if source.startswith("overlap."):
                ranges[source] = (-1.0, 1.0, False)
            elif not source.startswith("level_at."):
                ranges.setdefault(source, (metric.low, metric.high, metric.kind == "rate"))
    for name, (low, high, whole) in ranges.items():
        values = columns.values.get(name)
        if values is None:
            continue
        wrong = (values < low - SLACK) | (values > high + SLACK)
        if whole:
            wrong = ~np.isnan(values) & (values != 0) & (values != 1)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            valid = "0 or 1" if whole else f"{low:g} to {high:g}"
            raise UsageError(f"record {columns.ids[row][:60]!r}: {name} is {values[row]:g}; valid is {valid}")


def by_key(measured: Sequence[Outcome]) -> Mapping[str, Outcome]:
    """Outcomes by metric key."""
    return {one.metric.key: one for one in measured}

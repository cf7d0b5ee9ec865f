"""Cohen's kappa with an interval: do two who label the same things agree beyond chance?

Cohen, Educational and Psychological Measurement 1960;20:37. Rows that share a source are drawn together.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinsafe.stats import (
    CONFIDENCE,
    FEWEST,
    NO_VARIATION,
    RESAMPLES,
    SEED,
    Estimate,
    Figure,
    NotMeasured,
    rate_of,
)

Counts = NDArray[np.float64]


def kappa(
    first: Sequence[Hashable], second: Sequence[Hashable], clusters: Sequence[Hashable] | None = None
) -> Figure:
    """Agreement of two labellings beyond chance.

    Args:
        first, second: labels of the same rows; any that can be compared.
        clusters: what rows share (a source): whole clusters are resampled; None takes each row by itself.

    Returns:
        In [-1, 1], 1 is full agreement and 0 what chance gives; n counts rows. Not measured where both gave one and the
        same label throughout: there is nothing to agree on. With full agreement no resample differs, so the lower end
        comes from the exact lower bound of agreement at the margins that were seen.
    """
    if len(first) != len(second) or (clusters is not None and len(clusters) != len(first)):
        raise ValueError("labels and clusters must be of one length")
    n = len(first)
    if n == 0:
        return NotMeasured("no row was labelled by both")
    labels = {label: place for place, label in enumerate(dict.fromkeys([*first, *second]))}
    if len(labels) == 1:
        return NotMeasured("both gave one label throughout; kappa does not exist", n)
    units = {
        unit: place for place, unit in enumerate(dict.fromkeys(range(n) if clusters is None else clusters))
    }
    tables = np.zeros((len(units), len(labels), len(labels)))
    for a, b, unit in zip(first, second, range(n) if clusters is None else clusters, strict=True):
        tables[units[unit], labels[a], labels[b]] += 1
    value = float(_kappa(tables.sum(axis=0)))
    by = "row" if clusters is None else f"source ({len(units)})"
    if len(set(first)) == 1 or len(set(second)) == 1:  # chance is all there is, in every resample too
        return Estimate(0.0, None, None, n, f"Cohen's kappa; {NO_VARIATION}")
    if value == 1.0:
        return _full(tables.sum(axis=0), len(units), n, by)
    return _interval(tables, value, n, by)


def _kappa(table: Counts) -> Any:
    """Of tables (..., labels, labels); a resample in which chance alone gives full agreement has none: 0."""
    total = table.sum(axis=(-2, -1))
    agreed = np.trace(table, axis1=-2, axis2=-1) / total
    chance = (table.sum(axis=-1) * table.sum(axis=-2)).sum(axis=-1) / total**2
    left = 1 - chance
    return np.where(left > 1e-12, (agreed - chance) / np.where(left > 1e-12, left, 1), 0.0)


def _full(table: Counts, units: int, n: int, by: str) -> Figure:
    exact = rate_of(units, units)
    if isinstance(exact, NotMeasured):
        return exact
    chance = float((table.sum(axis=0) * table.sum(axis=1)).sum() / table.sum() ** 2)
    low, lower = ((end - chance) / (1 - chance) for end in (exact.low or 0.0, exact.lower or 0.0))
    method = f"Cohen's kappa; full agreement: ends from the exact bound of agreement by {by} at the margins seen, 95 %"
    return Estimate(1.0, low, 1.0, n, method, lower=lower, upper=1.0)


def _interval(tables: Counts, value: float, n: int, by: str) -> Figure:
    from scipy import stats

    units = len(tables)
    if units < FEWEST:
        return Estimate(value, None, None, n, f"Cohen's kappa; no bootstrap interval below {FEWEST} cases")
    method = f"Cohen's kappa; BCa bootstrap by {by}, {RESAMPLES} resamples, seed {SEED}, 95 %"
    flat = tables.reshape(units, -1)
    shape = tables.shape[1:]

    def statistic(rows: NDArray[np.intp], axis: int) -> Counts:
        summed = flat[np.moveaxis(rows, axis, -1)].sum(axis=-2)
        return np.asarray(_kappa(summed.reshape(*summed.shape[:-1], *shape)), dtype=np.float64)

    options: dict[str, Any] = {"method": "BCa", "vectorized": True, "batch": 500}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        both = stats.bootstrap(
            (np.arange(units),), statistic, n_resamples=RESAMPLES, confidence_level=CONFIDENCE,
            rng=np.random.default_rng(SEED), **options,
        )  # fmt: skip
        single = stats.bootstrap(
            (np.arange(units),), statistic, n_resamples=0, bootstrap_result=both,
            confidence_level=2 * CONFIDENCE - 1, **options,
        )  # fmt: skip
    ends = [float(end) for found in (both, single) for end in found.confidence_interval]
    if not all(map(math.isfinite, ends)):
        return Estimate(value, None, None, n, f"{method}; {NO_VARIATION}")
    return Estimate(value, ends[0], ends[1], n, method, lower=ends[2], upper=ends[3])

"""Figures and their uncertainty: the only place where a number gets its interval.

Two shapes carry everything that is measured. An `Estimate` is one figure with its interval, n and
method; `Scores` are the per-case values behind it. What was not measured is `NotMeasured`, a value
of its own: never 0, never null, never part of a mean.

Decision D5: rates are Clopper-Pearson; means and AUROC are BCa bootstrap intervals, resampled by
case; gates use the one-sided 95 % bounds that each estimate carries.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
RESAMPLES = 4999
SEED = 20261130
FEWEST = 10
"""Below this many cases a bootstrap interval is not offered: there are too few distinct resamples to trust it."""
NO_VARIATION = "interval not estimable (no variation)"

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """One figure with its uncertainty.

    Attributes:
        value: the point estimate; rates lie in [0, 1].
        low, high: two-sided 95 % interval; None where it is not estimable (all values equal).
        n: independent units behind the figure (cases, not pairs).
        method: how the interval was made, in words a statistician would use.
        lower, upper: one-sided 95 % bounds, which gates read; None where not estimable.
        k: the count behind a rate, None for anything that is not one.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    method: str
    lower: float | None = None
    upper: float | None = None
    k: int | None = None


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """The figure does not exist, and why. ``n`` says how many units were usable."""

    reason: str
    n: int = 0


Figure: TypeAlias = Estimate | NotMeasured
"""What a measurement yields. Judging code takes ``Mapping[str, Figure]``."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Per-case values of one measurement: case id -> score, or why there is none."""

    name: str
    values: Mapping[str, float | NotMeasured] = field(default_factory=dict)

    def measured(self) -> dict[str, float]:
        """The cases that have a value, in their order."""
        return {i: v for i, v in self.values.items() if not isinstance(v, NotMeasured)}


def rate(outcomes: Sequence[bool]) -> Figure:
    """Share of True among independent outcomes, with its exact interval."""
    return rate_of(sum(bool(o) for o in outcomes), len(outcomes))


def rate_of(k: int, n: int) -> Figure:
    """k of n with the Clopper-Pearson interval (Biometrika 1934;26:404), via the beta distribution."""
    if not 0 <= k <= n:
        raise ValueError(f"a count must lie in 0..n, got k={k}, n={n}")
    if n == 0:
        return NotMeasured("no case was measured")
    alpha = 1 - CONFIDENCE
    return Estimate(
        value=k / n,
        low=_beta_low(k, n, alpha / 2),
        high=_beta_high(k, n, alpha / 2),
        n=n,
        method="Clopper-Pearson exact, 95 %",
        lower=_beta_low(k, n, alpha),
        upper=_beta_high(k, n, alpha),
        k=k,
    )


def wilson(k: int, n: int) -> tuple[float, float]:
    """Wilson score interval (JASA 1927;22:209), two-sided 95 %, shown beside the exact one."""
    from scipy.special import ndtri

    z = float(ndtri(1 - (1 - CONFIDENCE) / 2))
    centre = (k + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(k * (n - k) / n + z * z / 4)
    return max(0.0, centre - half), min(1.0, centre + half)


def mean(values: Sequence[float]) -> Figure:
    """Mean with its BCa bootstrap interval (Efron, JASA 1987;82:171)."""
    data = np.asarray(values, dtype=np.float64)
    if data.size == 0:
        return NotMeasured("no case was measured")
    if float(np.ptp(data)) == 0:  # rounding in the mean of equal values must not pass for variation
        return Estimate(float(data[0]), None, None, int(data.size), f"mean; {NO_VARIATION}")
    return _bootstrap(data.size, lambda rows, axis: data[rows].mean(axis=axis), "mean")


def means(columns: Mapping[str, Sequence[float]]) -> dict[str, Figure]:
    """`mean` of many columns: the same numbers and method, in a fraction of the time.

    Columns of equal length share their resamples, as they do when `mean` is called for each (the seed is fixed).

    Args:
        columns: name -> one value a case; finite.
    """
    data = {name: np.asarray(values, dtype=np.float64) for name, values in columns.items()}
    shared: dict[int, list[str]] = {}
    found: dict[str, Figure] = {}
    for name, values in data.items():
        if values.size < FEWEST or float(np.ptp(values)) == 0:
            found[name] = mean(values)  # type: ignore[arg-type]  # an array does as a sequence
        else:
            shared.setdefault(int(values.size), []).append(name)
    for names in shared.values():
        found.update(zip(names, _means_of([data[name] for name in names]), strict=True))
    return {name: found[name] for name in data}


def _means_of(columns: Sequence[Array]) -> list[Figure]:
    """BCa intervals of the means of columns of one length, each with variation.

    `scipy.stats.bootstrap` gathers the values anew for each column and resample, and takes a jackknife of n x n. Here a
    resample is how often each case was drawn, times the columns; the jackknife of a mean has a closed form.
    """
    n, matrix = len(columns[0]), np.column_stack(columns)
    centre = np.array([column.mean() for column in columns])
    near = 1e-9 * np.abs(matrix).max(axis=0)
    rng = np.random.default_rng(SEED)
    replicates = np.empty((RESAMPLES, len(columns)))
    step = max(1, SLAB // (2 * n))
    for start in range(0, RESAMPLES, step):
        rows = rng.integers(0, n, (min(step, RESAMPLES - start), n))
        cells = (rows + n * np.arange(len(rows))[:, None]).ravel()
        drawn = np.bincount(cells, minlength=n * len(rows)).reshape(-1, n)
        part = replicates[start : start + len(rows)]
        part[:] = drawn.astype(np.float64) @ matrix / n
        # Whether a replicate equals the mean decides the bias correction, and hangs on the last bit: those few are
        # summed in the order in which `mean` sums them.
        for number in np.flatnonzero((np.abs(part - centre) <= near).any(axis=0)).tolist():
            close = np.abs(part[:, number] - centre[number]) <= near[number]
            part[close, number] = columns[number][rows[close]].mean(axis=-1)
    return [_bca(column, replicates[:, j]) for j, column in enumerate(columns)]


def _bca(values: Array, replicates: Array) -> Figure:
    """The estimate of a mean from its replicates (Efron and Tibshirani 1993, equations 14.9, 14.10 and 14.15)."""
    from scipy.special import ndtr, ndtri

    n, value = len(values), float(values.mean())
    method = f"BCa bootstrap by case, {RESAMPLES} resamples, seed {SEED}, 95 %"
    with np.errstate(all="ignore"):
        below = ((replicates < value).sum() + (replicates <= value).sum()) / (2 * len(replicates))
        bias = ndtri(below)
        influence = values - value
        skew = (influence**3).sum() / n**3 / ((influence**2).sum() / n**2) ** 1.5 / 6
        places = []
        for alpha in ((1 - CONFIDENCE) / 2, (1 - (2 * CONFIDENCE - 1)) / 2):
            for z in (ndtri(alpha), -ndtri(alpha)):
                places.append(float(ndtr(bias + (bias + z) / (1 - skew * (bias + z)))))
    if not all(map(math.isfinite, places)):
        return Estimate(value, None, None, n, f"{method}; {NO_VARIATION}")
    ends = [float(end) for end in np.quantile(replicates, places)]
    return Estimate(value, ends[0], ends[1], n, method, lower=ends[2], upper=ends[3])


def described(values: Sequence[float], name: str, of: Callable[[Array], float], fewest: int = 1) -> Figure:
    """A descriptive figure without an interval: a standard deviation, an extreme, an effect size.

    Args:
        values: one per case.
        name: what is computed, in words a statistician would use; it becomes the method.
        of: the computation; NaN and infinity mean that it does not exist.
        fewest: cases below which it does not exist (2 for a standard deviation).
    """
    data = np.asarray(values, dtype=np.float64)
    if data.size < fewest:
        return NotMeasured(f"{name} needs {fewest} case(s)", int(data.size))
    value = float(of(data))
    if not math.isfinite(value):
        return NotMeasured(f"{name} does not exist without variation", int(data.size))
    return Estimate(value, None, None, int(data.size), f"{name}; descriptive, no interval")


def auroc(positives: Sequence[Sequence[float]], negatives: Sequence[Sequence[float]]) -> Figure:
    """P(S+ > S-) + 1/2 P(S+ = S-) over all cross pairs, resampled by case (decision D1).

    Args:
        positives: per case, the scores that ought to be high; shape (cases, >= 1).
        negatives: per case, the scores that ought to be low; same number of cases.

    Returns:
        An estimate in [0, 1]; 0.5 is chance, 1 is perfect separation. n counts cases.
    """
    if len(positives) != len(negatives):
        raise ValueError(f"{len(positives)} cases of positives, {len(negatives)} of negatives")
    n = len(positives)
    if n == 0:
        return NotMeasured("no case was measured")
    ranks = _Ranks(positives, negatives)

    def statistic(rows: NDArray[np.intp], axis: int) -> Array:
        # How often each case was drawn, instead of gathering its scores for each resample. Counts stay whole
        # numbers until the last division, so that equal data give exactly equal replicates.
        drawn = np.moveaxis(rows, axis, -1)
        samples = drawn.reshape(-1, drawn.shape[-1])
        won = np.concatenate([ranks.wins(part, n) for part in _slabs(samples, n)])
        share: Array = won / (ranks.pairs * drawn.shape[-1] ** 2)
        return share.reshape(drawn.shape[:-1])

    return _bootstrap(n, statistic, "AUROC")


SLAB = 2_000_000  # numbers held at once for the resamples of an AUROC


def _slabs(samples: NDArray[np.intp], n: int) -> Iterator[NDArray[np.intp]]:
    step = max(1, SLAB // (2 * max(n, samples.shape[1])))
    return (samples[start : start + step] for start in range(0, len(samples), step))


class _Ranks:
    """Half wins (2 a win, 1 a tie) of all positives over all negatives, for any number of times each case is drawn.

    Sorted once: a positive wins over every negative before its place, so that a resample costs two cumulative sums
    and not a matrix of cases by cases. `pairs` is the most half wins that two cases can have.
    """

    def __init__(self, positives: Sequence[Sequence[float]], negatives: Sequence[Sequence[float]]) -> None:
        pos, neg = np.asarray(positives, np.float64), np.asarray(negatives, np.float64)
        order = np.argsort(neg, axis=None, kind="stable")
        ranked = neg.ravel()[order]
        self.pairs = 2 * pos.shape[1] * neg.shape[1]
        self._of_negative = order // neg.shape[1]  # the case of each negative, rising
        # (n, scores): how many negatives each positive beats, and beats or ties with
        self._below = np.searchsorted(ranked, pos, side="left")
        self._to = np.searchsorted(ranked, pos, side="right")

    def wins(self, samples: NDArray[np.intp], n: int) -> Array:
        """Per resample (row of case numbers), its half wins."""
        offsets = n * np.arange(len(samples))[:, None]
        times = np.bincount((samples + offsets).ravel(), minlength=n * len(samples)).reshape(-1, n)
        upto = np.zeros((len(samples), len(self._of_negative) + 1))
        np.cumsum(times[:, self._of_negative], axis=1, out=upto[:, 1:])
        scores = (upto[:, self._below] + upto[:, self._to]).sum(axis=2)
        return np.asarray((times * scores).sum(axis=1), dtype=np.float64)


def _bootstrap(n: int, statistic: Callable[..., Array], name: str) -> Figure:
    """BCa interval of a statistic over case indices. Seeded: equal scores give equal intervals."""
    from scipy import stats

    cases = np.arange(n)
    value = float(statistic(cases, axis=-1))
    if n < FEWEST:
        return Estimate(value, None, None, n, f"{name}; no bootstrap interval below {FEWEST} cases")
    method = f"BCa bootstrap by case, {RESAMPLES} resamples, seed {SEED}, 95 %"
    options: dict[str, Any] = {
        "method": "BCa",
        "vectorized": True,
        "batch": 1250,
        "rng": np.random.default_rng(SEED),
    }
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        both = stats.bootstrap(
            (cases,), statistic, n_resamples=RESAMPLES, confidence_level=CONFIDENCE, **options
        )
        # Ends of the two-sided 90 % interval are the one-sided 95 % bounds.
        single = stats.bootstrap(
            (cases,),
            statistic,
            n_resamples=0,
            bootstrap_result=both,
            confidence_level=2 * CONFIDENCE - 1,
            **options,
        )
    ends = [float(e) for r in (both, single) for e in r.confidence_interval]
    if not all(map(math.isfinite, ends)):
        return Estimate(value, None, None, n, f"{method}; {NO_VARIATION}")
    return Estimate(value, ends[0], ends[1], n, method, lower=ends[2], upper=ends[3])


def _beta_low(k: int, n: int, alpha: float) -> float:
    from scipy.special import betaincinv

    return 0.0 if k == 0 else float(betaincinv(k, n - k + 1, alpha))


def _beta_high(k: int, n: int, alpha: float) -> float:
    from scipy.special import betaincinv

    return 1.0 if k == n else float(betaincinv(k + 1, n - k, 1 - alpha))


def figure_to_json(figure: Figure) -> dict[str, Any]:
    """A figure as plain JSON values; floats keep full precision, 'not measured' keeps its reason."""
    if isinstance(figure, NotMeasured):
        return {"not_measured": figure.reason, "n": figure.n}
    parts: dict[str, Any] = {"value": figure.value, "n": figure.n, "method": figure.method}
    if figure.k is not None:
        parts["k"] = figure.k
    for name in ("low", "high", "lower", "upper"):
        end = getattr(figure, name)
        parts[name] = "not estimable" if end is None else end
    return parts


def figure_from_json(parts: Mapping[str, Any]) -> Figure:
    """The inverse of `figure_to_json`."""
    if "not_measured" in parts:
        return NotMeasured(str(parts["not_measured"]), int(parts["n"]))
    ends = {
        name: None if parts[name] == "not estimable" else float(parts[name])
        for name in ("low", "high", "lower", "upper")
    }
    k = parts.get("k")
    return Estimate(
        float(parts["value"]),
        n=int(parts["n"]),
        method=str(parts["method"]),
        k=None if k is None else int(k),
        **ends,
    )

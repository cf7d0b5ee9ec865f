"""Comparing systems on the same cases: paired tests, and the correction for making several of them.

Decision D5: Newcombe's method 10 for the difference of two paired proportions, exact McNemar, Holm for a family of
comparisons, Friedman with Kendall's W across three or more systems.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clinsafe.stats import NotMeasured, wilson


@dataclass(frozen=True, slots=True)
class Difference:
    """Two systems on the same cases: share of True in B minus share in A.

    Attributes:
        value: in [-1, 1]; above 0, B has more.
        low, high: two-sided 95 % interval, Newcombe's method 10 (Statistics in Medicine 1998;17:2635).
        n: cases that both systems have.
        only_a, only_b: cases True in one system alone; the rest of n agrees.
        p: exact two-sided McNemar test; 1 where no case is discordant.
    """

    value: float
    low: float
    high: float
    n: int
    only_a: int
    only_b: int
    p: float

    @property
    def more(self) -> bool:
        """B has more than A, beyond the interval."""
        return self.low > 0


@dataclass(frozen=True, slots=True)
class Agreement:
    """Friedman's test with Kendall's coefficient of concordance.

    Attributes:
        chi2: tie-corrected statistic, k - 1 degrees of freedom; for 0/1 outcomes it is Cochran's Q.
        p: chi-squared approximation.
        w: Kendall's W in [0, 1]: 0 no common ordering, 1 the same ordering in every case.
        n, k: cases and systems.
    """

    chi2: float
    p: float
    w: float
    n: int
    k: int


def difference(a: Sequence[bool], b: Sequence[bool]) -> Difference | NotMeasured:
    """B minus A, paired by position."""
    if len(a) != len(b):
        raise ValueError(f"paired outcomes must be of one length, got {len(a)} and {len(b)}")
    n = len(a)
    if n == 0:
        return NotMeasured("no case was measured by both")
    both = sum(bool(x) and bool(y) for x, y in zip(a, b, strict=True))
    only_a, only_b = sum(map(bool, a)) - both, sum(map(bool, b)) - both
    low, high = newcombe10(both, only_b, only_a, n - both - only_a - only_b)
    return Difference((only_b - only_a) / n, low, high, n, only_a, only_b, mcnemar(only_a, only_b))


def newcombe10(e: int, f: int, g: int, h: int) -> tuple[float, float]:
    """95 % interval of (f - g) / n for the paired table e (both), f (first only), g (second only), h (neither).

    Method 10 of Newcombe 1998: Wilson intervals of both proportions, squared and added with the correlation phi, whose
    numerator is reduced by n/2 where it is positive.
    """
    n = e + f + g + h
    p1, p2 = (e + f) / n, (e + g) / n
    (l1, u1), (l2, u2) = wilson(e + f, n), wilson(e + g, n)
    margins = (e + f) * (g + h) * (e + g) * (f + h)
    numerator = float(e * h - f * g)
    if numerator > 0:
        numerator = max(numerator - n / 2, 0)
    phi = numerator / math.sqrt(margins) if margins else 0.0
    below = (p1 - l1) ** 2 - 2 * phi * (p1 - l1) * (u2 - p2) + (u2 - p2) ** 2
    above = (p2 - l2) ** 2 - 2 * phi * (p2 - l2) * (u1 - p1) + (u1 - p1) ** 2
    value = p1 - p2
    return max(-1.0, value - math.sqrt(max(below, 0.0))), min(1.0, value + math.sqrt(max(above, 0.0)))


def mcnemar(only_a: int, only_b: int) -> float:
    """Exact two-sided p of discordant counts (binomial, 0.5)."""
    from scipy.stats import binomtest

    discordant = only_a + only_b
    return float(binomtest(only_a, discordant).pvalue) if discordant else 1.0


def holm(p: Sequence[float]) -> list[float]:
    """Holm's adjusted p values, in the order given (Scandinavian Journal of Statistics 1979;6:65)."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted, worst = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        worst = max(worst, min(1.0, (len(p) - rank) * p[i]))
        adjusted[i] = worst
    return adjusted


def friedman(systems: Sequence[Sequence[float]]) -> Agreement | NotMeasured:
    """Do systems differ in rank over the same cases?

    Args:
        systems: shape (k systems, n cases), k >= 3; values that are comparable within a case.
    """
    from scipy.stats import friedmanchisquare

    data = np.asarray(systems, dtype=np.float64)
    if data.ndim != 2 or data.shape[0] < 3:
        return NotMeasured("Friedman's test needs three systems or more")
    k, n = data.shape
    if n < 2 or bool((np.ptp(data, axis=0) == 0).all()):
        return NotMeasured("the systems do not differ in any case", n)
    found = friedmanchisquare(*data)
    chi2 = float(found.statistic)
    return Agreement(chi2, float(found.pvalue), chi2 / (n * (k - 1)), n, k)


def signed_rank(a: Sequence[float], b: Sequence[float]) -> float:
    """Two-sided Wilcoxon signed-rank p of B against A (Pratt's zeros, normal approximation); 1 without a difference."""
    from scipy.stats import wilcoxon

    gaps = np.asarray(b, dtype=np.float64) - np.asarray(a, dtype=np.float64)
    return float(wilcoxon(gaps, zero_method="pratt", method="approx").pvalue) if gaps.any() else 1.0

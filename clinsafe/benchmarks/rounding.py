"""What a printed number may stand for, and which formula may stand behind a printed interval or SD.

Ranges are never too narrow: where a bound is not exact, it is wider, so that a fault is never of our own making.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product
from statistics import NormalDist
from typing import NamedTuple, TypeAlias

from clinsafe.benchmarks.claims import Cell, Method, Quantity

SLACK = 1e-12  # of floating-point results, so that rounding in here is never a fault of the paper's
CORNERS = 8  # up to so many rounded means, every combination of their ends is tried
SMALLEST = Fraction(1, 10**12)  # an SD that rounds to nothing is still above it


class Range(NamedTuple):
    """Both ends belong to it: a tie may have been rounded either way."""

    low: Fraction
    high: Fraction

    def meets(self, other: Range) -> bool:
        """Whether one value lies in both."""
        return self.low <= other.high and other.low <= self.high

    def over(self, number: Decimal) -> Range:
        """Divided by a positive number."""
        return Range(self.low / Fraction(number), self.high / Fraction(number))

    def widened(self) -> Range:
        """With room for floating-point error, which square roots bring in."""
        return Range(self.low - Fraction(SLACK), self.high + Fraction(SLACK))


def span(number: Decimal, within: Decimal | None = None) -> Range:
    """All values within half a unit of the last printed decimal, or within the given distance."""
    half = half_unit(number) if within is None else Fraction(within)
    return Range(Fraction(number) - half, Fraction(number) + half)


def half_unit(number: Decimal) -> Fraction:
    """Half a unit of the last printed decimal."""
    return Fraction(10) ** int(number.as_tuple().exponent) / 2


def reach(quantity: Quantity, within: Decimal | None = None) -> Range:
    """The same as `span`, of a quantity; a cell counts as its mean."""
    if isinstance(quantity, Decimal):
        return span(quantity, within)
    if isinstance(quantity, Cell):
        return span(quantity.mean, within)
    tops = [end - Fraction(quantity.centre) for end in span(quantity.mean, within)]
    sds = [max(end, SMALLEST) for end in span(quantity.sd, within)]
    ends = [top / sd for top in tops for sd in sds]
    return Range(min(ends), max(ends))


def whole_numbers(share: Range, n: int) -> range:
    """Every k in 0..n with k / n in the range."""
    return range(max(0, math.ceil(share.low * n)), min(n, math.floor(share.high * n)) + 1)


# ── intervals of a rate ────────────────────────────────────────────────────────────────────────

Ends: TypeAlias = Callable[[float, int, float], tuple[float, float]]
"""(rate, n, z) -> (low, high). The rate need not be a whole number of n: it may have been rounded before use."""


def quantile(level: float) -> float:
    """z of a two-sided level: 1.96 for 0.95."""
    return NormalDist().inv_cdf((1 + level) / 2)


def _wald(p: float, n: int, z: float) -> tuple[float, float]:
    half = z * math.sqrt(max(0.0, p * (1 - p)) / n)
    return p - half, p + half


def _wald_clipped(p: float, n: int, z: float) -> tuple[float, float]:
    low, high = _wald(p, n, z)
    return max(0.0, low), min(1.0, high)


def _wilson(p: float, n: int, z: float) -> tuple[float, float]:
    centre, scale = p + z * z / (2 * n), 1 + z * z / n
    half = z * math.sqrt(max(0.0, p * (1 - p)) / n + (z / (2 * n)) ** 2)
    return (centre - half) / scale, (centre + half) / scale


def _clopper_pearson(p: float, n: int, z: float) -> tuple[float, float]:
    from scipy.special import betaincinv

    tail, k = NormalDist().cdf(-z), p * n
    low = float(betaincinv(k, n - k + 1, tail)) if k > SLACK else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - tail)) if n - k > SLACK else 1.0
    return low, high


ENDS: Mapping[Method, Ends] = {
    "Wald": _wald, "Wald clipped": _wald_clipped, "Clopper-Pearson": _clopper_pearson, "Wilson": _wilson,
}  # fmt: skip


def reproduces(
    method: Method, rates: tuple[float, float], n: int, z: float, printed: Sequence[Range]
) -> bool:
    """Whether some one rate between the two given has both its ends in the printed ranges (low, high)."""
    turn = (1 - math.sqrt(n / (n + z * z))) / 2  # below it the lower Wald end falls as the rate grows
    cuts = [rates[0], *(t for t in (turn, 1 - turn) if rates[0] < t < rates[1]), rates[1]]
    bounds = [
        (end, sign, sign * float(target[side]) - SLACK)
        for end, target in enumerate(printed)
        for side, sign in ((0, 1), (1, -1))
    ]

    def tests(p: float) -> list[bool]:
        ends = ENDS[method](p, n, z)
        return [sign * ends[end] >= bound for end, sign, bound in bounds]

    return any(_somewhere(tests, low, high) for low, high in pairwise(cuts))


def _somewhere(tests: Callable[[float], list[bool]], low: float, high: float) -> bool:
    """Whether all tests hold at one point. Each turns at most once, so look where the last one has turned true."""
    first, last = tests(low), tests(high)
    if not all(x or y for x, y in zip(first, last, strict=True)):
        return False
    if all(first):
        return True
    for _ in range(60):
        middle = (low + high) / 2
        turned = all(x or y for x, y in zip(first, tests(middle), strict=True))
        low, high = (low, middle) if turned else (middle, high)
    return all(tests(high))


# ── standard deviations ────────────────────────────────────────────────────────────────────────


def coarsest(numbers: Sequence[Decimal], within: Decimal | None) -> Fraction:
    """How far the values of these numbers may lie from them."""
    return max(map(half_unit, numbers)) if within is None else Fraction(within)


def sd_of_means(means: Sequence[Decimal], weights: Sequence[int], half: Fraction, ddof: int = 0) -> Range:
    """The SD of means that were rounded by up to `half`; exact at the top for a few of them."""
    total, scale = sum(weights), math.sqrt(len(means) / (len(means) - ddof))

    def sd(values: Sequence[float]) -> float:
        centre = math.fsum(w * v for w, v in zip(weights, values, strict=True)) / total
        return scale * math.sqrt(
            math.fsum(w * (v - centre) ** 2 for w, v in zip(weights, values, strict=True)) / total
        )

    middle, most = sd([float(m) for m in means]), scale * float(half)
    high = middle + most  # the SD of a sum is at most the sum of the SDs
    if len(means) <= CORNERS:  # it is convex, hence largest at a corner
        high = max(map(sd, product(*((float(m - half), float(m + half)) for m in map(Fraction, means)))))
    return Range(Fraction(max(0.0, middle - most)), Fraction(high)).widened()


def spreads(columns: Sequence[tuple[int, Cell]], within: Decimal | None) -> dict[str, Range]:
    """Definition -> the SD of scores that stand in columns of n cases, each with its mean and SD."""
    weights = [n for n, _ in columns]
    sds = [Range(*(max(Fraction(0), end) for end in span(cell.sd, within))) for _, cell in columns]
    means = [cell.mean for _, cell in columns]
    between = sd_of_means(means, weights, coarsest(means, within))
    pooled = [
        math.sqrt(sum(n * sd[end] ** 2 for n, sd in zip(weights, sds, strict=True)) / sum(weights))
        for end in (0, 1)
    ]
    whole = [math.hypot(inner, outer) for inner, outer in zip(pooled, map(float, between), strict=True)]
    average = [sum((sd[end] for sd in sds), Fraction(0)) / len(sds) for end in (0, 1)]
    return {
        "pooled within columns": Range(*map(Fraction, pooled)).widened(),
        "all scores together": Range(*map(Fraction, whole)).widened(),
        "average of the SDs": Range(average[0], average[1]).widened(),
    }

"""Interval formulas against an independent library, and the search for the one behind a printed interval."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from clinsafe.benchmarks.arithmetic import Check, check
from clinsafe.benchmarks.claims import Interval
from clinsafe.benchmarks.rounding import ENDS, Range, quantile, reproduces, sd_of_means, span
from clinsafe.stats import rate_of, wilson

OK, WRONG, UNKNOWN = "consistent", "cannot be right", "not reproducible"
Z = quantile(0.95)

shares = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
methods = st.sampled_from(sorted(ENDS))


def interval(value, n, low, high, **more) -> Interval:
    value, low, high = (Decimal(str(x)) for x in (value, low, high))
    return Interval(where="here", about="95 %", value=value, n=n, low=low, high=high, **more)


def judge(claim) -> Check:
    return check([claim])[0]


def printed(value, places: int) -> Decimal:
    return Decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


def percent(k, n, places) -> Decimal:
    return printed(Decimal(100 * k) / n, places)


def test_1_96_is_1_96():
    assert quantile(0.95) == pytest.approx(1.959964, abs=1e-6)


@given(shares)
@settings(deadline=None)
def test_the_formulas_agree_with_an_independent_library_and_with_our_own_statistics(share):
    k, n = share
    for method, name in (("Clopper-Pearson", "exact"), ("Wilson", "wilson")):
        theirs = binomtest(k, n).proportion_ci(0.95, name)
        assert ENDS[method](k / n, n, Z) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    ours = rate_of(k, n)
    assert ENDS["Clopper-Pearson"](k / n, n, Z) == pytest.approx((ours.low, ours.high), abs=1e-9)
    assert ENDS["Clopper-Pearson"](k / n, n, quantile(0.90)) == pytest.approx(
        (ours.lower, ours.upper), abs=1e-9
    )
    assert ENDS["Wilson"](k / n, n, Z) == pytest.approx(wilson(k, n), abs=1e-9)


@given(methods, shares, st.integers(0, 2), st.sampled_from([0.90, 0.95, 0.99]))
@settings(deadline=None)
def test_a_true_interval_is_always_found_to_be_its_own_method(method, share, places, level):
    k, n = share
    low, high = (printed(100 * e, places) for e in ENDS[method](k / n, n, quantile(level)))
    for count in (None, k):
        claim = interval(percent(k, n, places), n, low, high, k=count, method=method, level=level)
        without_width = low == high and low in (0, 100) and method.startswith("Wald")
        assert judge(claim).verdict == (WRONG if without_width else OK)


@given(shares, st.sampled_from([-3, -2, 2, 3]), st.sampled_from(["low", "high"]))
def test_an_interval_that_is_off_by_more_than_rounding_is_not_its_method(share, shift, end):
    k, n = share
    low, high = (printed(100 * e, 1) for e in ENDS["Clopper-Pearson"](k / n, n, Z))
    moved = {"low": low, "high": high}
    moved[end] += Decimal(shift).scaleb(-1)
    claim = interval(percent(k, n, 1), n, **moved, k=k, method="Clopper-Pearson")
    assert judge(claim).verdict == WRONG


@given(
    methods, st.integers(2, 80), st.floats(0, 1), st.floats(0, 0.2), st.floats(0, 1), st.floats(-0.02, 0.02)
)
def test_the_search_finds_what_a_fine_grid_finds(method, n, start, width, where, moved):
    """A point of the grid that fits must be found; what is found must nearly fit somewhere on the grid."""
    low, high = start, min(1.0, start + width)
    grid = np.linspace(low, high, 401)
    centre = ENDS[method](low + where * (high - low), n, Z)

    def box(reach: float) -> list[Range]:
        places = zip(centre, (0.0, moved), strict=True)
        return [span(Decimal(repr(end + shift)), Decimal(repr(reach))) for end, shift in places]

    def on_grid(targets: list[Range]) -> bool:
        ends = [ENDS[method](float(p), n, Z) for p in grid]
        return any(all(t.low <= x <= t.high for t, x in zip(targets, e, strict=True)) for e in ends)

    found = reproduces(method, (low, high), n, Z, box(0.005))
    if on_grid(box(0.005)):
        assert found
    steepest = (
        0.05  # how far an end moves between two points of the grid, at most: the Wald ends near 0 and 1
    )
    if found:
        assert on_grid(box(0.005 + steepest))


def test_both_ends_must_come_from_one_rate():
    """Each end alone lies within the rounding of 57.1 %, but no one rate has both: the width is too small."""
    assert judge(interval("57.1", 52, "43.7", "70.6")).verdict == OK
    assert judge(interval("57.1", 52, "43.6", "70.5")).verdict == OK
    assert judge(interval("57.1", 52, "43.7", "70.5")).verdict == UNKNOWN


def test_another_number_of_cases_is_named_where_it_reproduces_the_interval():
    assert "45 cases would" in judge(interval("93.3", 54, "86.0", "100.0")).why
    assert judge(interval("93.3", 45, "86.0", "100.0")).verdict == OK


def test_unclipped_ends_outside_the_scale_are_the_normal_approximation():
    low, high = ENDS["Wald"](0.02, 50, Z)
    claim = interval("2.0", 50, printed(100 * low, 1), printed(100 * high, 1))
    assert claim.low < 0
    assert judge(claim).verdict == OK


def test_an_end_that_falls_before_it_rises_is_followed_both_ways():
    """Near 0 the lower Wald end falls to -0.0189 and rises again; both ends of 0 to 0.05 lie above it."""
    claim = interval("0.0", 50, "-0.019", "0.055", whole=Decimal(1))
    assert judge(claim).verdict == OK


def test_1_96_by_hand_is_allowed_for_printed_figures_and_not_for_unrounded_ones():
    """36 of 48 with z = 1.959964 is [62.8, 87.2]."""
    claim = interval("75.0", 48, "62.7", "87.3", k=36)
    assert judge(claim).verdict == OK
    assert judge(claim.model_copy(update={"within": Decimal("0.05")})).verdict == UNKNOWN


@given(st.integers(1, 6), st.integers(0, 1))
def test_the_sd_of_rounded_means_reaches_what_the_true_means_can_have(half_of_them, ddof):
    """Means of 0.4995 and 0.5005 are all printed as 0.500: their SD is not 0."""
    n = 2 * half_of_them
    found = sd_of_means([Decimal("0.500")] * n, [1] * n, Fraction(1, 2000), ddof=ddof)
    true = 0.0005 * (n / (n - ddof)) ** 0.5
    assert found.low <= 0
    assert float(found.high) == pytest.approx(true, abs=1e-9)


@pytest.mark.parametrize("change", [{"value": "101"}, {"k": 51}, {"n": 0}, {"low": "nan"}])
def test_an_interval_of_something_that_is_no_rate_is_refused(change):
    fields = {"value": "72.0", "n": 50, "low": "59.6", "high": "84.4", "k": 36} | change
    with pytest.raises(ValueError, match="Interval"):
        interval(**fields)

"""Paired comparisons against published worked examples and an independent library."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.paired import (
    Agreement,
    Difference,
    difference,
    friedman,
    holm,
    mcnemar,
    newcombe10,
    signed_rank,
)
from clinsafe.stats import NotMeasured

outcomes = st.integers(1, 60).flatmap(
    lambda n: st.tuples(*[st.lists(st.booleans(), min_size=n, max_size=n)] * 2)
)


def test_newcombe_10_gives_the_interval_of_its_paper():
    """The worked example of Newcombe 1998: 36 both, 12 and 2 discordant, none neither."""
    assert newcombe10(36, 12, 2, 0) == pytest.approx((0.0569, 0.3404), abs=1e-4)


@pytest.mark.parametrize("shares", [(0.5, 0.2, 0.1, 0.2), (0.8, 0.1, 0.1, 0.0), (0.1, 0.3, 0.3, 0.3)])
def test_newcombe_10_covers_the_truth_about_as_often_as_it_says(shares):
    tables = np.random.default_rng(7).multinomial(52, shares, size=1500)
    truth = shares[1] - shares[2]
    ends = [newcombe10(*map(int, table)) for table in tables]
    assert 0.93 <= np.mean([low <= truth <= high for low, high in ends]) <= 0.985


@given(outcomes)
def test_the_interval_holds_the_difference_and_turns_with_the_sides(pair):
    a, b = pair
    forward, back = difference(a, b), difference(b, a)
    assert isinstance(forward, Difference)
    assert isinstance(back, Difference)
    assert -1 <= forward.low <= forward.value <= forward.high <= 1
    assert (forward.low, forward.high) == pytest.approx((-back.high, -back.low))
    assert forward.p == pytest.approx(back.p)
    assert not (forward.more and back.more)


def test_a_regression_needs_more_than_its_interval():
    assert not difference([False] * 50, [True] + [False] * 49).more
    assert difference([False] * 50, [True] * 10 + [False] * 40).more
    assert not difference([True] * 10 + [False] * 40, [False] * 50).more


def test_nothing_in_common_is_not_measured():
    assert isinstance(difference([], []), NotMeasured)
    with pytest.raises(ValueError, match="one length"):
        difference([True], [])


@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_agrees_with_statsmodels(b, c):
    from statsmodels.stats.contingency_tables import mcnemar as oracle

    if b + c:
        assert mcnemar(b, c) == pytest.approx(oracle([[0, b], [c, 0]], exact=True).pvalue)
    else:
        assert mcnemar(b, c) == 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_agrees_with_statsmodels(p):
    from statsmodels.stats.multitest import multipletests

    with patch("gc.collect"):  # the oracle calls it each time: seconds, where many tests were run before
        expected = list(multipletests(p, method="holm")[1])
    assert holm(p) == pytest.approx(expected)


def test_friedman_on_the_paper_s_six_category_means():
    """research: chi2 = 11.8, p = 0.008 from Table 1 (MiniLM, BGE, Nomic, GTE)."""
    table = [
        [0.889, 0.987, 0.965, 0.882, 0.819, 0.813],
        [0.921, 0.993, 0.956, 0.945, 0.893, 0.885],
        [0.931, 0.988, 0.962, 0.929, 0.879, 0.858],
        [0.941, 0.992, 0.972, 0.954, 0.922, 0.926],
    ]
    found = friedman(table)
    assert isinstance(found, Agreement)
    assert found.chi2 == pytest.approx(11.8, abs=0.05)
    assert found.p == pytest.approx(0.008, abs=5e-4)
    assert found.w == pytest.approx(11.8 / 18, abs=0.01)


@given(st.lists(st.lists(st.booleans(), min_size=12, max_size=12), min_size=3, max_size=4))
def test_friedman_on_outcomes_is_cochran_s_q(rows):
    from statsmodels.stats.contingency_tables import cochrans_q

    found = friedman([[float(x) for x in row] for row in rows])
    if isinstance(found, NotMeasured):
        assert all(len(set(column)) == 1 for column in zip(*rows, strict=True))
        return
    assert found.chi2 == pytest.approx(cochrans_q(np.asarray(rows, dtype=int).T).statistic)
    assert 0 <= found.w <= 1 + 1e-12


def test_two_systems_or_equal_ones_have_no_friedman_test():
    assert isinstance(friedman([[1, 2], [2, 3]]), NotMeasured)
    assert isinstance(friedman([[1, 2]] * 3), NotMeasured)


def test_signed_rank_sees_a_shift_and_not_noise():
    rng = np.random.default_rng(1)
    base = rng.normal(size=60)
    assert signed_rank(base, base) == 1
    assert signed_rank(base, base + 0.3) < 1e-6
    assert signed_rank(base, base + rng.normal(size=60)) > 0.01

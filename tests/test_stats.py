"""Intervals: exact ones against scipy, bootstrap ones against known coverage and invariances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats as reference

from clinsafe.stats import (
    Estimate,
    NotMeasured,
    auroc,
    figure_from_json,
    figure_to_json,
    mean,
    means,
    rate,
    rate_of,
    wilson,
)  # fmt: skip
from tests.strategies import counts


@given(counts)
def test_rates_have_the_clopper_pearson_interval_of_scipy(pair):
    k, n = pair
    figure = rate_of(k, n)
    if n == 0:
        assert isinstance(figure, NotMeasured)
        return
    exact = reference.binomtest(k, n).proportion_ci(0.95, method="exact")
    one_sided = reference.binomtest(k, n, alternative="less").proportion_ci(0.95, method="exact")
    assert figure.value == k / n
    assert figure.low == pytest.approx(exact.low, abs=1e-9)
    assert figure.high == pytest.approx(exact.high, abs=1e-9)
    assert figure.upper == pytest.approx(one_sided.high, abs=1e-9)
    assert figure.low <= figure.lower <= figure.value <= figure.upper <= figure.high
    assert wilson(k, n) == pytest.approx(
        tuple(reference.binomtest(k, n).proportion_ci(0.95, method="wilson"))
    )


def test_zero_of_n_is_the_rule_of_three_made_exact():
    figure = rate([False] * 34)
    assert figure.upper == pytest.approx(1 - 0.05 ** (1 / 34))
    assert rate_of(34, 34).lower == pytest.approx(0.05 ** (1 / 34))  # the 0.92 of decision D13


@pytest.mark.parametrize(("k", "n"), [(-1, 3), (4, 3)])
def test_an_impossible_count_is_refused(k, n):
    with pytest.raises(ValueError, match=r"0\.\.n"):
        rate_of(k, n)


def test_nothing_measured_is_a_value_of_its_own():
    for figure in (rate([]), mean([]), auroc([], [])):
        assert isinstance(figure, NotMeasured)
        assert figure_from_json(figure_to_json(figure)) == figure


def test_mean_agrees_with_scipys_bca():
    data = np.random.default_rng(5).gamma(2, 1, 60)
    ours = mean(list(data))
    theirs = reference.bootstrap(
        (data,), np.mean, n_resamples=9999, rng=np.random.default_rng(1)
    ).confidence_interval
    assert ours.value == pytest.approx(data.mean())
    assert ours.low == pytest.approx(theirs.low, abs=0.03)
    assert ours.high == pytest.approx(theirs.high, abs=0.03)
    assert ours.low < ours.lower < ours.value < ours.upper < ours.high


def test_mean_interval_covers_the_truth_about_95_percent_of_the_time():
    rng = np.random.default_rng(11)
    hits = sum(
        figure.low <= 0.5 <= figure.high for figure in (mean(list(rng.beta(2, 2, 40))) for _ in range(200))
    )
    assert 0.90 <= hits / 200 <= 0.99


def test_auroc_is_the_mann_whitney_statistic():
    rng = np.random.default_rng(3)
    positive, negative = rng.normal(1, 1, (30, 2)), rng.normal(0, 1, (30, 2))
    u = reference.mannwhitneyu(positive.ravel(), negative.ravel()).statistic
    assert auroc(positive.tolist(), negative.tolist()).value == pytest.approx(u / (60 * 60))


def test_auroc_counts_ties_as_one_half_and_says_when_there_is_no_interval():
    assert auroc([[1.0, 1.0]] * 4, [[1.0, 1.0]] * 4).value == 0.5
    perfect = auroc([[1.0]] * 12, [[0.0]] * 12)
    assert perfect.value == 1.0
    assert perfect.low is None
    assert "not estimable" in perfect.method
    few = auroc([[1.0], [0.2], [0.4]], [[0.0], [0.3], [0.5]])
    assert few.low is None
    assert "below 10 cases" in few.method


def test_auroc_resamples_whole_cases_not_single_scores():
    """Ten copies of a score inside a case are still one case: the interval may not shrink."""
    rng = np.random.default_rng(8)
    positive, negative = rng.normal(0.7, 1, (25, 1)), rng.normal(0, 1, (25, 1))
    single = auroc(positive.tolist(), negative.tolist())
    tenfold = auroc(np.repeat(positive, 10, 1).tolist(), np.repeat(negative, 10, 1).tolist())
    assert tenfold.high - tenfold.low == pytest.approx(single.high - single.low, rel=1e-6)


def test_equal_scores_give_equal_intervals():
    data = [0.1, 0.4, 0.9, 0.2, 0.7]
    assert mean(data) == mean(data)


def test_means_of_many_columns_are_the_means_of_each():
    """Also where many resamples have exactly the mean, so that their last bit decides the bias correction."""
    rng = np.random.default_rng(2)
    columns = {
        name: values.tolist()
        for n in (3, 9, 10, 59)
        for name, values in {
            f"any {n}": rng.random(n),
            f"thirds {n}": rng.choice([0, 1 / 3, 1 / 2, 1], n), f"equal {n}": np.full(n, 0.1),
            f"tenths {n}": rng.choice([0.1, 0.3, 0.7], n), f"signs {n}": rng.choice([-1.0, 0.0, 1.0], n),
            f"one {n}": np.r_[np.zeros(n - 1), 1 / 3],
        }.items()
    }  # fmt: skip
    columns["none"] = []
    found = means(columns)
    assert list(found) == list(columns)
    for name, values in columns.items():
        alone = mean(values)
        if isinstance(alone, NotMeasured):
            assert found[name] == alone
            continue
        assert (found[name].n, found[name].method) == (alone.n, alone.method), name
        for end in ("value", "low", "high", "lower", "upper"):
            a, b = getattr(found[name], end), getattr(alone, end)
            assert a == b or a == pytest.approx(b, abs=1e-12), (name, end)


def test_means_of_more_cases_than_a_slab_holds_are_the_same():
    data = np.random.default_rng(6).random(1500).round(2)
    whole, alone = means({"a": data, "b": -data})["a"], mean(data)
    ends = ("value", "low", "high", "lower", "upper")
    assert [getattr(whole, e) for e in ends] == pytest.approx([getattr(alone, e) for e in ends], abs=1e-12)


def test_one_case_has_no_interval():
    figure = mean([0.4])
    assert isinstance(figure, Estimate)
    assert figure.low is figure.high is figure.lower is figure.upper is None


@settings(max_examples=40)
@given(counts)
def test_figures_survive_json(pair):
    figure = rate_of(*pair)
    assert figure_from_json(figure_to_json(figure)) == figure

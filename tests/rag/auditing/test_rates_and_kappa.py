"""Rates that silence cannot better, and agreement beyond chance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa

from clinsafe.rag.auditing.kappa import kappa
from clinsafe.rag.auditing.rates import any_of, failures
from clinsafe.stats import Estimate, NotMeasured, rate_of


def measured(figure: object) -> Estimate:
    assert isinstance(figure, Estimate)
    return figure


def test_without_silence_it_is_the_exact_rate() -> None:
    assert failures([True, False, False]) == rate_of(1, 3)


@pytest.mark.parametrize("outcomes", [[], [None], [None] * 500])
def test_nothing_judged_is_not_measured(outcomes: list[bool | None]) -> None:
    assert isinstance(failures(outcomes), NotMeasured)


def test_unjudged_cases_fail_in_the_upper_ends_and_not_in_the_lower() -> None:
    found = measured(failures([True] * 2 + [False] * 8 + [None] * 10))
    worst, best = measured(rate_of(12, 20)), measured(rate_of(2, 20))
    assert (found.value, found.k, found.n) == (0.2, 2, 10)
    assert (found.upper, found.high, found.lower, found.low) == (
        worst.upper,
        worst.high,
        best.lower,
        best.low,
    )
    assert "10 not judged" in found.method


@given(st.lists(st.sampled_from([True, False, None]), max_size=40))
def test_saying_nothing_never_gives_a_better_bound_than_saying_the_right_thing(
    outcomes: list[bool | None],
) -> None:
    silent, spoken = failures(outcomes), failures([bool(one) for one in outcomes])
    if isinstance(silent, Estimate) and isinstance(spoken, Estimate):
        assert silent.upper is not None
        assert spoken.upper is not None
        assert silent.upper >= spoken.upper
        assert silent.lower is not None
        assert silent.lower <= silent.value <= silent.upper


def test_a_case_fails_once_or_is_known_not_to() -> None:
    assert any_of([None, True]) is True
    assert any_of([False, None]) is None
    assert any_of([False, False]) is False
    assert any_of([]) is None


def test_kappa_of_a_table_that_was_worked_out_by_hand() -> None:
    # 20 and 15 agreed, 5 and 10 not: agreed 0.7, chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5, kappa 0.4
    first = ["yes"] * 25 + ["no"] * 25
    second = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    found = measured(kappa(first, second))
    assert found.value == pytest.approx(0.4)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.4 < found.high
    assert found.lower is not None
    assert found.low < found.lower


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=2, max_size=9))
def test_kappa_is_the_one_of_the_library(pairs: list[tuple[str, str]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    found = kappa(first, second)
    table = np.array([[pairs.count((a, b)) for b in "abc"] for a in "abc"])
    if len({*first, *second}) == 1:
        assert isinstance(found, NotMeasured)
    else:
        assert measured(found).value == pytest.approx(cohens_kappa(table, return_results=False), abs=1e-9)


def test_full_agreement_has_a_lower_bound_below_one_that_rises_with_n() -> None:
    few, many = (measured(kappa([True, False] * n, [True, False] * n)) for n in (10, 120))
    assert few.value == many.value == 1.0
    assert few.lower is not None
    assert many.lower is not None
    assert 0 < few.lower < many.lower < 1


def test_a_constant_labelling_has_no_agreement_and_no_bound() -> None:
    found = measured(kappa([True] * 200, [True, False] * 100))
    assert found.value == 0.0
    assert found.lower is None


def test_rows_of_one_source_are_drawn_together() -> None:
    first, second = [True, False] * 60, [True, False] * 50 + [False, True] * 10
    alone = measured(kappa(first, second))
    twice = measured(kappa(first * 4, second * 4, [*range(120)] * 4))
    free = measured(kappa(first * 4, second * 4))
    assert alone.value == twice.value == free.value
    assert twice.n == 480
    assert alone.low is not None
    assert twice.low is not None
    assert free.low is not None
    assert twice.low == pytest.approx(alone.low, abs=0.02)
    assert free.low > twice.low + 0.03


@pytest.mark.parametrize("sizes", [(3, 2, None), (3, 3, 2)])
def test_lengths_that_differ_are_refused(sizes: tuple[int, int, int | None]) -> None:
    a, b, c = sizes
    with pytest.raises(ValueError, match="one length"):
        kappa([True] * a, [True] * b, None if c is None else [1] * c)


def test_no_row_is_not_measured() -> None:
    assert isinstance(kappa([], []), NotMeasured)

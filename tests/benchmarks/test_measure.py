"""Decision D1 on cases whose answer is known, and against instruments that are broken on purpose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.benchmarks.measure import Limits, figures
from clinsafe.benchmarks.outcomes import failed, inverted, inverted_any, pairwise, same_missed
from clinsafe.benchmarks.scoring import PAIRS, UNRELATED, CaseResult
from clinsafe.stats import Estimate, NotMeasured
from tests.strategies import pair_scores

GOOD = {"a|b": 0.2, "b|a": 0.2, "a|a_same": 0.9, "b|b_same": 0.9, "a_same|a": 0.9, "a_same|b": 0.2,
        "b_same|b": 0.9, "b_same|a": 0.2, "a_same|b_same": 0.2, UNRELATED: 0.1}  # fmt: skip
BAD = {k: 1.1 - v for k, v in GOOD.items()}


def case(
    number: int, scores, hazard="negation", stratum="balanced", subtype="plain", split=None
) -> CaseResult:
    split = split or ("dev" if number % 3 == 0 else "test")
    return CaseResult(f"{hazard}-{number}", hazard, subtype, stratum, None, scores, split)


def limits(results, limit=0.85, **of_case):
    return Limits("checklist", {r.id: of_case.get(r.id, limit) for r in results}, [0.80, 0.85])


def test_a_perfect_model_has_no_fault():
    results = [case(i, GOOD) for i in range(20)]
    found = figures(results, limits(results))
    assert found["suite.negation.failure@protocol=checklist"].k == 0
    assert found["suite.negation.same_missed@protocol=checklist"].k == 0
    assert found["suite.negation.inversion"].k == 0
    assert found["suite.negation.pairwise"].value == 1
    assert found["suite.negation.auroc"].value == 1


def test_a_model_that_prefers_contradictions_fails_everything():
    results = [case(i, BAD) for i in range(20)]
    found = figures(results, limits(results))
    assert found["suite.negation.failure@protocol=checklist"].value == 1
    assert found["suite.negation.inversion"].value == 1
    assert found["suite.negation.pairwise"].value == 0
    assert found["suite.negation.auroc"].value == 0


@pytest.mark.parametrize("constant", [0.0, 0.5, 1.0])
def test_an_always_alike_and_an_always_unlike_model_cannot_look_good(constant):
    """Broken instruments: always yes and always no. Ties count against the model in every ranking figure."""
    results = [case(i, dict.fromkeys([f"{q}|{p}" for q, p in PAIRS], constant)) for i in range(20)]
    found = figures(results, limits(results))
    assert found["suite.negation.inversion"].value == 1
    assert found["suite.negation.inversion.any"].value == 1
    assert found["suite.negation.pairwise"].value == 0
    assert found["suite.negation.auroc"].value == 0.5
    passes_threshold = found["suite.negation.failure@protocol=checklist"].value == 0
    assert passes_threshold == (constant <= 0.85)
    # where the limit is passed by calling everything unlike, the false-alarm half shows it
    assert found["suite.negation.same_missed@protocol=checklist"].value == float(passes_threshold)


def test_a_disabled_model_is_not_measured_and_never_zero():
    results = [case(i, NotMeasured("switched off")) for i in range(5)]
    for figure in figures(results, limits(results)).values():
        assert isinstance(figure, NotMeasured)


def test_one_unmeasured_case_takes_its_hazard_out_and_no_other():
    results = [case(0, GOOD), case(1, NotMeasured("NaN")), case(2, GOOD, hazard="temporal")]
    found = figures(results, limits(results))
    assert isinstance(found["suite.negation.inversion"], NotMeasured)
    assert "negation-1: NaN" in found["suite.negation.inversion"].reason
    assert found["suite.negation.inversion"].n == 1
    assert found["suite.temporal.inversion"].n == 1
    assert isinstance(found["suite.all.inversion"], NotMeasured)


@pytest.mark.parametrize("distance", [-9e-6, 0.0, 9e-6])
def test_a_near_tie_counts_against_the_model_whatever_the_batch_did(distance):
    scores = GOOD | {"a|b": 0.85 + distance}
    assert failed(scores, 0.85)
    assert inverted(GOOD | {"a|b": 0.9 + distance})
    assert not pairwise(GOOD | {"a_same|b": 0.9 + distance})
    assert same_missed(GOOD | {"a|a_same": 0.85 + distance}, 0.85)


def test_the_limit_is_the_cases_own():
    results = [case(0, GOOD | {"a|b": 0.82}), case(1, GOOD | {"a|b": 0.82})]
    found = figures(results, limits(results, **{results[0].id: 0.80}))
    assert found["suite.negation.failure@protocol=checklist"].k == 1


def test_strata_are_shown_apart_and_sum_up():
    results = [case(i, GOOD) for i in range(3)] + [case(i + 3, BAD, stratum="b_closer") for i in range(4)]
    found = figures(results, None)
    assert found["suite.negation.inversion@stratum=balanced"].n == 3
    assert found["suite.negation.inversion@stratum=b_closer"].k == 4
    assert found["suite.negation.inversion"].n == 7
    assert not any("failure" in key for key in found)  # no threshold on a scale that has none


def test_every_cell_of_hazard_subtype_and_stratum_is_there_and_they_sum_up():
    results = [
        case(
            i,
            BAD if i % 2 else GOOD,
            subtype=("plain", "double")[i % 3 == 0],
            stratum=("balanced", "b_closer")[i % 5 == 0],
        )
        for i in range(30)
    ]
    found = figures(results, limits(results))
    for metric in ("inversion", "failure@limit=0.85", "similarity_sd.contradicting", "cohen_d.contradicting"):
        name, _, limit = metric.partition("@")
        for slices in ("", "stratum=balanced", "subtype=double", "stratum=b_closer,subtype=plain"):
            joined = ",".join(sorted(filter(None, [limit, *slices.split(",")])))
            assert f"suite.negation.{name}{f'@{joined}' if joined else ''}" in found
    cells = [found[f"suite.negation.inversion@stratum={s},subtype={t}"]
             for s in ("balanced", "b_closer") for t in ("plain", "double")]  # fmt: skip
    assert sum(cell.n for cell in cells) == 30
    assert sum(cell.k for cell in cells) == found["suite.negation.inversion"].k == 15


def test_the_spread_by_hand():
    """Similarities .2 .4 .6: SD .2 with n - 1, and d = (.4 - .5) / .2 as the paper has it."""
    results = [case(i, GOOD | {"a|b": value}) for i, value in enumerate((0.2, 0.4, 0.6))]
    found = figures(results, limits(results))
    assert found["suite.negation.similarity_sd.contradicting"].value == pytest.approx(0.2)
    assert found["suite.negation.similarity_min.contradicting"].value == 0.2
    assert found["suite.negation.similarity_max.contradicting"].value == 0.6
    assert found["suite.negation.cohen_d.contradicting"].value == pytest.approx(-0.5)
    assert "sample SD" in found["suite.negation.cohen_d.contradicting"].method
    assert found["suite.negation.similarity.unrelated"].value == 0.1
    # no variation: there is no effect size, and it is not infinite either
    equal = figures(flat := [case(i, GOOD) for i in range(3)], limits(flat))
    assert isinstance(equal["suite.negation.cohen_d.contradicting"], NotMeasured)
    assert equal["suite.negation.similarity_sd.contradicting"].value == 0
    assert isinstance(
        figures(results[:1], limits(results[:1]))["suite.negation.cohen_d.contradicting"], NotMeasured
    )


def test_the_calibrated_limit_is_set_on_dev_and_tried_on_test():
    """Twenty dev cases, one of whose paraphrases is far away: 95 % are kept by leaving out that one."""
    dev = [case(i, GOOD | {"a|a_same": 0.3 if i == 7 else 0.7 + i / 100}, split="dev") for i in range(20)]
    test = [
        case(100 + i, GOOD | {"a|b": 0.75 if i < 4 else 0.1, "a|a_same": 0.5}, split="test")
        for i in range(10)
    ]
    found = figures([*dev, *test], limits([*dev, *test]))
    limit = found["suite.all.calibrated_limit"]
    assert limit.value == pytest.approx(0.70, abs=1e-4)
    assert limit.n == 20
    assert found["suite.negation.failure@limit=calibrated,split=test"].k == 4
    assert found["suite.negation.failure@limit=calibrated,split=test"].n == 10
    assert found["suite.negation.same_missed@limit=calibrated,split=test"].k == 10
    assert isinstance(figures(test, limits(test))["suite.all.calibrated_limit"], NotMeasured)


@given(st.lists(pair_scores, min_size=1, max_size=60))
def test_the_calibrated_limit_keeps_what_it_says_on_dev(many):
    results = [case(i, s, split="dev") for i, s in enumerate(many)]
    limit = figures(results, limits(results), detail=False)["suite.all.calibrated_limit"].value
    assert sum(same_missed(s, limit) for s in many) <= 0.05 * len(many)


def test_by_hand():
    """Two cases worked out on paper."""
    one = GOOD
    two = GOOD | {"a|b": 0.95, "a_same|b_same": 0.5}
    results = [case(0, one), case(1, two)]
    found = figures(results, limits(results))
    assert found["suite.negation.inversion"].value == 0.5
    # S+ = {.9 .9 .9 .9}, S- = {.2 .2 .95 .5}: 12 of 16 cross pairs are won
    assert found["suite.negation.auroc"].value == pytest.approx(12 / 16)
    assert found["suite.negation.similarity.contradicting"].value == pytest.approx((0.2 + 0.95) / 2)


@given(pair_scores)
def test_inversion_from_either_side_contains_inversion(scores):
    assert inverted_any(scores) >= inverted(scores)


@given(pair_scores, st.floats(-1, 1), st.floats(0, 0.5))
def test_a_stricter_limit_never_lowers_the_failures(scores, limit, step):
    assert failed(scores, limit - step) >= failed(scores, limit)


@given(st.lists(pair_scores, min_size=2, max_size=6))
def test_every_rate_lies_in_its_interval(many):
    for figure in figures([case(i, s) for i, s in enumerate(many)], None).values():
        assert isinstance(figure, Estimate | NotMeasured)
        if isinstance(figure, Estimate) and figure.low is not None:
            assert figure.low - 1e-12 <= figure.value <= figure.high + 1e-12

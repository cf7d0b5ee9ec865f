"""Ranking metrics are trec_eval's, their ideal is over all that is relevant, and they say where they are undefined."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.rag.item import Context, Item
from clinsafe.rag.ranking import NAMES, ndcg, ranking_values

IDS = [f"d{number}" for number in range(9)]


def measured(ranking, relevance=None, k=3, **known):
    return ranking_values(Item("q", ranking=ranking, relevance=relevance, **known), k)


def test_the_stage_diagnosis_example():
    found = measured(("a", "b", "c", "d"), {"a": 0, "b": 2, "c": 1, "d": 0}).values
    assert found["recall"] == 1.0
    assert found["rr"] == 0.5
    assert round(found["ndcg"], 3) == 0.659


@given(
    st.permutations(IDS).flatmap(lambda ids: st.integers(0, 9).map(lambda n: tuple(ids[:n]))),
    st.dictionaries(st.sampled_from([*IDS, "x", "y"]), st.integers(0, 4), min_size=1),
    st.integers(1, 12),
)
def test_equal_to_pytrec_eval(ranking, grades, k):
    import pytrec_eval

    found = measured(ranking, grades, k).values
    if "recall" not in found:
        assert not any(grades.values())
        return
    gains = {passage: 2**grade - 1 for passage, grade in grades.items()}
    evaluator = pytrec_eval.RelevanceEvaluator(
        {"q": gains}, {f"map_cut.{k}", f"ndcg_cut.{k}", f"P.{k}", f"recall.{k}", "recip_rank"}
    )
    cut = {passage: 99.0 - rank for rank, passage in enumerate(ranking[:k])}
    theirs = evaluator.evaluate({"q": cut}).get("q")
    if theirs is None or not cut:  # trec_eval leaves a query without a result out
        assert [found[name] for name in NAMES] == [0.0] * 5
        return
    for ours, name in zip(
        NAMES, (f"recall_{k}", f"P_{k}", f"map_cut_{k}", "recip_rank", f"ndcg_cut_{k}"), strict=True
    ):
        assert math.isclose(found[ours], theirs[name], abs_tol=1e-9), ours


def test_the_ideal_is_over_all_relevant_passages_not_over_those_retrieved():
    whole = measured(("a", "b"), {"a": 1, "b": 1}, 3).values["ndcg"]
    lacking = measured(("a", "b"), {"a": 1, "b": 1, "never": 3}, 3).values["ndcg"]
    assert whole == 1.0
    assert lacking < 0.3


def test_a_passage_that_comes_twice_is_relevant_once():
    twice = measured(("a", "a", "a"), {"a": 1, "b": 1}).values
    assert (twice["recall"], twice["precision"], twice["ap"]) == (0.5, 1 / 3, 0.5)
    assert twice["ndcg"] == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_no_relevant_passage_is_a_gap_of_the_corpus_and_no_zero():
    for known in ({"eligible": ()}, {"relevance": {"a": 0}}, {"relevance": {}, "eligible": ()}):
        found = measured(("a", "b"), **known)
        assert found.values == {"covered": 0.0, "precision": 0.0, "rr": 0.0}
        assert found.missing == dict.fromkeys(("recall", "ap", "ndcg"), "corpus coverage")


def test_nothing_known_is_missing_and_nothing_found_is_zero():
    assert measured(("a",)).values == {}
    assert set(measured(("a",)).missing) == {*NAMES, "covered"}
    no_ranking = measured(None, {"a": 1})
    assert no_ranking.values == {"covered": 1.0}
    assert set(no_ranking.missing) == set(NAMES)
    assert [measured((), {"a": 1}).values[name] for name in NAMES] == [0.0] * 5
    assert measured(("b",), {"a": 1}).values["rr"] == 0.0


def test_eligible_passages_count_one_and_grades_go_before():
    found = measured(("a", "b"), {"a": 3}, eligible=("a", "b", "c")).values
    assert (found["recall"], found["covered"]) == (pytest.approx(2 / 3), 1.0)
    assert found["ndcg"] == pytest.approx((7 + 1 / math.log2(3)) / (7 + 1 / math.log2(3) + 0.5))
    assert measured(("b",), {"b": 0}, eligible=("b", "c")).values["recall"] == 0.0


def test_without_a_ranking_the_passages_shown_are_it_and_all_is_cut_at_k():
    shown = (Context("a", ""), Context("b", ""))
    found = ranking_values(Item("q", contexts=shown, relevance={"b": 1}), 5).values
    assert (found["rr"], found["precision"]) == (0.5, 0.2)
    assert measured(("a", "b"), {"b": 1}, 1).values["rr"] == 0.0


@pytest.mark.parametrize("grade", [math.nan, math.inf])
def test_a_grade_that_is_no_number_makes_no_metric(grade):
    found = measured(("a",), {"a": 1.0, "b": grade})
    assert not found.values
    assert set(found.missing) == {*NAMES, "covered"}


@settings(max_examples=60)
@given(st.lists(st.one_of(st.floats(0, 1e308), st.just(5e-324)), min_size=1, max_size=6), st.integers(1, 6))
def test_grades_of_any_size_stay_in_range(grades, k):
    values = measured(tuple(IDS[: len(grades)]), dict(zip(IDS, grades, strict=False)), k).values
    assert all(0 <= value <= 1 for value in values.values())


def test_huge_grades_agree_with_the_formula_below_them():
    assert ndcg([600.0, 599.0], [600.0, 599.0, 598.0], 3) == pytest.approx(
        ndcg([60.0, 59.0], [60.0, 59.0, 58.0], 3), abs=1e-12
    )
    assert ndcg([1e-9, 0.0], [1e-9, 1e-9], 2) == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_a_negative_grade_is_not_relevant():
    assert measured(("a", "b"), {"a": -2.0, "b": 1.0}).values["rr"] == 0.5

"""Fusion: the ends of alpha are the two rankings themselves, ties go by id. See tests/workflows/test_rag_index.py."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.errors import UsageError
from clinsafe.rag.fusion import CONSTANT, SearchSettings, check_query, fuse

rankings = st.lists(st.sampled_from("abcdefghij"), unique=True, max_size=10)
alphas = st.floats(0, 1)


@given(rankings, rankings)
def test_alpha_0_is_the_sparse_ranking_and_alpha_1_the_dense_one(dense, sparse):
    assert [item for item, _ in fuse(dense, sparse, 0.0)] == sparse
    assert [item for item, _ in fuse(dense, sparse, 1.0)] == dense


@given(rankings, rankings, alphas)
def test_scores_are_the_published_formula_and_ties_go_by_id(dense, sparse, alpha):
    found = fuse(dense, sparse, alpha)
    for item, score in found:
        d = alpha / (60 + dense.index(item) + 1) if item in dense else 0
        s = (1 - alpha) / (60 + sparse.index(item) + 1) if item in sparse else 0
        assert math.isclose(score, d + s, rel_tol=1e-12)
    assert found == sorted(found, key=lambda pair: (-pair[1], pair[0]))
    assert len(found) == len({item for item, _ in found})
    if 0 < alpha < 1:
        assert {item for item, _ in found} == {*dense, *sparse}


@given(rankings, rankings, alphas)
def test_swapping_the_rankings_and_the_weight_changes_nothing(dense, sparse, alpha):
    one, other = dict(fuse(dense, sparse, alpha)), dict(fuse(sparse, dense, 1 - alpha))
    assert one.keys() == other.keys() or alpha in (0, 1) or 1 - alpha in (0, 1)
    assert all(math.isclose(one[item], other[item], abs_tol=1e-12) for item in one.keys() & other.keys())


def test_what_both_find_comes_before_what_one_finds_first():
    assert [item for item, _ in fuse(["a", "b", "c"], ["d", "b", "e"], 0.5)] == ["b", "a", "d", "c", "e"]


def test_the_constant_is_60_and_can_be_another():
    assert CONSTANT == 60
    assert fuse(["a"], [], 1.0) == [("a", 1 / 61)]
    assert fuse(["a"], [], 1.0, constant=1) == [("a", 1 / 2)]


@pytest.mark.parametrize("alpha", [-0.1, 1.1, math.nan, math.inf, True])
def test_an_alpha_outside_is_refused(alpha):
    with pytest.raises(UsageError, match="alpha"):
        fuse(["a"], ["b"], alpha)


def test_a_ranking_that_names_an_item_twice_is_refused():
    with pytest.raises(UsageError, match="twice"):
        fuse(["a", "a"], [], 0.5)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("k", 0),
        ("k", -1),
        ("k", 2.5),
        ("k", True),
        ("depth", 0),
        ("constant", 0),
        ("reranked", 0),
        ("alpha", 2.0),
        ("mmr", -1.0),
        ("mmr", math.nan),
    ],
)
def test_a_setting_outside_its_range_is_named(setting, value):
    with pytest.raises(UsageError, match=setting):
        SearchSettings(**{setting: value})


@pytest.mark.parametrize(
    ("query", "said"), [("", "empty"), (" \n", "empty"), ("x" * 1_000_000, "1,000,000"), ("\ud800", "half")]
)
def test_a_query_that_cannot_be_searched_for(query, said):
    with pytest.raises(UsageError, match=said):
        check_query(query)

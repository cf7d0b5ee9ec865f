"""MMR: relevance alone is the order given, variety leaves out copies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.errors import UsageError
from clinsafe.rag.mmr import mmr


def unit(rows):
    rows = np.asarray(rows, np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def some(n, seed=0):
    return unit(np.random.default_rng(seed).normal(size=(n, 8)))


@given(st.integers(1, 12), st.integers(1, 15), st.integers(0, 99))
def test_balance_1_is_the_order_given(n, k, seed):
    scores = sorted(np.random.default_rng(seed).choice([0.1, 0.2, 0.3, 0.9], n).tolist(), reverse=True)
    assert mmr(scores, some(n, seed), k, 1.0) == list(range(min(n, k)))


@given(st.integers(1, 12), st.floats(0, 1), st.integers(0, 99))
def test_the_best_comes_first_each_once_and_always_the_same(n, balance, seed):
    scores = np.linspace(1, 0, n).tolist()
    found = mmr(scores, some(n, seed), n, balance)
    assert sorted(found) == list(range(n))
    assert found == mmr(scores, some(n, seed), n, balance)
    if balance > 0:
        assert found[0] == 0


def test_a_copy_gives_way_to_what_is_new():
    vectors = unit([[1, 0, 0], [1, 0, 0], [0, 1, 0]])
    assert mmr([0.032, 0.031, 0.030], vectors, 2, 0.5) == [0, 2]
    assert mmr([0.032, 0.031, 0.030], vectors, 2, 1.0) == [0, 1]


def test_it_is_the_published_greedy_choice():
    scores, vectors = [0.9, 0.8, 0.5, 0.1], some(4)
    relevance = [(s - 0.1) / 0.8 for s in scores]
    taken = []
    while len(taken) < 4:

        def worth(i):
            return 0.6 * relevance[i] - 0.4 * max((float(vectors[i] @ vectors[j]) for j in taken), default=0)

        taken.append(max((i for i in range(4) if i not in taken), key=worth))
    assert mmr(scores, vectors, 4, 0.6) == taken


def test_nothing_gives_nothing():
    assert mmr([], np.empty((0, 3), np.float32), 3, 0.5) == []


@pytest.mark.parametrize(
    ("scores", "vectors", "k", "balance", "said"),
    [
        ([1.0], [[1, 0]], 1, 1.5, "mmr"),
        ([1.0], [[1, 0]], 1, float("nan"), "mmr"),
        ([1.0], [[1, 0]], 0, 0.5, "k is 0"),
        ([1.0, 0.5], [[1, 0]], 1, 0.5, "a row for each"),
        ([float("nan")], [[1, 0]], 1, 0.5, "NaN"),
        ([1.0], [[float("nan"), 0]], 1, 0.5, "NaN"),
    ],
)  # fmt: skip
def test_what_cannot_be_weighed_is_refused(scores, vectors, k, balance, said):
    with pytest.raises(UsageError, match=said):
        mmr(scores, np.asarray(vectors, np.float32), k, balance)

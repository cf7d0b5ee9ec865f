"""Retrieval: order, ties, and what cannot be scored."""

from __future__ import annotations

import numpy as np
import pytest

from clinsafe.benchmarks.endtoend.corpus import Collection, Task
from clinsafe.benchmarks.endtoend.search import Unscored, dense, mean, search
from clinsafe.protocols import Passage
from tests.benchmarks.endtoend import kit

# ordinary 0 to 3 (3 holds the sentence), the query's own 4 (right) and 5 (wrong), another query's 6 and 7
PASSAGES = tuple(Passage(str(n), f"text {n}") for n in range(8))
TASK = Task(kit.query(), 4, 5, frozenset({3}))
COLLECTION = Collection(PASSAGES, 4, 4, (TASK,))


def ids(scores, k=10, *, control=False):
    found = search(COLLECTION, TASK, np.asarray(scores, dtype=float), k, control=control)
    return "".join(p.id for p in found.passages), found.right, found.wrong


def test_best_first_and_only_what_the_query_may_see():
    assert ids([1, 2, 3, 9, 5, 4, 9, 9]) == ("45210", 1, 2)
    assert ids([1, 2, 3, 9, 5, 4, 9, 9], control=True) == ("4210", 1, 0)
    assert ids([1, 2, 3, 9, 0, 4, 9, 9], k=2) == ("52", 5, 1)


def test_ties_count_against_the_retriever():
    assert ids([1] * 8) == ("50124", 5, 1)
    assert ids([0, 1, 0, 0, 1, 1, 0, 0], k=2) == ("51", 3, 1)


def test_what_has_no_score_is_not_retrieved():
    assert ids([1, -np.inf, 3, 9, -np.inf, 4, 9, np.nan]) == ("520", 0, 1)


def test_passages_carry_their_scores():
    found = search(COLLECTION, TASK, np.arange(8.0), 3, control=False)
    assert [p.score for p in found.passages] == [5.0, 4.0, 2.0]
    assert COLLECTION.passages[5].score is None


def test_cosines_and_their_mean_with_another_score():
    rows = np.asarray([[1, 0], [0, 1], [0, 0]], dtype=np.float32)
    cosine = dense(
        rows, {"q": np.asarray([0.6, 0.8], np.float32), "bad": "no vector"}, np.array([True, True, False])
    )
    assert cosine("q")[:2] == pytest.approx([0.6, 0.8])
    assert cosine("q")[2] == -np.inf
    both = mean(cosine, lambda _query: np.asarray([1.0, 0.0, 1.0]))
    assert both("q") == pytest.approx([0.8, 0.4, -np.inf])
    with pytest.raises(Unscored, match="no vector"):
        both("bad")

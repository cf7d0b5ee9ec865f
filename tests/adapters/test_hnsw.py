"""Dense search: exact is exact, the graph finds nearly all of it, ties go by id, bad vectors are refused."""

from __future__ import annotations

import numpy as np
import pytest

from clinsafe.adapters import hnsw
from clinsafe.adapters.hnsw import HnswIndex, best_rows, build_graph, order_of
from clinsafe.errors import ModelError, UsageError

pytest.importorskip("usearch")


def unit(n, seed=0, dim=16):
    rows = np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def filled(n=300, exact=None, dim=16):
    index = HnswIndex(exact)
    index.add([f"c{i}" for i in range(n)], unit(n, dim=dim))
    return index


def by_hand(vectors, query, k):
    scores = vectors @ query
    return [f"c{i}" for i in sorted(range(len(vectors)), key=lambda i: (-scores[i], f"c{i}"))[:k]]


def test_small_collections_are_searched_exactly_before_and_after_saving(tmp_path):
    index, query = filled(), unit(1, 9)[0]
    wanted = by_hand(unit(300), query, 10)
    assert [name for name, _ in index.search(query, 10)] == wanted
    index.save(str(tmp_path))
    loaded = HnswIndex.load(str(tmp_path))
    assert not (tmp_path / hnsw.GRAPH).exists()
    assert loaded.search(query, 10) == index.search(query, 10)
    assert [name for name, _ in loaded.search(query, 10)] == wanted
    assert loaded.search(query, 1)[0][1] == pytest.approx(float((unit(300) @ query).max()), abs=1e-6)


def test_the_graph_finds_nearly_all_with_the_scores_of_exact_search(tmp_path):
    index = filled(2000, exact=False)
    index.save(str(tmp_path))
    assert (tmp_path / hnsw.GRAPH).exists()
    loaded, exact = HnswIndex.load(str(tmp_path)), filled(2000, exact=True)
    shared = 0
    for query in unit(30, 5):
        found, wanted = dict(loaded.search(query, 10)), dict(exact.search(query, 10))
        shared += len(found.keys() & wanted.keys())
        assert all(
            found[name] == pytest.approx(wanted[name], abs=1e-6) for name in found.keys() & wanted.keys()
        )
    assert shared / 300 > 0.97


def test_the_same_vectors_make_the_same_graph(tmp_path):
    for name in ("a", "b"):
        build_graph(unit(1500), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_equal_scores_come_by_id_also_at_the_edge_of_k(tmp_path):
    for exact in (True, False):
        index = HnswIndex(exact)
        names = [f"c{i}" for i in np.random.default_rng(0).permutation(40)]
        index.add(names, np.repeat(unit(1), 40, axis=0))
        index.save(str(tmp_path / str(exact)))
        found = [name for name, _ in index.search(unit(1)[0], 40)]
        assert found == sorted(names)
    exact = HnswIndex(exact=True)
    exact.add(names, np.repeat(unit(1), 40, axis=0))
    assert [name for name, _ in exact.search(unit(1)[0], 5)] == sorted(names)[:5]


def test_best_rows_agree_with_sorting_everything():
    random = np.random.default_rng(1)
    scores = random.choice([0.1, 0.2, 0.3], 50).astype(np.float32)
    order = order_of([f"x{i}" for i in random.permutation(50)])
    wanted = sorted(range(50), key=lambda i: (-scores[i], order[i]))
    for k in (1, 7, 49, 50, 99):
        assert best_rows(scores, np.arange(50), k, order)[0].tolist() == wanted[:k]


def test_k_above_the_size_gives_all_and_an_empty_index_nothing(tmp_path):
    assert HnswIndex().search(unit(1)[0], 3) == []
    for exact in (True, False):
        index = filled(5, exact)
        index.save(str(tmp_path / str(exact)))
        assert len(index.search(unit(1)[0], 50)) == 5


@pytest.mark.parametrize(
    ("vector", "said"),
    [
        (np.full(16, np.nan, np.float32), "NaN"),
        (np.full(16, np.inf, np.float32), "NaN or infinity"),
        (np.ones(16, np.float32), "not of length 1"),
        (np.zeros(16, np.float32), "not of length 1"),
        (unit(1, dim=8)[0], "vectors of 16"),
        (unit(2), "vectors of 16"),
        (np.empty(0, np.float32), "vectors of 16"),
    ],
)
def test_a_query_that_is_near_to_nothing_is_refused(vector, said):
    with pytest.raises(UsageError, match=said):
        filled().search(vector, 3)


def test_bad_passages_are_refused_with_their_row():
    bad = unit(4)
    bad[2, 3] = np.nan
    for rows, said in (
        (bad, "row 2"),
        (unit(4) * 3, "row 0"),
        (np.zeros((2, 16)), "row 0"),
        (unit(4)[0], "shape"),
    ):
        with pytest.raises(ModelError, match=said):
            HnswIndex().add([str(i) for i in range(len(rows))], rows)
    with pytest.raises(ModelError, match="16"):
        filled().add(["x"], unit(1, dim=8))


def test_ids_that_repeat_and_lengths_that_differ_are_refused():
    for ids in (["a", "a"], ["c1", "a"]):
        with pytest.raises(UsageError, match="differ"):
            filled().add(ids, unit(2))
    with pytest.raises(UsageError, match="one for each"):
        filled().add(["a"], unit(2))
    with pytest.raises(UsageError, match="k is 0"):
        filled().search(unit(1)[0], 0)


def test_what_was_saved_is_not_added_to_and_nothing_is_not_saved(tmp_path):
    with pytest.raises(UsageError, match="nothing to save"):
        HnswIndex().save(str(tmp_path))
    filled().save(str(tmp_path))
    with pytest.raises(UsageError, match="not added to"):
        HnswIndex.load(str(tmp_path)).add(["x"], unit(1))


@pytest.mark.parametrize("name", [hnsw.VECTORS, hnsw.IDS])
def test_a_damaged_folder_is_one_line_and_no_pickle_is_read(tmp_path, name):
    filled().save(str(tmp_path))
    np.save(tmp_path / "p.npy", np.array([{"a": 1}], object), allow_pickle=True)
    for data in (b"", b"[1]", (tmp_path / "p.npy").read_bytes()):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(UsageError, match=r"saved index|differ in length"):
            HnswIndex.load(str(tmp_path))

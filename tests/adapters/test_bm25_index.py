"""Sparse search: bm25s's own scores, in order, by id where equal; what shares no word is not found."""

from __future__ import annotations

import json
import warnings
from itertools import pairwise

import numpy as np
import pytest

from clinsafe.adapters.bm25_index import build_bm25, load_bm25
from clinsafe.adapters.hnsw import order_of
from clinsafe.errors import UsageError
from clinsafe.text import words

bm25s = pytest.importorskip("bm25s")
TEXTS = [
    "Fever and cough.",
    "Aspirin for the fever of the child",
    "No fever.",
    "Metformin 500 mg",
    "fever",
    "cough cough cough",
]


def built(folder, texts, ids=None):
    build_bm25(iter(texts), folder)
    return load_bm25(folder, order_of(ids or [f"c{i}" for i in range(len(texts))]))


def test_scores_are_those_of_the_library_and_of_the_formula(tmp_path):
    found = built(tmp_path, TEXTS)
    whole = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend="numpy")
    whole.index([list(words(text)) for text in TEXTS], show_progress=False)
    for query in ("fever", "the cough", "fever fever cough", "500 mg"):
        wanted = whole.get_scores(list(words(query)))
        rows, scores = found.search(query, 10)
        assert set(rows.tolist()) == set(np.flatnonzero(wanted).tolist())
        np.testing.assert_allclose(scores, wanted[rows], rtol=1e-5)
        assert all(a >= b for a, b in pairwise(scores))
    lengths = [len(words(text)) for text in TEXTS]
    idf = np.log(1 + (6 - 4 + 0.5) / (4 + 0.5))
    by_hand = idf / (1 + 1.2 * (1 - 0.75 + 0.75 * 1 / np.mean(lengths)))
    rows, scores = found.search("fever", 1)
    assert (rows.tolist(), scores[0]) == ([4], pytest.approx(by_hand, rel=1e-5))


def test_equal_scores_come_by_id(tmp_path):
    found = built(tmp_path, ["same words here"] * 6 + ["other"], ["f", "b", "e", "a", "d", "c", "g"])
    assert found.search("words", 3)[0].tolist() == [3, 1, 5]
    assert found.search("words", 99)[0].tolist() == [3, 1, 5, 4, 2, 0]


@pytest.mark.parametrize("query", ["", "!?", "zebra", "\0", "x" * 100_000])
def test_a_query_without_a_known_word_finds_nothing(tmp_path, query):
    assert len(built(tmp_path, TEXTS).search(query, 5)[0]) == 0


def test_texts_without_words_are_never_found_and_break_nothing(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(built(tmp_path / "a", ["!!!", "???"]).search("fever", 5)[0]) == 0
        assert built(tmp_path / "b", ["!!!", "fever", ""]).search("fever", 5)[0].tolist() == [1]


def test_saved_arrays_are_mapped_and_its_files_hold_no_pickle(tmp_path):
    found = built(tmp_path, TEXTS)
    assert isinstance(found._data.base, np.memmap)
    for file in tmp_path.iterdir():
        if file.suffix == ".npy":
            np.load(file, allow_pickle=False)
        else:
            json.loads(file.read_text())


def test_no_texts_no_k_and_another_corpus_are_refused(tmp_path):
    with pytest.raises(UsageError, match="at least one text"):
        build_bm25([], tmp_path)
    with pytest.raises(UsageError, match="k is 0"):
        built(tmp_path, TEXTS).search("fever", 0)
    with pytest.raises(UsageError, match="not 2"):
        load_bm25(tmp_path, order_of(["a", "b"]))


@pytest.mark.parametrize("name", ["vocab.index.json", "params.index.json", "data.csc.index.npy"])
@pytest.mark.parametrize("data", [b"", b"[", b"\x80\x04pickle"])
def test_a_damaged_folder_is_one_line(tmp_path, name, data):
    built(tmp_path, TEXTS)
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError, match="build it anew"):
        load_bm25(tmp_path, order_of(list("abcdef")))
    with pytest.raises(UsageError, match="no BM25 index"):
        load_bm25(tmp_path / "gone", order_of(["a"]))

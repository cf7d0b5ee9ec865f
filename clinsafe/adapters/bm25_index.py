"""Sparse search on disk: BM25 by bm25s, its arrays mapped into memory."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinsafe.adapters.hnsw import Order, Rows, best_rows
from clinsafe.errors import MissingDependency, UsageError
from clinsafe.text import words

METHOD, K1, B = "lucene", 1.2, 0.75
NONE = ""  # a word that no text has, for a corpus without words
SETTINGS = {
    "sparse": f"BM25 ({METHOD}, k1 = {K1}, b = {B}) over lower-cased words, no stemming, no stop words"
}


class Bm25Rows:
    """BM25 over the texts of a corpus, by row. A text that shares no word with the query is not found.

    Scoring adds up bm25s's own numbers. It needs no numba, which bm25s would use where it is installed: two machines
    add in the same order and rank alike.
    """

    def __init__(self, index: Any, order: Order) -> None:
        scores = index.scores
        data, rows, starts = (np.asarray(scores[name]) for name in ("data", "indices", "indptr"))
        self._data, self._rows, self._starts = data, rows, starts  # still mapped
        self._count, self._order = int(scores["num_docs"]), order
        self._vocabulary: dict[str, int] = index.vocab_dict
        if self._count != len(order):
            raise UsageError(f"the BM25 index holds {self._count:,} texts, not {len(order):,}; build it anew")

    def search(self, query: str, k: int) -> tuple[Rows, NDArray[np.float32]]:
        """Rows and scores of the k best texts, best first, equal ones by id; fewer where fewer share a word.

        Raises:
            UsageError: k below 1.
        """
        if k < 1:
            raise UsageError(f"k is {k}; at least one passage must be asked for")
        known = Counter(word for word in words(query) if word in self._vocabulary)
        scores = np.zeros(self._count, np.float32)
        for word, times in known.items():
            token = self._vocabulary[word]
            part = slice(int(self._starts[token]), int(self._starts[token + 1]))
            np.add.at(scores, self._rows[part], self._data[part] * np.float32(times))
        least = np.partition(scores, self._count - k)[self._count - k] if k < self._count else 0.0
        rows = np.flatnonzero((scores >= least) & (scores > 0))
        return best_rows(scores[rows], rows, k, self._order)


def build_bm25(texts: Iterable[str], folder: Path) -> None:
    """Build and save the index of some texts; memory holds their words as numbers, four bytes each.

    Raises:
        MissingDependency: without bm25s. UsageError: no texts.
    """
    vocabulary: dict[str, int] = {}
    tokens = []
    for text in texts:
        tokens.append(array("i", [vocabulary.setdefault(word, len(vocabulary)) for word in words(text)]))
    if not tokens:
        raise UsageError("a BM25 index needs at least one text")
    if not vocabulary:
        vocabulary[NONE], tokens[0] = 0, array("i", [0])
    package = library()
    index = package.BM25(method=METHOD, k1=K1, b=B, backend="numpy")
    given = package.tokenization.Tokenized(ids=tokens, vocab=vocabulary)
    index.index(given, create_empty_token=False, show_progress=False)
    index.save(str(folder), show_progress=False)


def load_bm25(folder: Path, order: Order) -> Bm25Rows:
    """Open what `build_bm25` saved.

    Args:
        order: (n,), the place of each row among all when sorted by id.

    Raises:
        UsageError: the folder holds none, or one of another corpus. MissingDependency: without bm25s.
    """
    package = library()
    try:
        index = package.BM25.load(str(folder), mmap=True, load_vocab=True, allow_pickle=False)
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{folder}: holds no BM25 index; build it anew") from error
    return Bm25Rows(index, order)


def library() -> Any:
    """The package; MissingDependency without it."""
    try:
        import bm25s
    except ImportError as error:
        raise MissingDependency("a BM25 index", "bm25s", "pip install 'clinsafe[rag]'") from error
    return bm25s

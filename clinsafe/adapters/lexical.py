"""Word-counting baselines: what a model must beat before it can claim to understand anything."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from clinsafe.errors import MissingDependency
from clinsafe.protocols import ModelIdentity, TextPair
from clinsafe.text import words


class TokenJaccard:
    """A `PairScorer`: shared share of word types, in [0, 1]; knows nothing of order or meaning."""

    identity = ModelIdentity(
        name="token Jaccard", settings={"activation": "none", "range": "0..1"}, kind="lexical"
    )

    def score(self, pairs: Sequence[TextPair], /) -> NDArray[np.float64]:
        """|A ∩ B| / |A ∪ B| over word types; two texts without words score 0."""
        return np.asarray([_jaccard(set(words(x)), set(words(y))) for x, y in pairs], dtype=np.float64)


class Bm25:
    """A `PairScorer`: BM25 of the passage for the query, as a share of the best passage of the corpus, in [0, 1].

    The share leaves every ranking of one query as it is, and makes queries of different length comparable.

    Args:
        corpus: the texts whose word frequencies give the IDF; passages that are scored must be among them.
    """

    def __init__(self, corpus: Sequence[str]) -> None:
        try:
            import bm25s
        except ImportError as error:
            raise MissingDependency("the BM25 baseline", "bm25s", "pip install 'clinsafe[audit]'") from error
        self._place = {text: i for i, text in enumerate(dict.fromkeys(corpus))}
        self._index = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend="numpy")
        self._index.index([words(text) for text in self._place], show_progress=False)
        self._vocabulary = {word for text in self._place for word in words(text)}
        # the four queries of a case come one after another; all queries of 10,000 sentences would be a gigabyte
        self._shares = lru_cache(maxsize=64)(self._shares_of)
        self.identity = ModelIdentity(
            name="BM25",
            settings={
                "formula": "BM25 (Lucene's IDF, k1 = 1.2, b = 0.75), divided by the best score of the query",
                "idf": f"over the suite's {len(self._place)} sentences",
                "library": f"bm25s {bm25s.__version__}",
                "range": "0..1",
            },
            kind="lexical",
        )

    def score(self, pairs: Sequence[TextPair], /) -> NDArray[np.float64]:
        """Share of the query's best score; 0 where no word is shared. KeyError: the passage is not in the corpus."""
        return np.asarray(
            [self._shares(query)[self._place[passage]] for query, passage in pairs], dtype=np.float64
        )

    def _shares_of(self, query: str) -> NDArray[np.float64]:
        known = [word for word in words(query) if word in self._vocabulary]
        if not known:
            return np.zeros(len(self._place))
        scores = np.asarray(self._index.get_scores(known), dtype=np.float64)
        best = float(scores.max())
        return scores / best if best > 0 else np.zeros(len(self._place))


def _jaccard(x: set[str], y: set[str]) -> float:
    return len(x & y) / len(x | y) if x | y else 0.0


def load(_name: str = "", **_options: object) -> TokenJaccard:
    """Entry point ``token-jaccard``."""
    return TokenJaccard()

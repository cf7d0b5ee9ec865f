"""Hybrid search: a dense and a sparse ranking, fused by weighted reciprocal rank (RAG-X, III-A), reranked, thinned out.

What ranks is handed in: rankings are of rows, the numbers of chunks in the order of their corpus.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from clinsafe.errors import ModelError, UsageError
from clinsafe.protocols import Encoder, PairScorer, Passage, QueryEncoder, Vectors
from clinsafe.rag.chunks import Chunk, ChunkStore
from clinsafe.rag.mmr import check_balance, mmr

K, ALPHA, RERANKED = 3, 0.5, 20  # k: RAG-X, IV
LONGEST_QUERY = 100_000  # characters
CONSTANT = 60  # Cormack, Clarke and Buettcher 2009; not the k of top-k
DEPTH = 100  # how far down each ranking is read

T = TypeVar("T", int, str)
R = TypeVar("R")


def fuse(
    dense: Sequence[T], sparse: Sequence[T], alpha: float, *, constant: int = CONSTANT
) -> list[tuple[T, float]]:
    """Both rankings as one: ``alpha / (constant + rank)`` of the dense one plus ``(1 - alpha) / (constant + rank)`` of
    the sparse one, ranks from 1; what a ranking does not hold adds nothing.

    Args:
        dense, sparse: ids or rows, best first, each once.
        alpha: weight of the dense ranking, in [0, 1]. At 0 the result is the sparse ranking alone, at 1 the dense one:
            a ranking without weight adds no items either.

    Returns:
        (item, score), best first; equal scores in the order of the items themselves.

    Raises:
        UsageError: alpha outside [0, 1], a constant below 1, an item twice in one ranking.
    """
    check_alpha(alpha)
    if constant < 1:
        raise UsageError(
            f"the constant of reciprocal rank fusion is {constant}; it is at least 1, usually 60"
        )
    scores: dict[T, float] = {}
    for ranking, weight in ((dense, alpha), (sparse, 1 - alpha)):
        if len(set(ranking)) != len(ranking):
            raise UsageError("a ranking holds an item twice; each id must stand in it once")
        if weight > 0:
            for rank, item in enumerate(ranking, start=1):
                scores[item] = scores.get(item, 0.0) + weight / (constant + rank)
    return sorted(scores.items(), key=lambda found: (-found[1], found[0]))


def check_alpha(alpha: float) -> None:
    """Raises UsageError: not in [0, 1]."""
    if isinstance(alpha, bool) or not math.isfinite(alpha) or not 0 <= alpha <= 1:
        raise UsageError(
            f"alpha {alpha} is outside [0, 1]; 0 is BM25 alone, 1 the vectors alone, 0.5 both alike"
        )


Ranked: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float32]]
"""Rows and scores, best first."""
Query: TypeAlias = str | Vectors


class Hit(NamedTuple):
    """One chunk in a ranking; its rank is its place, from 1."""

    id: str
    score: float


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What a search depends on beside the index.

    Attributes:
        k: passages given back.
        alpha: weight of the dense ranking.
        depth: how far each ranking is read; k where that is more.
        constant: of the reciprocal rank fusion.
        mmr: balance of relevance and variety; None for none.
        reranked: how many of the fused ranking a reranker reads; k where that is more.

    Raises:
        UsageError: a value outside its range.
    """

    k: int = K
    alpha: float = ALPHA
    depth: int = DEPTH
    constant: int = CONSTANT
    mmr: float | None = None
    reranked: int = RERANKED

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        if self.mmr is not None:
            check_balance(self.mmr)
        for name in ("k", "depth", "constant", "reranked"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise UsageError(f"{name} is {value!r}; it is a whole number from 1")


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found, stage by stage.

    Attributes:
        passages: best first, at most k.
        dense, sparse: the two rankings; None where alpha gives them no weight.
        fused: before reranking.
        reranked: after it; None without a reranker.
        settings: what was asked for.
        milliseconds: stage -> time; ``encode``, ``dense``, ``sparse``, ``rerank`` where they ran, ``total``.
    """

    passages: tuple[Passage, ...]
    dense: tuple[Hit, ...] | None
    sparse: tuple[Hit, ...] | None
    fused: tuple[Hit, ...]
    reranked: tuple[Hit, ...] | None
    settings: SearchSettings
    milliseconds: Mapping[str, float] = field(default_factory=dict)


class SearchIndex:
    """The chunks of a corpus, searched by meaning and by words. `clinsafe.workflows.rag_index` builds and opens it.

    Args:
        store: the chunks.
        dense: (vector, k) -> `Ranked`.
        sparse: (query, k) -> `Ranked`; what shares no word is not in it.
        vectors: (n, dim), of the chunks.
        order: (n,), the place of each chunk by id: what ties are broken by.
        encoder: for queries; None searches with vectors, or words alone.
        version: hash of what the index is made of.
        folder: where it lies.

    Attributes:
        reused: whether it was there already when it was to be built.
    """

    def __init__(
        self, store: ChunkStore, dense: Callable[[Vectors, int], Ranked], sparse: Callable[[str, int], Ranked],
        vectors: Vectors, order: NDArray[np.int32], encoder: Encoder | None = None, *, version: str = "",
        folder: Path | None = None,
    ) -> None:  # fmt: skip
        self.store, self.vectors, self.version, self.folder = store, vectors, version, folder
        self.reused = False
        self._dense, self._sparse, self._order, self._encoder = dense, sparse, order, encoder

    def __len__(self) -> int:
        return len(self.store)

    def search(
        self, query: Query, k: int = K, alpha: float = ALPHA, *, depth: int = DEPTH, constant: int = CONSTANT,
        mmr: float | None = None, reranker: PairScorer | None = None, reranked: int = RERANKED,
        vector: Vectors | None = None,
    ) -> Found:  # fmt: skip
        """The passages for a query: ranked both ways, fused, reranked, thinned out by MMR, the first k.

        Args:
            query: a text, or a vector of its own (only with alpha 1 and without a reranker, which both need words).
            vector: the query's vector, where it is known already.
            k, alpha, depth, constant, mmr, reranked: see `SearchSettings`.
            reranker: reads (query, passage) and puts the best of the fused ranking in a new order.

        Raises:
            UsageError: an empty query, one of more than 100,000 characters, a vector that holds NaN or is not of length
                1, a setting outside its range, no encoder. ModelError: scores that are not one finite number a pair.
        """
        settings = SearchSettings(k, alpha, depth, constant, mmr, reranked)
        if isinstance(query, str):
            check_query(query)
        elif alpha < 1 or reranker is not None:
            raise UsageError(
                "a vector has no words: BM25 (alpha below 1) and a reranker need the text of the query"
            )
        else:
            return self._search("", query, settings, None)
        return self._search(query, vector, settings, reranker)

    def search_many(
        self, queries: Sequence[str], k: int = K, alpha: float = ALPHA, *, depth: int = DEPTH,
        constant: int = CONSTANT, mmr: float | None = None, reranker: PairScorer | None = None,
        reranked: int = RERANKED,
    ) -> list[Found]:  # fmt: skip
        """`search` for many queries, whose vectors are made together; raises what it raises, before any is searched."""
        settings = SearchSettings(k, alpha, depth, constant, mmr, reranked)
        for query in queries:
            check_query(query)
        vectors = self._encode(queries) if alpha > 0 and queries else [None] * len(queries)
        pairs = zip(queries, vectors, strict=True)
        return [self._search(query, vector, settings, reranker) for query, vector in pairs]

    def retriever(
        self, k: int = K, alpha: float = ALPHA, *, depth: int = DEPTH, constant: int = CONSTANT,
        mmr: float | None = None, reranker: PairScorer | None = None, reranked: int = RERANKED,
        on_found: Callable[[Found], None] | None = None,
    ) -> IndexRetriever:  # fmt: skip
        """A `Retriever` over this index, for `clinsafe.guard` or any pipeline; `on_found` is shown every stage."""
        return IndexRetriever(
            self, SearchSettings(k, alpha, depth, constant, mmr, reranked), reranker, on_found
        )

    def close(self) -> None:
        """Close the file of texts."""
        self.store.close()

    def _search(
        self, query: str, vector: Vectors | None, settings: SearchSettings, reranker: PairScorer | None
    ) -> Found:
        clock = _Clock()
        depth = max(settings.depth, settings.k)
        dense = sparse = None
        if settings.alpha > 0:
            if vector is None:
                vector = clock.timed("encode", lambda: self._encode([query])[0])
            at = vector
            dense = clock.timed("dense", lambda: self._dense(at, depth))
        if settings.alpha < 1:
            sparse = clock.timed("sparse", lambda: self._sparse(query, depth))
        fused = self._fused(dense, sparse, settings)
        best, reordered = fused, None
        if reranker is not None and fused:
            pool = fused[: max(settings.reranked, settings.k)]
            best = reordered = clock.timed("rerank", lambda: self._rerank(query, pool, reranker))
        elif reranker is not None:
            reordered = []
        if settings.mmr is not None:
            rows = [row for row, _ in best]
            taken = mmr([score for _, score in best], self.vectors[rows], settings.k, settings.mmr)
            shown = [best[place] for place in taken]
        else:
            shown = best[: settings.k]
        texts = self.store.get([row for row, _ in shown])
        names = self._names(dense, sparse, fused)
        return Found(
            tuple(_passage(chunk, score) for chunk, (_, score) in zip(texts, shown, strict=True)),
            dense and _hits(names, _pairs(dense)),
            sparse and _hits(names, _pairs(sparse)),
            _hits(names, fused),
            None if reordered is None else _hits(names, reordered),
            settings,
            clock.done(),
        )

    def _encode(self, queries: Sequence[str]) -> Vectors:
        if self._encoder is None:
            raise UsageError("this index was opened without a model; give one, a vector, or alpha 0")
        side = (
            self._encoder.encode_queries if isinstance(self._encoder, QueryEncoder) else self._encoder.encode
        )
        return side(list(queries))

    def _fused(
        self, dense: Ranked | None, sparse: Ranked | None, settings: SearchSettings
    ) -> list[tuple[int, float]]:
        """(row, score); ties by id: places by id are fused, and turned back into rows."""
        places: list[list[int]] = []
        row_at: dict[int, int] = {}
        for ranking in (dense, sparse):
            rows = [] if ranking is None else ranking[0].tolist()
            here = self._order[rows].tolist() if rows else []
            row_at.update(zip(here, rows, strict=True))
            places.append(here)
        fused = fuse(places[0], places[1], settings.alpha, constant=settings.constant)
        return [(row_at[place], score) for place, score in fused]

    def _rerank(
        self, query: str, pool: Sequence[tuple[int, float]], reranker: PairScorer
    ) -> list[tuple[int, float]]:
        rows = [row for row, _ in pool]
        scores = np.asarray(reranker.score([(query, c.text) for c in self.store.get(rows)]), np.float64)
        if scores.shape != (len(rows),) or not np.isfinite(scores).all():
            raise ModelError(
                f"the reranker {reranker.identity.name!r} gave no finite score for each of {len(rows)} passages"
            )
        pairs = zip(rows, scores.tolist(), strict=True)
        return sorted(pairs, key=lambda pair: (-pair[1], int(self._order[pair[0]])))

    def _names(
        self, dense: Ranked | None, sparse: Ranked | None, fused: Sequence[tuple[int, float]]
    ) -> dict[int, str]:
        rows = {row for row, _ in fused}
        for ranking in (dense, sparse):
            rows.update([] if ranking is None else ranking[0].tolist())
        listed = sorted(rows)
        return dict(zip(listed, self.store.ids(listed), strict=True))


class IndexRetriever:
    """A `Retriever` over a `SearchIndex`.

    Args:
        on_found: told what each search found, stage by stage.
    """

    def __init__(
        self, index: SearchIndex, settings: SearchSettings, reranker: PairScorer | None = None,
        on_found: Callable[[Found], None] | None = None,
    ) -> None:  # fmt: skip
        self.index, self.settings, self.reranker, self._on_found = index, settings, reranker, on_found

    def retrieve(self, query: str, k: int | None = None, /) -> Sequence[Passage]:
        """At most k passages, best first; None takes the settings' k. Raises what `SearchIndex.search` raises."""
        s = self.settings
        found = self.index.search(
            query, s.k if k is None else k, s.alpha, depth=s.depth, constant=s.constant, mmr=s.mmr,
            reranker=self.reranker, reranked=s.reranked,
        )  # fmt: skip
        if self._on_found is not None:
            self._on_found(found)
        return found.passages


class _Clock:
    """Times of the stages, in milliseconds."""

    def __init__(self) -> None:
        self._begun, self._times = time.perf_counter(), dict[str, float]()

    def timed(self, stage: str, work: Callable[[], R]) -> R:
        begun = time.perf_counter()
        result = work()
        self._times[stage] = (time.perf_counter() - begun) * 1000
        return result

    def done(self) -> dict[str, float]:
        return {**self._times, "total": (time.perf_counter() - self._begun) * 1000}


def check_query(query: str) -> None:
    """Raises UsageError: nothing to search for, more than `LONGEST_QUERY` characters, half a character."""
    if not query.strip():
        raise UsageError("the query is empty; nothing can be searched for")
    if len(query) > LONGEST_QUERY:
        raise UsageError(
            f"the query has {len(query):,} characters; at most {LONGEST_QUERY:,} can be searched for"
        )
    try:
        query.encode()
    except UnicodeEncodeError:
        raise UsageError(
            "the query holds half a character (a lone surrogate), which no model reads"
        ) from None


def _pairs(ranked: Ranked) -> Iterable[tuple[int, float]]:
    return zip(ranked[0].tolist(), ranked[1].tolist(), strict=True)


def _hits(names: Mapping[int, str], ranked: Iterable[tuple[int, float]]) -> tuple[Hit, ...]:
    return tuple(Hit(names[row], score) for row, score in ranked)


def _passage(chunk: Chunk, score: float) -> Passage:
    """With the document's fields (subject_id, date … are the guard's to read) and where in it the chunk stands."""
    place = {"document": chunk.document, "chunk_start": str(chunk.start), "chunk_end": str(chunk.end)}
    return Passage(chunk.id, chunk.text, float(score), chunk.document, {**chunk.fields, **place})

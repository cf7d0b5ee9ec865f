"""Dense search on disk: an HNSW graph by usearch, exact search for small collections.

usearch and not faiss: its file is mapped into memory instead of read (a start without delay, memory shared between
processes), one thread always builds the same graph, and it brings no second OpenMP beside torch's. Measured side by
side in ``tests/perf/rag_search.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from clinsafe.errors import MissingDependency, ModelError, UsageError
from clinsafe.protocols import Vectors

EXACT_BELOW = 10_000  # vectors; comparing with all of them takes about a millisecond
CONNECTIVITY, EF_CONSTRUCTION, EF = 16, 128, 128
BLOCK = 16_384  # vectors compared or checked at a time
VECTORS, GRAPH, IDS = "vectors.npy", "graph.usearch", "ids.json"
OFF_UNIT = 1e-2  # how far from 1 the length of a vector may be

Rows: TypeAlias = NDArray[np.int64]
Order: TypeAlias = NDArray[np.int32]


def best_rows(
    scores: NDArray[np.float32], rows: Rows, k: int, order: Order
) -> tuple[Rows, NDArray[np.float32]]:
    """The k best of some scored rows, best first; equal scores by their place in `order`, at the edge of k too."""
    if k < len(scores):
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        keep = scores >= least
        scores, rows = scores[keep], rows[keep]
    by = np.lexsort((order[rows], -scores))[:k]
    return rows[by], scores[by]


class DenseRows:
    """Nearest rows of a matrix by inner product; with unit rows that is the cosine.

    Args:
        vectors: (n, dim) float32, unit rows; may be mapped from a file.
        order: (n,), the place of each row among all when sorted by id.
        graph: file of the HNSW graph over these rows; None compares with all of them.
        ef: how many candidates the graph's search keeps; more is slower and finds more.
    """

    def __init__(self, vectors: Vectors, order: Order, graph: Path | None = None, ef: int = EF) -> None:
        self.vectors, self._order, self._ef = vectors, order, ef
        self._graph: Any = None
        if graph is not None:
            self._graph = library().Index.restore(str(graph), view=True)
            if self._graph is None or len(self._graph) != len(vectors):
                raise UsageError(
                    f"{graph}: is not the graph of these {len(vectors):,} vectors; build it anew"
                )

    def search(self, vector: Vectors, k: int, *, exact: bool = False) -> tuple[Rows, NDArray[np.float32]]:
        """Rows and cosines of the k nearest, best first, equal ones by id; fewer where there are fewer.

        Args:
            exact: compare with all rows, also where there is a graph.

        Raises:
            UsageError: k below 1; a vector that is not finite, not of length 1, or of another dimension.
        """
        query = one_vector(vector, self.vectors.shape[1])
        if k < 1:
            raise UsageError(f"k is {k}; at least one passage must be asked for")
        if self._graph is None or exact:
            rows, scores = np.arange(len(self.vectors)), _compared(self.vectors, query)
        else:
            self._graph.expansion_search = max(self._ef, k)
            found = self._graph.search(query, min(k, len(self.vectors)), threads=1)
            rows = np.sort(np.asarray(found.keys, np.int64))
            scores = np.asarray(self.vectors[rows] @ query, np.float32)  # the same number as by exact search
        return best_rows(scores, rows, k, self._order)


def _compared(vectors: Vectors, query: Vectors) -> NDArray[np.float32]:
    parts = [vectors[at : at + BLOCK] @ query for at in range(0, len(vectors), BLOCK)]
    return np.concatenate(parts) if parts else np.empty(0, np.float32)


def one_vector(vector: Vectors, width: int) -> Vectors:
    """A query's vector as float32 (width,).

    Raises:
        UsageError: another dimension, not finite, or not of length 1.
    """
    query = np.asarray(vector, np.float32)
    if query.ndim == 2 and len(query) == 1:
        query = query[0]
    if query.shape != (width,):
        raise UsageError(f"a query vector of shape {query.shape}; the index holds vectors of {width} numbers")
    if not np.isfinite(query).all():
        raise UsageError("the query's vector holds NaN or infinity; nothing can be near to it")
    if abs(float(np.linalg.norm(query)) - 1) > OFF_UNIT:
        raise UsageError("the query's vector is not of length 1; normalise it as those of the index are")
    return np.ascontiguousarray(query)


def check_vectors(vectors: Vectors, width: int | None = None) -> Vectors:
    """Vectors of passages as contiguous float32 (n, width).

    Raises:
        ModelError: another shape, not finite, or a row whose length is not 1.
    """
    found = np.ascontiguousarray(vectors, np.float32)
    if found.ndim != 2 or (width is not None and found.shape[1] != width):
        raise ModelError(
            f"vectors of shape {found.shape}; the index wants rows of {width or 'equal'} numbers"
        )
    if not np.isfinite(found).all():
        bad = int(np.argmin(np.isfinite(found).all(axis=1)))
        raise ModelError(f"the vector in row {bad} holds NaN or infinity; no passage may have such a vector")
    off = np.abs(np.linalg.norm(found, axis=1) - 1) > OFF_UNIT
    if off.any():
        raise ModelError(
            f"the vector in row {int(np.argmax(off))} is not of length 1; encoders give unit rows"
        )
    return found


def build_graph(vectors: Vectors, file: Path) -> None:
    """Build and save the HNSW graph of a matrix. One thread: the same vectors always give the same graph.

    Raises:
        MissingDependency: without usearch.
    """
    index = library().Index(
        ndim=vectors.shape[1], metric="ip", dtype="f32", connectivity=CONNECTIVITY, expansion_add=EF_CONSTRUCTION,
        expansion_search=EF, enable_key_lookups=False,
    )  # fmt: skip
    for at, part in blocks(vectors):
        index.add(np.arange(at, at + len(part)), part, threads=1)
    index.save(str(file))


def blocks(vectors: Vectors) -> Iterator[tuple[int, Vectors]]:
    """(first row, `BLOCK` rows), one after another."""
    for at in range(0, len(vectors), BLOCK):
        yield at, np.asarray(vectors[at : at + BLOCK])


def settings(exact: bool) -> dict[str, str]:
    """What the index depends on, for its record."""
    if exact:
        return {"dense": "exact inner product"}
    return {
        "dense": f"usearch HNSW, M {CONNECTIVITY}, ef construction {EF_CONSTRUCTION}, ef {EF}, inner product"
    }


def library() -> Any:
    """The module ``usearch.index``; MissingDependency without it."""
    try:
        import usearch.index
    except ImportError as error:
        raise MissingDependency("an HNSW index", "usearch", "pip install 'clinsafe[rag]'") from error
    return usearch.index


def order_of(ids: Sequence[str]) -> Order:
    """(n,), the place of each id among all when sorted."""
    order = np.empty(len(ids), np.int32)
    order[np.asarray(sorted(range(len(ids)), key=ids.__getitem__), np.int64)] = np.arange(
        len(ids), dtype=np.int32
    )
    return order


class HnswIndex:
    """An `Index` over ids; in memory until it is saved, then mapped from its folder by `load`.

    Args:
        exact: True compares with all vectors, False uses the graph, None uses it from `EXACT_BELOW` vectors on.
    """

    def __init__(self, exact: bool | None = None) -> None:
        self._exact = exact
        self._ids: list[str] = []
        self._known: set[str] = set()
        self._parts: list[Vectors] = []
        self._dense: DenseRows | None = None

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, ids: Sequence[str], vectors: Vectors, /) -> None:
        """Add vectors, float32 (len(ids), dim), unit rows.

        Raises:
            UsageError: an id that is there already, lengths that differ, an index that was loaded. ModelError: bad
                vectors.
        """
        if self._dense is not None:
            raise UsageError("an index that was loaded or saved is not added to; make a new one")
        rows = check_vectors(vectors, self._parts[0].shape[1] if self._parts else None)
        if len(ids) != len(rows):
            raise UsageError(f"{len(ids)} ids and {len(rows)} vectors; there must be one for each")
        fresh = set(ids)
        if len(fresh) != len(ids) or fresh & self._known:
            raise UsageError("an id is there already; ids in an index must differ")
        self._known |= fresh
        self._ids.extend(ids)
        self._parts.append(rows)

    def search(self, vector: Vectors, k: int, /) -> Sequence[tuple[str, float]]:
        """(id, cosine) of the k nearest, best first, equal ones by id. UsageError: see `DenseRows.search`."""
        if self._dense is None and not self._parts:
            return []
        dense = self._dense or DenseRows(np.concatenate(self._parts), order_of(self._ids))
        rows, scores = dense.search(vector, k)
        return [(self._ids[row], float(score)) for row, score in zip(rows, scores, strict=True)]

    def save(self, folder: str, /) -> None:
        """Write vectors, ids and, where it is used, the graph into a folder; from then on they are read from there.

        Raises:
            UsageError: nothing was added, or the index was loaded.
        """
        if self._dense is not None or not self._parts:
            raise UsageError("there is nothing to save: add vectors first, and save once")
        to = Path(folder)
        to.mkdir(parents=True, exist_ok=True)
        write_vectors(to / VECTORS, self._parts, len(self._ids))
        (to / IDS).write_text(json.dumps(self._ids, ensure_ascii=False), encoding="utf-8")
        small = len(self._ids) < EXACT_BELOW if self._exact is None else self._exact
        if not small:
            build_graph(read_vectors(to / VECTORS), to / GRAPH)
        loaded = self.load(folder)
        self._dense, self._parts = loaded._dense, []

    @classmethod
    def load(cls, folder: str, /) -> HnswIndex:
        """Open what `save` wrote.

        Raises:
            UsageError: the folder holds none, or one that does not fit together.
        """
        at = Path(folder)
        try:
            ids = json.loads((at / IDS).read_text(encoding="utf-8"))
            vectors = read_vectors(at / VECTORS)
        except (OSError, ValueError) as error:
            raise UsageError(f"{at}: holds no saved index ({IDS}, {VECTORS})") from error
        if not isinstance(ids, list) or len(ids) != len(vectors):
            raise UsageError(f"{at}: {IDS} and {VECTORS} differ in length; build the index anew")
        index = cls()
        index._ids = [str(name) for name in ids]
        graph = at / GRAPH
        index._dense = DenseRows(vectors, order_of(index._ids), graph if graph.is_file() else None)
        return index


def write_vectors(file: Path, parts: Iterable[Vectors], count: int) -> None:
    """Parts of a matrix as one ``.npy`` file of `count` rows; memory holds one part."""
    at, mapped = 0, None
    for part in parts:
        if mapped is None:
            mapped = np.lib.format.open_memmap(file, "w+", np.float32, (count, part.shape[1]))
        mapped[at : at + len(part)] = part
        at += len(part)
    if mapped is not None:
        mapped.flush()
    if at != count:
        raise UsageError(f"{file}: {at:,} vectors for {count:,} rows; build the index anew")


def read_vectors(file: Path) -> Vectors:
    """A matrix mapped from its file. OSError, ValueError: it is none."""
    try:
        found: Vectors = np.load(file, mmap_mode="r", allow_pickle=False)
    except EOFError as error:
        raise ValueError(f"{file}: is empty") from error
    if found.ndim != 2 or found.dtype != np.float32:
        raise ValueError(f"{file}: no matrix of float32")
    return found.view(np.ndarray)  # still mapped; a memmap itself pays for its class at every slice

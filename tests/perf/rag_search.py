"""What hybrid search costs, and what the graph misses. ``python tests/perf/rag_search.py --data FOLDER``; not a test.

Real sentences of MedQuAD and PubMedQA are encoded once with MiniLM and kept in ``--cache``. Then, in this process:

    recall   share of the 10 nearest that the graph finds, on real vectors; sentences that are in no index are asked
    speed    milliseconds of one hybrid query over ``--chunks`` chunks of real text, beyond encoding it, against the
             same stages done with the libraries alone: bm25s, faiss's HNSW, a dictionary for the fusion

Of the chunks' vectors only the first are real; the others are real ones with noise, at a cosine of about 0.85 to them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clinsafe.adapters import hnsw
from clinsafe.corpus import Document
from clinsafe.protocols import ModelIdentity, Vectors
from clinsafe.rag.datasets import medquad, pubmedqa
from clinsafe.text import words
from clinsafe.workflows.rag_index import build_index

QUERIES, K, DEPTH = 200, 10, 100
NOISE = 0.62  # length of the noise beside a vector of length 1
WORDS, STEP = 60, 8  # of a chunk
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def sentences(data: Path, wanted: int) -> list[str]:
    """Different real sentences of both corpora, in a mixed and fixed order."""
    texts = [d.text for read in (medquad, pubmedqa) for d in read(data)[0]]
    found = list(
        dict.fromkeys(s for text in texts for s in _SENTENCE.split(text) if 6 <= len(s.split()) <= 40)
    )
    random.Random(0).shuffle(found)
    return found[:wanted]


def encoded(texts: Sequence[str], cache: Path) -> Vectors:
    """Their MiniLM vectors, from the cache where they are in it."""
    file = cache / f"minilm-{len(texts)}.npy"
    if not file.is_file():
        from clinsafe.adapters.sentence_transformers import load

        cache.mkdir(parents=True, exist_ok=True)
        np.save(file, load("minilm", offline=True).encode(texts), allow_pickle=False)
    found: Vectors = np.load(file, allow_pickle=False)
    return found


def around(real: Vectors, wanted: int) -> Vectors:
    """The real vectors, then noisy ones until there are enough."""
    generator = np.random.default_rng(0)
    base = real[np.arange(wanted) % len(real)]
    noise = generator.normal(size=base.shape).astype(np.float32)
    noise *= NOISE / np.linalg.norm(noise, axis=1, keepdims=True)
    noise[: min(len(real), wanted)] = 0
    rows = base + noise
    return np.ascontiguousarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def passages(data: Path, wanted: int) -> list[str]:
    """Overlapping windows of real text."""
    found: list[str] = []
    for document in (d for read in (medquad, pubmedqa) for d in read(data)[0]):
        parts = document.text.split()
        found += [" ".join(parts[at : at + WORDS]) for at in range(0, max(len(parts) - WORDS, 1), STEP)]
    random.Random(0).shuffle(found)
    repeated = [f"{text} {n}" for n in range(wanted // len(found) + 1) for text in found]
    return repeated[:wanted]


class Given:
    """An encoder whose vectors are there already, in the order in which they are asked for."""

    def __init__(self, vectors: Vectors) -> None:
        self.identity = ModelIdentity("given", fake=True)
        self._parts: Iterator[Any] = iter(vectors)

    def encode(self, texts: Sequence[str], /) -> Vectors:
        return np.stack([next(self._parts) for _ in texts])


def times(ask: Callable[[int], Any], n: int) -> list[float]:
    """Milliseconds of each call, in order; the first few are warming up and not counted."""
    for number in range(5):
        ask(number)
    found = []
    for number in range(n):
        begun = time.perf_counter()
        ask(number)
        found.append((time.perf_counter() - begun) * 1000)
    return found


def shown(found: Sequence[float]) -> dict[str, float]:
    ordered = sorted(found)
    p95 = ordered[min(int(0.95 * len(ordered)), len(ordered) - 1)]
    return {"median_ms": round(statistics.median(ordered), 3), "p95_ms": round(p95, 3), "n": len(ordered)}


def faiss_graph(vectors: Vectors) -> Any:
    import faiss

    faiss.omp_set_num_threads(1)
    graph = faiss.IndexHNSWFlat(vectors.shape[1], hnsw.CONNECTIVITY, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction, graph.hnsw.efSearch = hnsw.EF_CONSTRUCTION, hnsw.EF
    graph.add(vectors)
    return graph


def recall(real: Vectors, folder: Path) -> dict[str, Any]:
    """Recall@10 of both libraries' graphs on real vectors, with the same M and ef."""
    asked, kept = real[:QUERIES], np.ascontiguousarray(real[QUERIES:])
    order = np.arange(len(kept), dtype=np.int32)
    hnsw.build_graph(kept, folder / "real.usearch")
    ours = hnsw.DenseRows(kept, order, folder / "real.usearch")
    theirs = faiss_graph(kept)
    hits = {"usearch": 0, "faiss": 0}
    for query in asked:
        wanted = set(ours.search(query, K, exact=True)[0].tolist())
        hits["usearch"] += len(wanted & set(ours.search(query, K)[0].tolist()))
        hits["faiss"] += len(wanted & set(theirs.search(query[None], K)[1][0].tolist()))
    shares = {name: round(count / (K * len(asked)), 4) for name, count in hits.items()}
    return {"vectors": len(kept), "queries": len(asked), "recall_at_10": shares}


def libraries_alone(index: Any, vectors: Vectors, built: dict[str, float]) -> Callable[[str, Vectors], Any]:
    """The same query with bm25s and faiss, nothing around them."""
    import bm25s

    begun = time.perf_counter()
    graph = faiss_graph(vectors)
    built["faiss_graph_s"] = round(time.perf_counter() - begun, 1)
    sparse = bm25s.BM25.load(str(index.folder / "bm25"), mmap=True, load_vocab=True)

    def ask(query: str, vector: Vectors) -> Any:
        known = [word for word in words(query) if word in sparse.vocab_dict]
        found = graph.search(vector[None], DEPTH)[1][0].tolist()
        scores = sparse.get_scores(known)
        best = np.argpartition(scores, -DEPTH)[-DEPTH:]
        ranked = best[np.argsort(-scores[best])].tolist()
        fused: dict[int, float] = {}
        for ranking in (found, ranked):
            for rank, row in enumerate(ranking, start=1):
                fused[row] = fused.get(row, 0) + 0.5 / (60 + rank)
        return sorted(fused.items(), key=lambda pair: -pair[1])[:3]

    return ask


def speed(data: Path, texts: Sequence[str], real: Vectors, chunks: int, folder: Path) -> dict[str, Any]:
    vectors = around(real[QUERIES:], chunks)
    documents = [Document(f"p{n}", text, f"p{n}") for n, text in enumerate(passages(data, chunks))]
    built: dict[str, float] = {}
    at = [time.perf_counter()]

    def told(stage: str, done: int, total: int) -> None:
        if done == total:
            built[f"{stage}_s"] = round(time.perf_counter() - at[0], 1)
            at[0] = time.perf_counter()

    index = build_index(documents, Given(vectors), folder / "index", on_progress=told)
    at[0] = time.perf_counter()
    again = build_index(documents, Given(vectors), folder / "index")
    built["open_unchanged_s"] = round(time.perf_counter() - at[0], 1)
    assert again.reused and len(index) == chunks  # noqa: PT018
    queries, asked = list(texts[:QUERIES]), real[:QUERIES]

    def ask(n: int, **options: Any) -> Any:
        return index.search(queries[n], 3, depth=DEPTH, vector=asked[n], **options)

    alone = libraries_alone(index, vectors, built)
    ours, theirs = (
        times(lambda n: ask(n, alpha=0.5), QUERIES),
        times(lambda n: alone(queries[n], asked[n]), QUERIES),
    )
    found = [ask(n, alpha=0.5) for n in range(QUERIES)]
    stages = {s: shown([f.milliseconds[s] for f in found]) for s in ("dense", "sparse", "total")}
    graph, exact = index.search, hnsw.DenseRows(index.vectors, np.arange(chunks, dtype=np.int32))
    hits = sum(
        len(
            {h.id for h in graph(asked[n], K, 1.0).dense[:K]}
            & {f"p{r}#0" for r in exact.search(asked[n], K)[0]}
        )
        for n in range(QUERIES)
    )
    return {
        "chunks": chunks,
        "hybrid": shown(ours),
        "libraries_alone": shown(theirs),
        "ratio_of_medians": round(statistics.median(ours) / statistics.median(theirs), 3),
        "stages": stages,
        "with_mmr": shown(times(lambda n: ask(n, alpha=0.5, mmr=0.5), QUERIES)),
        "bm25_only": shown(times(lambda n: ask(n, alpha=0.0), QUERIES)),
        "vectors_only": shown(times(lambda n: ask(n, alpha=1.0), QUERIES)),
        "exact_dense": shown(times(lambda n: exact.search(asked[n], K), 30)),
        "recall_at_10_noisy": round(hits / (K * QUERIES), 4),
        "built": built,
        "index_mb": round(sum(f.stat().st_size for f in index.folder.rglob("*") if f.is_file()) / 1e6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("CLINSAFE_DATA", ".")))
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "clinsafe-rag-vectors")
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--sentences", type=int, default=6_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    texts = sentences(given.data, given.sentences)
    real = encoded(texts, given.cache)
    with tempfile.TemporaryDirectory() as folder:
        result = {
            "recall": recall(real, Path(folder)),
            "speed": speed(given.data, texts, real, given.chunks, Path(folder)),
        }
    result["peak_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    result["load"] = [round(one, 1) for one in os.getloadavg()]
    text = json.dumps(result, indent=1)
    print(text)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

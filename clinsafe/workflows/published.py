"""The paper's 38 public pairs, scored by a model of today: the nearest that anybody can come to its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clinsafe.benchmarks.outcomes import TOLERANCE
from clinsafe.benchmarks.paper38 import PaperPair, load_paper38
from clinsafe.content import Content
from clinsafe.protocols import Encoder, PairScorer, QueryEncoder


@dataclass(frozen=True, slots=True)
class Paper38Row:
    """One hazard: n pairs, mean and sample SD of their scores, and how many lie above the paper's threshold."""

    hazard: str
    n: int
    mean: float
    sd: float
    above: int


def score_paper38(system: Encoder | PairScorer, threshold: float, content: Content) -> list[Paper38Row]:
    """Score all 38 pairs, first sentence as the query; ties count as above."""
    pairs = load_paper38(content)
    scores = dict(zip((pair.id for pair in pairs), _scores(system, pairs), strict=True))
    rows = []
    for hazard in dict.fromkeys(pair.hazard for pair in pairs):
        values = np.asarray([scores[pair.id] for pair in pairs if pair.hazard == hazard])
        above = int((values > threshold - TOLERANCE).sum())
        rows.append(Paper38Row(hazard, len(values), float(values.mean()), float(values.std(ddof=1)), above))
    return rows


def _scores(system: Encoder | PairScorer, pairs: Sequence[PaperPair]) -> np.ndarray:
    texts = [(pair.a, pair.b) for pair in pairs]
    if isinstance(system, Encoder):
        ask = system.encode_queries if isinstance(system, QueryEncoder) else system.encode
        queries = ask([a for a, _ in texts]).astype(np.float64)
        passages = system.encode([b for _, b in texts]).astype(np.float64)
        norms = np.linalg.norm(queries, axis=1) * np.linalg.norm(passages, axis=1)
        return np.asarray((queries * passages).sum(axis=1) / norms)
    return np.asarray(system.score(texts), dtype=np.float64)

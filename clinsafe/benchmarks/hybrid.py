"""The paper's hybrid retrieval (section 8.4: dense with BM25), scored from what the two gave by themselves.

The paper names no fusion; ours is the plain mean of both scores, printed wherever the figures stand. It is a row that
shows whether adding word overlap helps, and has no threshold: half a cosine and half a share is neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clinsafe.benchmarks.scoring import DECIMALS, CaseResult
from clinsafe.protocols import ModelIdentity
from clinsafe.stats import NotMeasured

FORMULA = "0.5 x cosine + 0.5 x BM25 share"


def fuse(dense: Sequence[CaseResult], sparse: Sequence[CaseResult]) -> list[CaseResult]:
    """Mean of both scores, pair by pair; not measured where either is not."""
    other = {result.id: result.scores for result in sparse}
    return [replace(result, scores=_mean(result.scores, other.get(result.id))) for result in dense]


def identity(dense: ModelIdentity, sparse: ModelIdentity) -> ModelIdentity:
    """What the row is called, and how it was made."""
    return ModelIdentity(
        name=f"hybrid of {dense.name.rpartition('/')[2]} and {sparse.name}",
        settings={"formula": FORMULA, "dense": dense.name, "sparse": sparse.name},
        fake=dense.fake or sparse.fake,
        kind="hybrid",
    )


def _mean(dense: object, sparse: object) -> dict[str, float] | NotMeasured:
    if not isinstance(dense, dict) or not isinstance(sparse, dict):
        return dense if isinstance(dense, NotMeasured) else NotMeasured("the sparse side was not measured")
    return {
        pair: round((value + sparse[pair]) / 2, DECIMALS) for pair, value in dense.items() if pair in sparse
    }

"""What counts as a fault of the model in one case (decision D1).

Ties count against the model, and so does anything within `TOLERANCE` of a limit: fp32 cosines move by
less than that between batch sizes, so no verdict can depend on them.
"""

from __future__ import annotations

import math

from clinsafe.benchmarks.scoring import PairScores
from clinsafe.protocols import SystemKind

TOLERANCE = 1e-5
SMALLEST = 1e-12


def ranked(scores: PairScores, kind: SystemKind) -> PairScores:
    """The scores on the scale on which ties are judged: a cross-encoder's logits, anything else as it is.

    Near 0 and 1 a sigmoid squeezes logits that differ plainly into probabilities that seem tied.
    """
    if kind != "cross-encoder":
        return scores
    inside = {name: min(max(p, SMALLEST), 1 - SMALLEST) for name, p in scores.items()}
    return {name: math.log(p / (1 - p)) for name, p in inside.items()}


def failed(scores: PairScores, limit: float) -> bool:
    """s(a,b) > t: the contradicting pair is called alike."""
    return scores["a|b"] > limit - TOLERANCE


def same_missed(scores: PairScores, limit: float) -> bool:
    """The other half of `failed`: a same-meaning pair of the case is called unlike at the same limit."""
    return min(scores["a|a_same"], scores["b|b_same"]) <= limit + TOLERANCE


def inverted(scores: PairScores) -> bool:
    """s(a,b) >= s(a,a_same): the contradicting sentence is preferred to the same-meaning one."""
    return scores["a|b"] >= scores["a|a_same"] - TOLERANCE


def inverted_any(scores: PairScores) -> bool:
    """Inverted from either side of the case."""
    return inverted(scores) or scores["b|a"] >= scores["b|b_same"] - TOLERANCE


def pairwise(scores: PairScores) -> bool:
    """Both paraphrases find their own sentence first (as NevIR); chance is 0.25."""
    return (
        scores["a_same|a"] > scores["a_same|b"] + TOLERANCE
        and scores["b_same|b"] > scores["b_same|a"] + TOLERANCE
    )

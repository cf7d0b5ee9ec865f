"""Maximal marginal relevance (Carbonell and Goldstein 1998): passages that are relevant and not each other's copies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from clinsafe.errors import UsageError
from clinsafe.protocols import Vectors


def mmr(scores: Sequence[float], vectors: Vectors, k: int, balance: float) -> list[int]:
    """Which passages to show, one after another: each time the one with the greatest
    ``balance * relevance - (1 - balance) * greatest cosine to those taken before``.

    Relevance is the score, spread over [0, 1] among the passages given, so that ranks and cosines can be weighed.

    Args:
        scores: of the passages, falling; of any scale.
        vectors: (len(scores), dim), unit rows.
        k: how many to take; all where there are fewer.
        balance: lambda, in [0, 1]; 1 leaves the order as it is.

    Returns:
        Positions in `scores`, best first; what is equally good comes in the order given.

    Raises:
        UsageError: a balance outside [0, 1], k below 1, a score or a vector that is not finite, lengths that differ.
    """
    check_balance(balance)
    relevance = np.asarray(scores, np.float64)
    rows = np.asarray(vectors, np.float32)
    if k < 1:
        raise UsageError(f"k is {k}; at least one passage must be taken")
    if rows.ndim != 2 or len(rows) != len(relevance):
        raise UsageError(
            f"{len(relevance)} scores and vectors of shape {rows.shape}: there must be a row for each"
        )
    if not (np.isfinite(relevance).all() and np.isfinite(rows).all()):
        raise UsageError("a score or a vector is NaN or infinite; all must be finite")
    if not len(relevance):
        return []
    width = np.ptp(relevance)
    relevance = (relevance - relevance.min()) / width if width > 0 else np.ones(len(relevance))
    nearest = np.zeros(len(relevance))  # to none so far
    free = np.ones(len(relevance), bool)
    taken: list[int] = []
    for _ in range(min(k, len(relevance))):
        worth = np.where(free, balance * relevance - (1 - balance) * nearest, -np.inf)
        best = int(np.argmax(worth))  # the first of several
        cosines = (rows @ rows[best]).astype(np.float64)
        nearest = np.maximum(nearest, cosines) if taken else cosines
        free[best] = False
        taken.append(best)
    return taken


def check_balance(balance: float) -> None:
    """Raises UsageError: not in [0, 1]."""
    if isinstance(balance, bool) or not math.isfinite(balance) or not 0 <= balance <= 1:
        raise UsageError(f"mmr {balance} is outside [0, 1]; 1 is relevance alone, 0 variety alone")

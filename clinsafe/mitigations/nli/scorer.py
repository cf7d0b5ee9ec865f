"""What the NLI filter asks of a model, and what it makes of the answers: nothing that is no probability passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clinsafe.protocols import ModelIdentity, TextPair

CONTRADICTION = 0  # column
_NEAR = 1e-3


class NliScorer(Protocol):
    """A three-way NLI model; `clinsafe.adapters.nli.NliModel` is one."""

    identity: ModelIdentity

    def probabilities(self, pairs: Sequence[TextPair], /) -> NDArray[np.float64]:
        """(len(pairs), 3), rows sum to 1: contradiction, entailment, neutral."""
        ...

    def truncates(self, pairs: Sequence[TextPair], /) -> NDArray[np.bool_]:
        """(len(pairs),), True where only a part of the pair is read."""
        ...


def contradiction(model: NliScorer, pairs: Sequence[TextPair]) -> NDArray[np.float64]:
    """(len(pairs),) in [0, 1]: the higher probability of contradiction of the two directions.

    Entailment is not looked at: a pair may look entailed in one direction and contradict in the other.

    Raises:
        ValueError: the model's answer has another shape, or is no probability (NaN would pass for "no contradiction").
    """
    if not pairs:
        return np.zeros(0)
    both = [*pairs, *((other, one) for one, other in pairs)]
    answer = np.asarray(model.probabilities(both), dtype=np.float64)
    if answer.shape != (len(both), 3):
        raise ValueError(f"the NLI model gave an array of shape {answer.shape} for {len(both)} pairs")
    if not np.isfinite(answer).all() or (answer < 0).any() or (np.abs(answer.sum(axis=1) - 1) > _NEAR).any():
        raise ValueError("the NLI model gave what is no probability")
    column = answer[:, CONTRADICTION]
    return np.asarray(np.maximum(column[: len(pairs)], column[len(pairs) :]), dtype=np.float64)

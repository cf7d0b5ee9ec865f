"""Word-overlap baselines: what a model must beat before it can claim to understand anything."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clinsafe.protocols import ModelIdentity, TextPair
from clinsafe.text import words


class TokenJaccard:
    """A `PairScorer`: shared share of word types, in [0, 1]; knows nothing of order or meaning."""

    identity = ModelIdentity(name="token Jaccard", settings={"activation": "none", "range": "0..1"})

    def score(self, pairs: Sequence[TextPair], /) -> NDArray[np.float64]:
        """|A ∩ B| / |A ∪ B| over word types; two texts without words score 0."""
        return np.asarray([_jaccard(set(words(x)), set(words(y))) for x, y in pairs], dtype=np.float64)


def _jaccard(x: set[str], y: set[str]) -> float:
    return len(x & y) / len(x | y) if x | y else 0.0


def load(_name: str = "", **_options: object) -> TokenJaccard:
    """Entry point ``token-jaccard``."""
    return TokenJaccard()

"""Cosine of answer and reference by an embedding model, all questions in one go. Blind to negation, doses and order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from clinsafe.errors import ModelError
from clinsafe.stats import Array

Encode: TypeAlias = Callable[[Sequence[str]], Any]
"""Texts -> (n, dim), one row a text, in their order; rows need not be of unit length."""
NO_ENCODER = "no encoder"
NO_VECTOR = "the encoder gave no finite vector"


class Cosines:
    """Vectors of all texts that are asked for, each text encoded once.

    Args:
        texts: every text that `of` will be asked for.
        encode: the model.

    Raises:
        ModelError: it does not give one row for each text.
    """

    def __init__(self, texts: Iterable[str], encode: Encode) -> None:
        asked = list(dict.fromkeys(texts))
        self._rows = {text: row for row, text in enumerate(asked)}
        self._vectors: Array = _unit(encode(asked), len(asked)) if asked else np.zeros((0, 1))

    def of(self, a: str, b: str) -> float | None:
        """Cosine, clipped to [0, 1]; None where a vector is not finite or has no length."""
        cosine = float(self._vectors[self._rows[a]] @ self._vectors[self._rows[b]])
        return min(1.0, max(0.0, cosine)) if np.isfinite(cosine) else None


def _unit(given: Any, wanted: int) -> Array:
    vectors = np.asarray(given, dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != wanted:
        raise ModelError(f"the encoder gave an array of shape {vectors.shape}; valid is ({wanted}, dim)")
    with np.errstate(invalid="ignore", over="ignore"):
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unusable = ~np.isfinite(lengths) | (lengths == 0)
        unit: Array = np.where(unusable, np.nan, vectors / np.where(unusable, 1.0, lengths))
    return unit

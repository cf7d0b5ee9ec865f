"""Deterministic fakes, shipped so that tests, demonstrations and users share them.

They mark themselves ``fake``: a report made with one is watermarked and cannot be released, and no
figure of theirs may be published.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from clinsafe.errors import UnknownModel
from clinsafe.protocols import ModelIdentity, Vectors

DIMENSION = 64


@lru_cache(maxsize=4096)  # words come again and again
def _hashed(text: str) -> Vectors:
    """A direction that depends on every character: unlike texts are nearly orthogonal."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    direction: Vectors = np.random.default_rng(seed).normal(size=DIMENSION).astype(np.float32)
    direction.flags.writeable = False
    return direction


def _words(text: str) -> Vectors:
    """Sum of word directions: blind to order, sensitive to every word."""
    rows = np.stack([_hashed(word) for word in text.lower().split()] or [_hashed("")])
    total: Vectors = rows.sum(axis=0)
    return total


def _constant(_text: str) -> Vectors:
    """Calls everything alike."""
    return np.ones(DIMENSION, dtype=np.float32)


KINDS: dict[str, Callable[[str], Vectors]] = {"hash": _hashed, "words": _words, "constant": _constant}


class FakeEncoder:
    """An `Encoder` without weights: ``hash``, ``words`` or ``constant``."""

    def __init__(self, kind: str) -> None:
        if kind not in KINDS:
            raise UnknownModel(f"no fake encoder is called {kind!r}; there are: {', '.join(sorted(KINDS))}")
        self._vector = KINDS[kind]
        self.identity = ModelIdentity(
            name=f"fake:{kind}", settings={"dimension": str(DIMENSION), "dtype": "float32"}, fake=True
        )

    def encode(self, texts: Sequence[str], /) -> Vectors:
        """float32 (len(texts), 64), unit rows."""
        rows = np.stack([self._vector(text) for text in texts]) if texts else np.zeros((0, DIMENSION))
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


class LookupEncoder:
    """An `Encoder` that returns the vectors it was given: for known-answer tests.

    Args:
        vectors: text -> direction; need not be unit rows.
        default: direction of every other text.
    """

    def __init__(self, vectors: dict[str, Sequence[float]], default: Sequence[float]) -> None:
        self._vectors, self._default = vectors, default
        self.identity = ModelIdentity(name="fake:lookup", settings={"dtype": "float32"}, fake=True)

    def encode(self, texts: Sequence[str], /) -> Vectors:
        """float32 (len(texts), dim); rows are normalised except zero and non-finite ones."""
        rows = np.asarray([self._vectors.get(text, self._default) for text in texts], dtype=np.float64)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.where(norms > 0, norms, 1.0), dtype=np.float32)


def load(name: str, **_: object) -> FakeEncoder:
    """Entry point ``fake``: ``--model fake:hash``. Options of real encoders are ignored."""
    return FakeEncoder(name)

"""The job ``embed``: a vector for each passage, by an encoder named as for ``clinsafe audit --model``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from clinsafe.adapters.encoders import load_model
from clinsafe.corpus import Window
from clinsafe.errors import ModelError, UsageError
from clinsafe.protocols import Encoder
from clinsafe.scale.job import Failed, Job, Work

PROBE = "The patient has a penicillin allergy."


def start(job: Job) -> Work:
    """The encoder; a probe sentence says how long its vectors are.

    Raises:
        ClinsafeError: see `clinsafe.adapters.encoders.load_model`; a model that scores pairs; one that fails at once.
    """
    if not job.model:
        raise UsageError("the job embed needs a model: --model minilm, a folder, a hub id or endpoint:NAME")
    encoder = load_model(job.model, job.options.meant_for(job.model))
    if not isinstance(encoder, Encoder):
        raise UsageError(
            f"model {encoder.identity.name!r} scores pairs and gives no vectors; name an encoder"
        )
    probe = np.asarray(encoder.encode([PROBE]))
    if probe.ndim != 2 or len(probe) != 1 or not probe.shape[1]:
        raise ModelError(f"model {encoder.identity.name!r} gave an array of shape {probe.shape} for one text")
    width = int(probe.shape[1])
    made_with = {"model": asdict(encoder.identity), "width": width}
    return Work(_Embedder(encoder, width).run, made_with, width)


class _Embedder:
    """Encodes batches; a vector that nobody could search with is a failure."""

    def __init__(self, encoder: Encoder, width: int) -> None:
        self.encoder, self.width = encoder, width

    def run(self, rows: Sequence[Window]) -> list[Any]:
        vectors = np.asarray(self.encoder.encode([row.text for row in rows]), dtype=np.float32)
        if vectors.shape != (len(rows), self.width):
            return [Failed("WrongShape")] if len(rows) == 1 else []  # none of many: each is tried alone
        return [self._checked(vector) for vector in vectors]

    @staticmethod
    def _checked(vector: Any) -> Any:
        if not np.isfinite(vector).all():
            return Failed("NotFinite")
        return vector if np.linalg.norm(vector) > 0 else Failed("ZeroVector")

"""sentence-transformers encoders: hub id, folder or alias; torch, fp32."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from clinsafe.adapters.weights import ModelFolder, resolve
from clinsafe.errors import MissingDependency, ModelError
from clinsafe.protocols import ModelIdentity, Vectors

INSTALL = "pip install 'clinsafe[audit]'"


class SentenceTransformerEncoder:
    """An `Encoder` over a sentence-transformers model.

    Args:
        folder: vetted files, from `clinsafe.adapters.weights.resolve`.
        device: torch device; None lets the library choose.
        batch_size: texts per forward pass; no verdict may depend on it.
    """

    def __init__(self, folder: ModelFolder, *, device: str | None = None, batch_size: int = 32) -> None:
        library = _library()
        try:
            self._model: Any = library.SentenceTransformer(
                str(folder.path),
                device=device,
                local_files_only=True,
                trust_remote_code=folder.trusted_code,
                model_kwargs={} if folder.trusted_code else {"use_safetensors": True},
            )
        except Exception as error:  # any loader fault means: this folder is not a usable model
            raise ModelError(
                f"model {folder.name!r} cannot be loaded by sentence-transformers: "
                f"{type(error).__name__}: {str(error)[:200]}"
            ) from error
        self._batch_size = batch_size
        self.identity = ModelIdentity(
            name=folder.name,
            revision=folder.revision,
            files=folder.files,
            settings=self._settings(library.__version__, folder.origin),
            trusted_code=folder.trusted_code,
        )

    def encode(self, texts: Sequence[str], /) -> Vectors:
        """float32 (len(texts), dim), unit rows."""
        vectors = self._model.encode(
            list(texts),
            batch_size=self._batch_size,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.asarray(vectors, dtype=np.float32)

    def _settings(self, version: str, origin: str) -> dict[str, str]:
        pooling = [m.get_config_dict() for m in self._model if type(m).__name__ == "Pooling"]
        return {
            "encoder": f"sentence-transformers {version}, torch",
            "origin": origin,
            "dimension": str(self._model.get_embedding_dimension()),
            "pooling": ", ".join(str(p.get("pooling_mode", p)) for p in pooling) or "none",
            "max_tokens": str(self._model.max_seq_length),
            "dtype": str(next(self._model.parameters()).dtype).removeprefix("torch."),
            "device": str(self._model.device),
            "batch_size": str(self._batch_size),
            "prompts": ", ".join(k for k, v in (self._model.prompts or {}).items() if v) or "none",
        }


def load(name: str, *, revision: str | None = None, device: str | None = None, batch_size: int = 32,
         offline: bool = False, trust_remote_code: bool = False) -> SentenceTransformerEncoder:  # fmt: skip
    """Entry point ``sentence-transformers``: resolve, vet and load.

    Raises:
        ModelError and its kinds, MissingDependency.
    """
    folder = resolve(name, revision=revision, offline=offline, trust_remote_code=trust_remote_code)
    return SentenceTransformerEncoder(folder, device=device, batch_size=batch_size)


def _library() -> Any:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        import sentence_transformers
    except ImportError as error:
        raise MissingDependency("auditing this model", "sentence-transformers", INSTALL) from error
    from transformers.utils import logging

    # loading has a line of our own; a second bar garbles it
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    return sentence_transformers

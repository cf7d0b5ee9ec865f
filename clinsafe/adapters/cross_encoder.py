"""Cross-encoders (rerankers): both texts go through the model together and one logit comes out.

Decision D8: the logit is always taken raw and passed through our own sigmoid, whatever activation the
model's configuration names, so that a threshold of 0.5 means the same for every one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clinsafe.adapters.sentence_transformers import is_classifier, library, load_folder
from clinsafe.adapters.weights import ModelFolder
from clinsafe.errors import ModelError
from clinsafe.protocols import ModelIdentity, TextPair

ACTIVATION = "sigmoid"


class CrossEncoderScorer:
    """A `PairScorer` over a sentence-transformers ``CrossEncoder``; torch.

    Args:
        folder: vetted files, from `clinsafe.adapters.weights.resolve`.
        device: torch device; None lets the library choose.
        batch_size: pairs per forward pass; no verdict may depend on it.

    Raises:
        ModelError: the folder cannot be loaded, has more than one label, or lacks the weights of its head.
    """

    def __init__(self, folder: ModelFolder, *, device: str | None = None, batch_size: int = 32) -> None:
        version = library().__version__
        from torch.nn import Identity

        self._model = load_folder("CrossEncoder", folder, device, activation_fn=Identity())
        refuse_labels(folder.name, int(self._model.num_labels))
        refuse_random_head(folder, self._model.model)
        self._batch_size = batch_size
        self.identity = ModelIdentity(
            name=folder.name,
            revision=folder.revision,
            files=folder.files,
            settings=self._settings(version, folder),
            trusted_code=folder.trusted_code,
            kind="cross-encoder",
        )

    def score(self, pairs: Sequence[TextPair], /) -> NDArray[np.float64]:
        """(len(pairs),), sigmoid of the logit, in [0, 1]."""
        logits = self._model.predict(
            [list(pair) for pair in pairs],
            batch_size=self._batch_size,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return sigmoid(logits)

    def _settings(self, version: str, folder: ModelFolder) -> dict[str, str]:
        own_prompt = getattr(self._model, "default_prompt_name", None)
        return {
            "scorer": f"sentence-transformers {version}, torch",
            "origin": folder.origin,
            "activation": ACTIVATION,
            "max_tokens": str(self._model.tokenizer.model_max_length),
            "dtype": str(next(self._model.parameters()).dtype).removeprefix("torch."),
            "device": str(self._model.device),
            "batch_size": str(self._batch_size),
            "prompts": f"model configuration ({own_prompt})" if own_prompt else "none",
        }


def refuse_random_head(folder: ModelFolder, transformer: Any) -> None:
    """The library makes up a head that the files lack, and says so only in a log: every score would be chance."""
    from safetensors import safe_open

    files = list(folder.path.rglob("*.safetensors"))
    stored: set[str] = set()
    for file in files:
        with safe_open(str(file), framework="pt") as opened:
            stored.update(opened.keys())
    inside = f"{transformer.base_model_prefix}."
    head = [name for name, _ in transformer.named_parameters() if not name.startswith(inside)]
    if files and head and stored.isdisjoint(head):
        raise ModelError(
            f"model {folder.name!r} has no trained head: its files lack {', '.join(head[:2])}, so it would score "
            "at random; give a cross-encoder whose files are complete"
        )


def sigmoid(logits: ArrayLike) -> NDArray[np.float64]:
    """1 / (1 + exp(-logit)) in double precision, so that logits of 20 and 21 still differ."""
    from scipy.special import expit

    return np.asarray(expit(np.asarray(logits, dtype=np.float64)), dtype=np.float64)


def refuse_labels(name: str, labels: int) -> None:
    """A model with more than one label is no reranker.

    Raises:
        ModelError: says what the model is instead.
    """
    if labels != 1:
        raise ModelError(
            f"model {name!r} has {labels} labels: it is a classifier. An NLI model, for example, says whether a pair "
            "is an entailment, neutral or a contradiction, not how relevant a passage is, and is no reranker; give a "
            "cross-encoder with one logit"
        )


def logit_output(folder: ModelFolder, shapes: Mapping[str, tuple[int, ...]]) -> str | None:
    """Which output of an ONNX graph holds one logit a pair; None where the graph has no logits.

    Args:
        folder: its config.json may say that the model is a classifier, whatever the outputs are called.
        shapes: output name -> shape for one input.

    Raises:
        ModelError: it has logits, but not one.
    """
    classifier = is_classifier(folder.path)
    for name, shape in shapes.items():
        if name == "logits" and len(shape) == 3:
            raise ModelError(
                f"model {folder.name!r} gives a logit for each word of its vocabulary: it is a language "
                "model, neither an encoder nor a reranker"
            )
        if len(shape) == 2 and (name == "logits" or classifier or shape[1] == 1):
            refuse_labels(folder.name, shape[1])
            return name
    return None

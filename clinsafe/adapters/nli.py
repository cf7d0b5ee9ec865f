"""NLI cross-encoders: does one sentence contradict the other, follow from it, or neither?

The order of a model's outputs is read from its configuration, never assumed: hub models differ in it, and an order
mistaken turns every entailment into a contradiction. A model that does not name its outputs is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinsafe.adapters.cross_encoder import refuse_random_head
from clinsafe.adapters.sentence_transformers import (
    is_classifier,
    library,
    load_folder,
    max_tokens,
    read_json,
)
from clinsafe.adapters.weights import ModelFolder, resolve
from clinsafe.errors import ModelError, UsageError
from clinsafe.protocols import ModelIdentity, TextPair

LABELS = ("contradiction", "entailment", "neutral")
"""The columns of what `NliModel.probabilities` gives."""
ALIASES = {
    "nli-minilm": "cross-encoder/nli-MiniLM2-L6-H768",
    "nli-deberta-small": "cross-encoder/nli-deberta-v3-small",
}
"""Short name -> hub id. No package ships such weights, so no hash is pinned; the identity holds what was loaded."""
_WRITTEN_AS = {
    "contradiction": ("contradiction", "contradictory", "contradicts", "contradict", "contradicted"),
    "entailment": ("entailment", "entails", "entail", "entailed"),
    "neutral": ("neutral",),
}
_MEANS = {word: label for label, words in _WRITTEN_AS.items() for word in words}
_HOW = f"give the meaning of its outputs in their order, as in labels={LABELS!r}"


class NliModel:
    """A three-way NLI classifier over torch. Safe to call from several threads.

    Args:
        folder: vetted files, from `clinsafe.adapters.weights.resolve`.
        labels: what the outputs mean, in the model's order; None reads ``id2label`` of its configuration.
        device: torch device; None lets the library choose.
        batch_size: pairs per forward pass; no verdict may depend on it.

    Attributes:
        truncated: how many pairs so far were longer than the model reads and lost the end of their longer side.

    Raises:
        ModelError: the folder cannot be loaded, is no classifier of three outputs, lacks the weights of its head, or
            does not say which output means what.
        UsageError: `labels` are not the three.
    """

    def __init__(
        self,
        folder: ModelFolder,
        *,
        labels: Sequence[str] | None = None,
        device: str | None = None,
        batch_size: int = 32,
    ) -> None:
        if batch_size < 1:
            raise UsageError(f"a batch of {batch_size} pairs cannot be run; the batch size is at least 1")
        self._columns = _columns(folder, labels)  # before the weights are read
        version = library().__version__
        from torch.nn import Identity

        self._model = load_folder("CrossEncoder", folder, device, activation_fn=Identity())
        self._model.eval()
        if int(self._model.num_labels) != len(LABELS):
            raise ModelError(_not_three(folder.name, int(self._model.num_labels)))
        refuse_random_head(folder, self._model.model)
        self._batch_size, self._longest = batch_size, max_tokens(folder.path)[0]
        self._tokenizing, self.truncated = threading.Lock(), 0
        self.identity = ModelIdentity(
            name=folder.name,
            revision=folder.revision,
            files=folder.files,
            settings=self._settings(version, folder, given=labels is not None),
            trusted_code=folder.trusted_code,
            kind="cross-encoder",
        )

    def probabilities(self, pairs: Sequence[TextPair], /) -> NDArray[np.float64]:
        """(len(pairs), 3) in [0, 1], rows sum to 1; columns are contradiction, entailment, neutral.

        The first text of a pair is the premise, the second the hypothesis. A pair that is longer than the model reads
        loses the end of its longer side, is counted in `truncated` and named by `truncates`.

        Raises:
            ModelError: the model gave something that is no number.
        """
        from scipy.special import softmax

        parts = [
            self._logits(pairs[start : start + self._batch_size])
            for start in range(0, len(pairs), self._batch_size)
        ]
        logits = np.concatenate(parts) if parts else np.zeros((0, len(LABELS)))
        if not np.isfinite(logits).all():
            raise ModelError(f"model {self.identity.name!r} gives NaN or infinity; its weights are damaged")
        return np.asarray(softmax(logits[:, self._columns], axis=1), dtype=np.float64)

    def truncates(self, pairs: Sequence[TextPair], /) -> NDArray[np.bool_]:
        """(len(pairs),), True where the model reads only a part of the pair."""
        if not pairs:
            return np.zeros(0, dtype=np.bool_)
        with self._tokenizing:
            return np.asarray([length > self._longest for length in self._lengths(pairs)], dtype=np.bool_)

    def _logits(self, pairs: Sequence[TextPair]) -> NDArray[np.float64]:
        import torch

        # A fast tokenizer keeps padding and truncation as state and fails where two threads set them at once.
        with self._tokenizing:
            self.truncated += sum(length > self._longest for length in self._lengths(pairs))
            features = self._model.tokenizer(
                [one for one, _ in pairs],
                [other for _, other in pairs],
                padding=True,
                truncation="longest_first",
                max_length=self._longest,
                return_tensors="pt",
            )
        with torch.inference_mode():
            logits = self._model.model(**features.to(self._model.device)).logits
        return np.asarray(logits.float().cpu().numpy(), dtype=np.float64)

    def _lengths(self, pairs: Sequence[TextPair]) -> list[int]:
        """Tokens of each whole pair; only with the lock held."""
        whole = self._model.tokenizer(
            [one for one, _ in pairs],
            [other for _, other in pairs],
            padding=False,
            truncation=False,
            verbose=False,
        )
        return [len(ids) for ids in whole["input_ids"]]

    def _settings(self, version: str, folder: ModelFolder, given: bool) -> dict[str, str]:
        order = sorted(LABELS, key=lambda label: self._columns[LABELS.index(label)])
        return {
            "scorer": f"sentence-transformers {version}, torch",
            "origin": folder.origin,
            "labels": ", ".join(order),
            "labels_from": "the user" if given else "the model's configuration",
            "activation": "softmax",
            "max_tokens": str(self._longest),
            "dtype": str(next(self._model.parameters()).dtype).removeprefix("torch."),
            "device": str(self._model.device),
            "batch_size": str(self._batch_size),
        }


def load_nli(
    name: str,
    *,
    labels: Sequence[str] | None = None,
    revision: str | None = None,
    device: str | None = None,
    batch_size: int = 32,
    offline: bool = False,
    trust_remote_code: bool = False,
) -> NliModel:
    """Resolve, vet (decision D12) and load an NLI model.

    Args:
        name: alias (`ALIASES`), folder, or hub id.
        labels, device, batch_size: as for `NliModel`.
        revision: hub commit, tag or branch.
        offline: use only what is on this machine.
        trust_remote_code: allow the model's own code and pickled weights; the identity says so.

    Raises:
        ModelError and its kinds, MissingDependency, UsageError.
    """
    if labels is not None:
        _order(labels)
    known = ALIASES.get(name, name)
    if not Path(known).expanduser().exists() and known.count("/") != 1:
        raise ModelError(
            f"no NLI model {name!r}: give an alias ({', '.join(ALIASES)}), a folder, or a hub id such as "
            "organisation/model"
        )
    folder = resolve(known, revision=revision, offline=offline, trust_remote_code=trust_remote_code)
    if folder.graph is not None:
        raise ModelError(
            f"model {folder.name!r} holds an ONNX graph only; NLI models run on torch: give a folder with safetensors"
        )
    return NliModel(folder, labels=labels, device=device, batch_size=batch_size)


def _columns(folder: ModelFolder, labels: Sequence[str] | None) -> list[int]:
    """Which output holds each of `LABELS`."""
    if not is_classifier(folder.path):
        raise ModelError(
            f"model {folder.name!r} is no NLI model: its configuration names no ...ForSequenceClassification; give a "
            "cross-encoder that was trained on contradiction, entailment and neutral"
        )
    if labels is not None:
        return _order(labels)
    config = read_json(folder.path / "config.json")
    named = _named(config.get("id2label"))
    if len(named) != len(LABELS):
        raise ModelError(_not_three(folder.name, len(named)))
    meant = [_MEANS.get(named.get(place, "").strip().lower(), "") for place in range(len(LABELS))]
    if sorted(meant) != sorted(LABELS):
        raise ModelError(
            f"model {folder.name!r} calls its outputs {', '.join(named.values())}; contradiction, entailment and "
            f"neutral are needed: {_HOW}"
        )
    if _disagrees(meant, config.get("label2id")):
        raise ModelError(
            f"id2label and label2id of model {folder.name!r} disagree, so the order of its outputs is unknown; {_HOW}"
        )
    return [meant.index(label) for label in LABELS]


def _order(labels: Sequence[str]) -> list[int]:
    given = (
        [] if isinstance(labels, str) else [_MEANS.get(str(label).strip().lower(), "") for label in labels]
    )
    if sorted(given) != sorted(LABELS):
        raise UsageError(
            f"labels: got {labels!r}; give each of {', '.join(LABELS)} once, in the order of the model's outputs"
        )
    return [given.index(label) for label in LABELS]


def _named(id2label: object) -> dict[int, str]:
    """Output -> name; {} where the configuration is malformed."""
    if not isinstance(id2label, dict) or not all(str(place).isdecimal() for place in id2label):
        return {}
    return {int(place): str(id2label[place]) for place in sorted(id2label, key=int)}


def _disagrees(meant: Sequence[str], label2id: object) -> bool:
    if not isinstance(label2id, Mapping):
        return False
    back: dict[str, Any] = {
        _MEANS.get(str(name).strip().lower(), ""): place for name, place in label2id.items()
    }
    return any(str(back.get(label, place)) != str(place) for place, label in enumerate(meant))


def _not_three(name: str, outputs: int) -> str:
    if outputs == 2:
        why = "it cannot tell a contradiction from what is merely not said"
    elif outputs == 1:
        why = "it is a reranker"
    elif outputs == 0:
        why = "its configuration names none"
    else:
        why = "it is another kind of classifier"
    return (
        f"model {name!r} has {outputs} named outputs: {why}; an NLI model with the three outputs contradiction, "
        f"entailment and neutral is needed{'' if outputs else ', or ' + _HOW}"
    )

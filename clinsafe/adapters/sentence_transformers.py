"""sentence-transformers encoders (hub id, folder or alias; torch), and what such a folder says about itself.

The readers below the class need no torch: the ONNX backend follows the same configuration files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import numpy as np

from clinsafe.adapters.prompts import choose, with_prompts
from clinsafe.adapters.weights import ModelFolder, resolve
from clinsafe.errors import MissingDependency, ModelError
from clinsafe.protocols import Encoder, ModelIdentity, Vectors

INSTALL = "pip install 'clinsafe[audit]'"
MAX_TOKENS = 512
UNLIMITED = 1e6
"""Tokenizers write a huge number where they know of no limit."""
OFFSET_POSITIONS = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "data2vec-text")
"""Families whose positions start behind the padding id, so that fewer tokens fit than the table has rows."""
LEGACY_POOLING = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "last",
}


class SentenceTransformerEncoder:
    """An `Encoder` over a sentence-transformers model; without prompts unless told otherwise.

    Args:
        folder: vetted files, from `clinsafe.adapters.weights.resolve`.
        device: torch device; None lets the library choose.
        batch_size: texts per forward pass; no verdict may depend on it.

    Attributes:
        config_prompts: name -> text of the prompts that the model's configuration offers.
        default_prompt_name: which of them the configuration puts before every text, or None.
    """

    def __init__(self, folder: ModelFolder, *, device: str | None = None, batch_size: int = 32) -> None:
        self._model = load_folder("SentenceTransformer", folder, device)
        self._batch_size = batch_size
        self.config_prompts: Mapping[str, str | None] = dict(self._model.prompts or {})
        self.default_prompt_name: str | None = self._model.default_prompt_name
        self.identity = ModelIdentity(
            name=folder.name,
            revision=folder.revision,
            files=folder.files,
            settings=self._settings(library().__version__, folder),
            trusted_code=folder.trusted_code,
        )

    @property
    def modules(self) -> Sequence[Any]:
        """The model's modules in order, for those who export it."""
        return list(self._model)

    @property
    def tokenizer(self) -> Any:
        """The model's tokenizer."""
        return self._model.tokenizer

    def encode(self, texts: Sequence[str], /) -> Vectors:
        """float32 (len(texts), dim), unit rows."""
        return self.encode_prompted(texts, "")

    def encode_prompted(self, texts: Sequence[str], prompt: str, /) -> Vectors:
        """Like `encode`, with `prompt` before each text.

        The library is told the prompt apart from the text, because the pooling of some models leaves it out;
        "" keeps the library from using the configuration's default prompt unasked.
        """
        vectors = self._model.encode(
            list(texts),
            prompt=prompt,
            batch_size=self._batch_size,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.asarray(vectors, dtype=np.float32)

    def _settings(self, version: str, folder: ModelFolder) -> dict[str, str]:
        pooling = [m.get_config_dict() for m in self._model if type(m).__name__ == "Pooling"]
        settings = {
            "encoder": f"sentence-transformers {version}, torch",
            "origin": folder.origin,
            "dimension": str(self._model.get_embedding_dimension()),
            "pooling": ", ".join(str(p.get("pooling_mode", p)) for p in pooling) or "none",
            "max_tokens": str(self._model.max_seq_length),
            "dtype": str(next(self._model.parameters()).dtype).removeprefix("torch."),
            "device": str(self._model.device),
            "batch_size": str(self._batch_size),
            "prompts": "none",
            "prompts_offered": ", ".join(k for k, v in self.config_prompts.items() if v) or "none",
        }
        return settings | ({"remark": folder.remark} if folder.remark else {})


def load(name: str, *, revision: str | None = None, device: str | None = None, batch_size: int = 32,
         offline: bool = False, trust_remote_code: bool = False, prompts: str = "auto",
         query_prompt: str | None = None, passage_prompt: str | None = None,
         **_options: object) -> Encoder:  # fmt: skip
    """Entry point ``sentence-transformers``: resolve, vet and load; torch only.

    Options and kinds are checked by `clinsafe.adapters.encoders.load_model`.

    Raises:
        ModelError and its kinds, MissingDependency, UsageError.
    """
    folder = resolve(name, revision=revision, offline=offline, trust_remote_code=trust_remote_code)
    encoder = SentenceTransformerEncoder(folder, device=device, batch_size=batch_size)
    chosen = choose(
        encoder.config_prompts,
        encoder.default_prompt_name,
        style=prompts,
        query=query_prompt,
        passage=passage_prompt,
    )
    return with_prompts(encoder, chosen)


def library() -> Any:
    """The sentence-transformers package, imported when it is needed.

    Raises:
        MissingDependency: it is not installed.
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        import sentence_transformers
    except ImportError as error:
        raise MissingDependency("auditing this model", "sentence-transformers", INSTALL) from error
    from transformers.utils import logging

    # loading has a line of our own; a second bar garbles it
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    return sentence_transformers


def load_folder(
    kind: Literal["SentenceTransformer", "CrossEncoder"],
    folder: ModelFolder,
    device: str | None,
    **options: object,
) -> Any:
    """The library's own object over vetted files, which are all that it may read.

    Args:
        kind: the library's class.
        options: further arguments of that class.

    Raises:
        ModelError: the folder is not a usable model of that kind.
    """
    package = library()
    try:
        return getattr(package, kind)(
            str(folder.path),
            device=device,
            local_files_only=True,
            trust_remote_code=folder.trusted_code,
            model_kwargs={} if folder.trusted_code else {"use_safetensors": True},
            **options,
        )
    except Exception as error:  # any loader fault means: this folder is not a usable model
        raise ModelError(
            f"model {folder.name!r} cannot be loaded as a {kind} of sentence-transformers: "
            f"{type(error).__name__}: {str(error)[:200]}"
        ) from error


def read_json(file: Path) -> dict[str, Any]:
    """The object in a JSON file; {} where there is none that can be read."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def is_classifier(path: Path) -> bool:
    """Whether config.json names a ``…ForSequenceClassification`` architecture."""
    named = read_json(path / "config.json").get("architectures")
    return isinstance(named, list) and any(str(n).endswith("ForSequenceClassification") for n in named)


def offered_prompts(path: Path) -> tuple[Mapping[str, str | None], str | None]:
    """(name -> text, name of the default one or None) from the folder's configuration."""
    own = read_json(path / "config_sentence_transformers.json")
    texts, default = own.get("prompts"), own.get("default_prompt_name")
    found = {str(k): v for k, v in texts.items() if isinstance(v, str)} if isinstance(texts, dict) else {}
    return found, default if isinstance(default, str) else None


def max_tokens(path: Path) -> tuple[int, bool]:
    """(how many tokens the model takes, whether the folder says so); what the library itself would use."""
    own = transformer_config(path).get("max_seq_length")
    if isinstance(own, int) and 0 < own < UNLIMITED:
        return own, True
    config = read_json(path / "config.json")
    rows, padding = config.get("max_position_embeddings"), config.get("pad_token_id")
    if isinstance(rows, int) and config.get("model_type") in OFFSET_POSITIONS:
        rows -= (padding if isinstance(padding, int) else 1) + 1
    stated = read_json(path / "tokenizer_config.json").get("model_max_length")
    known = [int(n) for n in (rows, stated) if isinstance(n, int | float) and 0 < n < UNLIMITED]
    return (min(known), True) if known else (MAX_TOKENS, False)


def transformer_config(path: Path) -> dict[str, Any]:
    """``sentence_bert_config.json``, or one of its older names."""
    return next((read_json(file) for file in sorted(path.glob("sentence_*_config.json"))), {})


def modules(path: Path) -> list[tuple[str, str]]:
    """(class name, subfolder) of each module in modules.json; none where there is no such file."""
    try:
        listed = json.loads((path / "modules.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return [(str(e.get("type", "")).rpartition(".")[2], str(e.get("path", ""))) for e in entries]


def refuse_modules(path: Path, name: str) -> None:
    """For a backend that runs the transformer, pools and normalises.

    Raises:
        ModelError: there is a module of another kind, which would be left out.
    """
    for kind, _ in modules(path):
        if kind not in ("Transformer", "Pooling", "Normalize"):
            raise ModelError(
                f"model {name!r} has a module {kind!r}, which is not run by onnxruntime; use --backend torch"
            )


def pooling_config(path: Path) -> dict[str, Any]:
    """The configuration of the folder's Pooling module, {} where there is none."""
    places = [place for kind, place in modules(path) if kind == "Pooling"] or ["1_Pooling"]
    inside = [
        place for place in places if ".." not in PurePosixPath(place).parts and not place.startswith("/")
    ]
    return read_json(path / inside[0] / "config.json") if inside else {}


def pooling_mode(path: Path) -> str | None:
    """``cls``, ``mean``, ``last`` or another of the library's modes, several joined by +; None if not said."""
    config = pooling_config(path)
    modes = config.get("pooling_mode") or [mode for key, mode in LEGACY_POOLING.items() if config.get(key)]
    names = [str(mode) for mode in modes] if isinstance(modes, list) else [str(modes)]
    return "+".join("last" if name == "lasttoken" else name for name in names) or None

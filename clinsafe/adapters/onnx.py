"""ONNX models with onnxruntime and tokenizers only: no torch, no transformers.

The graph itself decides what it is: hidden states or a sentence embedding make an encoder, one logit makes
a cross-encoder. Weights other than float32 are labelled as such and run one text at a time, because the
scale of a dynamically quantised layer depends on the whole batch. Operators come from onnxruntime alone;
a library with custom ones is never loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinsafe.adapters.cross_encoder import ACTIVATION, logit_output, sigmoid
from clinsafe.adapters.onnx_graph import broken, inspect, package
from clinsafe.adapters.sentence_transformers import (
    max_tokens,
    offered_prompts,
    pooling_config,
    pooling_mode,
    read_json,
    refuse_modules,
    transformer_config,
)
from clinsafe.adapters.weights import ModelFolder
from clinsafe.content import sha256_file
from clinsafe.errors import ModelError, UsageError
from clinsafe.protocols import ModelIdentity, TextPair, Vectors

POOLINGS = ("cls", "mean", "last")
MAX_THREADS = 4
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
DTYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(float)": np.float32}


class OnnxSession:
    """A graph, its tokenizer and what the folder says about both.

    Args:
        folder: vetted files with a graph.
        batch_size: texts per run where the weights are float32, else 1.

    Raises:
        ModelError: no tokenizer.json, a damaged graph or tokenizer, missing external data, unknown inputs.
        MissingDependency: onnxruntime, onnx or tokenizers is not installed.
    """

    def __init__(self, folder: ModelFolder, *, batch_size: int = 32) -> None:
        if folder.graph is None:
            raise ModelError(f"model {folder.name!r} has no ONNX file")
        self.folder = folder
        self.facts = inspect(folder.graph, folder.name)
        self.max_tokens, stated = max_tokens(folder.path)
        self._tokenizer, self._pad = _tokenizer(folder, self.max_tokens)
        self._session: Any = _session(folder)
        self.inputs = _inputs(self._session, folder.name)
        # Without a mask padding would be read as text.
        alone = self.facts.dtype != "float32" or "attention_mask" not in self.inputs
        self.batch_size = 1 if alone else batch_size
        self.shapes = self._probe()
        self.settings = {
            "origin": folder.origin,
            "max_tokens": f"{self.max_tokens}" if stated else f"{self.max_tokens} (the model states none)",
            "dtype": "float32" if self.facts.dtype == "float32" else f"{self.facts.dtype} (not fp32)",
            "device": "cpu (CPUExecutionProvider)",
            "threads": str(_threads()),
            "batch_size": str(self.batch_size),
        } | ({"remark": folder.remark} if folder.remark else {})

    def run(
        self, inputs: Sequence[str] | Sequence[TextPair], output: str
    ) -> Iterator[tuple[list[int], NDArray[Any], NDArray[np.int64]]]:
        """(positions in `inputs`, the output's rows, attention mask) of each batch, longest texts first."""
        encodings = self._tokenizer.encode_batch(list(inputs))
        order = sorted(range(len(encodings)), key=lambda i: -len(encodings[i].ids))
        for start in range(0, len(order), self.batch_size):
            positions = order[start : start + self.batch_size]
            feed, mask = self._feed([encodings[i] for i in positions])
            yield positions, self._session.run([output], feed)[0], mask

    def identity(self, what: str, **settings: str) -> ModelIdentity:
        """`what` is ``encoder`` or ``scorer``."""
        version, files = package("onnxruntime").__version__, dict(self.folder.files)
        for path in self.facts.external:
            inside = path.is_relative_to(self.folder.path)
            key = path.relative_to(self.folder.path).as_posix() if inside else path.name
            files.setdefault(key, sha256_file(path))
        return ModelIdentity(
            name=self.folder.name,
            revision=self.folder.revision,
            files=files,
            settings={what: f"onnxruntime {version}, CPU", **self.settings, **settings},
            trusted_code=self.folder.trusted_code,
            kind="bi-encoder" if what == "encoder" else "cross-encoder",
        )

    def _feed(self, encodings: Sequence[Any]) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
        shape = (len(encodings), max(len(e.ids) for e in encodings))
        arrays = {
            "input_ids": np.full(shape, self._pad, dtype=np.int64),
            "attention_mask": np.zeros(shape, dtype=np.int64),
            "token_type_ids": np.zeros(shape, dtype=np.int64),
        }
        for row, encoding in enumerate(encodings):
            used = len(encoding.ids)
            arrays["input_ids"][row, :used] = encoding.ids
            arrays["attention_mask"][row, :used] = 1
            arrays["token_type_ids"][row, :used] = encoding.type_ids
        feed = {name: arrays[name].astype(dtype) for name, dtype in self.inputs.items()}
        return feed, arrays["attention_mask"]

    def _probe(self) -> dict[str, tuple[int, ...]]:
        """Shape of each output for one short text: graphs often leave their dimensions open."""
        feed, _ = self._feed([self._tokenizer.encode("a")])
        try:
            outputs = self._session.run(None, feed)
        except Exception as error:
            raise broken(self.folder.name, "cannot be run", error) from error
        names = [output.name for output in self._session.get_outputs()]
        return {name: np.shape(value) for name, value in zip(names, outputs, strict=True)}


class OnnxEncoder:
    """An `Encoder` over an ONNX graph.

    Args:
        session: an open graph that gives hidden states or a sentence embedding.
        pooling: ``cls``, ``mean`` or ``last``; None takes what the folder (or its alias) says.

    Attributes:
        config_prompts, default_prompt_name: as the folder's sentence-transformers configuration has them.
        include_prompt: False where the model's pooling leaves a prompt out, which this backend cannot.

    Raises:
        ModelError: the pooling is unknown, or the folder has modules that the graph does not hold.
        UsageError: a pooling for a graph that pools itself.
    """

    def __init__(self, session: OnnxSession, *, pooling: str | None = None) -> None:
        self._session = session
        self._output, rank = encoder_output(session)
        path = session.folder.path
        self.config_prompts, self.default_prompt_name = offered_prompts(path)
        self.include_prompt = pooling_config(path).get("include_prompt", True) is not False
        if rank == 2:
            if pooling is not None:
                raise UsageError(f"{session.folder.name!r} takes no --pooling: its graph pools itself")
            self._pooling, said = None, "in the graph"
        else:
            refuse_modules(path, session.folder.name)
            self._pooling, said = choose_pooling(session.folder, pooling)
        self._dimension = session.shapes[self._output][-1]
        self.identity = session.identity(
            "encoder",
            dimension=str(self._dimension),
            pooling=said,
            prompts="none",
            prompts_offered=", ".join(k for k, v in self.config_prompts.items() if v) or "none",
        )

    def encode(self, texts: Sequence[str], /) -> Vectors:
        """float32 (len(texts), dim), unit rows."""
        rows = np.zeros((len(texts), self._dimension), dtype=np.float64)
        for positions, output, mask in self._session.run(texts, self._output):
            rows[positions] = output if self._pooling is None else pool(output, mask, self._pooling)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.where(norms > 0, norms, 1.0), dtype=np.float32)


class OnnxCrossEncoder:
    """A `PairScorer` over an ONNX graph that gives one logit a pair; decision D8's sigmoid is ours."""

    def __init__(self, session: OnnxSession) -> None:
        output = logit_output(session.folder, session.shapes)
        if output is None:
            raise ModelError(f"model {session.folder.name!r} gives no logit; it is not a cross-encoder")
        self._session, self._output = session, output
        self.identity = session.identity("scorer", activation=ACTIVATION)

    def score(self, pairs: Sequence[TextPair], /) -> NDArray[np.float64]:
        """(len(pairs),), sigmoid of the logit, in [0, 1]."""
        logits = np.zeros(len(pairs), dtype=np.float64)
        for positions, output, _ in self._session.run(pairs, self._output):
            logits[positions] = output[:, 0]
        return sigmoid(logits)


def open_onnx(
    folder: ModelFolder, *, pooling: str | None = None, batch_size: int = 32
) -> OnnxEncoder | OnnxCrossEncoder:
    """Whichever of the two the graph is.

    Raises:
        ModelError, UsageError, MissingDependency: see the two classes and `OnnxSession`.
    """
    session = OnnxSession(folder, batch_size=batch_size)
    if logit_output(folder, session.shapes) is None:
        return OnnxEncoder(session, pooling=pooling)
    if pooling is not None:
        raise UsageError(f"{folder.name!r} takes no --pooling: a cross-encoder does not pool")
    return OnnxCrossEncoder(session)


def encoder_output(session: OnnxSession) -> tuple[str, int]:
    """(name, rank) of the output to use: a sentence embedding (2) before hidden states (3)."""
    shapes = session.shapes
    if len(shapes.get("sentence_embedding", ())) == 2:
        return "sentence_embedding", 2
    hidden = [name for name, shape in shapes.items() if len(shape) == 3]
    for name in ("last_hidden_state", "token_embeddings", *(hidden if len(hidden) == 1 else ())):
        if name in hidden:
            return name, 3
    rows = [name for name, shape in shapes.items() if len(shape) == 2]
    if not hidden and len(rows) == 1:
        return rows[0], 2
    raise ModelError(
        f"model {session.folder.name!r} gives {', '.join(shapes)}; an encoder gives hidden states "
        "(last_hidden_state) or one sentence embedding, a cross-encoder one logit"
    )


def pool(hidden: NDArray[Any], mask: NDArray[np.int64], how: str) -> NDArray[np.float64]:
    """(n, tokens, dim) hidden states with padding at the end to (n, dim); `how` is one of `POOLINGS`."""
    if how == "cls":
        return np.asarray(hidden[:, 0], dtype=np.float64)
    used = np.maximum(mask.sum(axis=1), 1)
    if how == "last":
        return np.asarray(hidden[np.arange(len(hidden)), used - 1], dtype=np.float64)
    total = (hidden * mask[:, :, None]).sum(axis=1, dtype=np.float64)
    return np.asarray(total / used[:, None], dtype=np.float64)


def _session(folder: ModelFolder) -> Any:
    onnxruntime = package("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = _threads(), 1
    options.use_deterministic_compute = True
    options.log_severity_level = 4  # faults arrive as exceptions; stderr is the user's
    try:
        return onnxruntime.InferenceSession(
            str(folder.graph), options, providers=["CPUExecutionProvider"], enable_fallback=0
        )
    except Exception as error:  # onnxruntime's dozen kinds have no common base
        if "is not a registered function/op" in str(error):
            raise broken(
                folder.name, "needs custom operators, and libraries with such are never loaded", error
            ) from error
        raise broken(folder.name, "cannot be loaded by onnxruntime", error) from error


def _threads() -> int:
    return min(MAX_THREADS, os.cpu_count() or 1)


def _inputs(session: Any, name: str) -> dict[str, Any]:
    asked = {entry.name: entry.type for entry in session.get_inputs()}
    unknown = [entry for entry, kind in asked.items() if entry not in INPUTS or kind not in DTYPES]
    if unknown or "input_ids" not in asked:
        raise ModelError(
            f"model {name!r} asks for {', '.join(unknown) or 'no input_ids'}; a text model's inputs are "
            f"{', '.join(INPUTS)}"
        )
    return {entry: DTYPES[kind] for entry, kind in asked.items()}


def _tokenizer(folder: ModelFolder, length: int) -> tuple[Any, int]:
    """The tokenizer, which truncates but does not pad, and the id to pad with."""
    tokenizers = package("tokenizers")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    file = folder.path / "tokenizer.json"
    if not file.is_file():
        raise ModelError(
            f"model {folder.name!r} has no tokenizer.json; without one an ONNX file reads no text"
        )
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(file))
        padding = tokenizer.padding or {}
        tokenizer.no_padding()
        tokenizer.enable_truncation(length)
    except Exception as error:  # the library raises plain Exception
        raise broken(folder.name, "has a damaged tokenizer.json", error) from error
    if transformer_config(folder.path).get("do_lower_case") is True:
        normalizers = tokenizers.normalizers
        first = [normalizers.Lowercase(), *([tokenizer.normalizer] if tokenizer.normalizer else [])]
        tokenizer.normalizer = normalizers.Sequence(first)
    token = read_json(folder.path / "tokenizer_config.json").get("pad_token")
    named = tokenizer.token_to_id(str(token.get("content") if isinstance(token, dict) else token))
    config = read_json(folder.path / "config.json").get("pad_token_id")
    return tokenizer, next((i for i in (padding.get("pad_id"), named, config) if isinstance(i, int)), 0)


def choose_pooling(folder: ModelFolder, given: str | None) -> tuple[str, str]:
    """(pooling, what the evidence says about it).

    Raises:
        ModelError: nobody says which, or it is one that this backend does not do.
    """
    if given is not None:
        return given, f"{given} (given)"
    found = pooling_mode(folder.path) or folder.pooling
    if found is None:
        raise ModelError(
            f"model {folder.name!r} does not say how its hidden states become one vector; give --pooling "
            f"{', '.join(POOLINGS[:-1])} or {POOLINGS[-1]}, as its documentation says"
        )
    if found not in POOLINGS:
        raise ModelError(
            f"model {folder.name!r} pools by {found}, which is not run by onnxruntime; use --backend torch"
        )
    return found, found

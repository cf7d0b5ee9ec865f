"""ONNX and sentence-transformers folders small enough to calculate by hand; shared by the ONNX tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.adapters.test_cross_encoder import PAIRS, SPECIAL, WORDS, tiny_config, tiny_tokenizer

WIDTH = 6
TABLE = np.random.default_rng(3).normal(size=(len(SPECIAL) + len(WORDS), WIDTH)).astype(np.float32)
HEAD = np.random.default_rng(4).normal(size=(WIDTH, 3)).astype(np.float32)
TEXTS = [b for pair in PAIRS for b in pair]


def graph(gives: str = "last_hidden_state", *, asks: tuple[str, ...] = ("input_ids", "attention_mask"),
          integer: int = TensorProto.INT64, labels: int = 1, table: np.ndarray = TABLE) -> onnx.ModelProto:  # fmt: skip
    """A lookup table as a model: small enough to calculate by hand.

    Args:
        gives: name of the output; ``logits`` and ``sentence_embedding`` average over tokens first, and the
            logits add the average token type, so that it shows whether types are fed.
    """
    kind = helper.np_dtype_to_tensor_dtype(table.dtype)
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["rows"])]
    stored = [numpy_helper.from_array(table, "table")]
    last, shape = "rows", ["batch", "tokens", WIDTH]
    if gives != "last_hidden_state":
        nodes.append(helper.make_node("ReduceMean", ["rows"], ["mean"], axes=[1], keepdims=0))
        last, shape = "mean", ["batch", WIDTH]
    if gives in ("logits", "output_0"):
        stored.append(numpy_helper.from_array(HEAD[:, :labels].astype(table.dtype), "head"))
        nodes.append(helper.make_node("MatMul", [last, "head"], ["plain"]))
        last, shape = "plain", ["batch", labels]
        if "token_type_ids" in asks:
            nodes += [
                helper.make_node("Cast", ["token_type_ids"], ["types"], to=kind),
                helper.make_node("ReduceMean", ["types"], ["type"], axes=[1], keepdims=1),
                helper.make_node("Add", ["plain", "type"], ["sum"]),
            ]
            last = "sum"
    nodes.append(helper.make_node("Identity", [last], [gives]))
    inputs = [helper.make_tensor_value_info(name, integer, ["batch", "tokens"]) for name in asks]
    made = helper.make_graph(
        nodes, "tiny", inputs, [helper.make_tensor_value_info(gives, kind, shape)], stored
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def onnx_model(folder: Path, model: onnx.ModelProto | None = None, *, file: str = "model.onnx",
               pooling: str | None = "mean") -> Path:  # fmt: skip
    """A whole folder."""
    tiny_tokenizer(folder)
    (folder / file).parent.mkdir(exist_ok=True)
    onnx.save_model(model or graph(), folder / file)
    if pooling:
        (folder / "1_Pooling").mkdir(exist_ok=True)
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": pooling}))
    return folder


def ids(text: str, other: str | None = None) -> list[int]:
    known = {word: number for number, word in enumerate((*SPECIAL, *WORDS))}
    numbers = [known["[CLS]"], *(known[w] for w in text.split()), known["[SEP]"]]
    return numbers if other is None else [*numbers, *(known[w] for w in other.split()), known["[SEP]"]]


def unit(rows: Any) -> np.ndarray:
    rows = np.asarray(rows, dtype=np.float64)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def quantised() -> onnx.ModelProto:
    """The table as int8 with a scale, as a quantiser writes it."""
    model = graph()
    scale = float(np.abs(TABLE).max() / 127)
    small = numpy_helper.from_array(np.round(TABLE / scale).astype(np.int8), "small")
    model.graph.initializer[0].CopyFrom(small)
    model.graph.initializer.append(numpy_helper.from_array(np.float32(scale), "scale"))
    model.graph.node.insert(0, helper.make_node("DequantizeLinear", ["small", "scale"], ["table"]))
    return model


def tiny_sentence_transformer(
    folder: Path, *, pooling: str = "mean", include_prompt: bool = True, dense: bool = False, **config: Any
) -> Path:
    """A random BERT with pooling as the library lays it out; `config` is its config_sentence_transformers.json."""
    import torch
    from safetensors.torch import save_file
    from transformers import BertModel

    torch.manual_seed(11)
    BertModel(tiny_config()).save_pretrained(tiny_tokenizer(folder))
    kinds = {"": "Transformer", "1_Pooling": "Pooling"} | ({"2_Dense": "Dense"} if dense else {})
    listed = [
        {"idx": i, "name": str(i), "path": place, "type": f"sentence_transformers.models.{kind}"}
        for i, (place, kind) in enumerate(kinds.items())
    ]
    pooled = {"embedding_dimension": 16, "pooling_mode": pooling, "include_prompt": include_prompt}
    written: dict[str, Any] = {
        "modules.json": listed,
        "sentence_bert_config.json": {"max_seq_length": 48, "do_lower_case": False},
        "config_sentence_transformers.json": config,
        "1_Pooling/config.json": pooled,
    }
    if dense:
        shape = {"in_features": 16, "out_features": 8, "bias": False}
        activation = {"activation_function": "torch.nn.modules.activation.Tanh"}
        written["2_Dense/config.json"] = shape | activation
    for name, content in written.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    if dense:
        save_file({"linear.weight": torch.randn(8, 16)}, folder / "2_Dense" / "model.safetensors")
    return folder

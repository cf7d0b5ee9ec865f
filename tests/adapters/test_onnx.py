"""ONNX folders: what a graph is, how it is fed, what is refused; real int8 weights; exports."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from clinsafe.adapters import onnx_export
from clinsafe.adapters.encoders import ModelOptions, load_model
from clinsafe.adapters.onnx import OnnxEncoder, pool
from clinsafe.content import sha256_file
from clinsafe.errors import MissingDependency, ModelError, UntrustedModel, UsageError
from clinsafe.protocols import Encoder, PairScorer
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


# ── what a graph is ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("cls", lambda t: TABLE[ids(t)[0]]),
        ("mean", lambda t: TABLE[ids(t)].mean(axis=0)),
        ("last", lambda t: TABLE[ids(t)[-2]]),
    ],
)
def test_hidden_states_are_pooled_as_asked(tmp_path, how, expected):
    """The tokenizer ends each text with [SEP]; without it the last token tells the texts apart."""
    folder = onnx_model(tmp_path / "model", pooling=None)
    if how == "last":
        tokenizer = json.loads((folder / "tokenizer.json").read_text())
        tokenizer["post_processor"]["single"].pop()
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    encoder = load_model(str(folder), ModelOptions(pooling=how))
    assert isinstance(encoder, Encoder)
    found = encoder.encode(TEXTS)
    assert found.dtype == np.float32
    assert found == pytest.approx(np.stack([unit(expected(t)) for t in TEXTS]), abs=1e-6)
    assert encoder.identity.settings["pooling"] == f"{how} (given)"
    assert encoder.identity.kind == "bi-encoder"


def test_padding_never_counts():
    hidden = np.arange(12, dtype=np.float32).reshape(1, 4, 3)
    mask = np.array([[1, 1, 0, 0]])
    assert pool(hidden, mask, "mean") == pytest.approx(np.array([[1.5, 2.5, 3.5]]))
    assert pool(hidden, mask, "last") == pytest.approx(np.array([[3.0, 4.0, 5.0]]))
    assert np.isfinite(pool(hidden, np.zeros((1, 4), dtype=np.int64), "mean")).all()


@pytest.mark.parametrize(
    ("config", "mode"),
    [
        ({"pooling_mode": "cls"}, "cls"),
        ({"pooling_mode": "lasttoken"}, "last"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        ({"pooling_mode_cls_token": True}, "cls"),
    ],
)
@pytest.mark.parametrize("listed", [True, False])
def test_the_pooling_comes_from_the_folder(tmp_path, config, mode, listed):
    folder = onnx_model(tmp_path / "model", pooling=None)
    place = folder / ("2_Pool" if listed else "1_Pooling")
    place.mkdir()
    (place / "config.json").write_text(json.dumps(config))
    if listed:
        module = {"type": "sentence_transformers.models.Pooling", "path": "2_Pool"}
        (folder / "modules.json").write_text(json.dumps([module]))
    assert load_model(str(folder)).identity.settings["pooling"] == mode


def test_an_unknown_pooling_is_asked_for_and_another_is_not_guessed(tmp_path):
    with pytest.raises(ModelError, match="--pooling cls, mean or last"):
        load_model(str(onnx_model(tmp_path / "silent", pooling=None)))
    with pytest.raises(ModelError, match=r"pools by max.*--backend torch"):
        load_model(str(onnx_model(tmp_path / "max", pooling="max")))
    with pytest.raises(UsageError, match="cls, mean, last"):
        ModelOptions(pooling="maximum")


def test_a_sentence_embedding_is_taken_as_it_is(tmp_path):
    folder = onnx_model(tmp_path / "model", graph("sentence_embedding"), pooling=None)
    encoder = load_model(str(folder), ModelOptions(batch_size=1))
    assert encoder.encode(TEXTS) == pytest.approx(
        np.stack([unit(TABLE[ids(t)].mean(axis=0)) for t in TEXTS]), abs=1e-6
    )
    assert encoder.identity.settings["pooling"] == "in the graph"
    with pytest.raises(UsageError, match="--pooling"):
        load_model(str(folder), ModelOptions(pooling="cls"))


def test_one_logit_makes_a_cross_encoder_with_our_sigmoid(tmp_path):
    asks = ("input_ids", "attention_mask", "token_type_ids")
    folder = onnx_model(tmp_path / "model", graph("logits", asks=asks), pooling=None)
    scorer = load_model(str(folder), ModelOptions(batch_size=1))
    assert isinstance(scorer, PairScorer)
    expected = []
    for a, b in PAIRS:
        tokens, types = ids(a, b), [0] * len(ids(a)) + [1] * (len(ids(b)) - 1)
        expected.append(float(TABLE[tokens].mean(axis=0) @ HEAD[:, 0]) + float(np.mean(types)))
    assert scorer.score(PAIRS) == pytest.approx(1 / (1 + np.exp(-np.array(expected))), abs=1e-6)
    assert scorer.score([]).shape == (0,)
    assert scorer.identity.kind == "cross-encoder"
    assert scorer.identity.settings["activation"] == "sigmoid"
    with pytest.raises(UsageError, match="--pooling"):
        load_model(str(folder), ModelOptions(pooling="cls"))
    with pytest.raises(UsageError, match="--query-prompt makes no sense"):
        load_model(str(folder), ModelOptions(query_prompt="query: "))


def test_a_classifier_is_refused_whatever_its_output_is_called(tmp_path):
    with pytest.raises(ModelError, match=r"3 labels.*NLI.*no reranker"):
        load_model(str(onnx_model(tmp_path / "nli", graph("logits", labels=3))))
    folder = onnx_model(tmp_path / "unnamed", graph("output_0", labels=3))
    (folder / "config.json").write_text(json.dumps({"architectures": ["BertForSequenceClassification"]}))
    with pytest.raises(ModelError, match="3 labels"):
        load_model(str(folder))


def test_a_language_model_is_refused(tmp_path):
    model = graph()
    model.graph.node[-1].output[0] = model.graph.output[0].name = "logits"
    with pytest.raises(ModelError, match="language model"):
        load_model(str(onnx_model(tmp_path / "model", model)))


# ── how it is fed ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("integer", [TensorProto.INT64, TensorProto.INT32])
@pytest.mark.parametrize("asks", [("input_ids",), ("input_ids", "attention_mask", "token_type_ids")])
def test_inputs_are_fed_by_the_names_and_types_the_graph_asks_for(tmp_path, integer, asks):
    encoder = load_model(str(onnx_model(tmp_path / "model", graph(asks=asks, integer=integer))))
    assert encoder.encode(TEXTS) == pytest.approx(
        np.stack([unit(TABLE[ids(t)].mean(axis=0)) for t in TEXTS]), abs=1e-6
    )
    # without a mask padding would be read as text, so nothing is padded
    assert encoder.identity.settings["batch_size"] == ("32" if "attention_mask" in asks else "1")


def test_no_vector_depends_on_batch_or_order(tmp_path):
    folder = onnx_model(tmp_path / "model")
    together = load_model(str(folder), ModelOptions(batch_size=4)).encode(TEXTS)
    alone = load_model(str(folder), ModelOptions(batch_size=1)).encode(TEXTS[::-1])[::-1]
    assert together == pytest.approx(alone, abs=1e-6)
    assert load_model(str(folder)).encode([]).shape == (0, WIDTH)


@pytest.mark.parametrize(
    ("files", "length"),
    [
        ({"sentence_bert_config.json": {"max_seq_length": 9}}, "9"),
        ({"tokenizer_config.json": {"model_max_length": 7}}, "7"),
        ({"config.json": {"max_position_embeddings": 8}}, "8"),
        (
            {"config.json": {"max_position_embeddings": 10, "model_type": "roberta", "pad_token_id": 1}},
            "8",
        ),
        ({"tokenizer_config.json": {"model_max_length": 10**30}}, "512 (the model states none)"),
        ({}, "512 (the model states none)"),
    ],
)
def test_the_length_is_the_models_and_recorded(tmp_path, files, length):
    folder = onnx_model(tmp_path / "model")
    (folder / "tokenizer_config.json").unlink()
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    encoder = load_model(str(folder))
    assert encoder.identity.settings["max_tokens"] == length
    longest = int(length.split()[0]) - 2
    words = [WORDS[i % len(WORDS)] for i in range(700)]
    within = encoder.encode([" ".join(words[:longest]), " ".join(words)])
    assert within[0] == pytest.approx(within[1], abs=1e-6)
    assert np.abs(encoder.encode([" ".join(words[: longest - 1])])[0] - within[0]).max() > 1e-5


def test_a_folder_that_lowers_its_texts_has_them_lowered(tmp_path):
    folder = onnx_model(tmp_path / "model")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps({**tokenizer, "normalizer": None}))
    assert load_model(str(folder)).encode(["NO FEVER"]) != pytest.approx(
        load_model(str(folder)).encode(["no fever"])
    )
    (folder / "sentence_bert_config.json").write_text(json.dumps({"do_lower_case": True}))
    lowered = load_model(str(folder))
    assert lowered.encode(["NO FEVER"]) == pytest.approx(lowered.encode(["no fever"]))


# ── number types ───────────────────────────────────────────────────────────────────────────────


def quantised() -> onnx.ModelProto:
    """The table as int8 with a scale, as a quantiser writes it."""
    model = graph()
    scale = float(np.abs(TABLE).max() / 127)
    small = numpy_helper.from_array(np.round(TABLE / scale).astype(np.int8), "small")
    model.graph.initializer[0].CopyFrom(small)
    model.graph.initializer.append(numpy_helper.from_array(np.float32(scale), "scale"))
    model.graph.node.insert(0, helper.make_node("DequantizeLinear", ["small", "scale"], ["table"]))
    return model


@pytest.mark.parametrize(
    ("model", "dtype", "batch"),
    [
        (graph(), "float32", "32"),
        (graph(table=TABLE.astype(np.float16)), "fp16 (not fp32)", "1"),
        (graph(table=TABLE.astype(np.float64)), "fp64 (not fp32)", "1"),
        (quantised(), "int8 (not fp32)", "1"),
    ],
    ids=["fp32", "fp16", "fp64", "int8"],
)
def test_any_other_number_type_is_named_and_run_one_text_at_a_time(tmp_path, model, dtype, batch):
    encoder = load_model(str(onnx_model(tmp_path / "model", model)))
    assert encoder.identity.settings["dtype"] == dtype
    assert encoder.identity.settings["batch_size"] == batch
    assert encoder.encode(TEXTS) == pytest.approx(
        np.stack([unit(TABLE[ids(t)].mean(axis=0)) for t in TEXTS]), abs=0.02
    )


def test_weights_in_a_constant_node_or_a_branch_count_too(tmp_path):
    model = graph(table=TABLE.astype(np.float16))
    table = model.graph.initializer.pop()
    branch = helper.make_graph(
        [helper.make_node("Constant", [], ["inner"], value=table)], "branch", [],
        [helper.make_tensor_value_info("inner", TensorProto.FLOAT16, TABLE.shape)],
    )  # fmt: skip
    yes = numpy_helper.from_array(np.array(True), "yes")
    model.graph.initializer.append(yes)
    model.graph.node.insert(
        0, helper.make_node("If", ["yes"], ["table"], then_branch=branch, else_branch=branch)
    )
    assert load_model(str(onnx_model(tmp_path / "m", model))).identity.settings["dtype"] == "fp16 (not fp32)"


# ── which file ─────────────────────────────────────────────────────────────────────────────────


def test_the_usual_names_win_and_a_single_file_may_be_called_anything(tmp_path):
    for number, file in enumerate(("model.onnx", "onnx/model.onnx", "exported.onnx")):
        found = load_model(str(onnx_model(tmp_path / str(number), file=file)))
        assert file in found.identity.files
    both = onnx_model(onnx_model(tmp_path / "both", file="onnx/model.onnx"), file="onnx/model_O3.onnx")
    found = load_model(str(both))
    assert "onnx/model.onnx" in found.identity.files
    assert "onnx/model_O3.onnx" not in found.identity.files


def test_several_files_are_named_and_the_path_of_one_is_a_spec(tmp_path):
    folder = onnx_model(tmp_path / "several", file="onnx/a.onnx")
    onnx_model(folder, graph(table=TABLE.astype(np.float16)), file="onnx/b.onnx")
    with pytest.raises(ModelError, match=r"onnx/a\.onnx, onnx/b\.onnx; give the path"):
        load_model(str(folder))
    found = load_model(str(folder / "onnx" / "b.onnx"))
    assert found.identity.name == "several/onnx/b.onnx"
    assert found.identity.settings["dtype"] == "fp16 (not fp32)"
    assert "onnx/b.onnx" in found.identity.files
    assert "onnx/a.onnx" not in found.identity.files


def test_everything_that_shapes_the_vectors_is_hashed_and_nothing_else(tmp_path):
    folder = onnx_model(tmp_path / "model")
    (folder / "vocab.txt").write_text("x")
    (folder / "picture.png").write_bytes(b"x")
    found = load_model(str(folder)).identity
    assert set(found.files) == {
        "model.onnx", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "1_Pooling/config.json",
    }  # fmt: skip
    assert found.files["model.onnx"] == sha256_file(folder / "model.onnx")
    assert str(tmp_path) not in json.dumps([found.name, dict(found.files), dict(found.settings)])


# ── bad folders ────────────────────────────────────────────────────────────────────────────────


def _cut(folder: Path) -> None:
    file = folder / "model.onnx"
    file.write_bytes(file.read_bytes()[:150])


def _external(folder: Path, location: str = "model.onnx_data") -> None:
    onnx.save_model(
        graph(), folder / "model.onnx", save_as_external_data=True, location=location, size_threshold=0
    )


def _lost(folder: Path) -> None:
    _external(folder)
    (folder / "model.onnx_data").unlink()


def _outside(folder: Path) -> None:
    _external(folder)
    model = onnx.load(str(folder / "model.onnx"), load_external_data=False)
    model.graph.initializer[0].external_data[0].value = "../../model.onnx_data"
    (folder / "model.onnx").write_bytes(model.SerializeToString())


def _custom(folder: Path) -> None:
    model = graph()
    model.graph.node[0].domain = "somebody.else"
    model.opset_import.append(helper.make_opsetid("somebody.else", 1))
    onnx.save_model(model, folder / "model.onnx")


def _asks(*names: str) -> Any:
    return lambda folder: onnx.save_model(graph(asks=names), folder / "model.onnx")


def _two_outputs(folder: Path) -> None:
    model = graph("sentence_embedding")
    model.graph.node.append(helper.make_node("Identity", ["mean"], ["second"]))
    model.graph.node[-2].output[0] = model.graph.output[0].name = "first"
    model.graph.output.append(helper.make_tensor_value_info("second", TensorProto.FLOAT, ["batch", WIDTH]))
    onnx.save_model(model, folder / "model.onnx")


def _dense(folder: Path) -> None:
    module = {"type": "sentence_transformers.models.Dense", "path": "2_Dense"}
    (folder / "modules.json").write_text(json.dumps([module]))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: (f / "tokenizer.json").unlink(), "no tokenizer.json"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), "damaged tokenizer.json"),
        (lambda f: (f / "model.onnx").write_bytes(b""), "cannot be loaded by onnxruntime"),
        (lambda f: (f / "model.onnx").write_bytes(b"hello"), "damaged ONNX file"),
        (_cut, "damaged ONNX file"),
        (_lost, r"model\.onnx_data"),
        (_outside, "outside its folder"),
        (_custom, "custom operators.*never loaded"),
        (_asks("input_ids", "position_ids"), "asks for position_ids"),
        (_asks("input_ids", "past_key_values.0.key"), "asks for past_key_values"),
        (_two_outputs, "gives first, second"),
        (_dense, "module 'Dense'"),
    ],
)
def test_a_bad_folder_is_one_line(tmp_path, spoil, words, capfd):
    folder = onnx_model(tmp_path / "model")
    assert isinstance(load_model(str(folder)), OnnxEncoder)
    spoil(folder)
    with pytest.raises(ModelError, match=words) as caught:
        load_model(str(folder))
    assert "\n" not in str(caught.value)
    assert "'model'" in str(caught.value)
    assert capfd.readouterr().err == ""


def test_a_tokenizer_that_does_not_fit_fails_on_the_text_and_not_silently(tmp_path):
    """The lookup refuses an id beyond its table; scoring then calls the case not measured."""
    folder = onnx_model(tmp_path / "model", graph(table=TABLE[:-1]))
    encoder = load_model(str(folder))
    assert encoder.encode(["no fever"]).shape == (1, WIDTH)
    with pytest.raises(Exception, match="out of data bounds"):
        encoder.encode([f"no fever {WORDS[-1]}"])


@pytest.mark.parametrize("linked", [False, True])
def test_external_data_is_hashed_and_found_behind_links(tmp_path, linked):
    """The hub's cache keeps files elsewhere and links them into the folder."""
    folder = onnx_model(tmp_path / "model")
    _external(folder)
    if linked:
        blobs = tmp_path / "blobs"
        blobs.mkdir()
        for name in ("model.onnx", "model.onnx_data"):
            (folder / name).rename(blobs / name)
            (folder / name).symlink_to(os.path.relpath(blobs / name, folder))
    found = load_model(str(folder))
    assert found.identity.files["model.onnx_data"] == sha256_file(folder / "model.onnx_data")
    assert found.encode(TEXTS).shape == (len(TEXTS), WIDTH)


def test_external_data_of_any_name_is_hashed(tmp_path):
    folder = onnx_model(tmp_path / "model")
    _external(folder, location="numbers")
    assert "numbers" in load_model(str(folder)).identity.files


def test_pickles_and_code_beside_a_graph_are_refused(tmp_path):
    folder = onnx_model(tmp_path / "model")
    (folder / "weights.pkl").write_bytes(b"\x80")
    with pytest.raises(UntrustedModel, match="pickled weights"):
        load_model(str(folder / "model.onnx"))
    (folder / "weights.pkl").unlink()
    (folder / "custom.py").write_text("raise SystemExit('ran')")
    with pytest.raises(UntrustedModel, match="Python code"):
        load_model(str(folder))
    assert load_model(str(folder), ModelOptions(trust_remote_code=True)).identity.trusted_code


@pytest.mark.parametrize("package", ["onnxruntime", "onnx", "tokenizers"])
def test_a_missing_package_says_how_to_install_it(tmp_path, monkeypatch, package):
    folder = onnx_model(tmp_path / "model")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=rf"{package}.*pip install 'clinsafe\[onnx\]'"):
        load_model(str(folder))


# ── --backend onnx ─────────────────────────────────────────────────────────────────────────────


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


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


LIKE_TORCH = ["no fever", "the patient has no pain", "the patient denies fever . " * 20, "", "a"]


def cosines(encoder: Any, texts: list[str]) -> np.ndarray:
    rows = np.asarray(encoder.encode(texts), dtype=np.float64)
    return rows @ rows.T


@pytest.mark.parametrize("pooling", ["mean", "cls", "lasttoken"])
def test_an_export_gives_torchs_cosines_and_is_made_once(tmp_path, monkeypatch, pooling):
    folder = tiny_sentence_transformer(tmp_path / "model", pooling=pooling)
    torch_side = load_model(str(folder))
    exported = load_model(str(folder), ModelOptions(backend="onnx"))
    assert isinstance(exported, OnnxEncoder)
    assert np.abs(cosines(torch_side, LIKE_TORCH) - cosines(exported, LIKE_TORCH)).max() < 1e-5
    settings = exported.identity.settings
    assert settings["dtype"] == "float32"
    assert settings["max_tokens"] == torch_side.identity.settings["max_tokens"]
    assert "exported to ONNX with torch" in settings["origin"]
    assert {"model.safetensors", "exported.onnx"} <= set(exported.identity.files)
    monkeypatch.setattr(onnx_export, "_trace", lambda *_: pytest.fail("exported again"))
    again = load_model(str(folder), ModelOptions(backend="onnx"))
    assert again.identity == exported.identity
    assert np.array_equal(again.encode(LIKE_TORCH), exported.encode(LIKE_TORCH))


def test_a_damaged_export_is_made_again_and_other_weights_have_another(tmp_path):
    folder = tiny_sentence_transformer(tmp_path / "model")
    load_model(str(folder), ModelOptions(backend="onnx"))
    (kept,) = onnx_export.cache_folder().rglob("*.onnx")
    kept.write_bytes(kept.read_bytes()[:-1] + b"\x00\x01")
    exported = load_model(str(folder), ModelOptions(backend="onnx"))
    assert exported.identity.files["exported.onnx"] == sha256_file(kept)
    (folder / "config.json").write_text((folder / "config.json").read_text() + "\n")
    load_model(str(folder), ModelOptions(backend="onnx"))
    assert len({file.parent for file in onnx_export.cache_folder().rglob("*.onnx")}) == 2
    assert all(file.is_file() for file in onnx_export.cache_folder().rglob("*.onnx"))
    assert not list(onnx_export.cache_folder().rglob("tmp*"))


def test_an_export_that_differs_from_torch_is_never_kept(tmp_path, monkeypatch):
    folder = tiny_sentence_transformer(tmp_path / "model")
    monkeypatch.setattr(
        onnx_export, "_trace", lambda _encoder, target, _name: onnx.save_model(graph(), str(target))
    )
    with pytest.raises(ModelError, match=r"other cosines as ONNX than with torch.*--backend torch"):
        load_model(str(folder), ModelOptions(backend="onnx"))
    assert not list(onnx_export.cache_folder().rglob("*.onnx"))


def test_a_module_that_the_graph_would_leave_out_is_refused(tmp_path):
    folder = tiny_sentence_transformer(tmp_path / "model", dense=True)
    assert load_model(str(folder)).encode(["fever"]).shape == (1, 8)
    with pytest.raises(ModelError, match=r"module 'Dense'.*--backend torch"):
        load_model(str(folder), ModelOptions(backend="onnx"))


def test_a_shipped_fp32_file_is_used_and_a_quantised_one_is_not(tmp_path, monkeypatch):
    folder = tiny_sentence_transformer(tmp_path / "model")
    onnx_model(tmp_path / "other", quantised())
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.onnx").write_bytes((tmp_path / "other" / "model.onnx").read_bytes())
    assert "exported.onnx" in load_model(str(folder), ModelOptions(backend="onnx")).identity.files
    onnx.save_model(graph(), folder / "onnx" / "model.onnx")
    monkeypatch.setattr(onnx_export, "_export", lambda *_: pytest.fail("exported"))
    shipped = load_model(str(folder), ModelOptions(backend="onnx")).identity
    assert "onnx/model.onnx" in shipped.files
    assert "model.safetensors" not in shipped.files
    by_torch = load_model(str(folder)).identity
    assert "model.safetensors" in by_torch.files
    assert "onnx/model.onnx" not in by_torch.files


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    folder = tiny_sentence_transformer(tmp_path / "model")
    with pytest.raises(ModelError, match="XDG_CACHE_HOME"):
        load_model(str(folder), ModelOptions(backend="onnx"))


def test_the_cache_is_where_the_platform_keeps_caches(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setattr(sys, "platform", "linux")
    assert onnx_export.cache_folder() == tmp_path / ".cache" / "clinsafe" / "onnx"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert onnx_export.cache_folder() == tmp_path / "Library" / "Caches" / "clinsafe" / "onnx"


def test_pooling_that_leaves_the_prompt_out_is_refused_only_with_a_prompt(tmp_path):
    folder = tiny_sentence_transformer(tmp_path / "model", include_prompt=False)
    options = ModelOptions(backend="onnx")
    assert load_model(str(folder), options).encode(["fever"]).shape == (1, 16)
    with pytest.raises(ModelError, match="--backend torch"):
        load_model(str(folder), replace(options, query_prompt="query : "))


@pytest.mark.slow
def test_minilm_gives_the_same_pair_cosines_over_the_whole_suite(minilm, suite):
    exported = load_model("minilm", ModelOptions(backend="onnx", offline=True))
    texts = [text for case in suite for text in (case.a, case.b, case.a_same, case.b_same)]
    both = [np.asarray(side.encode(texts), dtype=np.float64) for side in (minilm, exported)]
    by_torch, by_onnx = (rows.reshape(len(suite), 4, -1) for rows in both)
    off = float(np.abs(by_torch @ by_torch.mT - by_onnx @ by_onnx.mT).max())
    print(f"largest change of a pair cosine: {off:.2e}")
    assert off < 1e-5

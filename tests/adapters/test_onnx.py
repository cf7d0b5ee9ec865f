"""ONNX models: what a graph is, how it is fed, which number types it has."""

from __future__ import annotations

import json

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from clinsafe.adapters.encoders import ModelOptions, load_model
from clinsafe.adapters.onnx import pool
from clinsafe.errors import ModelError, UsageError
from clinsafe.protocols import Encoder, PairScorer
from tests.adapters.test_cross_encoder import PAIRS, WORDS
from tests.adapters.tiny_onnx import (
    HEAD,
    TABLE,
    TEXTS,
    WIDTH,
    graph,
    ids,
    onnx_model,
    quantised,
    unit,
)

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

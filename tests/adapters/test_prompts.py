"""Prompts: which are chosen, that they reach the model on the right side, and that the evidence shows them."""

from __future__ import annotations

import numpy as np
import pytest

from clinsafe.adapters.encoders import ModelOptions, load_model
from clinsafe.adapters.prompts import STYLES, Prompts, choose, hint, hinted, with_prompts
from clinsafe.errors import UsageError
from clinsafe.protocols import Encoder, ModelIdentity, QueryEncoder
from tests.adapters.tiny_onnx import graph, onnx_model, tiny_sentence_transformer


class Recorder:
    """Remembers the texts that arrived."""

    identity = ModelIdentity(
        "recorder", files={"weights": "x"}, settings={"dtype": "float32", "prompts": "none"}
    )

    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode(self, texts, /):
        self.seen += texts
        return np.ones((len(texts), 1), dtype=np.float32)


class ToldApart(Recorder):
    """Must be told the prompt apart from the text."""

    def encode_prompted(self, texts, prompt, /):
        self.seen += [f"<{prompt}>{text}" for text in texts]
        return np.ones((len(texts), 1), dtype=np.float32)


OWN = {"query": "Q: ", "document": "D: ", "other": "O: "}


@pytest.mark.parametrize(
    ("config", "default", "given", "expected"),
    [
        ({}, None, {}, ("", "", "none")),
        (OWN, None, {}, ("Q: ", "D: ", "model configuration")),
        ({"query": "Q: "}, None, {}, ("Q: ", "", "model configuration")),
        ({"query": "Q: ", "passage": "P: "}, None, {}, ("Q: ", "P: ", "model configuration")),
        (OWN, "other", {}, ("Q: ", "D: ", "model configuration")),
        ({"query": "", "document": "", "other": "O: "}, "other", {}, ("O: ", "O: ", "model configuration")),
        ({"other": "O: "}, None, {}, ("", "", "none")),
        ({"other": "O: "}, "missing", {}, ("", "", "none")),
        ({"query": None, "document": None}, None, {}, ("", "", "none")),
        (OWN, "other", {"style": "none"}, ("", "", "none")),
        (OWN, None, {"style": "e5"}, ("query: ", "passage: ", "style e5")),
        ({}, None, {"style": "nomic"}, ("search_query: ", "search_document: ", "style nomic")),
        ({}, None, {"style": "gte"}, ("", "", "style gte")),
        (OWN, None, {"query": "x ", "passage": "y "}, ("x ", "y ", "given")),
        (OWN, None, {"query": "", "passage": ""}, ("", "", "given")),
        (OWN, None, {"query": "x "}, ("x ", "D: ", "given, model configuration")),
        (OWN, None, {"style": "none", "passage": "y "}, ("", "y ", "given")),
    ],
)
def test_which_prompts_are_chosen(config, default, given, expected):
    assert choose(config, default, **given) == Prompts(*expected)


def test_an_unknown_style_lists_the_known_ones():
    with pytest.raises(UsageError, match="auto, none, nomic, e5, bge, gte, qwen"):
        choose({}, None, style="e6")


def test_the_styles_are_those_of_the_model_cards():
    assert STYLES["bge"].query == "Represent this sentence for searching relevant passages: "
    assert STYLES["qwen"].query.startswith("Instruct: ")
    assert STYLES["qwen"].query.endswith("\nQuery:")
    assert STYLES["bge"].passage == STYLES["qwen"].passage == ""


@pytest.mark.parametrize(
    ("name", "style"),
    [
        ("nomic-ai/nomic-embed-text-v1.5", "nomic"),
        ("intfloat/e5-base-v2", "e5"),
        ("intfloat/multilingual-e5-large", "e5"),
        ("intfloat/multilingual-e5-large-instruct", "qwen"),
        ("BAAI/bge-small-en-v1.5 (int8 ONNX)", "bge"),
        ("Qwen/Qwen3-Embedding-0.6B", "qwen"),
        ("Alibaba-NLP/gte-Qwen2-1.5B-instruct", "qwen"),
    ],
)
def test_a_family_that_is_trained_with_prompts_is_hinted_at(name, style):
    sentence = hint(name)
    assert name in sentence
    assert f"--prompts {style} " in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize("name", ["sentence-transformers/all-MiniLM-L6-v2", "thenlper/gte-base", "BAAI/bge-m3",
                                  "fake:hash", "somebody/type5-model", ""])  # fmt: skip
def test_no_other_name_is_hinted_at(name):
    assert hint(name) == ""


def test_the_hint_stands_in_the_settings_where_no_prompts_are_in_use():
    bare = load_model("bge-small-int8", ModelOptions(offline=True))
    assert "--prompts bge" in bare.identity.settings["prompt_hint"]
    assert bare.identity.settings["prompts"] == "none"
    with_them = load_model("bge-small-int8", ModelOptions(offline=True, prompts="bge"))
    assert "prompt_hint" not in with_them.identity.settings
    assert isinstance(with_them, QueryEncoder)
    assert not isinstance(bare, QueryEncoder)
    assert np.array_equal(bare.encode(["fever"]), with_them.encode(["fever"]))
    assert not np.allclose(with_them.encode_queries(["fever"]), with_them.encode(["fever"]), atol=1e-3)
    inner = Recorder()
    assert hinted(inner) is inner


def test_without_prompts_the_model_itself_comes_back():
    inner = Recorder()
    assert with_prompts(inner, Prompts("", "", "none")) is inner


def test_one_prompt_for_both_sides_makes_a_plain_encoder():
    inner = Recorder()
    encoder = with_prompts(inner, Prompts("O: ", "O: ", "model configuration"))
    assert isinstance(encoder, Encoder)
    assert not isinstance(encoder, QueryEncoder)
    encoder.encode(["a", "b"])
    assert inner.seen == ["O: a", "O: b"]


@pytest.mark.parametrize(
    ("made", "queries", "passages"),
    [(Recorder, ["Q: a"], ["P: a"]), (ToldApart, ["<Q: >a"], ["<P: >a"])],
)
def test_each_side_gets_its_own_prompt(made, queries, passages):
    inner = made()
    encoder = with_prompts(inner, Prompts("Q: ", "P: ", "given"))
    assert isinstance(encoder, QueryEncoder)
    encoder.encode_queries(["a"])
    assert inner.seen == queries
    inner.seen.clear()
    encoder.encode(["a"])
    assert inner.seen == passages


def test_the_evidence_shows_the_text_of_both_prompts_and_who_chose_them():
    identity = with_prompts(Recorder(), Prompts("Q: ", "", "style bge")).identity
    assert identity.settings == {
        "dtype": "float32", "prompts": "style bge", "prompt_query": "Q: ", "prompt_passage": "",
    }  # fmt: skip
    assert identity.files == {"weights": "x"}
    assert Recorder.identity.settings["prompts"] == "none"


def test_a_prompt_gives_another_vector_of_the_real_model(minilm):
    text = "The patient has diabetes"
    encoder = with_prompts(minilm, STYLES["e5"])
    assert isinstance(encoder, QueryEncoder)
    query, passage, plain = (e([text])[0] for e in (encoder.encode_queries, encoder.encode, minilm.encode))
    assert max(query @ passage, query @ plain, passage @ plain) < 0.999
    assert query == pytest.approx(minilm.encode([f"query: {text}"])[0], abs=1e-6)
    assert minilm.identity.settings["prompts"] == "none"


def test_a_models_own_prompts_are_used_and_can_be_switched_off(tmp_path):
    folder = tiny_sentence_transformer(
        tmp_path / "model",
        prompts={"query": "query : ", "document": "passage : "},
        default_prompt_name="query",
    )
    own = load_model(str(folder))
    assert isinstance(own, QueryEncoder)
    assert own.identity.settings["prompt_query"] == "query : "
    assert own.identity.settings["prompts"] == "model configuration"
    off = load_model(str(folder), ModelOptions(prompts="none"))
    assert not isinstance(off, QueryEncoder)
    # the library would put its default prompt before every text unasked
    assert own.encode_queries(["fever"]) == pytest.approx(off.encode(["query : fever"]), abs=1e-6)
    assert own.encode(["fever"]) == pytest.approx(off.encode(["passage : fever"]), abs=1e-6)
    assert off.encode(["fever"]) != pytest.approx(off.encode(["query : fever"]), abs=1e-3)
    assert off.identity.settings["prompts"] == "none"
    assert off.identity.settings["prompts_offered"] == "query, document"


def test_pooling_that_leaves_the_prompt_out_gets_it_through_the_library(tmp_path):
    """Plain prefixing would pool over the prompt's tokens too."""
    from sentence_transformers import SentenceTransformer

    folder = tiny_sentence_transformer(tmp_path / "model", include_prompt=False)
    encoder = load_model(str(folder), ModelOptions(query_prompt="query : ", passage_prompt="passage : "))
    library = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    expected = library.encode(["no fever"], prompt="query : ", normalize_embeddings=True)
    plain = load_model(str(folder)).encode(["query : no fever"])
    found = encoder.encode_queries(["no fever"])
    assert found == pytest.approx(expected, abs=1e-6)
    assert np.abs(found - plain).max() > 1e-3


def test_prompts_reach_an_onnx_model_too(tmp_path):
    folder = onnx_model(tmp_path / "model", graph())
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "query : "}}')
    encoder = load_model(str(folder))
    plain = load_model(str(folder), ModelOptions(prompts="none"))
    assert isinstance(encoder, QueryEncoder)
    assert encoder.encode_queries(["fever"]) == pytest.approx(plain.encode(["query : fever"]), abs=1e-6)
    assert encoder.encode(["fever"]) == pytest.approx(plain.encode(["fever"]), abs=1e-6)
    assert plain.identity.settings["prompts_offered"] == "query"

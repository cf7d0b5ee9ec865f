"""Cross-encoders in torch: raw logits, our sigmoid, one label, nothing untrusted. The models are tiny and random."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clinsafe.adapters.cross_encoder import CrossEncoderScorer, sigmoid
from clinsafe.adapters.encoders import ModelOptions, load_model
from clinsafe.adapters.weights import resolve
from clinsafe.errors import MissingDependency, ModelError, UntrustedModel, UsageError
from clinsafe.protocols import Encoder, PairScorer

WORDS = ("no", "fever", "the", "patient", "has", "denies", "pain", "query", "passage", ":", "not", "a", ".")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
PAIRS = [
    ("the patient has fever", "the patient has no fever"),
    ("no pain", "the patient denies pain . the patient has no fever"),
    ("fever", "pain"),
]


def tiny_tokenizer(folder: Path) -> Path:
    """A real WordPiece tokenizer over `WORDS`: tokenizer.json and tokenizer_config.json."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {word: number for number, word in enumerate((*SPECIAL, *WORDS))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    special = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), SPECIAL, strict=True))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 64, **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def tiny_config(**changes: Any) -> Any:
    from transformers import BertConfig

    return BertConfig(
        vocab_size=len(SPECIAL) + len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=64, initializer_range=0.5, **changes,
    )  # fmt: skip


def tiny_cross_encoder(folder: Path, **changes: Any) -> Path:
    """A random BertForSequenceClassification with its tokenizer, as safetensors."""
    import torch
    from transformers import BertForSequenceClassification

    torch.manual_seed(7)
    BertForSequenceClassification(tiny_config(**{"num_labels": 1, **changes})).save_pretrained(folder)
    return tiny_tokenizer(folder)


def by_hand(folder: Path, pairs: list[tuple[str, str]]) -> np.ndarray:
    """Logits with transformers alone, one pair at a time."""
    import torch
    from transformers import AutoTokenizer, BertForSequenceClassification

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = BertForSequenceClassification.from_pretrained(folder, local_files_only=True).eval()
    with torch.no_grad():
        return np.array([float(model(**tokenizer(a, b, return_tensors="pt")).logits[0, 0]) for a, b in pairs])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_cross_encoder(tmp_path_factory.mktemp("reranker"))


def test_the_score_is_the_sigmoid_of_the_raw_logit(folder):
    scorer = load_model(str(folder))
    assert isinstance(scorer, PairScorer)
    assert not isinstance(scorer, Encoder)
    logits = by_hand(folder, PAIRS)
    assert np.ptp(logits) > 0.01  # or the test below proves nothing
    assert scorer.score(PAIRS) == pytest.approx(1 / (1 + np.exp(-logits)), abs=1e-6)
    assert scorer.score(PAIRS).dtype == np.float64
    assert scorer.identity.kind == "cross-encoder"
    assert scorer.identity.settings["activation"] == "sigmoid"
    assert scorer.identity.settings["dtype"] == "float32"
    assert scorer.identity.settings["max_tokens"] == "64"
    assert "model.safetensors" in scorer.identity.files


@pytest.mark.parametrize(
    "key",
    [
        {"sbert_ce_default_activation_function": "torch.nn.modules.activation.Tanh"},
        {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Tanh"}},
    ],
)
def test_the_activation_of_the_configuration_is_never_used(folder, tmp_path, key):
    """Otherwise 0.5 would mean something else for each model (decision D8)."""
    other = tiny_cross_encoder(tmp_path / "model")
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**config, **key}))
    assert load_model(str(other)).score(PAIRS) == pytest.approx(load_model(str(folder)).score(PAIRS))


def test_no_score_depends_on_batch_or_order(folder):
    together = load_model(str(folder), ModelOptions(batch_size=3)).score(PAIRS)
    alone = load_model(str(folder), ModelOptions(batch_size=1)).score(PAIRS[::-1])[::-1]
    assert together == pytest.approx(alone, abs=1e-6)
    assert load_model(str(folder)).score([]).shape == (0,)


def test_large_logits_still_differ():
    assert sigmoid([0.0]) == pytest.approx([0.5])
    high = sigmoid([19.0, 20.0, -800.0, 800.0])
    assert high[0] < high[1] < 1
    assert np.isfinite(high).all()


@pytest.mark.parametrize("labels", [2, 3])
def test_a_classifier_is_no_reranker(tmp_path, labels):
    with pytest.raises(ModelError, match=f"{labels} labels.*NLI.*no reranker"):
        load_model(str(tiny_cross_encoder(tmp_path / "nli", num_labels=labels)))


def test_a_cross_encoder_saved_by_the_library_is_recognised(folder, tmp_path):
    from sentence_transformers import CrossEncoder

    CrossEncoder(str(folder), local_files_only=True).save_pretrained(str(tmp_path / "saved"))
    again = load_model(str(tmp_path / "saved"))
    assert again.identity.kind == "cross-encoder"
    assert again.score(PAIRS) == pytest.approx(load_model(str(folder)).score(PAIRS), abs=1e-6)


def test_pickles_and_code_are_refused_for_cross_encoders_too(tmp_path):
    import torch

    model = tiny_cross_encoder(tmp_path / "model")
    (model / "model.safetensors").unlink()
    torch.save({}, model / "pytorch_model.bin")
    with pytest.raises(UntrustedModel, match="pickled weights"):
        load_model(str(model))
    coded = tiny_cross_encoder(tmp_path / "coded")
    (coded / "modeling.py").write_text("raise SystemExit('ran')")
    with pytest.raises(UntrustedModel, match="Python code"):
        load_model(str(coded))


def test_a_pickle_beside_safetensors_is_not_the_one_that_is_loaded(tmp_path, folder):
    model = tiny_cross_encoder(tmp_path / "model")
    (model / "pytorch_model.bin").write_bytes(b"\x80broken")
    assert load_model(str(model)).score(PAIRS) == pytest.approx(load_model(str(folder)).score(PAIRS))


def test_a_head_that_the_files_lack_is_not_made_up(tmp_path):
    """The library would fill it with random numbers and carry on."""
    from safetensors.torch import load_file, save_file

    model = tiny_cross_encoder(tmp_path / "model")
    weights = load_file(model / "model.safetensors")
    body = {name: value for name, value in weights.items() if not name.startswith("classifier.")}
    assert len(body) == len(weights) - 2
    save_file(body, model / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"no trained head.*classifier\.weight"):
        load_model(str(model))


def test_damaged_weights_are_one_line(tmp_path):
    model = tiny_cross_encoder(tmp_path / "model")
    (model / "model.safetensors").write_bytes(b"\x00" * 20)
    with pytest.raises(ModelError, match="cannot be loaded as a CrossEncoder") as caught:
        load_model(str(model))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"prompts": "e5"}, "--prompts"),
        ({"query_prompt": "query: "}, "--query-prompt"),
        ({"passage_prompt": ""}, "--passage-prompt"),
        ({"pooling": "cls"}, "--pooling"),
        ({"backend": "onnx"}, "--backend"),
        ({"base_url": "http://localhost"}, "--base-url"),
        ({"timeout": 5.0}, "--timeout"),
    ],
)
def test_an_option_that_a_cross_encoder_would_ignore_is_refused(folder, options, flag):
    with pytest.raises(UsageError, match=f"{flag} makes no sense for '{folder.name}', a cross-encoder"):
        load_model(str(folder), ModelOptions(**options))


def test_without_the_library_the_install_line_is_printed(folder, monkeypatch):
    import sys

    found = resolve(str(folder))
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingDependency, match=r"clinsafe\[audit\]"):
        CrossEncoderScorer(found)

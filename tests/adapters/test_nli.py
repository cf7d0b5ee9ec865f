"""NLI models: the order of the outputs comes from the configuration, and nothing untrusted is loaded.

The models are tiny and random, but of a real architecture and loaded on the real road.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clinsafe.adapters.nli import LABELS, NliModel, load_nli
from clinsafe.adapters.offline import only_this_machine
from clinsafe.errors import ModelError, UnknownModel, UntrustedModel, UsageError

CONDITIONS = (
    "fever", "cough", "rash", "edema", "pain", "nausea", "jaundice", "asthma", "wheeze", "sepsis", "stroke", "effusion",
)  # fmt: skip
WORDS = (*CONDITIONS, "is", "was", "are", "there", "no", "not", "present", "absent", "found", "seen", "the", "patient",
         "has", "and", ".", ",", "?")  # fmt: skip
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
LONGEST = 32
PAIRS = [
    ("fever is present .", "fever is absent ."),
    ("there is no rash .", "rash was found ."),
    ("cough", "there is pain and there is no edema and nausea was not seen ."),
]


def tiny_nli(
    folder: Path, names: Sequence[str] = LABELS, *, trained: Any = None, rows: Sequence[int] | None = None
) -> Path:
    """A BertForSequenceClassification with a WordPiece tokenizer, as safetensors.

    Args:
        names: ``id2label`` in order.
        trained: a model to be saved; None makes a random one.
        rows: order in which the head's rows are written.
    """
    import torch
    from transformers import BertForSequenceClassification

    torch.manual_seed(7)
    model = trained or BertForSequenceClassification(tiny_config(len(names)))
    if rows is not None:
        with torch.no_grad():
            for part in (model.classifier.weight, model.classifier.bias):
                part.copy_(part[list(rows)].clone())
    model.config.id2label = dict(enumerate(names))
    model.config.label2id = {name: place for place, name in enumerate(names)}
    model.save_pretrained(folder)
    return tiny_tokenizer(folder)


def tiny_config(outputs: int = 3, **changes: Any) -> Any:
    from transformers import BertConfig

    return BertConfig(**{
        "vocab_size": len(SPECIAL) + len(WORDS), "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 64, "max_position_embeddings": LONGEST, "initializer_range": 0.5, "num_labels": outputs,
        **changes,
    })  # fmt: skip


def tiny_tokenizer(folder: Path) -> Path:
    """tokenizer.json and tokenizer_config.json over `WORDS`."""
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
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": LONGEST,
        "model_input_names": inputs,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, **special}))
    return folder


def by_hand(folder: Path, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    """Softmax in the model's own order with transformers alone, one pair at a time."""
    import torch
    from transformers import AutoTokenizer, BertForSequenceClassification

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = BertForSequenceClassification.from_pretrained(folder, local_files_only=True).eval()
    with torch.no_grad():
        rows = [model(**tokenizer(a, b, return_tensors="pt")).logits[0].softmax(0) for a, b in pairs]
    return torch.stack(rows).numpy()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_nli(tmp_path_factory.mktemp("nli") / "tiny")


@pytest.fixture(scope="module")
def model(folder: Path) -> NliModel:
    return load_nli(str(folder), offline=True)


def rename(folder: Path, to: Path, **changes: Any) -> Path:
    """The same files with another configuration; a value of None takes the key out."""
    to.mkdir()
    for file in folder.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    config = {**json.loads((folder / "config.json").read_text()), **changes}
    (to / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
    return to


def named(names: Sequence[str]) -> dict[str, Any]:
    return {
        "id2label": {str(place): name for place, name in enumerate(names)},
        "label2id": {name: place for place, name in enumerate(names)},
    }


# ── what it gives ──


def test_it_gives_the_softmax_of_the_model(folder, model):
    own = by_hand(folder, PAIRS)
    assert np.ptp(own) > 0.1  # or the test below proves nothing
    found = model.probabilities(PAIRS)
    assert found == pytest.approx(own, abs=1e-6)
    assert found.dtype == np.float64
    assert found.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-12)
    assert model.probabilities([]).shape == (0, 3)


def test_the_order_of_a_pair_matters_and_that_of_the_pairs_does_not(folder, model):
    there, back = model.probabilities(PAIRS), model.probabilities([(b, a) for a, b in PAIRS])
    assert np.abs(there - back).max() > 1e-3
    alone = load_nli(str(folder), batch_size=1).probabilities(PAIRS[::-1])[::-1]
    assert alone == pytest.approx(there, abs=1e-6)
    assert (model.probabilities(PAIRS) == there).all()  # bit for bit


def test_several_threads_get_what_one_gets(model):
    """A fast tokenizer keeps padding and truncation as state and raises where two threads set them at once."""
    alone = [model.probabilities(PAIRS[: n % 3 + 1]) for n in range(60)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda n: model.probabilities(PAIRS[: n % 3 + 1]), range(60)))
    assert all((one == other).all() for one, other in zip(alone, together, strict=True))


def test_a_long_pair_is_cut_on_its_longer_side_counted_and_named(model):
    short, long = "fever is present .", " ".join(["fever"] * 100)
    before = model.truncated
    assert list(model.truncates([(short, short), (short, long), (long, short)])) == [False, True, True]
    assert model.truncated == before  # asking is not reading
    found = model.probabilities([(short, long), (short, short)])
    assert model.truncated == before + 1
    cut = " ".join(["fever"] * (LONGEST - 3 - 4))
    assert found[0] == pytest.approx(model.probabilities([(short, cut)])[0], abs=1e-6)
    assert model.truncated == before + 1
    assert model.truncates([]).shape == (0,)


def test_the_identity_says_what_was_loaded(model):
    assert "model.safetensors" in model.identity.files
    assert model.identity.name == "tiny"
    assert model.identity.settings["labels"] == "contradiction, entailment, neutral"
    assert model.identity.settings["max_tokens"] == str(LONGEST)
    assert not model.identity.trusted_code
    assert "/" not in json.dumps(dict(model.identity.settings))  # no path


# ── which output means what ──

SPELLINGS = (
    ("contradiction", "entailment", "neutral"),
    ("CONTRADICTION", "ENTAILMENT", "NEUTRAL"),
    ("contradictory", "Entails", "Neutral"),
)


@pytest.mark.parametrize("order", [(1, 2, 0), (2, 1, 0), (0, 2, 1)])
def test_renamed_outputs_permute_the_columns_and_change_nothing_else(folder, model, tmp_path, order):
    names = [SPELLINGS[order[0]][place] for place in order]
    other = load_nli(str(rename(folder, tmp_path / "other", **named(names))))
    before, after = model.probabilities(PAIRS), other.probabilities(PAIRS)
    for column, label in enumerate(range(3)):
        assert after[:, column] == pytest.approx(before[:, order.index(label)], abs=1e-9)


def test_outputs_moved_with_their_names_change_nothing(folder, model, tmp_path):
    rows = (2, 0, 1)
    moved = tiny_nli(tmp_path / "moved", [LABELS[row] for row in rows], rows=rows)
    assert by_hand(moved, PAIRS) != pytest.approx(by_hand(folder, PAIRS), abs=1e-3)  # another order on file
    assert load_nli(str(moved)).probabilities(PAIRS) == pytest.approx(model.probabilities(PAIRS), abs=1e-6)


def test_labels_can_be_given_and_the_identity_says_so(folder, model, tmp_path):
    silent = rename(folder, tmp_path / "silent", **named(["LABEL_0", "LABEL_1", "LABEL_2"]))
    with pytest.raises(
        ModelError, match=r"LABEL_0, LABEL_1, LABEL_2.*contradiction, entailment and neutral.*labels="
    ):
        load_nli(str(silent))
    given = load_nli(str(silent), labels=("neutral", "contradiction", "entailment"))
    assert given.probabilities(PAIRS) == pytest.approx(model.probabilities(PAIRS)[:, [1, 2, 0]], abs=1e-9)
    assert given.identity.settings["labels"] == "neutral, contradiction, entailment"
    assert given.identity.settings["labels_from"] != model.identity.settings["labels_from"]


@pytest.mark.parametrize(
    "labels",
    [(), ("contradiction",), ("contradiction", "entailment", "entailment"), "contradiction", ("a", "b", "c")],
)
def test_labels_that_are_not_the_three_are_refused(folder, labels):
    with pytest.raises(UsageError, match="each of contradiction, entailment, neutral once"):
        load_nli(str(folder), labels=labels)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("entailment", "not_entailment"), "2 named outputs.*cannot tell a contradiction"),
        (("contradiction", "entailment", "neutral", "other"), "4 named outputs"),
        (("contradiction", "entailment", "entailed"), "calls its outputs"),
        (("negative", "neutral", "positive"), "calls its outputs"),
    ],
)
def test_other_classifiers_are_refused(tmp_path, names, said):
    with pytest.raises(ModelError, match=said):
        load_nli(str(tiny_nli(tmp_path / "model", names)))


def test_two_outputs_are_refused_even_with_labels(tmp_path):
    two = tiny_nli(tmp_path / "two", ("entailment", "not_entailment"))
    with pytest.raises(ModelError, match="2 named outputs"):
        load_nli(str(two), labels=LABELS)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"label2id": {"contradiction": 1, "entailment": 0, "neutral": 2}}, "disagree"),
        ({"id2label": None, "label2id": None}, "names none"),
        ({"id2label": {"x": "contradiction"}}, "names none"),
        ({"architectures": ["BertModel"]}, "no NLI model"),
    ],
)
def test_a_configuration_that_does_not_say_is_one_line(folder, tmp_path, changes, said):
    with pytest.raises(ModelError, match=said) as caught:
        load_nli(str(rename(folder, tmp_path / "odd", **changes)))
    assert "\n" not in str(caught.value)


# ── what is not loaded ──


def test_pickles_and_code_are_refused_without_the_flag(folder, tmp_path):
    import torch
    from safetensors.torch import load_file

    pickled = rename(folder, tmp_path / "pickled")
    torch.save(load_file(pickled / "model.safetensors"), pickled / "pytorch_model.bin")
    (pickled / "model.safetensors").unlink()
    with pytest.raises(UntrustedModel, match="trust-remote-code"):
        load_nli(str(pickled))
    allowed = load_nli(str(pickled), trust_remote_code=True)
    assert allowed.identity.trusted_code
    assert allowed.probabilities(PAIRS) == pytest.approx(by_hand(folder, PAIRS), abs=1e-6)
    with pytest.raises(UntrustedModel):
        load_nli(str(rename(folder, tmp_path / "code", auto_map={"AutoConfig": "x.Y"})))


def test_a_head_that_the_files_lack_is_not_made_up(folder, tmp_path):
    from safetensors.torch import load_file, save_file

    headless = rename(folder, tmp_path / "headless")
    kept = {
        k: v for k, v in load_file(headless / "model.safetensors").items() if not k.startswith("classifier")
    }
    save_file(kept, headless / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match="no trained head"):
        load_nli(str(headless))


def test_damaged_weights_are_no_probabilities(folder, tmp_path):
    """NaN is below every threshold: it would pass for "no contradiction"."""
    from safetensors.torch import load_file, save_file

    damaged = rename(folder, tmp_path / "damaged")
    weights = load_file(damaged / "model.safetensors")
    weights["classifier.bias"][0] = float("nan")
    save_file(weights, damaged / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match="NaN"):
        load_nli(str(damaged)).probabilities(PAIRS)


def test_a_hub_model_is_only_looked_for_in_the_cache_when_offline(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for name in ("nli-minilm", "somebody/nli-model"):
        with only_this_machine(True), pytest.raises(UnknownModel, match="local cache"):
            load_nli(name, offline=True)


@pytest.mark.parametrize("name", ["", "nli", "a/b/c", "./gone"])
def test_a_name_that_is_none_is_one_line(name):
    with pytest.raises(ModelError, match=r"model '.*nli-minilm|no model|folder"):
        load_nli(name)


def test_a_batch_of_nothing_is_refused(folder):
    with pytest.raises(UsageError, match=re.escape("at least 1")):
        load_nli(str(folder), batch_size=0)

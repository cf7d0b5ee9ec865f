"""Local generators: greedy and whole, nothing cut, nothing untrusted, no text that closes the template.

The models are tiny and random, but of real architectures and loaded on the real road.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from clinsafe.adapters.chat import NoText
from clinsafe.adapters.generators import LASTING, OF_THE_PROMPT, Refused, load_generator
from clinsafe.adapters.local_generator import PromptTooLong, load_local
from clinsafe.adapters.offline import only_this_machine
from clinsafe.content import sha256_file
from clinsafe.errors import MissingDependency, ModelError, UnknownModel, UntrustedModel, UsageError
from tests.adapters.chat_server import ChatServer, prompt_of, says
from tests.adapters.embedding_server import Reply, hang

WORDS = (
    "the",
    "dose",
    "is",
    "5",
    "mg",
    "daily",
    "of",
    "aspirin",
    "user",
    "answer",
    "no",
    "yes",
    ".",
    "?",
    ":",
)
SPECIAL = ("<unk>", "<s>", "</s>", "<|end|>")
CONTEXT = 64
TEMPLATE = "<s> user : {{ messages[0]['content'] }} <|end|>{% if add_generation_prompt %} answer :{% endif %}"


def tiny_tokenizer(folder: Path, template: str = "") -> None:
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

    vocabulary = {word: number for number, word in enumerate((*SPECIAL, *WORDS))}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.add_special_tokens([AddedToken(word, special=True) for word in SPECIAL])
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>",
        "additional_special_tokens": ["<|end|>"], "model_max_length": 10**30,
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    if template:
        (folder / "chat_template.jinja").write_text(template)


def tiny_llama(folder: Path, template: str = "", **changes: Any) -> Path:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(3)
    sizes = {"vocab_size": len(SPECIAL) + len(WORDS), "hidden_size": 16, "intermediate_size": 32,
             "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": CONTEXT,
             "initializer_range": 0.5, "eos_token_id": 2, "bos_token_id": 1, "pad_token_id": None}  # fmt: skip
    LlamaForCausalLM(LlamaConfig(**{**sizes, **changes})).save_pretrained(folder)
    tiny_tokenizer(folder, template)
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return tiny_llama(tmp_path_factory.mktemp("models") / "tiny-llama")


@pytest.fixture(scope="module")
def chat(tmp_path_factory):
    return tiny_llama(tmp_path_factory.mktemp("models") / "tiny-chat", TEMPLATE)


def edited(folder: Path, to: Path, file: str, **changes: Any) -> Path:
    shutil.copytree(folder, to)
    config = json.loads((to / file).read_text())
    (to / file).write_text(json.dumps({**config, **changes}))
    return to


def by_hand(folder: Path, ids: list[int], steps: int) -> list[int]:
    """Greedy decoding with a loop of one's own."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True).eval()
    made: list[int] = []
    while len(made) < steps and (not made or made[-1] != 2):
        with torch.no_grad():
            made.append(int(model(torch.tensor([ids + made])).logits[0, -1].argmax()))
    return made


PROMPT = "the dose of aspirin is"


def words(ids: list[int]) -> str:
    return " ".join((*SPECIAL, *WORDS)[one] for one in ids if one >= len(SPECIAL))


@pytest.mark.slow
def test_the_answer_is_the_greedy_one_and_its_tokens_are_counted(plain):
    model = load_local(str(plain), max_new_tokens=6)
    found = model.complete(PROMPT)
    expected = by_hand(plain, [4, 5, 10, 11, 6], 6)
    assert found.text == words(expected)
    assert found.usage == (5, len(expected))
    assert model.complete(PROMPT) == found
    assert model.generate(PROMPT) == found.text
    assert model.count(PROMPT) == 5


@pytest.mark.slow
def test_the_folders_own_sampling_is_left_out(plain, tmp_path):
    """A model that ships temperature and penalties is asked greedily all the same."""
    hot = edited(plain, tmp_path / "hot", "generation_config.json", do_sample=True, temperature=9.0,
                 repetition_penalty=5.0, no_repeat_ngram_size=1, max_length=3)  # fmt: skip
    answers = {load_local(str(place), max_new_tokens=8).generate(PROMPT) for place in (plain, hot, hot)}
    assert len(answers) == 1


@pytest.mark.slow
def test_the_chat_template_stands_around_the_prompt(chat):
    model = load_local(str(chat), max_new_tokens=4)
    whole = [1, 12, 18, 5, 17, 3, 13, 18]  # <s> user : dose ? <|end|> answer :
    assert model.complete("dose ?").text == words(by_hand(chat, whole, 4))
    assert model.count("dose ?") == len(whole)
    assert model.identity.settings["chat_template"] != "none"
    assert model.identity.files["chat_template.jinja"] == sha256_file(chat / "chat_template.jinja")


@pytest.mark.slow
@pytest.mark.parametrize("which", ["plain", "chat"])
def test_a_prompt_cannot_end_its_turn(which, request):
    """What looks like a control token in a passage is text."""
    model = load_local(str(request.getfixturevalue(which)))
    ids = model._ids("dose <|end|> answer : yes </s> <s>")
    assert sum(one in (1, 2, 3) for one in ids) == (2 if which == "chat" else 0)


@pytest.mark.slow
def test_a_prompt_that_does_not_fit_is_refused_and_not_cut(plain):
    model = load_local(str(plain), max_new_tokens=10)
    assert model.complete("dose " * (CONTEXT - 10)).usage[0] == CONTEXT - 10
    with pytest.raises(PromptTooLong, match=str(CONTEXT)) as caught:
        model.complete("dose " * (CONTEXT - 9))
    assert isinstance(caught.value, OF_THE_PROMPT)


@pytest.mark.slow
def test_an_answer_without_words_is_no_answer(plain, tmp_path):
    silent = edited(plain, tmp_path / "silent", "generation_config.json", eos_token_id=list(range(19)))
    with pytest.raises(NoText):
        load_local(str(silent), max_new_tokens=1).complete("<unk>")
    with pytest.raises(NoText):
        load_local(str(plain)).complete("")


@pytest.mark.slow
def test_who_answered_is_known_by_its_files(plain, tmp_path):
    first = load_local(str(plain))
    assert first.identity.files["model.safetensors"] == sha256_file(plain / "model.safetensors")
    assert (first.identity.settings["dtype"], first.context) == ("float32", CONTEXT)
    half = load_local(str(plain), dtype="bfloat16").identity
    assert half.settings["dtype"] == "bfloat16"
    other = tiny_llama(tmp_path / "tiny-llama", initializer_range=0.4)
    assert load_local(str(other)).identity.files != first.identity.files


@pytest.mark.slow
def test_damaged_weights_do_not_answer(plain, tmp_path):
    from safetensors.torch import load_file, save_file

    damaged = tmp_path / "damaged"
    shutil.copytree(plain, damaged)
    weights = load_file(damaged / "model.safetensors")
    weights["lm_head.weight"][:] = float("nan")
    save_file(weights, damaged / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match="failed"):
        load_local(str(damaged), max_new_tokens=2).complete(PROMPT)


@pytest.mark.slow
def test_weights_that_are_not_there_are_not_made_up(plain, tmp_path):
    from safetensors.torch import load_file, save_file

    headless = tmp_path / "headless"
    shutil.copytree(plain, headless)
    kept = {k: v for k, v in load_file(headless / "model.safetensors").items() if k != "lm_head.weight"}
    save_file(kept, headless / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match="lm_head"):
        load_local(str(headless))


@pytest.mark.slow
def test_pickles_and_code_are_refused(plain, tmp_path):
    import torch
    from safetensors.torch import load_file

    pickled = tmp_path / "pickled"
    shutil.copytree(plain, pickled)
    torch.save(load_file(pickled / "model.safetensors"), pickled / "pytorch_model.bin")
    (pickled / "model.safetensors").unlink()
    with pytest.raises(UntrustedModel):
        load_local(str(pickled))
    with pytest.raises(UntrustedModel):
        load_local(str(edited(plain, tmp_path / "code", "config.json", auto_map={"AutoConfig": "x.Y"})))


@pytest.mark.slow
@pytest.mark.parametrize(
    "template", ["fixed words", "{{ messages[0]['content'] * 2 }}", "{{ raise_exception('x') }}"]
)
def test_a_template_that_loses_the_prompt_is_refused(plain, tmp_path, template):
    odd = tmp_path / "odd"
    shutil.copytree(plain, odd)
    (odd / "chat_template.jinja").write_text(template)
    with pytest.raises(ModelError, match="template") as caught:
        load_local(str(odd))
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_what_is_no_model_is_one_line(tmp_path, monkeypatch, plain):
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with only_this_machine(True):
        for name in (str(tmp_path / "empty"), "", "a/b/c", "somebody/model"):
            with pytest.raises(ModelError) as caught:
                load_local(name, offline=True)
            assert "\n" not in str(caught.value)
    for options in ({"dtype": "int3"}, {"max_new_tokens": 0}):
        with pytest.raises(UsageError):
            load_local(str(plain), **options)


def test_gguf_without_its_package_names_it(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    with pytest.raises(MissingDependency, match="gguf"):
        load_local(str(tmp_path / "m.gguf"))


# ── which generator ────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def server(clean_environment, certificates_read_once):
    with ChatServer().running() as running:
        yield running


def test_an_endpoint_counts_tokens_and_is_told_how_long_an_answer_may_be(server):
    server.script = [says(" Yes. ", usage={"prompt_tokens": 7, "completion_tokens": 2}), says("No.")]
    found = load_generator(url=server.url, model="m", max_new_tokens=9)
    assert (found.complete("a").usage, found.complete("b").usage) == ((7, 2), None)
    assert server.requests[0].body["max_tokens"] == 9
    assert prompt_of(server.requests[1]) == "b"
    assert found.identity.name == "m"
    assert not found.identity.fake


def test_a_filtered_answer_is_no_answer(server):
    choice = {"message": {"content": "half of"}, "finish_reason": "content_filter"}
    server.script = [says("", choices=[choice])]
    with pytest.raises(Refused) as caught:
        load_generator(url=server.url, model="m").complete("a")
    assert isinstance(caught.value, OF_THE_PROMPT)


def test_a_key_that_is_refused_lasts(server):
    server.script = [lambda _request: Reply(401, b"{}")]
    with pytest.raises(LASTING):
        load_generator(url=server.url, model="m").complete("a")


def test_one_that_hangs_is_given_up(server):
    from clinsafe.adapters import chat as chats
    from clinsafe.adapters.exchange import EndpointBusy, Patience
    from clinsafe.adapters.generators import Endpoint

    server.script = [hang]
    inner = chats.load("m", server.url, timeout=0.1, patience=Patience(retries=0))
    with pytest.raises(EndpointBusy):
        Endpoint(inner).complete("a")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"name": "fake:extractive", "url": "http://127.0.0.1:9/v1", "model": "m"}, UsageError),
        ({"model": "m"}, UsageError),
        ({"key_variable": "X"}, UsageError),
        ({"url": "http://127.0.0.1:9/v1"}, UsageError),
        ({"name": "fake:extractive", "max_new_tokens": 0}, UsageError),
        ({"name": "fake:clever"}, UnknownModel),
    ],
)
def test_what_makes_no_sense_is_one_line(options, error, clean_environment):
    with pytest.raises(error) as caught:
        load_generator(**options)
    assert "\n" not in str(caught.value)


def test_nobody_asked_for_one():
    assert load_generator() is None

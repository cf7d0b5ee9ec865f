"""Embeddings over HTTP, against a real server on this machine: right and wrong answers, scoring, secrets."""

from __future__ import annotations

import logging
import traceback

import numpy as np
import pytest

from clinsafe.adapters import endpoint
from clinsafe.adapters.endpoint import (
    AccessRefused,
    BadAnswer,
    BadVector,
    TextRefused,
)
from clinsafe.adapters.reference import FakeEncoder
from clinsafe.benchmarks.scoring import score_with_encoder
from clinsafe.benchmarks.suite import SENTENCES
from clinsafe.errors import ModelError, UnknownModel, UsageError
from clinsafe.protocols import Encoder, QueryEncoder
from clinsafe.stats import NotMeasured
from tests.adapters import embedding_server as es
from tests.adapters.embedding_server import KEY, REMOTE, TEXT, fails

pytestmark = pytest.mark.usefixtures("clean_environment", "certificates_read_once")


# ── what is asked, and what is made of a right answer ───────────────────────────────────────────


def test_vectors_are_the_services_own_as_unit_rows_in_the_order_of_the_texts(server, connect):
    encoder = connect(batch_size=4)
    assert isinstance(encoder, Encoder)
    server.script = [es.ok, es.shuffled, es.ok]
    texts = [f"potassium {i} mmol per litre" for i in range(10)]
    rows = encoder.encode(texts)
    assert rows.dtype == np.float32
    assert rows.shape == (10, 64)
    assert np.abs(np.linalg.norm(rows, axis=1) - 1).max() < 1e-6
    assert np.abs(rows - FakeEncoder("words").encode(texts)).max() < 1e-6
    assert encoder.encode([]).shape == (0, 64)
    assert [len(request.texts) for request in server.requests] == [1, 4, 4, 2]


def test_a_request_holds_the_model_the_texts_and_the_format_and_nothing_from_openais_variables(
    server, connect, monkeypatch
):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-canary")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-canary")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Canary: canary")
    monkeypatch.setenv("OPENAI_BASE_URL", REMOTE)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    connect(base_url=f"{server.url}/")
    (request,) = server.requests
    assert request.path == "/v1/embeddings"
    assert request.body == {"model": es.MODEL, "input": [endpoint.PROBE], "encoding_format": "float"}
    assert "authorization" not in request.headers
    assert "canary" not in str(request.headers)


def test_the_key_is_sent_and_address_and_key_may_come_from_the_environment(server, waits, monkeypatch):
    monkeypatch.setenv("CLINSAFE_BASE_URL", server.url)
    monkeypatch.setenv("CLINSAFE_API_KEY", f"{KEY}\n")
    endpoint.load(es.MODEL, revision=None, device=None, trust_remote_code=False)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_openais_key_goes_to_openai_over_tls_only(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    sent = {
        url: endpoint.key_for(endpoint.parse_address(url))
        for url in (
            "https://api.openai.com/v1",
            "http://api.openai.com/v1",
            "https://api.openai.com.example.org/v1",
            "https://example.org/api.openai.com",
        )
    }
    assert [url for url, key in sent.items() if key] == ["https://api.openai.com/v1"]
    monkeypatch.setenv("CLINSAFE_API_KEY", "other")
    assert endpoint.key_for(endpoint.parse_address("https://api.openai.com/v1")) == "other"


def test_identity_says_what_is_known_and_what_is_not(server, connect):
    identity = connect(base_url=f"{server.origin}/tenant-canary/v1").identity
    assert identity.name == es.MODEL
    assert identity.revision == ""
    assert not identity.files
    assert not identity.fake
    settings = identity.settings
    assert (settings["host"], settings["port"]) == ("127.0.0.1", server.origin.rpartition(":")[2])
    assert settings["dimension"] == "64"
    assert settings["batch_size"] == "32"
    assert settings["model_reported"] == es.MODEL
    assert "not encrypted" in settings["transport"]
    assert "not verifiable" in settings["weights"]
    assert "unknown" in settings["dtype"]
    assert "tenant-canary" not in repr(identity)


def test_prompts_stand_before_the_texts_and_in_the_identity(server, connect):
    plain = connect()
    assert plain.identity.settings["prompts"] == "none"
    assert not isinstance(plain, QueryEncoder)
    encoder = connect(prompts="e5", query_prompt="ask: ")
    encoder.encode(["a b"])
    encoder.encode_queries(["a b"])
    assert [request.texts for request in server.requests[-2:]] == [["passage: a b"], ["ask: a b"]]
    assert encoder.identity.settings["prompt_query"] == "ask: "
    assert encoder.identity.settings["host"] == "127.0.0.1"
    with pytest.raises(UsageError):
        connect(prompts="nothing")


# ── wrong answers ───────────────────────────────────────────────────────────────────────────────

WRONG = {
    "html": (es.html, BadAnswer),
    "no json": (es.raw(b'{"data": ['), BadAnswer),
    "a list": (es.raw(b"[]"), BadAnswer),
    "deep": (es.raw(b"[" * 100_000), BadAnswer),
    "no body": (es.raw(b""), BadAnswer),
    "no data": (es.raw(b"{}"), BadAnswer),
    "not utf-8": (es.raw(b'{"data": "\xff"}'), BadAnswer),
    "error object": (es.error_object, BadAnswer),
    "redirect": (es.redirect("https://elsewhere.example.org:8443/secret-path?token=1"), BadAnswer),
    "nonsense redirect": (es.redirect("http://[secret-path/ x"), BadAnswer),
    "redirect without a host": (es.redirect("http:///secret-path"), BadAnswer),
    "redirect to a word": (es.redirect("secret-path"), BadAnswer),
    "redirect to no web": (es.redirect("mailto:secret-path"), BadAnswer),
    "redirect to a label": (es.redirect(f"http://x{'a' * 300}..b/secret-path"), BadAnswer),
    "no vectors": (es.changed(lambda data: []), BadAnswer),
    "too few": (es.short_by_one, BadAnswer),
    "too many": (es.one_too_many, BadAnswer),
    "same index": (es.same_index, BadAnswer),
    "no index": (es.missing_index, BadAnswer),
    "index from one": (es.changed(lambda data: data[-1].update(index=len(data))), BadAnswer),
    "index as text": (es.changed(lambda data: data[-1].update(index="0")), BadAnswer),
    "empty vector": (es.with_embedding([]), BadVector),
    "no vector": (es.with_embedding(None), BadVector),
    "base64": (es.with_embedding("AACAPwAAAAA="), BadVector),
    "numbers as text": (es.with_embedding(["0.1"] * 64), BadVector),
    "booleans": (es.with_embedding([True] * 64), BadVector),
    "nan": (es.nan, BadVector),
    "infinity": (es.with_embedding([float("inf")] * 64), BadVector),
    "null": (es.null_value, BadVector),
    "zeros": (es.zeros, BadVector),
    "over every float": (es.with_embedding([10**400] * 64), BadVector),
    "too long to normalise": (es.with_embedding([1e300] * 64), BadVector),
    "no key": (es.status(401), AccessRefused),
    "forbidden": (es.status(403), AccessRefused),
    "key refused with 400": (es.status(400, {"code": "invalid_api_key"}), AccessRefused),
    "no quota": (es.status(429, {"code": "insufficient_quota"}), AccessRefused),
    "not found": (es.status(404), UnknownModel),
    "no such model": (es.status(400, {"code": "model_not_found"}), UnknownModel),
    "bad request": (es.status(400), TextRefused),
    "too long": (es.status(413), TextRefused),
    "error as 200": (es.raw(b'{"error": {"code": 413}}'), TextRefused),
    "teapot": (es.status(418), BadAnswer),
    "no content": (lambda request: es.Reply(204), BadAnswer),
}  # fmt: skip


@pytest.mark.parametrize(("behaviour", "kind"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_answer_is_one_line_and_asked_for_once(server, connect, waits, behaviour, kind):
    server.script = [behaviour]
    with pytest.raises(ModelError) as caught:
        connect()
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    assert server.origin.removeprefix("http://") in str(caught.value)
    assert "secret-path" not in str(caught.value)
    assert len(server.requests) == 1
    assert waits == []


def test_a_wrong_answer_in_the_middle_fails_its_batch_and_no_other(server, connect):
    encoder = connect()
    for name, (behaviour, kind) in WRONG.items():
        server.script = [behaviour]
        assert (name, fails(encoder, ["a b", "c d"])) == (name, kind)
        assert encoder.encode(["a b", "c d"]).shape == (2, 64)


def test_the_dimension_is_that_of_the_first_answer(server, connect):
    encoder = connect()
    server.script = [
        es.wrong_dimension,
        es.changed(lambda d: [r.update(embedding=[1.0] * 7) for r in d] and d),
    ]
    for _ in range(2):
        with pytest.raises(BadAnswer, match="64"):
            encoder.encode(["a b", "c d"])


def test_vectors_of_another_model_are_not_mixed_in(server, connect):
    encoder = connect()
    server.script = [lambda request: es.answer(es.rows(request), model="fallback")]
    with pytest.raises(BadAnswer, match="another model"):
        encoder.encode(["a b"])


def test_a_redirect_is_not_followed_and_its_host_is_named(server, connect, monkeypatch):
    monkeypatch.setenv("CLINSAFE_API_KEY", KEY)
    with es.EmbeddingServer().running() as other:
        server.script = [es.redirect(f"{other.url}/secret-path")]
        with pytest.raises(BadAnswer) as caught:
            connect()
        assert other.requests == []
        assert other.origin in str(caught.value)
        assert "secret-path" not in str(caught.value)


# ── scoring ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("behaviour", [es.status(400), es.status(500), es.nan, es.zeros, es.html])
def test_only_the_cases_with_the_poisoned_text_are_not_measured(server, connect, few, behaviour):
    cases = few[:12]
    poisoned = cases[5].a_same
    server.poison = {poisoned: behaviour}
    results = score_with_encoder(connect(), cases)
    hit = {c.id for c in cases if poisoned in [getattr(c, s) for s in SENTENCES]}
    assert {r.id for r in results if isinstance(r.scores, NotMeasured)} == hit
    right = {r.id: r.scores for r in score_with_encoder(FakeEncoder("words"), cases)}
    for result in results:
        if result.id not in hit:
            assert result.scores == pytest.approx(right[result.id], abs=1e-6)
    assert hit


def test_a_service_that_dies_half_way_leaves_what_was_measured(server, connect, few):
    encoder = connect(patience={"retries": 0})
    server.script = [es.ok] * 2  # the first chunk of 64 texts
    server.default = es.status(503)
    results = score_with_encoder(encoder, few[:18] + few[:18])
    reasons = [r.scores.reason for r in results if isinstance(r.scores, NotMeasured)]
    assert any("run this again when it works" in reason for reason in reasons)
    assert len(server.requests) < 12


# ── secrets ─────────────────────────────────────────────────────────────────────────────────────


def test_neither_key_nor_text_appears_in_any_message_repr_identity_or_log(
    server, connect, monkeypatch, caplog
):
    monkeypatch.setenv("CLINSAFE_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    encoder = connect(timeout=0.2, patience={"retries": 0, "failures": 1000})
    shown = [repr(encoder), str(vars(encoder)), repr(encoder.identity)]
    for behaviour in (*(b for b, _ in WRONG.values()), es.status(429), es.status(500), es.hang):
        server.script = [behaviour]
        with pytest.raises(ModelError) as caught:
            encoder.encode([TEXT, "another"])
        error = caught.value
        assert error.__cause__ is error.__context__ is None  # the HTTP library's would carry the request
        shown += [repr(error), str(error), str(vars(error)), *traceback.format_exception(error)]
    encoder.encode([TEXT])
    shown += [record.getMessage() for record in caplog.records] + [str(r.args) for r in caplog.records]
    assert any(KEY in r.headers["authorization"] and TEXT in r.texts for r in server.requests)
    assert len(caplog.records) > 10
    assert not [line for line in shown if KEY in line or "Canary" in line]

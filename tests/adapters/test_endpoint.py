"""Embeddings over HTTP, against a real server on this machine whose faults are scripted."""

from __future__ import annotations

import datetime
import email.utils
import functools
import logging
import sys
import traceback

import numpy as np
import pytest

from clinsafe.adapters import endpoint
from clinsafe.adapters.endpoint import (
    AccessRefused,
    BadAnswer,
    BadVector,
    EndpointBusy,
    EndpointError,
    EndpointGone,
    Patience,
    TextRefused,
)
from clinsafe.adapters.offline import only_this_machine
from clinsafe.adapters.reference import FakeEncoder
from clinsafe.benchmarks.scoring import score_with_encoder
from clinsafe.benchmarks.suite import SENTENCES
from clinsafe.errors import MissingDependency, ModelError, OfflineError, UnknownModel, UsageError
from clinsafe.protocols import Encoder, QueryEncoder
from clinsafe.stats import NotMeasured
from tests.adapters import embedding_server as es

KEY = "sk-canary-4f2a91"
TEXT = "Mr Canary of Finch Lane denies chest pain"
REMOTE = "http://192.0.2.1:9/v1"  # TEST-NET-1: nothing is ever there


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch):
    for name in ("CLINSAFE_API_KEY", "CLINSAFE_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(scope="session")
def certificates():
    import httpx2

    return functools.cache(httpx2.create_ssl_context)


@pytest.fixture(autouse=True)
def _certificates_read_once(certificates, monkeypatch):
    """Reading them takes 50 ms, most of a test."""
    monkeypatch.setattr("httpx2.create_ssl_context", certificates)


@pytest.fixture
def server():
    with es.EmbeddingServer().running() as running:
        yield running


@pytest.fixture
def waits():
    """The seconds that were not slept."""
    return []


@pytest.fixture
def connect(server, waits):
    """Load an encoder for the server; waiting takes no time."""

    def load(name=es.MODEL, *, base_url=None, patience=None, **options):
        patience = Patience(sleep=waits.append, **(patience or {}))
        return endpoint.load(name, base_url=base_url or server.url, patience=patience, **options)

    return load


def fails(encoder, texts):
    """The kind of error that encoding the texts raises."""
    with pytest.raises(ModelError) as caught:
        encoder.encode(texts)
    return type(caught.value)


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


# ── slow and failing services ───────────────────────────────────────────────────────────────────


def test_rate_limits_and_server_errors_are_waited_out(server, connect, waits):
    server.script = [
        es.status(429, Retry_After="7"),
        es.status(503, Retry_After="86400"),
        es.status(500),
        es.raw(b'{"error": {"code": 502}}'),
        es.ok,
    ]
    assert connect().encode([]).shape == (0, 64)
    assert waits[:2] == [7, 60]
    assert 2 <= waits[2] <= 2.5
    assert 4 <= waits[3] <= 4.5


@pytest.mark.parametrize(
    "header", ["", "soon", "-5", "nan", "inf", "9" * 400, "Thu, 01 Jan 1970 00:00:00 GMT"]
)
def test_a_retry_after_that_says_nothing_leaves_the_usual_wait(server, connect, waits, header):
    server.script = [es.status(429, Retry_After=header)]
    connect()
    assert len(waits) == 1
    assert 0.5 <= waits[0] <= 1


def test_a_retry_after_may_be_a_date(server, connect, waits):
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    server.script = [es.status(429, Retry_After=email.utils.format_datetime(soon, usegmt=True))]
    connect()
    assert waits == [60]


def test_retries_are_bounded(server, connect, waits):
    server.default = es.status(500)
    with pytest.raises(EndpointBusy):
        connect()
    assert len(server.requests) == 6
    assert len(waits) == 5
    assert waits == sorted(waits)


def test_no_wait_goes_beyond_the_deadline(server, connect, waits):
    server.default = es.status(429, Retry_After="30")
    with pytest.raises(EndpointBusy):
        connect(patience={"deadline": 10})
    assert len(server.requests) == 1
    assert waits == []


@pytest.mark.parametrize("behaviour", [es.hang, es.drip])
def test_a_service_that_never_finishes_its_answer_times_out(server, connect, behaviour):
    server.default = behaviour
    with pytest.raises(EndpointBusy, match=r"0\.1 s"):
        connect(timeout=0.1, patience={"retries": 1})
    assert len(server.requests) == 2


def test_one_request_ends_with_the_deadline_too(server, connect):
    server.default = es.hang
    with pytest.raises(EndpointBusy, match=r"within 0\."):
        connect(timeout=5, patience={"deadline": 0.1})
    assert len(server.requests) == 1


def test_an_endless_answer_is_cut_off(server, connect, monkeypatch):
    monkeypatch.setattr(endpoint, "MOST_BYTES_PER_TEXT", 100)
    with pytest.raises(BadAnswer, match="too large"):
        connect()


def test_a_service_that_is_not_there_is_told_at_once(server, connect, waits):
    with es.EmbeddingServer().running() as stopped:
        address = stopped.url
    for gone in (address, "http://a..b/v1", f"http://{'a' * 70}.invalid/v1"):
        with pytest.raises(EndpointError, match="cannot be reached"):
            connect(base_url=gone)
    assert waits == []


def test_without_the_libraries_the_install_line_is_printed(monkeypatch):
    monkeypatch.setitem(sys.modules, "tenacity", None)
    with pytest.raises(MissingDependency, match=r"pip install 'clinsafe\[endpoint\]'"):
        endpoint.load(es.MODEL, base_url=REMOTE)


# ── the circuit breaker ─────────────────────────────────────────────────────────────────────────


def test_a_dead_service_is_not_asked_for_ever(server, connect):
    encoder = connect(patience={"retries": 1})
    server.default = es.status(500)
    assert [fails(encoder, ["a b"]) for _ in range(6)] == [EndpointBusy] * 3 + [EndpointGone] * 3
    assert len(server.requests) == 1 + 3 * 2 + 1  # load, three calls of two tries, one last question
    server.default = es.ok
    assert fails(encoder, ["a b"]) is EndpointGone


def test_a_service_that_always_answers_never_trips_it(server, connect):
    encoder = connect(batch_size=1)
    assert len(encoder.encode([f"text {i}" for i in range(50)])) == 50
    assert len(server.requests) == 51


def test_failures_must_be_in_a_row(server, connect):
    encoder = connect()
    for _ in range(4):
        server.script = [es.status(403), es.status(403)]
        assert [fails(encoder, ["a b"]) for _ in range(2)] == [AccessRefused] * 2
        encoder.encode(["a b"])


def test_a_service_that_refuses_many_texts_is_not_gone(server, connect):
    encoder = connect()
    for behaviour in (es.status(413), es.nan):
        server.script = [behaviour] * 10
        assert EndpointGone not in {fails(encoder, ["a b"]) for _ in range(10)}


def test_a_text_that_breaks_a_living_service_is_its_own_fault(server, connect):
    """Some services answer 500 to a text that is too long; the long ones come first, one after the other."""
    encoder = connect(patience={"retries": 0})
    server.poison = {f"long {i}": es.status(500) for i in range(5)}
    assert [fails(encoder, [text]) for text in server.poison] == [EndpointBusy] * 5
    assert encoder.encode(["short"]).shape == (1, 64)


def test_but_not_without_end(server, connect):
    encoder = connect(patience={"retries": 0})
    server.poison = {"long": es.status(500)}
    kinds = [fails(encoder, ["long"]) for _ in range(12)]
    assert kinds == [EndpointBusy] * 9 + [EndpointGone] * 3
    assert fails(encoder, ["short"]) is EndpointGone


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


# ── the address, proxies, --offline ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "address",
    [
        "",
        "localhost:8080/v1",
        "ftp://localhost/v1",
        "file:///etc/passwd",
        "http:///v1",
        "http://localhost:port/v1",
        "http://localhost:99999/v1",
        f"https://user:{KEY}@example.org/v1",
        f"https://{KEY}@example.org/v1",
        f"{KEY}:{KEY}@example.org/v1",
        f"https://example.org/v1?api-key={KEY}",
        f"https://example.org/v1#{KEY}",
        f"https://exa mple.org/\n{KEY}",
    ],
)
def test_an_unusable_address_is_refused_and_not_repeated(address):
    with pytest.raises(UsageError) as caught:
        endpoint.load(es.MODEL, base_url=address)
    shown = "".join(traceback.format_exception(caught.value))
    assert "--base-url http" in shown
    assert KEY not in shown
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "shown", "loopback"),
    [
        ("http://LOCALHOST/v1/", "localhost", True),
        ("https://[::1]:8443/v1", "[::1]:8443", True),
        ("http://127.9.9.9:1/v1", "127.9.9.9:1", True),
        ("https://user.example.org:443/v1", "user.example.org", False),
        ("http://localhost.example.org:8080/v1", "localhost.example.org:8080", False),
        ("http://127.0.0.1.example.org/v1", "127.0.0.1.example.org", False),
    ],
)
def test_the_address_is_read_as_the_http_library_reads_it(address, shown, loopback):
    url = endpoint.parse_address(address)
    assert url.netloc.decode() == shown
    assert url.path == "/v1/embeddings"
    assert endpoint.on_this_machine(url) is loopback


@pytest.mark.parametrize("options", [
    {"timeout": 0}, {"timeout": float("nan")}, {"timeout": float("inf")}, {"batch_size": 0}, {"revision": "main"},
    {"name": ""}, {"name": "a\nb"},
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(server, connect, options):
    with pytest.raises(UsageError):
        connect(**options)
    assert server.requests == []


def test_a_key_that_no_header_can_carry_is_refused_and_not_repeated(server, connect, monkeypatch):
    for key in (f"{KEY} {KEY}", f"{KEY}\n{KEY}", f"{KEY}é"):
        monkeypatch.setenv("CLINSAFE_API_KEY", key)
        with pytest.raises(UsageError) as caught:
            connect()
        assert KEY not in "".join(traceback.format_exception(caught.value))
    assert server.requests == []


@pytest.mark.parametrize("proxy", ["http://user:pw@192.0.2.1:9", "socks5://192.0.2.1:9", "nonsense://x"])
def test_no_proxy_stands_between_this_machine_and_itself(server, connect, monkeypatch, proxy):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy)
    assert connect().encode(["a b"]).shape == (1, 64)
    assert connect(base_url=server.url.replace("127.0.0.1", "localhost")).encode(["a b"]).shape == (1, 64)


def test_a_proxy_is_used_for_other_machines_and_an_unusable_one_is_not_repeated(server, connect, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", server.origin)
    connect(base_url="http://embeddings.invalid/v1")
    assert server.requests[0].path == "http://embeddings.invalid/v1/embeddings"
    monkeypatch.setenv("HTTP_PROXY", f"nonsense://user:{KEY}@host")
    with pytest.raises(UsageError) as caught:
        connect(base_url="http://embeddings.invalid/v1")
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_offline_leaves_this_machine_open(connect):
    with only_this_machine(True):
        assert connect(offline=True).encode(["a b"]).shape == (1, 64)


def test_offline_refuses_another_machine_once_even_through_a_proxy_here(server, connect, waits, monkeypatch):
    with only_this_machine(True), pytest.raises(OfflineError) as caught:
        connect(base_url=REMOTE)  # by the switch alone
    assert "192.0.2.1" in str(caught.value)
    monkeypatch.setenv("HTTP_PROXY", server.origin)
    with pytest.raises(OfflineError):
        connect(base_url=REMOTE, offline=True)
    assert server.requests == []
    assert waits == []


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

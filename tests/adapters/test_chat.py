"""Chat over HTTP, against a real server on this machine: answers, faults, waits, secrets."""

from __future__ import annotations

import json
import traceback

import pytest

from clinsafe.adapters import chat
from clinsafe.adapters.exchange import (
    AccessRefused,
    BadAnswer,
    EndpointBusy,
    EndpointError,
    EndpointGone,
    Patience,
    TextRefused,
)
from clinsafe.errors import ModelError, OfflineError, UnknownModel, UsageError
from clinsafe.protocols import Generator
from tests.adapters import embedding_server as es
from tests.adapters.chat_server import ChatServer, prompt_of, says
from tests.adapters.embedding_server import KEY, REMOTE, TEXT

pytestmark = pytest.mark.usefixtures("clean_environment", "certificates_read_once")


@pytest.fixture
def server():
    with ChatServer().running() as running:
        yield running


@pytest.fixture
def connect(server, waits):
    def load(*, patience=None, url=None, **options):
        patience = Patience(**{"sleep": waits.append, **(patience or {})})
        return chat.load("served", url or server.url, patience=patience, **options)

    return load


def refusal(code, **headers):
    """An error status whose body repeats the prompt and the key."""

    def behave(request):
        echo = f"{request.headers.get('authorization')} sent {prompt_of(request)}"
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return es.Reply(code, json.dumps({"error": {"message": echo}}).encode(), named)

    return behave


def test_the_answer_is_the_services_text(server, connect):
    generator = connect(url=f"{server.url}/")
    assert isinstance(generator, Generator)
    server.script = [says("  It is 5 mg.\n")]
    assert generator.generate("How much?") == "It is 5 mg."
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert prompt_of(request) == "How much?"
    assert (request.body["model"], request.body["temperature"]) == ("served", 0)
    assert "authorization" not in request.headers
    assert generator.calls == 1


def test_the_key_comes_from_the_variable_that_is_named(server, connect, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.setenv("CLINSAFE_API_KEY", "usual")
    generator = connect(key_variable="MY_KEY")
    generator.generate("x")
    connect().generate("x")
    assert [one.headers["authorization"] for one in server.requests] == [f"Bearer {KEY}", "Bearer usual"]
    assert KEY not in repr(vars(generator))


@pytest.mark.parametrize("name", [KEY, "UNSET_KEY", "", "a b"])
def test_a_key_that_is_no_name_of_a_set_variable_is_refused_and_never_repeated(connect, name):
    with pytest.raises(UsageError) as caught:
        connect(key_variable=name)
    assert not name or name not in str(caught.value)


def test_a_key_with_a_space_is_refused_and_not_printed(connect, monkeypatch):
    monkeypatch.setenv("MY_KEY", f"{KEY} x")
    with pytest.raises(UsageError) as caught:
        connect(key_variable="MY_KEY")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["", "localhost:1", "ftp://h/v1", "http://u:secret@h/v1", "http://h/v1?key=secret", "http://h:99999"],
)
def test_an_address_that_cannot_be_used_names_the_flag_and_not_the_address(url):
    with pytest.raises(UsageError, match="--generator-url") as caught:
        chat.load("m", url)
    assert "secret" not in str(caught.value)


def test_offline_refuses_another_machine_before_anything_is_sent(connect):
    with pytest.raises(OfflineError):
        connect(url=REMOTE, offline=True)
    assert connect(offline=True).generate("x") == "Yes."


FAULTS = {
    "no json": (es.raw(b'{"choices": ['), BadAnswer),
    "html": (es.html, BadAnswer),
    "no choices": (es.raw(b'{"choices": []}'), BadAnswer),
    "embeddings": (es.raw(b'{"data": []}'), BadAnswer),
    "content is a number": (says(5), BadAnswer),
    "error with 200": (es.raw(b'{"error": {"message": "x"}}'), BadAnswer),
    "redirect": (es.redirect("https://elsewhere.example.org/secret-path"), BadAnswer),
    "too large": (es.raw(b"x" * (chat.MOST_BYTES + 1)), BadAnswer),
    "no content": (says(None), chat.NoText),
    "blank": (says(" \n"), chat.NoText),
    "401": (refusal(401), AccessRefused),
    "404": (refusal(404), UnknownModel),
    "400": (refusal(400), TextRefused),
    "quota": (es.raw(b'{"error": {"code": "insufficient_quota"}}'), AccessRefused),
}


@pytest.mark.parametrize(("behave", "kind"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_one_line_of_ours_and_is_not_tried_again(server, connect, monkeypatch, behave, kind):
    monkeypatch.setenv("CLINSAFE_API_KEY", KEY)
    generator = connect()
    server.script = [behave]
    with pytest.raises(ModelError) as caught:
        generator.generate(TEXT)
    assert type(caught.value) is kind
    told = "".join(traceback.format_exception(caught.value)) + str(caught.value)
    assert not any(secret in told for secret in (KEY, "Canary", "secret-path"))
    assert len(server.requests) == 1
    assert generator.generate("x") == "Yes."


def test_a_busy_service_is_asked_again_and_waited_for_as_it_asks(server, connect, waits):
    server.script = [refusal(429, Retry_After="7"), refusal(503), says("At last.")]
    assert connect().generate("x") == "At last."
    assert waits[0] == 7
    assert len(server.requests) == 3


def test_retries_are_bounded_and_a_dead_service_is_left_alone(server, connect, waits):
    server.script = [refusal(500)] * 100
    generator = connect(patience={"retries": 2, "failures": 2})
    for _ in range(2):
        with pytest.raises(EndpointBusy, match="3 tries"):
            generator.generate(TEXT)
    with pytest.raises(EndpointGone, match="2 calls in a row"):
        generator.generate(TEXT)
    assert len(server.requests) == 6
    assert generator.calls == 2


def test_refused_prompts_are_no_sign_of_a_dead_service(server, connect):
    server.script = [refusal(400), says(""), refusal(400), says("")]
    generator = connect(patience={"failures": 2})
    for kind in (TextRefused, chat.NoText) * 2:
        with pytest.raises(kind):
            generator.generate("x")
    assert generator.generate("x") == "Yes."


@pytest.mark.parametrize("behave", [es.hang, lambda r: es.Reply(body=says("x" * 900)(r).body, slow=True)])
def test_a_service_that_does_not_come_to_an_end_is_given_up(server, connect, behave):
    server.script = [behave] * 2
    generator = connect(timeout=0.1, patience={"retries": 1})
    with pytest.raises(EndpointBusy, match=r"did not answer within 0\.1 s"):
        generator.generate(TEXT)


def test_nothing_waits_for_a_service_that_was_never_there(connect, waits):
    with pytest.raises(EndpointError, match="cannot be reached") as caught:
        connect(url="http://127.0.0.1:9/v1").generate("x")
    assert type(caught.value) is EndpointError
    assert not waits

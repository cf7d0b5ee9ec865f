"""What embeddings and chat share: words of their own for each service, none of others', bounded waiting."""

from __future__ import annotations

import json
import socket
import threading
import traceback

import pytest

from clinsafe.adapters import chat, endpoint, exchange
from clinsafe.adapters.exchange import EndpointBusy, EndpointError, Exchange, Patience, Reply
from clinsafe.errors import ModelError
from tests.adapters.embedding_server import KEY, MODEL, TEXT

pytestmark = pytest.mark.usefixtures("clean_environment", "certificates_read_once")

SERVICES = [endpoint.SERVICE, chat.SERVICE]


def exchange_with(url, service=endpoint.SERVICE, key=""):
    import httpx2

    return Exchange(MODEL, httpx2.URL(url), key, 5.0, service)


@pytest.fixture(params=SERVICES, ids=["embeddings", "chat"])
def service(request):
    return request.param


@pytest.mark.parametrize("status", [204, 307, 400, 401, 404, 418, 429, 500])
def test_a_refusal_is_one_line_that_names_the_host_and_no_other_services_flag(service, status):
    one = exchange_with("http://127.0.0.1:9/secret-path", service, KEY)
    reply = Reply(status, f"{KEY} {TEXT}".encode(), 7.0, "https://elsewhere.example.org")
    error = one.refusal(reply, status, "3 texts")
    one.close()
    assert isinstance(error, ModelError)
    assert str(error).startswith(f"127.0.0.1:9 answered {status}")
    shown = str(error) + repr(error) + repr(reply)
    assert not any(secret in shown for secret in (KEY, "Canary", "secret-path"))
    others = [other for other in SERVICES if other is not service]
    assert not any(word in str(error) for other in others for word in (other.flag, other.path, other.api))


@pytest.mark.parametrize("status", [204, 404, 418])
def test_where_the_address_may_be_wrong_the_flag_for_it_is_named(service, status):
    one = exchange_with("http://127.0.0.1:9", service)
    assert service.flag in str(one.refusal(Reply(status, b"", 0.0, ""), status, "one text"))
    one.close()


def test_whether_a_key_was_sent_is_said_and_how_to_give_one(service):
    reply = Reply(401, b"", 0.0, "")
    lines = []
    for key in ("", KEY):
        one = exchange_with("http://127.0.0.1:9", service, key)
        lines.append(str(one.refusal(reply, 401, "one text")))
        one.close()
    assert all(service.key in line for line in lines)
    assert ["without a key" in line for line in lines] == [True, False]


def test_a_proxys_own_words_are_not_repeated(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def refuse():
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 407 Canary of Finch Lane\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=refuse)
        thread.start()
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        one = exchange_with("https://embeddings.invalid/v1/embeddings", key=KEY)
        with pytest.raises(EndpointError, match="407") as caught:
            one.post({"input": [TEXT]}, 5.0, 1000)
        one.close()
        thread.join()
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert "Canary" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"code": 502}, 502),
        ({"code": None, "type": "insufficient_quota"}, 402),
        ({"code": "invalid_api_key"}, 401),
        ({"code": "model_not_found"}, 404),
        ({"code": 200, "type": 99}, 0),
        ("a word", 0),
        ({}, None),
        (None, None),
    ],
)
def test_an_error_object_stands_for_a_status(error, code):
    assert exchange.error_code(json.dumps({"error": error}).encode()) == code


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"3", b"\xff", b"[" * 100_000])
def test_what_holds_no_error_object_stands_for_none(body):
    assert exchange.error_code(body) is None


def test_only_a_busy_service_is_asked_again_and_each_time_with_less_left():
    waits, left = [], []

    def ask(seconds):
        left.append(seconds)
        if len(left) < 3:
            raise EndpointBusy("busy", 2.0)
        return "answer"

    assert exchange.patiently(ask, Patience(deadline=10.0, sleep=waits.append)) == "answer"
    assert waits == [2.0, 2.0]
    assert 10 >= left[0] > left[1] > left[2] > 9
    with pytest.raises(EndpointError):
        exchange.patiently(fails_with(EndpointError("gone")), Patience(sleep=waits.append))
    assert len(waits) == 2


def test_the_last_failure_says_how_often_and_carries_nothing_else():
    with pytest.raises(EndpointBusy, match="3 tries") as caught:
        exchange.patiently(fails_with(EndpointBusy("busy", 2.0)), Patience(retries=2, sleep=lambda _: None))
    assert caught.value.retry_after == 2.0
    assert caught.value.__cause__ is caught.value.__context__ is None


def fails_with(error):
    """An `ask` that always fails in this way, with a text in the error's context as a careless one would."""

    def ask(_seconds):
        try:
            raise ValueError(TEXT)
        except ValueError:
            raise error  # noqa: B904

    return ask

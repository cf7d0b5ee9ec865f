"""An OpenAI-compatible embeddings server on 127.0.0.1, whose faults are scripted request by request.

It embeds by the fake ``words`` encoder, so that whole audits can run on it and their figures can be
compared with those of that encoder.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from clinsafe.adapters.reference import DIMENSION, FakeEncoder
from clinsafe.errors import ModelError
from clinsafe.protocols import Encoder

MODEL = "served-model"
KEY = "sk-canary-4f2a91"
TEXT = "Mr Canary of Finch Lane denies chest pain"
REMOTE = "http://192.0.2.1:9/v1"  # TEST-NET-1: nothing is ever there


@dataclass(frozen=True)
class Request:
    """One request as it came in; header names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        return list(self.body["input"])


@dataclass(frozen=True)
class Reply:
    """What goes back. `slow` sends the body byte by byte; `silent` sends nothing until the server stops."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    slow: bool = False
    silent: bool = False


Behaviour = Callable[[Request], Reply]


def rows(request: Request) -> list[dict[str, Any]]:
    """The right answer's ``data``."""
    vectors = FakeEncoder("words").encode(request.texts)
    return [
        {"object": "embedding", "index": i, "embedding": [3.0 * float(x) for x in row]}  # not unit rows
        for i, row in enumerate(vectors)
    ]


def answer(data: Any, **others: Any) -> Reply:
    """Any ``data`` as a 200; NaN stays NaN, as some servers write it."""
    return Reply(body=json.dumps({"object": "list", "model": MODEL, "data": data, **others}).encode())


def ok(request: Request) -> Reply:
    return answer(rows(request))


def changed(change: Callable[[list[dict[str, Any]]], Any]) -> Behaviour:
    """The right answer's rows after `change`, which may work in place."""

    def behave(request: Request) -> Reply:
        data = rows(request)
        result = change(data)
        return answer(data if result is None else result)

    return behave


def with_embedding(embedding: Any) -> Behaviour:
    """The last row's vector replaced."""
    return changed(lambda data: data[-1].update(embedding=embedding))


def status(code: int, message: Any = None, **headers: str) -> Behaviour:
    """An error status; the body repeats texts and key, as careless services do."""

    def behave(request: Request) -> Reply:
        echo = f"{request.headers.get('authorization')} sent {request.texts}"
        body = {"error": {"message": echo, **(message or {})}}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Reply(code, json.dumps(body).encode(), {"Content-Type": "application/json", **named})

    return behave


def redirect(target: str) -> Behaviour:
    return lambda request: Reply(307, headers={"Location": target})


def html(request: Request) -> Reply:
    return Reply(200, b"<html><h1>Please log in</h1></html>", {"Content-Type": "text/html"})


def error_object(request: Request) -> Reply:
    return Reply(body=json.dumps({"error": {"message": f"cannot embed {request.texts}"}}).encode())


def raw(body: bytes) -> Behaviour:
    return lambda request: Reply(body=body)


def hang(request: Request) -> Reply:
    return Reply(silent=True)


def drip(request: Request) -> Reply:
    """A right answer, a byte at a time: each read is fast, the whole takes seconds."""
    return Reply(body=ok(request).body, slow=True)


shuffled = changed(lambda data: data.reverse())
wrong_dimension = with_embedding([1.0] * (DIMENSION - 1))
missing_index = changed(lambda data: data[-1].pop("index") and None)
short_by_one = changed(lambda data: data[:-1])
one_too_many = changed(lambda data: [*data, {"index": len(data), "embedding": [1.0] * DIMENSION}])
same_index = changed(lambda data: [{**row, "index": 0} for row in data] * 2)
nan = with_embedding([float("nan")] * DIMENSION)
null_value = with_embedding([None] * DIMENSION)
zeros = with_embedding([0.0] * DIMENSION)


class EmbeddingServer:
    """Behaviours in `script` are used up one a request; then `poison` by text, then `default`."""

    def __init__(self) -> None:
        self.script: list[Behaviour] = []
        self.poison: dict[str, Behaviour] = {}
        self.default: Behaviour = ok
        self.requests: list[Request] = []
        self.stopping = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))

    @property
    def origin(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/v1"

    def reply(self, request: Request) -> Reply:
        self.requests.append(request)
        if self.script:
            return self.script.pop(0)(request)
        poisoned = next((self.poison[t] for t in request.texts if t in self.poison), None)
        return (poisoned or self.default)(request)

    @contextmanager
    def running(self) -> Iterator[EmbeddingServer]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self.stopping.set()
            self._server.shutdown()
            self._server.server_close()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up waiting is no news."""


def _handler(server: EmbeddingServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # or each answer waits 40 ms for the client's acknowledgement

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = server.reply(Request(self.path, headers, body))
            if reply.silent:
                server.stopping.wait()
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            if not reply.slow:
                self.wfile.write(reply.body)
                return
            for byte in reply.body:
                if server.stopping.wait(0.005):
                    return
                self.wfile.write(bytes([byte]))

        def log_message(self, *arguments: Any) -> None:
            """Quiet."""

    return Handler


def fails(encoder: Encoder, texts: list[str]) -> type[ModelError]:
    """The kind of error that encoding the texts raises."""
    with pytest.raises(ModelError) as caught:
        encoder.encode(texts)
    return type(caught.value)

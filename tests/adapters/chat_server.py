"""An OpenAI-compatible chat server on 127.0.0.1, scripted request by request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.adapters.embedding_server import Behaviour, EmbeddingServer, Reply, Request


def says(text: Any, **others: Any) -> Behaviour:
    """An answer with this content."""
    body = {"model": "served", "choices": [{"message": {"role": "assistant", "content": text}}], **others}
    return lambda _request: Reply(body=json.dumps(body).encode())


def prompt_of(request: Request) -> str:
    """What was asked."""
    (message,) = request.body["messages"]
    return str(message["content"])


class ChatServer(EmbeddingServer):
    """Behaviours in `script` are used up one a request; then `answer` says what a prompt gets."""

    def __init__(self, answer: Callable[[str], str] = lambda _prompt: "Yes.") -> None:
        super().__init__()
        self.answer = answer

    def reply(self, request: Request) -> Reply:
        self.requests.append(request)
        if self.script:
            return self.script.pop(0)(request)
        return says(self.answer(prompt_of(request)))(request)

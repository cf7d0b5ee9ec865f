"""Any OpenAI-compatible chat endpoint as a `Generator`: prompt in, text out.

The same rules as for embeddings (`clinsafe.adapters.exchange`): the address holds no secret, the key comes from the
environment, nothing that the service writes is repeated in an error, retries are bounded, and a dead service is not
asked for an hour.
"""

from __future__ import annotations

import contextlib
import os
import re
import weakref
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, ValidationError

from clinsafe.adapters.address import key_for, on_this_machine, parse_address
from clinsafe.adapters.exchange import (
    PATIENCE,
    BadAnswer,
    EndpointError,
    EndpointGone,
    Exchange,
    Patience,
    Service,
    TextRefused,
    error_code,
    patiently,
    require_libraries,
)
from clinsafe.errors import ModelError, OfflineError, UsageError

if TYPE_CHECKING:
    import httpx2

MOST_BYTES = 1 << 22
TOKENS = 512  # of one answer
FLAG = "--generator-url"
SERVICE = Service(
    kind="chat",
    answer="an answer",
    api="a chat API",
    flag=FLAG,
    path="/chat/completions",
    key="name the variable with a key that has access and quota with --generator-key-env",
)


class NoText(EndpointError):
    """The endpoint answered without a word: a refusal, or an answer that was filtered. It is alive all the same."""


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message


class _Answer(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    model: Any = None


class ChatGenerator:
    """A `Generator` over HTTP, at temperature 0.

    Args:
        name: the model, as the service calls it.
        url, key: from `load`; the key "" sends none.
        timeout: seconds for one try; `patience.deadline` for all tries of a prompt.
        patience: retries, waits, and when to give up.

    Attributes:
        calls: prompts that were sent, retries not counted.
    """

    def __init__(
        self,
        name: str,
        url: httpx2.URL,
        key: str = "",
        *,
        timeout: float = 60.0,
        patience: Patience = PATIENCE,
    ) -> None:
        self.name, self.calls = name, 0
        self._patience, self._failures, self._last = patience, 0, ""
        self._exchange = Exchange(name, url, key, timeout, SERVICE)
        self.where = self._exchange.where  # host and port; the path may be a secret
        self.close = weakref.finalize(self, self._exchange.close)

    def generate(self, prompt: str, /) -> str:
        """The answer's text.

        Raises:
            NoText, TextRefused: this prompt has no answer; the next one may.
            EndpointBusy, AccessRefused, BadAnswer, UnknownModel: in their kinds; `EndpointGone` once asking on is
                pointless. OfflineError.
        """
        if self._failures >= self._patience.failures:
            lost = f"failed {self._failures} calls in a row, the last with {self._last}"
            raise EndpointGone(f"{self.where} {lost}; run this again when it works")
        self.calls += 1
        try:
            text = patiently(lambda left: self._ask(prompt, left), self._patience)
        except (TextRefused, NoText):
            self._failures = 0
            raise
        except ModelError as error:
            self._failures, self._last = self._failures + 1, type(error).__name__
            raise
        self._failures = 0
        return text

    def _ask(self, prompt: str, left: float) -> str:
        messages = [{"role": "user", "content": prompt}]
        document = {"model": self.name, "messages": messages, "temperature": 0, "max_tokens": TOKENS}
        reply = self._exchange.post(document, left, MOST_BYTES)
        code = error_code(reply.body)
        if reply.status != 200 or code is not None:
            raise self._exchange.refusal(reply, code or reply.status, "the prompt")
        answer = None
        with contextlib.suppress(ValidationError):  # its message quotes the answer
            answer = _Answer.model_validate_json(reply.body)
        if answer is None:
            valid = '{"choices": [{"message": {"content": "…"}}]}'
            raise BadAnswer(f"{self.where}: not a chat answer; valid is JSON with {valid}; is {FLAG} right?")
        text = (answer.choices[0].message.content or "").strip()
        if not text:
            raise NoText(f"{self.where} answered without text")
        return text


def load(
    name: str,
    base_url: str,
    *,
    key_variable: str | None = None,
    timeout: float = 60.0,
    offline: bool = False,
    patience: Patience = PATIENCE,
) -> ChatGenerator:
    """A generator for ``http://HOST:PORT/v1``; nothing is sent yet.

    Args:
        name: the model, as the service calls it.
        base_url: the part before ``/chat/completions``.
        key_variable: environment variable with the key; None takes ``CLINSAFE_API_KEY``, or none where it is not set.
        timeout: seconds for one try.
        offline: refuse an address off this machine.
        patience: retries, waits, and when to give up.

    Raises:
        UsageError, OfflineError, MissingDependency.
    """
    require_libraries("a chat endpoint")
    if not name or not name.isprintable():
        raise UsageError("a chat endpoint needs the name of a model: --generator-model NAME")
    if not 0 < timeout < float("inf"):
        raise UsageError("the time-out must be over 0 s and finite")
    url = _address(base_url)
    if offline and not on_this_machine(url):  # here and now: a proxy on this machine would let it out
        raise OfflineError(f"a connection to {url.host} was refused: --offline is on")
    key = key_for(url) if key_variable is None else _key(key_variable)
    return ChatGenerator(name, url, key, timeout=timeout, patience=patience)


def _address(base_url: str) -> httpx2.URL:
    if not base_url.strip():
        raise UsageError(f"{FLAG} is empty; valid is http://HOST:PORT/v1")
    try:
        url = parse_address(base_url)
    except UsageError:  # it names another flag
        raise UsageError(
            f"{FLAG} is not an http or https URL without user, password, query and fragment; valid is "
            "http://HOST:PORT/v1"
        ) from None
    return url.copy_with(raw_path=url.raw_path.removesuffix(b"/embeddings") + SERVICE.path.encode())


def _key(variable: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        # never repeated: somebody may have given the key itself
        raise UsageError("--generator-key-env takes the name of an environment variable, not the key itself")
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UsageError("--generator-key-env names an environment variable that is not set or empty")
    if not re.fullmatch(r"[\x21-\x7e]*", key):
        raise UsageError("the key must be ASCII letters, digits and signs, without spaces")
    return key

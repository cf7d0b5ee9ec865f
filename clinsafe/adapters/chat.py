"""Any OpenAI-compatible chat endpoint as a `Generator`: prompt in, text out.

The same rules as for embeddings (`clinsafe.adapters.exchange`): the address holds no secret, the key comes from the
environment, nothing that the service writes is repeated in an error, retries are bounded, and a dead service is not
asked for an hour.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
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
    refusal: Any = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: Any = None


class _Answer(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    model: Any = None
    usage: Any = None


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer of a chat.

    Attributes:
        text: without white space around it; "" only where it was refused.
        refused: the service or its model says that it declined.
        usage: tokens of prompt and completion as the service counted them; None where it does not say.
    """

    text: str = field(repr=False)
    refused: bool = False
    usage: tuple[int, int] | None = None


class ChatGenerator:
    """A `Generator` over HTTP, at temperature 0.

    Args:
        name: the model, as the service calls it.
        url, key: from `load`; the key "" sends none.
        timeout: seconds for one try; `patience.deadline` for all tries of a prompt.
        patience: retries, waits, and when to give up.
        service: the words of its errors.

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
        service: Service = SERVICE,
    ) -> None:
        self.name, self.calls, self._service = name, 0, service
        self._patience, self._failures, self._last = patience, 0, ""
        self._exchange = Exchange(name, url, key, timeout, service)
        self.where = self._exchange.where  # host and port; the path may be a secret
        self.close = weakref.finalize(self, self._exchange.close)

    def generate(self, prompt: str, /) -> str:
        """The answer's text.

        Raises:
            NoText, TextRefused: this prompt has no answer; the next one may.
            EndpointBusy, AccessRefused, BadAnswer, UnknownModel: in their kinds; `EndpointGone` once asking on is
                pointless. OfflineError.
        """
        found = self.complete(prompt)
        if not found.text:
            raise NoText(f"{self.where} answered without text")
        return found.text

    def complete(
        self,
        prompt: str,
        options: Mapping[str, Any] | None = None,
        before: Callable[[], None] | None = None,
    ) -> Completion:
        """The answer with what the service says of it.

        Args:
            prompt: the user's one message.
            options: further fields of the request; they win over ``temperature`` 0 and ``max_tokens``.
            before: called before every try; what it raises ends the call and is no failure of the service.

        Raises:
            As `generate`; a refusal that says that it is one is no error here.
        """
        if self._failures >= self._patience.failures:
            lost = f"failed {self._failures} calls in a row, the last with {self._last}"
            raise EndpointGone(f"{self.where} {lost}; run this again when it works")
        self.calls += 1
        try:
            found = patiently(lambda left: self._ask(prompt, left, options or {}, before), self._patience)
        except (TextRefused, NoText):
            self._failures = 0
            raise
        except ModelError as error:
            self._failures, self._last = self._failures + 1, type(error).__name__
            raise
        self._failures = 0
        return found

    def _ask(
        self, prompt: str, left: float, options: Mapping[str, Any], before: Callable[[], None] | None
    ) -> Completion:
        if before is not None:
            before()
        messages = [{"role": "user", "content": prompt}]
        document = {"model": self.name, "messages": messages, "temperature": 0, "max_tokens": TOKENS}
        reply = self._exchange.post({**document, **options}, left, MOST_BYTES)
        code = error_code(reply.body)
        if reply.status != 200 or code is not None:
            raise self._exchange.refusal(reply, code or reply.status, "the prompt")
        answer = None
        with contextlib.suppress(ValidationError):  # its message quotes the answer
            answer = _Answer.model_validate_json(reply.body)
        if answer is None:
            valid = '{"choices": [{"message": {"content": "…"}}]}'
            flag = self._service.flag
            raise BadAnswer(f"{self.where}: not a chat answer; valid is JSON with {valid}; is {flag} right?")
        choice = answer.choices[0]
        text = (choice.message.content or "").strip()
        refused = bool(choice.message.refusal) or choice.finish_reason == "content_filter"
        if not text and not refused:
            raise NoText(f"{self.where} answered without text")
        return Completion(text, refused, _usage(answer.usage))


def _usage(usage: Any) -> tuple[int, int] | None:
    counts = (
        [usage.get(f"{side}_tokens") for side in ("prompt", "completion")] if isinstance(usage, dict) else []
    )
    sound = [count for count in counts if type(count) is int and 0 <= count < 1 << 40]
    return (sound[0], sound[1]) if len(sound) == 2 else None


def load(
    name: str,
    base_url: str,
    *,
    key_variable: str | None = None,
    key_file: Path | None = None,
    timeout: float = 60.0,
    offline: bool = False,
    patience: Patience = PATIENCE,
    service: Service = SERVICE,
) -> ChatGenerator:
    """A generator for ``http://HOST:PORT/v1``; nothing is sent yet.

    Args:
        name: the model, as the service calls it.
        base_url: the part before ``/chat/completions``.
        key_variable: environment variable with the key; None takes ``CLINSAFE_API_KEY``, or none where it is not set.
        key_file: file with the key, which nobody but its owner may read; not together with `key_variable`.
        timeout: seconds for one try.
        offline: refuse an address off this machine.
        patience: retries, waits, and when to give up.
        service: the words of its errors; its flag ``--NAME-url`` names the others.

    Raises:
        UsageError, OfflineError, MissingDependency.
    """
    require_libraries("a chat endpoint")
    stem = service.flag.removesuffix("-url")
    if not name or not name.isprintable():
        raise UsageError(f"a chat endpoint needs the name of a model: {stem}-model NAME")
    if not 0 < timeout < float("inf"):
        raise UsageError("the time-out must be over 0 s and finite")
    url = _address(base_url, service)
    if offline and not on_this_machine(url):  # here and now: a proxy on this machine would let it out
        raise OfflineError(f"a connection to {url.host} was refused: --offline is on")
    if key_file is not None and key_variable is not None:
        raise UsageError(f"a key is given by {stem}-key-env or by {stem}-key-file, not by both")
    if key_file is not None:
        key = _key_in(Path(key_file), stem)
    else:
        key = key_for(url) if key_variable is None else _key(key_variable, stem)
    return ChatGenerator(name, url, key, timeout=timeout, patience=patience, service=service)


def _address(base_url: str, service: Service) -> httpx2.URL:
    if not base_url.strip():
        raise UsageError(f"{service.flag} is empty; valid is http://HOST:PORT/v1")
    try:
        url = parse_address(base_url)
    except UsageError:  # it names another flag
        raise UsageError(
            f"{service.flag} is not an http or https URL without user, password, query and fragment; valid is "
            "http://HOST:PORT/v1"
        ) from None
    return url.copy_with(raw_path=url.raw_path.removesuffix(b"/embeddings") + SERVICE.path.encode())


def _key_in(file: Path, stem: str) -> str:
    """The key in a file that nobody but its owner can read; neither is quoted."""
    flag = f"{stem}-key-file"
    try:
        with file.open("rb") as stream:
            about = os.fstat(stream.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise UsageError(f"{flag} is not a file")
            if os.name == "posix" and stat.S_IMODE(about.st_mode) & 0o077:
                raise UsageError(f"{flag}: others may read that file; make it yours alone with chmod 600")
            content = stream.read(10_000)
    except OSError as error:
        raise UsageError(f"{flag} cannot be read ({error.strerror})") from None
    key = content.decode("ascii", "replace").strip()
    if not re.fullmatch(r"[\x21-\x7e]+", key):
        raise UsageError(
            f"{flag}: the key must be one line of ASCII letters, digits and signs, without spaces"
        )
    return key


def _key(variable: str, stem: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        # never repeated: somebody may have given the key itself
        raise UsageError(f"{stem}-key-env takes the name of an environment variable, not the key itself")
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UsageError(f"{stem}-key-env names an environment variable that is not set or empty")
    if not re.fullmatch(r"[\x21-\x7e]*", key):
        raise UsageError("the key must be ASCII letters, digits and signs, without spaces")
    return key

"""Any OpenAI-compatible chat endpoint as a `Generator`: prompt in, text out.

The same rules as for embeddings (`clinsafe.adapters.endpoint`): the address holds no secret, the key comes from the
environment, nothing that the service writes is repeated in an error, retries are bounded, and a dead service is not
asked for an hour.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
import weakref
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, ValidationError

from clinsafe.adapters.address import key_for, on_this_machine, parse_address
from clinsafe.adapters.endpoint import (
    INSTALL,
    PATIENCE,
    AccessRefused,
    BadAnswer,
    EndpointBusy,
    EndpointError,
    EndpointGone,
    Patience,
    TextRefused,
    _client,
    _code,
    _seconds,
)
from clinsafe.errors import MissingDependency, ModelError, OfflineError, UnknownModel, UsageError

if TYPE_CHECKING:
    import httpx2

MOST_BYTES = 1 << 22
TOKENS = 512  # of one answer
FLAG = "--generator-url"


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
        self.where = url.netloc.decode("ascii")  # host and port; the path may be a secret
        self._url, self._keyed, self._timeout, self._patience = url, bool(key), timeout, patience
        self._failures, self._last, self._reached = 0, "", False
        self._http = _client(url, key)
        self.close = weakref.finalize(self, self._http.close)

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
            text = self._patiently(prompt)
        except (TextRefused, NoText):
            self._failures = 0
            raise
        except ModelError as error:
            self._failures, self._last = self._failures + 1, type(error).__name__
            raise
        self._failures = 0
        return text

    def _patiently(self, prompt: str) -> str:
        import tenacity

        patience, begun = self._patience, time.monotonic()
        growing = tenacity.wait_exponential(multiplier=patience.first_wait, max=patience.longest_wait)
        jittered = growing + tenacity.wait_random(0, patience.first_wait)

        def wait(state: tenacity.RetryCallState) -> float:
            asked: float = getattr(state.outcome and state.outcome.exception(), "retry_after", 0.0)
            return min(max(jittered(state), asked), patience.longest_wait)

        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(patience.retries + 1)
            | tenacity.stop_before_delay(patience.deadline),
            wait=wait,
            retry=tenacity.retry_if_exception_type(EndpointBusy),
            sleep=patience.sleep,
            reraise=True,
        )
        try:
            return retrying(lambda: self._ask(prompt, begun + patience.deadline - time.monotonic()))
        except EndpointBusy as error:
            failure = error.given_up(retrying.statistics["attempt_number"], time.monotonic() - begun)
        raise failure  # out here: without a context that carries the prompt

    def _ask(self, prompt: str, left: float) -> str:
        status, body, wait = self._post(prompt, min(self._timeout, max(left, 0.05)))
        if status != 200 or _code(body) is not None:
            raise self._refusal(_code(body) or status, wait)
        answer = None
        with contextlib.suppress(ValidationError):  # its message quotes the answer
            answer = _Answer.model_validate_json(body)
        if answer is None:
            valid = '{"choices": [{"message": {"content": "…"}}]}'
            raise BadAnswer(f"{self.where}: not a chat answer; valid is JSON with {valid}; is {FLAG} right?")
        text = (answer.choices[0].message.content or "").strip()
        if not text:
            raise NoText(f"{self.where} answered without text")
        return text

    def _post(self, prompt: str, seconds: float) -> tuple[int, bytes, float]:
        """(status, body, seconds that it asks to wait)."""
        import httpx2

        content = json.dumps(
            {
                "model": self.name,
                "messages": [{"role": "user", "content": prompt}],
                "temperature": 0,
                "max_tokens": TOKENS,
            }
        )
        timeout = httpx2.Timeout(seconds, connect=min(seconds, 10.0))
        ends, body = time.monotonic() + seconds, bytearray()
        try:
            with self._http.stream("POST", self._url, content=content, timeout=timeout) as response:
                self._reached = True
                for part in response.iter_bytes():
                    body += part
                    if time.monotonic() > ends:  # the library's limit is per read: drops could go on for ever
                        raise httpx2.ReadTimeout("")
                    if len(body) > MOST_BYTES:
                        raise httpx2.DecodingError("")
                return response.status_code, bytes(body), _seconds(response.headers.get("retry-after"))
        except (httpx2.HTTPError, UnicodeError) as error:  # the latter from a host that DNS cannot spell
            failure = self._lost(error, seconds)
        raise failure  # out here, so that it does not carry the request, with key and prompt, as its context

    def _lost(self, error: Exception, seconds: float) -> Exception:
        import httpx2

        link: BaseException | None = error
        while link is not None:
            if isinstance(link, OfflineError):
                return OfflineError(str(link))
            link = link.__cause__ or link.__context__
        if isinstance(error, httpx2.DecodingError):
            return BadAnswer(f"{self.where} sent an answer that is garbled or too large; valid is JSON")
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError | UnicodeError):
            kind = EndpointBusy if self._reached else EndpointError  # the first time it is no use to wait
            return kind(f"{self.where} cannot be reached; is it running, and is {FLAG} right?")
        if isinstance(error, httpx2.TimeoutException):
            return EndpointBusy(f"{self.where} did not answer within {seconds:.3g} s; allow it more time")
        return EndpointBusy(f"{self.where} broke the connection off ({type(error).__name__})")

    def _refusal(self, status: int, wait: float) -> ModelError:
        where = f"{self.where} answered {status}"
        if status in (401, 402, 403):
            sent = "the key it was sent" if self._keyed else "a request without a key"
            return AccessRefused(f"{where}: it refuses {sent}; name the variable with a key that has access "
                                 "and quota with --generator-key-env")  # fmt: skip
        if status == 404:
            return UnknownModel(
                f"{where}: no model {self.name!r}, or no chat there; {FLAG} is the part before /chat/completions"
            )
        if status in (400, 413, 422):
            return TextRefused(f"{where}: it refuses the prompt, for length or form")
        if status in (408, 409, 425, 429) or 500 <= status < 600:
            return EndpointBusy(f"{where}: busy or failing, try later", wait)
        if 300 <= status < 400:
            return BadAnswer(f"{where}, a redirect that is not followed; give the final address")
        return BadAnswer(f"{where} without an answer; is {FLAG} that of a chat API?")


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
    try:
        import httpx2  # noqa: F401
        import tenacity  # noqa: F401
    except ImportError as error:
        raise MissingDependency("a chat endpoint", "httpx2 and tenacity", INSTALL) from error
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
    return url.copy_with(raw_path=url.raw_path.removesuffix(b"/embeddings") + b"/chat/completions")


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

"""Any OpenAI-compatible embeddings endpoint: ``--model endpoint:NAME --base-url http://HOST:PORT/v1``.

The texts may be patient text and the key is a secret, so nothing that the service writes is ever repeated:
every error is in our own words and names only the host. Not the openai client: that one takes headers,
organisation and project from ``OPENAI_*`` variables, repeats the service's words, and knows no deadline.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from clinsafe.adapters.address import KEY, key_for, on_this_machine, parse_address
from clinsafe.adapters.prompts import choose, with_prompts
from clinsafe.errors import MissingDependency, ModelError, OfflineError, UnknownModel, UsageError
from clinsafe.protocols import Encoder, ModelIdentity, Vectors
from clinsafe.version import VERSION

if TYPE_CHECKING:
    import httpx2

INSTALL = "pip install 'clinsafe[endpoint]'"
PROBE = "The sky is blue."
MOST_BYTES_PER_TEXT = 1 << 21  # 65 000 dimensions in full decimals
# error codes that say more than the status they come with: 429 for a quota that no waiting brings back
CODES = {"invalid_api_key": 401, "insufficient_quota": 402, "model_not_found": 404}


class EndpointError(ModelError):
    """The endpoint gave no usable vectors, or was never reached at all."""


class EndpointBusy(EndpointError):
    """Rate limit, server error, time-out or lost connection, after all retries."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        self.retry_after = retry_after  # seconds that it asked for
        super().__init__(message)

    def given_up(self, tries: int, seconds: float) -> EndpointBusy:
        """The same, saying how long it was waited for."""
        asked = f"; it asks to be left alone for {self.retry_after:.0f} s" if self.retry_after else ""
        tried = f"{tries} tries" if tries > 1 else "one try"
        return EndpointBusy(f"{self}{asked}; given up after {tried} in {seconds:.0f} s", self.retry_after)


class EndpointGone(EndpointError):
    """Too many failed calls in a row: the endpoint is not asked again."""


class AccessRefused(EndpointError):
    """The key is missing, wrong, not allowed or out of quota."""


class BadAnswer(EndpointError):
    """What came back is not an embeddings answer."""


class TextRefused(EndpointError):
    """The endpoint will not take this text: too long or malformed. It is alive all the same."""


class BadVector(EndpointError):
    """A vector holds null, NaN, nothing or only zeros. The endpoint is alive all the same."""


@dataclass(frozen=True)
class Patience:
    """How long an endpoint is waited for, in seconds; `sleep` does the waiting."""

    retries: int = 5  # further tries after a rate limit, a server error or a time-out
    first_wait: float = 0.5  # doubled each time, plus a random part of up to this much
    longest_wait: float = 60.0  # cap of one wait, of Retry-After too
    deadline: float = 600.0  # no try begins later than this after the first one of a call
    failures: int = 3  # failed calls in a row after which the endpoint counts as gone
    vouches: int = 2  # how often in a row a good answer to a neutral text excuses those
    sleep: Callable[[float], None] = time.sleep


PATIENCE = Patience()


class _Row(BaseModel, strict=True):
    index: int
    embedding: list[FiniteFloat] = Field(min_length=1)


class _Answer(BaseModel, strict=True):
    data: list[_Row]
    model: Any = None


class _Service:
    """One try at a time: a request out, checked rows back, every fault as an error of this module."""

    def __init__(self, name: str, url: httpx2.URL, key: str, timeout: float) -> None:
        self.name, self._url, self._timeout = name, url, timeout
        self.where = url.netloc.decode("ascii")  # host and port; the path may be a secret
        self._keyed, self._reached = bool(key), False
        self.client = _client(url, key)

    def ask(self, texts: Sequence[str], seconds: float) -> tuple[list[list[float]], str]:
        """(rows in the order of the texts, the model's name as the service gives it)."""
        status, body, wait, target = self._post(texts, min(self._timeout, max(seconds, 0.05)))
        fault = None
        if status == 200:
            try:
                return self._ordered(_Answer.model_validate_json(body), len(texts))
            except ValidationError as error:
                fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        code = _code(body)
        if fault is None or code is not None:
            raise self._refusal(code or status, len(texts), wait, target)
        place = ".".join(str(step) for step in fault["loc"]) or "the whole"
        raise (BadVector if "embedding" in fault["loc"] else BadAnswer)(
            f"{self.where}: unusable answer, at {place}: {fault['msg']}; valid is JSON with "
            '"data": [{"index": 0, "embedding": [0.1, …]}, …]; is --base-url that of an embeddings API?'
        )

    def _ordered(self, answer: _Answer, count: int) -> tuple[list[list[float]], str]:
        rows = sorted(answer.data, key=lambda row: row.index)
        if [row.index for row in rows] != list(range(count)):
            valid = f"valid is each index from 0 to {count - 1} once"
            raise BadAnswer(
                f"{self.where} was sent {_texts(count)} and returned {len(rows)} of the rows; {valid}"
            )
        served = answer.model[:100] if isinstance(answer.model, str) else ""
        return [row.embedding for row in rows], served if served.isprintable() else "?"

    def _post(self, texts: Sequence[str], seconds: float) -> tuple[int, bytes, float, str]:
        """(status, body, seconds that it asks to wait, where it redirects to)."""
        import httpx2

        content = json.dumps({"model": self.name, "input": list(texts), "encoding_format": "float"})
        timeout = httpx2.Timeout(seconds, connect=min(seconds, 10.0))
        ends, body = time.monotonic() + seconds, bytearray()
        try:
            with self.client.stream("POST", self._url, content=content, timeout=timeout) as response:
                self._reached = True
                for part in response.iter_bytes():
                    body += part
                    if time.monotonic() > ends:  # the library's limit is per read: drops could go on for ever
                        raise httpx2.ReadTimeout("")
                    if len(body) > MOST_BYTES_PER_TEXT * (len(texts) + 1):
                        raise httpx2.DecodingError("")
                to = response.next_request  # built, never sent; beyond a plain host it may hold anything
                host = re.match(r"https?://[\w.:\[\]-]+(?=/|$)", str(to.url) if to else "", re.ASCII)
                target = host[0] if host else "no usable address"
                asked = _seconds(response.headers.get("retry-after"))
                return response.status_code, bytes(body), asked, target
        except (httpx2.HTTPError, UnicodeError) as error:  # the latter from a host that DNS cannot spell
            failure = self._lost(error, seconds)
        raise failure  # out here, so that it does not carry the request, with key and texts, as its context

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
            why = str(error)[:100] or type(error).__name__
            return kind(f"{self.where} cannot be reached ({why}); is it running, and is --base-url right?")
        if isinstance(error, httpx2.TimeoutException):
            return EndpointBusy(f"{self.where} did not answer within {seconds:.3g} s; allow it more time")
        return EndpointBusy(f"{self.where} broke the connection off ({type(error).__name__})")

    def _refusal(self, status: int, count: int, wait: float, target: str) -> ModelError:
        where = f"{self.where} answered {status}"
        if status in (401, 402, 403):
            sent = "the key it was sent" if self._keyed else "a request without a key"
            return AccessRefused(f"{where}: it refuses {sent}; set {KEY} to a key with access and quota")
        if status == 404:
            return UnknownModel(
                f"{where}: no model {self.name!r}, or no embeddings there; check the name, and that "
                "--base-url is the part before /embeddings (it often ends in /v1)"
            )
        if status in (400, 413, 422):
            return TextRefused(f"{where}: it refuses {_texts(count)}, for length or form")
        if status in (408, 409, 425, 429) or 500 <= status < 600:
            return EndpointBusy(f"{where}: busy or failing, try later", wait)
        if 300 <= status < 400:
            return BadAnswer(f"{where}, a redirect to {target} that is not followed; give the final address")
        return BadAnswer(f"{where} without embeddings; is --base-url that of an embeddings API?")


class EndpointEncoder:
    """An `Encoder` over HTTP. One neutral text is sent at once, to learn the dimension.

    Args:
        name: the model, as the service calls it.
        url, key: from `parse_address` and `key_for`; the key "" sends none.
        timeout, batch_size: seconds and texts per request.
        patience: retries, waits, and when to give up.
    """

    def __init__(self, name: str, url: httpx2.URL, key: str = "", *, timeout: float = 60.0,
                 batch_size: int = 32, patience: Patience = PATIENCE) -> None:  # fmt: skip
        self._patience, self._batch_size = patience, batch_size
        self._service = _Service(name, url, key, timeout)
        self.close = weakref.finalize(self, self._service.client.close)
        self._failures = self._vouched = self._dimension = 0
        self._last, self._served, self._gone = "", "", False
        self._dimension = self._patiently([PROBE]).shape[1]
        self.identity = ModelIdentity(
            name=name,
            settings={
                "encoder": "OpenAI-compatible endpoint",
                "host": url.raw_host.decode("ascii"),
                "port": str(url.port or {"http": 80, "https": 443}[url.scheme]),
                "transport": "https" if url.scheme == "https" else "http, not encrypted",
                "model_reported": self._served or "none",
                "dimension": str(self._dimension),
                "dtype": "float32 as received (arithmetic behind the endpoint unknown)",
                "weights": "not verifiable: behind an endpoint",
                "batch_size": str(batch_size),
                "prompts": "none",
            },
        )

    def encode(self, texts: Sequence[str], /) -> Vectors:
        """float32 (len(texts), dim), unit rows; raises ModelError, `EndpointGone` once asking on is pointless."""
        starts = range(0, len(texts), self._batch_size)
        rows = [self._call(texts[start : start + self._batch_size]) for start in starts]
        return np.concatenate(rows) if rows else np.zeros((0, self._dimension), dtype=np.float32)

    def _call(self, texts: Sequence[str]) -> Vectors:
        """One batch, behind a circuit breaker: a dead service costs minutes, not an hour."""
        if self._gone or (self._failures >= self._patience.failures and not self._vouch()):
            lost = f"failed {self._patience.failures} calls in a row, the last with {self._last}"
            raise EndpointGone(f"{self._service.where} {lost}; run this again when it works")
        try:
            rows = self._patiently(texts)
        except (TextRefused, BadVector):
            self._failures = 0  # a clear word on this text, and a service that speaks
            raise
        except ModelError as error:
            self._failures, self._last = self._failures + 1, type(error).__name__
            raise
        self._failures = self._vouched = 0
        return rows

    def _vouch(self) -> bool:
        """Whether the failures may be the texts' fault: some services answer 500 to a text that is too long."""
        self._vouched, self._gone = self._vouched + 1, True
        if self._vouched <= self._patience.vouches:
            with contextlib.suppress(ModelError, OfflineError):
                self._rows([PROBE], self._patience.deadline)
                self._failures, self._gone = 0, False
        return not self._gone

    def _patiently(self, texts: Sequence[str]) -> Vectors:
        import tenacity

        patience, ends = self._patience, time.monotonic() + self._patience.deadline
        tried = tenacity.stop_after_attempt(patience.retries + 1)
        late = tenacity.stop_before_delay(patience.deadline)
        growing = tenacity.wait_exponential(multiplier=patience.first_wait, max=patience.longest_wait)
        jittered = growing + tenacity.wait_random(0, patience.first_wait)

        def wait(state: tenacity.RetryCallState) -> float:
            asked: float = getattr(state.outcome and state.outcome.exception(), "retry_after", 0.0)
            return min(max(jittered(state), asked), patience.longest_wait)

        retrying = tenacity.Retrying(
            stop=tried | late,
            wait=wait,
            retry=tenacity.retry_if_exception_type(EndpointBusy),
            sleep=patience.sleep,
            reraise=True,
        )
        try:
            return retrying(lambda: self._rows(texts, ends - time.monotonic()))
        except EndpointBusy as error:
            tries = retrying.statistics["attempt_number"]
            failure = error.given_up(tries, patience.deadline - (ends - time.monotonic()))
        raise failure  # out here, as in _post: without a context that carries the texts

    def _rows(self, texts: Sequence[str], seconds: float) -> Vectors:
        lists, served = self._service.ask(texts, seconds)
        where = self._service.where
        expected = self._dimension or len(lists[0])
        if any(len(row) != expected for row in lists):
            raise BadAnswer(f"{where} returned vectors of another length; valid are {expected} dimensions")
        if self._dimension and served != self._served:
            raise BadAnswer(f"{where} answers as another model than at the start; one must give all vectors")
        self._served = served
        rows = np.asarray(lists, dtype=np.float64)
        with np.errstate(over="ignore"):
            norms = np.linalg.norm(rows, axis=1, keepdims=True)
        if not (np.isfinite(norms) & (norms > 0)).all():
            raise BadVector(f"{where} returned a vector without a direction; valid is one not all zeros")
        return np.asarray(rows / norms, dtype=np.float32)


def load(name: str, *, base_url: str | None = None, timeout: float = 60.0, batch_size: int = 32,
         prompts: str = "auto", query_prompt: str | None = None, passage_prompt: str | None = None,
         offline: bool = False, patience: Patience = PATIENCE, **options: object) -> Encoder:  # fmt: skip
    """Entry point ``endpoint``: check the address, read the key from the environment, ask once.

    Raises UsageError, OfflineError, MissingDependency, and ModelError in its kinds above.
    """
    try:
        import httpx2  # noqa: F401
        import tenacity  # noqa: F401
    except ImportError as error:
        raise MissingDependency("an embeddings endpoint", "httpx2 and tenacity", INSTALL) from error
    if not name or not name.isprintable():
        raise UsageError("an endpoint needs the name of a model: --model endpoint:NAME")
    if options.get("revision") is not None:
        raise UsageError("an endpoint has no --revision: what lies behind it cannot be pinned")
    if not 0 < timeout < float("inf") or batch_size < 1:
        raise UsageError("the time-out must be over 0 s and finite, and the batch size at least 1")
    chosen = choose({}, None, style=prompts, query=query_prompt, passage=passage_prompt)
    url = parse_address(base_url)
    if offline and not on_this_machine(url):  # here and now: a proxy on this machine would let it out
        raise OfflineError(f"a connection to {url.host} was refused: --offline is on")
    key = key_for(url)
    encoder = EndpointEncoder(name, url, key, timeout=timeout, batch_size=batch_size, patience=patience)
    return with_prompts(encoder, chosen)


def _texts(count: int) -> str:
    return "one text" if count == 1 else f"{count} texts"


def _client(url: httpx2.URL, key: str) -> httpx2.Client:
    import httpx2

    headers = {"Content-Type": "application/json", "User-Agent": f"clinsafe/{VERSION}"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    proxies = not on_this_machine(url)  # certificates are those of the environment either way
    try:
        return httpx2.Client(headers=headers, trust_env=proxies, verify=httpx2.create_ssl_context())
    except (ImportError, ValueError, httpx2.InvalidURL):  # the message may hold the proxy's password
        raise UsageError(
            "the proxy of HTTP_PROXY, HTTPS_PROXY or ALL_PROXY cannot be used; valid are http://HOST:PORT and, "
            f"with pip install 'httpx2[socks]', socks5://HOST:PORT; or name {url.host} in NO_PROXY"
        ) from None


def _code(body: bytes) -> int | None:
    """The status that an error object in `body` stands for; 0 where it gives none, None without one."""
    try:
        error = json.loads(body)["error"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    codes = [error.get("code"), error.get("type")] if isinstance(error, dict) else []
    found = (CODES.get(str(code), code) for code in codes)
    return next((c for c in found if isinstance(c, int) and 400 <= c < 600), 0) if error else None


def _seconds(header: str | None) -> float:
    """What ``Retry-After`` asks for: seconds or a date; 0 where it says nothing usable."""
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        if header and re.fullmatch(r"\d{1,9}(\.\d+)?", header.strip()):
            return float(header)
        return max(0.0, parsedate_to_datetime(header or "").timestamp() - time.time())
    return 0.0

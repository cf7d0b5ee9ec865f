"""One JSON document to one address and what comes back, for embeddings and chat alike.

The texts may be patient text and the key is a secret, so nothing that the service writes is ever repeated:
every error is in our own words and names only the host. Not the openai client: that one takes headers,
organisation and project from ``OPENAI_*`` variables, repeats the service's words, and knows no deadline.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

from clinsafe.adapters.address import on_this_machine
from clinsafe.errors import MissingDependency, ModelError, OfflineError, UnknownModel, UsageError
from clinsafe.version import VERSION

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

INSTALL = "pip install 'clinsafe[endpoint]'"
# error codes that say more than the status they come with: 429 for a quota that no waiting brings back
CODES = {"invalid_api_key": 401, "insufficient_quota": 402, "model_not_found": 404}


class EndpointError(ModelError):
    """The endpoint gave no usable answer, or was never reached at all."""


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
    """What came back is not an answer of the kind that was asked for."""


class TextRefused(EndpointError):
    """The endpoint will not take this text: too long or malformed. It is alive all the same."""

    def __init__(self, message: str, status: int = 400) -> None:
        self.status = status  # 413 is about length alone; 400 and 422 may be about any field of the request
        super().__init__(message)


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


@dataclass(frozen=True)
class Service:
    """A kind of service, in the words that its errors need."""

    kind: str  # what it is for, as in "no embeddings there"
    answer: str  # what it gives, as in "without embeddings"
    api: str  # as in "that of an embeddings API"
    flag: str  # where the user writes the address
    path: str  # what is added to that address
    key: str  # how to give a key, as in "; set VARIABLE to a key"


@dataclass(frozen=True)
class Reply:
    """What came back, whatever the status."""

    status: int  # of HTTP
    body: bytes = field(repr=False)  # the service's own words: not for any message
    wait: float  # seconds that it asks to be left alone; 0 for none
    target: str  # scheme and host of a redirect, which is not followed; else "no usable address"


class Exchange:
    """One try at a time: a request out, a reply back, every fault as an error of this module.

    Args:
        name: the model, as the service calls it.
        url, key: whole address, from `clinsafe.adapters.address`; the key "" sends none.
        timeout: seconds for one try.
        service: the words that differ from one kind of service to another.

    Attributes:
        where: host and port.
    """

    def __init__(self, name: str, url: httpx2.URL, key: str, timeout: float, service: Service) -> None:
        self.where = url.netloc.decode("ascii")  # not the path, which may be a secret
        self._name, self._url, self._timeout, self._service = name, url, timeout, service
        self._keyed, self._reached = bool(key), False
        self._client = client(url, key)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def post(self, document: Mapping[str, Any], left: float, most: int) -> Reply:
        """Send the document within the time-out and the `left` seconds; read at most `most` bytes.

        Raises:
            EndpointBusy: too slow, or the connection was lost. EndpointError: never reached. BadAnswer: garbled
                or too large. OfflineError. None of them has the HTTP library's error as context.
        """
        import httpx2

        content, seconds = json.dumps(document), min(self._timeout, max(left, 0.05))
        timeout = httpx2.Timeout(seconds, connect=min(seconds, 10.0))
        ends, body = time.monotonic() + seconds, bytearray()
        try:
            with self._client.stream("POST", self._url, content=content, timeout=timeout) as response:
                self._reached = True
                for part in response.iter_bytes():
                    body += part
                    if time.monotonic() > ends:  # the library's limit is per read: drops could go on for ever
                        raise httpx2.ReadTimeout("")
                    if len(body) > most:
                        raise httpx2.DecodingError("")
                wait, target = retry_after(response.headers.get("retry-after")), _target(response)
                return Reply(response.status_code, bytes(body), wait, target)
        except (httpx2.HTTPError, UnicodeError) as error:  # the latter from a host that DNS cannot spell
            failure = self._lost(error, seconds)
        raise failure  # out here, so that it does not carry the request, with key and texts, as its context

    def refusal(self, reply: Reply, status: int, sent: str) -> ModelError:
        """The error for a reply that is no answer.

        Args:
            reply: what came back.
            status: the reply's own, or the one that its error object stands for.
            sent: what was sent, as in "it refuses 3 texts".
        """
        where, service = f"{self.where} answered {status}", self._service
        if status in (401, 402, 403):
            shown = "the key it was sent" if self._keyed else "a request without a key"
            return AccessRefused(f"{where}: it refuses {shown}; {service.key}")
        if status == 404:
            return UnknownModel(
                f"{where}: no model {self._name!r}, or no {service.kind} there; check the name, and that "
                f"{service.flag} is the part before {service.path} (it often ends in /v1)"
            )
        if status in (400, 413, 422):
            return TextRefused(f"{where}: it refuses {sent}, for length or form", status)
        if status in (408, 409, 425, 429) or 500 <= status < 600:
            return EndpointBusy(f"{where}: busy or failing, try later", reply.wait)
        if 300 <= status < 400:
            return BadAnswer(
                f"{where}, a redirect to {reply.target} that is not followed; give the final address"
            )
        return BadAnswer(f"{where} without {service.answer}; is {service.flag} that of {service.api}?")

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
            if isinstance(error, httpx2.ProxyError):  # after the status follow the proxy's own words
                why = re.sub(r"(?s)^(\d{3})\b.*", r"the proxy answered \1", why)
            flag = self._service.flag
            return kind(f"{self.where} cannot be reached ({why}); is it running, and is {flag} right?")
        if isinstance(error, httpx2.TimeoutException):
            return EndpointBusy(f"{self.where} did not answer within {seconds:.3g} s; allow it more time")
        return EndpointBusy(f"{self.where} broke the connection off ({type(error).__name__})")


def patiently(ask: Callable[[float], T], patience: Patience) -> T:
    """What `ask` returns, given the seconds that are left; asked again while it raises `EndpointBusy`.

    Raises what `ask` raises; after the last try `EndpointBusy`, which says how long was waited.
    """
    import tenacity

    begun = time.monotonic()
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
        return retrying(lambda: ask(begun + patience.deadline - time.monotonic()))
    except EndpointBusy as error:
        failure = error.given_up(retrying.statistics["attempt_number"], time.monotonic() - begun)
    raise failure  # out here, as in `Exchange.post`: without a context that carries the texts


def require_libraries(feature: str) -> None:
    """Raise MissingDependency, for this feature, where the HTTP or the retry library is not installed."""
    try:
        import httpx2  # noqa: F401
        import tenacity  # noqa: F401
    except ImportError as error:
        raise MissingDependency(feature, "httpx2 and tenacity", INSTALL) from error


def client(url: httpx2.URL, key: str) -> httpx2.Client:
    """An HTTP client for this address; no proxy stands between this machine and itself.

    Raises UsageError for a proxy that cannot be used, without repeating it.
    """
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


def error_code(body: bytes) -> int | None:
    """The status that an error object in `body` stands for; 0 where it gives none, None without one."""
    try:
        error = json.loads(body)["error"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    codes = [error.get("code"), error.get("type")] if isinstance(error, dict) else []
    found = (CODES.get(str(code), code) for code in codes)
    return next((c for c in found if isinstance(c, int) and 400 <= c < 600), 0) if error else None


def retry_after(header: str | None) -> float:
    """What ``Retry-After`` asks for, in seconds, from seconds or a date; 0 where it says nothing usable."""
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        if header and re.fullmatch(r"\d{1,9}(\.\d+)?", header.strip()):
            return float(header)
        return max(0.0, parsedate_to_datetime(header or "").timestamp() - time.time())
    return 0.0


def _target(response: httpx2.Response) -> str:
    to = response.next_request  # built, never sent; beyond a plain host it may hold anything
    host = re.match(r"https?://[\w.:\[\]-]+(?=/|$)", str(to.url) if to else "", re.ASCII)
    return host[0] if host else "no usable address"

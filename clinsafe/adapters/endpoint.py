"""Any OpenAI-compatible embeddings endpoint: ``--model endpoint:NAME --base-url http://HOST:PORT/v1``.

How it is asked, and what no error ever repeats: `clinsafe.adapters.exchange`. Here is what an embeddings answer must
hold, and when a service counts as gone.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from clinsafe.adapters.address import KEY, key_for, on_this_machine, parse_address
from clinsafe.adapters.exchange import (
    INSTALL,
    PATIENCE,
    AccessRefused,
    BadAnswer,
    EndpointBusy,
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
from clinsafe.adapters.prompts import choose, with_prompts
from clinsafe.errors import ModelError, OfflineError, UsageError
from clinsafe.protocols import Encoder, ModelIdentity, Vectors

if TYPE_CHECKING:
    import httpx2

__all__ = [
    "INSTALL",
    "PATIENCE",
    "PROBE",
    "AccessRefused",
    "BadAnswer",
    "BadVector",
    "EndpointBusy",
    "EndpointEncoder",
    "EndpointError",
    "EndpointGone",
    "Patience",
    "TextRefused",
    "load",
]

PROBE = "The sky is blue."
MOST_BYTES_PER_TEXT = 1 << 21  # 65 000 dimensions in full decimals
SERVICE = Service(
    kind="embeddings",
    answer="embeddings",
    api="an embeddings API",
    flag="--base-url",
    path="/embeddings",
    key=f"set {KEY} to a key with access and quota",
)


class BadVector(EndpointError):
    """A vector holds null, NaN, nothing or only zeros. The endpoint is alive all the same."""


class _Row(BaseModel, strict=True):
    index: int
    embedding: list[FiniteFloat] = Field(min_length=1)


class _Answer(BaseModel, strict=True):
    data: list[_Row]
    model: Any = None


class _Embeddings:
    """One try at a time: texts out, checked rows back, every fault as an error of the exchange's kinds."""

    def __init__(self, name: str, url: httpx2.URL, key: str, timeout: float) -> None:
        self._name, self._exchange = name, Exchange(name, url, key, timeout, SERVICE)
        self.where, self.close = self._exchange.where, self._exchange.close

    def ask(self, texts: Sequence[str], left: float) -> tuple[list[list[float]], str]:
        """(rows in the order of the texts, the model's name as the service gives it)."""
        document = {"model": self._name, "input": list(texts), "encoding_format": "float"}
        reply = self._exchange.post(document, left, MOST_BYTES_PER_TEXT * (len(texts) + 1))
        fault = None
        if reply.status == 200:
            try:
                return self._ordered(_Answer.model_validate_json(reply.body), len(texts))
            except ValidationError as error:
                fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        code = error_code(reply.body)
        if fault is None or code is not None:
            raise self._exchange.refusal(reply, code or reply.status, _texts(len(texts)))
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
        self._service = _Embeddings(name, url, key, timeout)
        self.close = weakref.finalize(self, self._service.close)
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
        return patiently(lambda left: self._rows(texts, left), self._patience)

    def _rows(self, texts: Sequence[str], left: float) -> Vectors:
        lists, served = self._service.ask(texts, left)
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

    Raises UsageError, OfflineError, MissingDependency, and ModelError in its kinds.
    """
    require_libraries("an embeddings endpoint")
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

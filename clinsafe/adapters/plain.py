"""Plain retrievers, guarded: a function, or an object with ``retrieve`` or ``invoke``, sync or async."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass
from typing import Any

from clinsafe.adapters.retrievers import is_async, materialised
from clinsafe.errors import UsageError
from clinsafe.guarded import Guard, GuardedAnswer

SYNC, ASYNC = ("retrieve", "invoke"), ("aretrieve", "ainvoke")
COUNTS = ("k", "top_k", "limit")
DEFAULT_K = 10  # for a retriever that must be told a number where the caller names none


@dataclass(frozen=True, slots=True)
class _Call:
    """How a retriever is called.

    Attributes:
        function: takes the query, and perhaps how many.
        count: name of the parameter that says how many; "" where it takes none.
        positional: whether that can only be given by its place.
        required: whether it has no default.
    """

    function: Callable[..., Any]
    count: str = ""
    positional: bool = False
    required: bool = False

    @classmethod
    def of(cls, function: Callable[..., Any]) -> _Call:
        try:
            rest = list(inspect.signature(function).parameters.values())[1:]
        except (TypeError, ValueError):  # compiled without a signature
            return cls(function)
        for place, parameter in enumerate(rest):
            required = parameter.default is parameter.empty
            by_place = parameter.kind is parameter.POSITIONAL_ONLY
            by_name = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            # A second parameter that must be given, whatever its name, is how many: f(query, n).
            second = (
                place == 0 and required and (by_place or parameter.kind is parameter.POSITIONAL_OR_KEYWORD)
            )
            if (by_place or by_name) and (parameter.name in COUNTS or second):
                return cls(function, parameter.name, by_place, required)
        return cls(function)

    def __call__(self, query: str, k: int | None) -> Any:
        if not self.count or (k is None and not self.required):
            return self.function(query)
        many = DEFAULT_K if k is None else k
        return self.function(query, many) if self.positional else self.function(query, **{self.count: many})


class GuardedRetriever:
    """A retriever whose passages are checked before anybody sees them.

    ``retrieve``, ``invoke`` and a plain call do the same, and so do ``aretrieve`` and ``ainvoke`` in a coroutine,
    where the check runs in a thread of its own. What the retriever raises reaches the caller as it is: an answer
    without passages would look like one in which nothing was found.

    Args:
        retriever: a function of (query) or (query, k), or an object with one of the methods; sync or async.
        guard: checks what it returns.
        k: at most so many passages are shown; also told to a retriever that takes ``k``, ``top_k`` or ``limit``.

    Raises:
        UsageError: it can be called in no way known, or `k` is no number from 1.
    """

    def __init__(self, retriever: Any, guard: Guard, k: int | None = None) -> None:
        self.retriever, self.guard, self.k = retriever, guard, usable_k(k)
        function = retriever if callable(retriever) else None
        sync = next((m for name in SYNC if callable(m := getattr(retriever, name, None))), function)
        later = next((m for name in ASYNC if callable(m := getattr(retriever, name, None))), sync)
        if later is None or isinstance(retriever, type):
            raise UsageError(
                f"{_called(retriever)} is no retriever; give a function of (query) or (query, k), or an object with "
                "one of retrieve, invoke, aretrieve, ainvoke"
            )
        self._sync = _Call.of(sync) if sync is not None else None
        self._async = _Call.of(later)

    def retrieve(self, query: str, k: int | None = None) -> GuardedAnswer:
        """Retrieve and guard.

        Args:
            query: what is asked or claimed.
            k: instead of the retriever's own.

        Raises:
            UsageError: the query is no text, or the retriever can only be awaited.
        """
        many = self._many(query, k)
        if self._sync is None or is_async(self._sync.function):
            raise self._awaited()
        raw = self._sync(query, many)
        if inspect.isawaitable(raw) or isinstance(raw, AsyncIterable):
            if inspect.iscoroutine(raw):
                raw.close()  # never to be run
            raise self._awaited()
        return self.guard.check(query, materialised(raw), k=many)

    __call__ = invoke = retrieve

    async def aretrieve(self, query: str, k: int | None = None) -> GuardedAnswer:
        """`retrieve`, without holding up the event loop."""
        many = self._many(query, k)
        if is_async(self._async.function):
            raw = self._async(query, many)
        else:
            raw = await asyncio.to_thread(self._async, query, many)
        if inspect.isawaitable(raw):
            raw = await raw
        if isinstance(raw, AsyncIterable):
            raw = [item async for item in raw]
        return await asyncio.to_thread(lambda: self.guard.check(query, materialised(raw), k=many))

    ainvoke = aretrieve

    def _many(self, query: object, k: int | None) -> int | None:
        if not isinstance(query, str):
            raise UsageError(f"a query is text, got {type(query).__name__}")
        return usable_k(k) if k is not None else self.k

    def _awaited(self) -> UsageError:
        return UsageError(
            f"{_called(self.retriever)} is asynchronous: await guarded.aretrieve(query) instead"
        )


def usable_k(k: object) -> int | None:
    """How many passages at most; None for all.

    Raises:
        UsageError: no whole number from 1.
    """
    if k is None or (isinstance(k, int) and not isinstance(k, bool) and k > 0):
        return k
    raise UsageError(f"k is how many passages are shown, a whole number from 1 or None; got {k!r}")


def _called(retriever: object) -> str:
    return getattr(retriever, "__qualname__", "") or type(retriever).__qualname__

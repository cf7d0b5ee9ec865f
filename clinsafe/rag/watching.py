"""A function that answers questions, watched: plain, a coroutine, a stream, an async stream.

What it returns, yields and raises passes through unchanged. The question is current only while the function itself
runs, not while a caller holds a stream that waits.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from clinsafe.rag.draft import Draft
    from clinsafe.rag.recorder import Recorder

F = TypeVar("F", bound=Callable[..., Any])
ANSWERS = ("answer", "response", "output", "result", "text", "content")


def answer_of(result: object) -> str | None:
    """The text of an answer; None where none can be told."""
    if isinstance(result, str):
        return result
    for name in ANSWERS:
        value = result.get(name) if isinstance(result, Mapping) else getattr(result, name, None)
        if isinstance(value, str):
            return value
        if name == "content" and isinstance(value, list):  # a message in blocks
            blocks = [part if isinstance(part, str) else answer_of(part) for part in value]
            return "".join(block for block in blocks if block is not None)
    return None


def watched(recorder: Recorder, function: F) -> F:
    """See `Recorder.__call__`. What is made is of the same sort as `function`: frameworks look."""
    made: Any = _watched_function
    if inspect.isasyncgenfunction(function):
        made = _watched_async_stream
    elif inspect.isgeneratorfunction(function):
        made = _watched_stream
    elif inspect.iscoroutinefunction(function):
        made = _watched_coroutine
    wrapper: Any = functools.wraps(function)(made(recorder, function))
    return wrapper  # type: ignore[no-any-return]


def _watched_async_stream(recorder: Recorder, function: Callable[..., Any]) -> Callable[..., Any]:
    async def stream(*args: Any, **kwargs: Any) -> Any:
        draft = _begin(recorder, function, args, kwargs)
        source = _async_stream(recorder, draft, function(*args, **kwargs))
        step: Callable[[], Awaitable[Any]] = source.__anext__
        while True:  # what ``yield from`` does, which an async generator has not
            try:
                piece = await step()
            except StopAsyncIteration:
                return
            try:
                sent = yield piece
            except GeneratorExit:
                await source.aclose()
                raise
            except BaseException as error:  # noqa: BLE001 - thrown in by the caller: it is the function's to handle
                step = functools.partial(source.athrow, error)
            else:
                step = functools.partial(source.asend, sent)

    return stream


def _watched_stream(recorder: Recorder, function: Callable[..., Any]) -> Callable[..., Any]:
    def stream(*args: Any, **kwargs: Any) -> Any:
        draft = _begin(recorder, function, args, kwargs)
        return (yield from _stream(recorder, draft, function(*args, **kwargs)))

    return stream


def _watched_coroutine(recorder: Recorder, function: Callable[..., Any]) -> Callable[..., Any]:
    async def later(*args: Any, **kwargs: Any) -> Any:
        draft = _begin(recorder, function, args, kwargs)
        return await _awaited(recorder, draft, lambda: function(*args, **kwargs))

    return later


def _watched_function(recorder: Recorder, function: Callable[..., Any]) -> Callable[..., Any]:
    def now(*args: Any, **kwargs: Any) -> Any:
        draft = _begin(recorder, function, args, kwargs)
        try:
            with recorder.current(draft):
                result = function(*args, **kwargs)
        except BaseException as error:
            recorder.fail(draft, error)
            raise
        kind = type(result)  # isinstance would ask an object that may answer anything
        if kind is CoroutineType:
            return _awaited(recorder, draft, lambda: result)
        if kind is GeneratorType:
            return _stream(recorder, draft, result)
        if kind is AsyncGeneratorType:
            return _async_stream(recorder, draft, result)
        return _done(recorder, draft, result)

    return now


async def _awaited(recorder: Recorder, draft: Draft, start: Callable[[], Awaitable[Any]]) -> Any:
    try:
        with recorder.current(draft):
            result = await start()
    except BaseException as error:
        recorder.fail(draft, error)
        raise
    return _done(recorder, draft, result)


def _stream(recorder: Recorder, draft: Draft, source: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    pieces: list[str] = []
    step: Callable[[], Any] = lambda: next(source)  # noqa: E731 - it is replaced at every step
    while True:
        try:
            with recorder.current(draft):
                piece = step()
        except StopIteration as end:
            _end_stream(recorder, draft, pieces)
            return end.value
        except BaseException as error:
            _end_stream(recorder, draft, pieces, error)
            raise
        _take(draft, pieces, piece)
        try:
            sent = yield piece
        except GeneratorExit as error:
            _end_stream(recorder, draft, pieces, error)
            with recorder.current(draft):
                source.close()
            raise
        except BaseException as error:  # noqa: BLE001 - thrown in by the caller: it is the function's to handle
            step = functools.partial(source.throw, error)
        else:
            step = functools.partial(source.send, sent)


async def _async_stream(
    recorder: Recorder, draft: Draft, source: AsyncGenerator[Any, Any]
) -> AsyncGenerator[Any, Any]:
    pieces: list[str] = []
    step: Callable[[], Awaitable[Any]] = source.__anext__
    while True:
        try:
            with recorder.current(draft):
                piece = await step()
        except StopAsyncIteration:
            _end_stream(recorder, draft, pieces)
            return
        except BaseException as error:
            _end_stream(recorder, draft, pieces, error)
            raise
        _take(draft, pieces, piece)
        try:
            sent = yield piece
        except GeneratorExit as error:
            _end_stream(recorder, draft, pieces, error)
            with recorder.current(draft):
                await source.aclose()
            raise
        except BaseException as error:  # noqa: BLE001 - thrown in by the caller: it is the function's to handle
            step = functools.partial(source.athrow, error)
        else:
            step = functools.partial(source.asend, sent)


def _begin(
    recorder: Recorder, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Draft:
    return recorder.begin(recorder.question_of(function, args, kwargs))


def _done(recorder: Recorder, draft: Draft, result: Any) -> Any:
    recorder.answered(draft, result)
    recorder.end(draft, "answered")
    return result


def _take(draft: Draft, pieces: list[str], piece: Any) -> None:
    draft.first_chunk()
    try:
        text = answer_of(piece)
    except Exception as error:  # noqa: BLE001 - a property of somebody's class may raise anything
        draft.failed(error)
        return
    if text is not None:
        pieces.append(text)


def _end_stream(
    recorder: Recorder, draft: Draft, pieces: list[str], error: BaseException | None = None
) -> None:
    if pieces:
        recorder.answered(draft, "".join(pieces))
    if error is None:
        recorder.end(draft, "answered")
    else:
        recorder.fail(draft, error)

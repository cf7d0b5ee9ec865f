"""The recorder: watches an application answer questions and writes a trace for each; see `clinsafe.record`."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from clinsafe.errors import UsageError
from clinsafe.rag.appending import LineFile
from clinsafe.rag.draft import NOTES, Accept, Draft
from clinsafe.rag.keeping import Digest, Kept
from clinsafe.rag.trace import Outcome
from clinsafe.rag.watching import answer_of, watched

F = TypeVar("F", bound=Callable[..., Any])
QUESTIONS = ("question", "query", "user_input", "input")
log = logging.getLogger(
    __name__
)  # without a NullHandler: that traces are lost is said on stderr unless logging is set up


@dataclass(frozen=True, slots=True)
class _Open:
    """A question that is being answered here, and the one around it."""

    recorder: Recorder
    draft: Draft
    outer: _Open | None = field(repr=False)


_OPEN: ContextVar[_Open | None] = ContextVar("clinsafe_recording", default=None)


class Recorder:
    """Writes one trace a question. Its own failures never reach the application: warned of once, and counted.

    A decorator for the function that answers a question, or ``with recorder.question(text) as trace``. Inside, the
    recorder's own ``retrieved``, ``reranked``, ``context``, ``prompt``, ``answer``, ``generated``, ``note``, ``took``
    and ``stage`` speak of the question that is being answered in this thread or task (`clinsafe.rag.draft.Draft`);
    outside of one they do nothing. A thread of one's own sees the question if it is run in a copy of the context
    (`contextvars.copy_context`, `asyncio.to_thread`).

    Args:
        path: file of traces, JSON Lines; appended to, by any number of threads and processes.
        accept: reads what a retriever returned.
        text: whether texts are written; without it lengths, ids, ranks, scores and times are (decision D11).
        digest: keyed hash of a text, written beside its length.
        about: what holds for every trace, as `clinsafe.rag.draft.Draft.note` takes it.

    Attributes:
        written: traces written by this recorder.
        failures: how often something was not recorded.

    Raises:
        UsageError: the file cannot be there, or `about` does not fit a trace.
        MissingDependency: without ``filelock``.
    """

    def __init__(
        self,
        path: Path | str,
        accept: Accept,
        *,
        text: bool = False,
        digest: Digest | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self._file = LineFile(path)
        self._accept, self._kept, self._about = accept, Kept(text, digest), dict(about or {})
        self.written = self.failures = 0
        self._warned = False
        self._counting = threading.Lock()
        self._try_about()

    @property
    def path(self) -> Path:
        """The file of traces."""
        return self._file.path

    # ── questions ──────────────────────────────────────────────────────────────────────────────

    def __call__(self, function: F) -> F:
        """Decorate a function that answers a question: plain, ``async``, a generator or an async generator.

        The question is its argument ``question``, ``query``, ``user_input`` or ``input``, else the first text among
        its arguments. The answer is what it returns: a text, a mapping with ``answer`` or ``response``, a message with
        ``content``; of a stream, the pieces joined.
        """
        return watched(self, function)

    @contextmanager
    def question(self, text: str, **notes: Any) -> Iterator[Draft]:
        """A question answered inside ``with``; tell the answer with ``trace.answer(…)``."""
        draft = self.begin(text, **notes)
        try:
            with self.current(draft):
                yield draft
        except BaseException as error:
            self.fail(draft, error)
            raise
        self.end(draft, "answered")

    def begin(self, text: str | None = None, **notes: Any) -> Draft:
        """A question that is ended with `end`; what neither a decorator nor ``with`` fits."""
        draft = Draft(self._accept, self._kept, self.lost)
        draft.note(**self._about)
        if notes:
            draft.note(**notes)
        if text is not None:
            draft.query(text)
        return draft

    def end(self, draft: Draft, outcome: Outcome, error: BaseException | None = None) -> None:
        """Write the trace. Never raises."""
        try:
            self._file.append(draft.finish(outcome, error).line())
        except Exception as fault:  # noqa: BLE001 - a full disk must not break the application
            self.lost(fault)
        else:
            with self._counting:
                self.written += 1

    def fail(self, draft: Draft, error: BaseException) -> None:
        """Write the trace of a question that ended with this error, or was stopped by the caller. Never raises."""
        stopped = isinstance(error, GeneratorExit | asyncio.CancelledError)
        self.end(draft, *(("stopped", None) if stopped else ("error", error)))

    @contextmanager
    def current(self, draft: Draft) -> Iterator[None]:
        """Make it the question that this thread or task is answering."""
        outer = _OPEN.get()
        _OPEN.set(_Open(self, draft, outer))
        try:
            yield
        finally:
            _OPEN.set(outer)

    def open(self) -> Draft | None:
        """The question that this thread or task is answering."""
        here = _OPEN.get()
        while here is not None and here.recorder is not self:
            here = here.outer
        return here.draft if here is not None else None

    # ── what is told inside of one ─────────────────────────────────────────────────────────────

    def retrieved(self, passages: object) -> None:
        """See `Draft.retrieved`."""
        self._tell(lambda draft: draft.retrieved(passages))

    def reranked(self, passages: object) -> None:
        """See `Draft.reranked`."""
        self._tell(lambda draft: draft.reranked(passages))

    def context(self, passages: object) -> None:
        """See `Draft.context`."""
        self._tell(lambda draft: draft.context(passages))

    def prompt(self, text: str, *, version: str | None = None) -> None:
        """See `Draft.prompt`."""
        self._tell(lambda draft: draft.prompt(text, version=version))

    def answer(self, text: str) -> None:
        """See `Draft.answer`."""
        self._tell(lambda draft: draft.answer(text))

    def generated(
        self,
        *,
        model: str | None = None,
        prompt_tokens: int | None = None,
        completion_tokens: int | None = None,
    ) -> None:
        """See `Draft.generated`."""
        self._tell(
            lambda draft: draft.generated(
                model=model, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens
            )
        )

    def note(self, **fields: Any) -> None:
        """See `Draft.note`."""
        self._tell(lambda draft: draft.note(**fields))

    def took(self, stage: str, milliseconds: float) -> None:
        """See `Draft.took`."""
        self._tell(lambda draft: draft.took(stage, milliseconds))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """``with record.stage("rerank"): …`` takes its time."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.took(name, 1000 * (time.perf_counter() - start))

    def watch(self, retrieve: F) -> F:
        """A retriever's function or method that tells of what it returns and how long it took.

        ``retrieve = record.watch(clinsafe.guard(retriever).retrieve)``; plain or ``async``.
        """
        if inspect.iscoroutinefunction(retrieve):

            @functools.wraps(retrieve)
            async def later(*args: Any, **kwargs: Any) -> Any:
                with self.stage("retrieval"):
                    found = await retrieve(*args, **kwargs)
                self.retrieved(found)
                return found

            return later  # type: ignore[return-value]

        @functools.wraps(retrieve)
        def now(*args: Any, **kwargs: Any) -> Any:
            with self.stage("retrieval"):
                found = retrieve(*args, **kwargs)
                if inspect.isgenerator(found):
                    found = list(found)  # else to look at it would use it up
            self.retrieved(found)
            return found

        return now  # type: ignore[return-value]

    # ── inside ─────────────────────────────────────────────────────────────────────────────────

    def question_of(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> str | None:
        """The question among a call's arguments."""
        try:
            given: Mapping[str, Any] = inspect.signature(function).bind(*args, **kwargs).arguments
        except (TypeError, ValueError):  # the call is wrong and will say so itself, or there is no signature
            given = kwargs
        named = (place[name] for name in QUESTIONS for place in (given, kwargs) if name in place)
        return next((value for value in (*named, *args, *kwargs.values()) if isinstance(value, str)), None)

    def answered(self, draft: Draft, result: object) -> None:
        """Take what was returned for the answer, unless one was told."""
        try:
            if not draft.answered and (text := answer_of(result)) is not None:
                draft.answer(text)
        except Exception as error:  # noqa: BLE001 - a property of somebody's class may raise anything
            self.lost(error)

    def _tell(self, tell: Callable[[Draft], None]) -> None:
        draft = self.open()
        if draft is not None:
            tell(draft)

    def lost(self, error: BaseException) -> None:
        """Count a failure of the recorder's own, and warn of the first."""
        with self._counting:
            self.failures += 1
            first, self._warned = not self._warned, True
        if first:  # the kind alone: a message may quote a text
            log.warning(
                "%s: something was not recorded (%s); the application goes on, and this is said once",
                self.path, type(error).__name__,
            )  # fmt: skip

    def _try_about(self) -> None:
        faults: list[BaseException] = []
        draft = Draft(self._accept, self._kept, faults.append)
        draft.note(**self._about)
        draft.finish("answered")
        if faults:
            raise UsageError(
                f"what is said about every trace does not fit ({type(faults[0]).__name__}); it takes "
                f"{', '.join(NOTES)}, as clinsafe.rag.trace.Trace describes them"
            )

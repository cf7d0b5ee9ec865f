"""LangChain: a callback handler that writes a trace of every chain run. Needs ``langchain-core``.

Works in ``invoke``, ``ainvoke``, ``batch``, ``stream`` and ``astream``, in any number of threads. A failure of the
handler's own reaches neither the chain nor LangChain's log, which would print its message.
"""

# ruff: noqa: D102, ARG002 - LangChain names the events and hands everything over by name

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar
from uuid import UUID

from clinsafe.adapters.documents import ANSWER, NOTICE, PASSAGE
from clinsafe.errors import MissingDependency

try:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage
    from langchain_core.outputs import LLMResult
except ImportError as error:
    raise MissingDependency(
        "recording a LangChain chain", error.name or "langchain-core", "pip install clinsafe langchain-core"
    ) from error

M = TypeVar("M", bound=Callable[..., None])
QUESTIONS = ("question", "query", "user_input", "input")
ANSWERS = ("answer", "response", "output", "result", "output_text")
MOST = 50_000  # runs that are open at a time; those of a chain that was killed never end


class Draft(Protocol):
    """One trace in the making; `clinsafe.rag.draft.Draft`."""

    @property
    def asked(self) -> bool: ...
    @property
    def answered(self) -> bool: ...
    def query(self, text: str) -> None: ...
    def retrieved(self, passages: object) -> None: ...
    def reranked(self, passages: object) -> None: ...
    def guarded(self, guard: Mapping[str, Any], shown: Mapping[str, str] | None = None) -> None: ...
    def prompt(self, text: str) -> None: ...
    def answer(self, text: str) -> None: ...
    def generated(
        self,
        *,
        model: str | None = None,
        prompt_tokens: int | None = None,
        completion_tokens: int | None = None,
    ) -> None: ...
    def took(self, stage: str, milliseconds: float) -> None: ...
    def first_chunk(self) -> None: ...


class Recorder(Protocol):
    """What writes traces; `clinsafe.record` makes one."""

    def begin(self) -> Draft: ...
    def open(self) -> Draft | None: ...
    def end(self, draft: Any, outcome: Literal["answered"]) -> None: ...
    def fail(self, draft: Any, error: BaseException) -> None: ...
    def lost(self, error: BaseException) -> None: ...


@dataclass(slots=True)
class _Root:
    """A chain run that nothing stands above."""

    draft: Draft
    joined: bool
    members: list[UUID] = field(default_factory=list)
    asked: str = ""  # by the first retriever, where the chain's own question is not known


@dataclass(slots=True)
class _Run:
    """Any run below a root, and the root itself."""

    root: _Root
    retriever: _Run | None = None  # the outermost one above it
    inner: bool = False  # whether a retriever ran inside of it
    begun: float = field(default_factory=time.perf_counter)


def _contained(method: M) -> M:
    @functools.wraps(method)
    def tried(self: TraceHandler, *args: Any, **kwargs: Any) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - the chain goes on
            self.recorder.lost(error)

    made: Any = tried
    return made  # type: ignore[no-any-return]


class TraceHandler(BaseCallbackHandler):
    """``chain.invoke(question, config={"callbacks": [TraceHandler(clinsafe.record("traces.jsonl"))]})``.

    One handler serves any number of chains and threads. The question is the chain's input, or in a mapping its
    ``question``, ``query``, ``user_input`` or ``input``, or the last message of a person; the answer is its output, or
    in a mapping ``answer``, ``response``, ``output``, ``result``. Inside a function that the same recorder decorates,
    a chain adds to that function's trace. A retriever called on its own makes a trace; a model called on its own does
    not, for nobody knows which part of the prompt is the question.

    A retriever that calls others (a reranker, an ensemble) gives ``reranked``, those it calls give ``retrieved``. The
    documents of a guarded retriever (`clinsafe.adapters.langchain`) are taken up with what the guard did.

    Args:
        recorder: `clinsafe.record`'s.
        question: key of the question, where the chain's input has another.
        answer: key of the answer, where the chain's output has another.
    """

    run_inline = True  # in the task itself: the recorder sees which question is open there, and events keep their order

    def __init__(self, recorder: Recorder, *, question: str | None = None, answer: str | None = None) -> None:
        super().__init__()
        self.recorder = recorder
        self._questions = (question,) if question else QUESTIONS
        self._answers = (answer,) if answer else ANSWERS
        self._runs: dict[UUID, _Run] = {}
        self._mutex = threading.Lock()

    # ── chains ─────────────────────────────────────────────────────────────────────────────────

    @_contained
    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        run = self._start(run_id, parent_run_id, root=True)
        if run is not None and parent_run_id is None:
            self._ask(run.root, inputs)

    @_contained
    def on_chain_end(
        self, outputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        if parent_run_id is None and (run := self._runs.get(run_id)) is not None:
            self._ask(run.root, kwargs.get("inputs"))  # of a stream, the input is known at its end
            if not run.root.joined and not run.root.draft.answered:
                answer = _found(outputs, self._answers, "ai")
                if answer is not None:
                    run.root.draft.answer(answer)
            self._finish(run)

    @_contained
    def on_chain_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        if parent_run_id is None and (run := self._runs.get(run_id)) is not None:
            self._ask(run.root, kwargs.get("inputs"))
            self._finish(run, error)

    # ── retrievers ─────────────────────────────────────────────────────────────────────────────

    @_contained
    def on_retriever_start(
        self, serialized: Any, query: str, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        run = self._start(run_id, parent_run_id, root=True)
        if run is None:
            return
        run.root.asked = run.root.asked or query
        above = self._runs.get(parent_run_id) if parent_run_id is not None else None
        if above is not None and above.retriever is not None:
            above.retriever.inner = True
        else:
            run.retriever = run

    @_contained
    def on_retriever_end(
        self, documents: Sequence[Document], *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        run = self._runs.get(run_id)
        if run is None:
            return
        draft = run.root.draft
        if run.retriever is run:
            draft.took("retrieval", _since(run.begun))
        if answer := _guarded(documents):
            _tell_guarded(draft, documents, answer, hits=not run.inner)
        elif run.retriever is run and run.inner:
            draft.reranked(documents)
        else:
            draft.retrieved(documents)
        if parent_run_id is None:
            self._finish(run)

    @_contained
    def on_retriever_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        if parent_run_id is None and (run := self._runs.get(run_id)) is not None:
            self._finish(run, error)

    # ── models ─────────────────────────────────────────────────────────────────────────────────

    @_contained
    def on_chat_model_start(
        self,
        serialized: Any,
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        if (run := self._start(run_id, parent_run_id)) is not None:
            lines = [f"{one.type}: {_text(one) or ''}" for one in messages[0]]
            _tell_model(run.root.draft, "\n".join(lines), kwargs)

    @_contained
    def on_llm_start(
        self,
        serialized: Any,
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        if (run := self._start(run_id, parent_run_id)) is not None:
            _tell_model(run.root.draft, prompts[0], kwargs)

    @_contained
    def on_llm_new_token(self, token: Any, *, run_id: UUID, **kwargs: Any) -> None:
        if (run := self._runs.get(run_id)) is not None:
            run.root.draft.first_chunk()

    @_contained
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        if (run := self._runs.get(run_id)) is not None:
            run.root.draft.took("generation", _since(run.begun))
            run.root.draft.generated(**_usage(response))

    # ── inside ─────────────────────────────────────────────────────────────────────────────────

    def _start(self, run_id: UUID, parent: UUID | None, *, root: bool = False) -> _Run | None:
        """The run that begins; None where it belongs to no trace."""
        above = self._runs.get(parent) if parent is not None else None
        if above is None and not (root and parent is None):
            return None
        if above is not None:
            run = _Run(above.root, above.retriever)
        else:
            around = self.recorder.open()
            run = _Run(_Root(around or self.recorder.begin(), joined=around is not None))
        with self._mutex:
            while len(self._runs) >= MOST:
                del self._runs[next(iter(self._runs))]
            self._runs[run_id] = run
            run.root.members.append(run_id)
        return run

    def _finish(self, run: _Run, error: BaseException | None = None) -> None:
        root = run.root
        with self._mutex:
            for member in root.members:
                self._runs.pop(member, None)
        if not root.draft.asked and root.asked:
            root.draft.query(root.asked)
        if root.joined:
            return
        if error is None:
            self.recorder.end(root.draft, "answered")
        else:
            self.recorder.fail(root.draft, error)

    def _ask(self, root: _Root, inputs: object) -> None:
        if not root.draft.asked and (question := _found(inputs, self._questions, "human")):
            root.draft.query(question)


def _found(value: object, keys: Sequence[str], speaker: str) -> str | None:
    """The text of a question or an answer."""
    if isinstance(value, Mapping):
        given = next((text for key in keys if (text := _text(value.get(key))) is not None), None)
        return given if given is not None else _found(value.get("messages"), keys, speaker)
    if callable(listed := getattr(value, "to_messages", None)):  # a prompt value
        value = listed()
    if isinstance(value, Sequence) and not isinstance(value, str):
        said = (
            one
            for one in reversed(value)
            if isinstance(one, BaseMessage) and one.type.lower().startswith(speaker)
        )
        value = next(said, None)
    return _text(value)


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if not isinstance(value, BaseMessage):
        return None
    if isinstance(value.content, str):
        return value.content
    parts = (part if isinstance(part, str) else part.get("text") for part in value.content)
    return "".join(part for part in parts if isinstance(part, str))


def _tell_model(draft: Draft, prompt: str, told: Mapping[str, Any]) -> None:
    draft.prompt(prompt)
    given = told.get("invocation_params") or {}
    names = ((told.get("metadata") or {}).get("ls_model_name"), given.get("model"), given.get("model_name"))
    draft.generated(model=next((name for name in names if isinstance(name, str)), None))


def _usage(response: LLMResult) -> dict[str, Any]:
    """What the provider told: model and tokens; what it did not tell is None."""
    used: dict[str, Any] = {"model": None, "prompt_tokens": None, "completion_tokens": None}
    for generations in response.generations:
        for one in generations:
            message = getattr(one, "message", None)
            usage = getattr(message, "usage_metadata", None) or {}
            for ours, theirs in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")):
                if isinstance(usage.get(theirs), int):
                    used[ours] = (used[ours] or 0) + usage[theirs]
            name = (getattr(message, "response_metadata", None) or {}).get("model_name")
            used["model"] = name if isinstance(name, str) else used["model"]
    output = response.llm_output or {}
    for name in ("prompt_tokens", "completion_tokens"):
        told = (output.get("token_usage") or {}).get(name)
        if used[name] is None and isinstance(told, int):
            used[name] = told
    if used["model"] is None and isinstance(output.get("model_name"), str):
        used["model"] = output["model_name"]
    return used


def _guarded(documents: Sequence[Document]) -> Mapping[str, Any] | None:
    """What the guard said of the answer, where it has seen these documents."""
    found = documents[0].metadata.get(ANSWER) if documents else None
    return found if isinstance(found, Mapping) else None


def _tell_guarded(
    draft: Draft, documents: Sequence[Document], answer: Mapping[str, Any], *, hits: bool
) -> None:
    shown = {one.metadata[PASSAGE]["id"]: one.page_content for one in documents if NOTICE not in one.metadata}
    rows = [one.metadata[PASSAGE] for one in documents if NOTICE not in one.metadata] + list(
        answer["withheld"]
    )
    rows = sorted(rows, key=lambda row: row["retrieved_rank"])
    if hits:
        draft.retrieved(
            [{"id": r["id"], "text": r["original"], "score": r["score"], "source": r["source"]} for r in rows]
        )
    passages = [
        {
            "id": row["id"],
            "retrieved_rank": row["retrieved_rank"],
            "rank": row["rank"],
            "action": row["action"],
            "rules": [finding["rule"] for finding in row["findings"] if finding["rule"]],
            "unchecked": list(row["unchecked"]),
        }
        for row in rows
    ]
    told = {
        "policy": answer["policy"],
        "needs_review": answer["needs_review"],
        "disagreements": len(answer["disagreements"]),
        "passages": passages,
    }
    draft.guarded(told, shown)


def _since(start: float) -> float:
    return 1000 * (time.perf_counter() - start)

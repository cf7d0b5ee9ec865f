"""One trace in the making: what is told of a question while it is being answered.

None of the methods raises: a recorder's own failure must not break the application that it watches. It is handed to
`failed`, which counts it.
"""

from __future__ import annotations

import functools
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias, TypeVar

from pydantic import ValidationError

from clinsafe.guarded import GuardedAnswer
from clinsafe.protocols import Passage
from clinsafe.rag.keeping import Kept
from clinsafe.rag.trace import Outcome, Trace, TraceText
from clinsafe.version import VERSION

M = TypeVar("M", bound=Callable[..., None])
Accept: TypeAlias = Callable[[object], tuple[list[Passage], list[str]]]
NOTES = (
    "query_id", "query_version", "task", "slices", "access", "corpus", "eligible", "allowed", "versions", "citations",
    "reference", "relevance", "cost", "grades",
)  # fmt: skip
"""What `Draft.note` takes: fields of `clinsafe.rag.trace.Trace` that are handed over as they are."""


@dataclass(slots=True)
class _Seen:
    """A passage that was told of, with the text as a prompt would hold it."""

    id: str
    shown: str


def _never_raises(method: M) -> M:
    @functools.wraps(method)
    def tried(self: Draft, *args: Any, **kwargs: Any) -> None:
        try:
            with self._lock:
                method(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever it is, the application goes on
            self.failed(error)

    made: Any = tried
    return made  # type: ignore[no-any-return]


@dataclass(slots=True)
class Draft:
    """See the module. A draft is told of by one question alone, from any of its threads and tasks.

    Args:
        accept: reads what a retriever returned (`clinsafe.adapters.retrievers.passages`).
        kept: what is kept of texts.
        failed: told of each failure of the recorder's own.
    """

    accept: Accept = field(repr=False)
    kept: Kept = field(repr=False)
    failed: Callable[[BaseException], None] = field(repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    _fields: dict[str, Any] = field(default_factory=dict, repr=False)
    _notes: dict[str, Any] = field(default_factory=dict, repr=False)
    _names: dict[str, str] = field(default_factory=dict, repr=False)
    _seen: list[_Seen] = field(default_factory=list, repr=False)
    _calls: dict[str, int] = field(default_factory=dict, repr=False)
    _times: dict[str, float] = field(default_factory=dict, repr=False)
    _prompt: str | None = field(default=None, repr=False)
    _begun: float = field(default_factory=time.perf_counter, repr=False)
    _time: datetime = field(default_factory=lambda: datetime.now(UTC), repr=False)

    # ── what is told ───────────────────────────────────────────────────────────────────────────

    @_never_raises
    def query(self, text: str) -> None:
        """The question, where it is not known from the call."""
        self._fields["query"] = self.kept.text(text)

    @_never_raises
    def retrieved(self, passages: object) -> None:
        """What a retriever returned, or a `GuardedAnswer`; called again, it is another call's."""
        self._hits("retrieved", passages)

    @_never_raises
    def reranked(self, passages: object) -> None:
        """What a reranker made of it."""
        self._hits("reranked", passages)

    @_never_raises
    def context(self, passages: object) -> None:
        """What the model is shown, in this order. Left untold, it is what stands verbatim in the prompt."""
        if isinstance(passages, GuardedAnswer):
            self._context(passages)
            return
        found, _ = self.accept(passages)
        named = [self._name(one.id) for one in found]
        self._see(list(zip(named, (one.text for one in found), strict=True)))
        self._fields["context"] = [{"id": one, "rank": n} for n, one in enumerate(named, start=1)]

    @_never_raises
    def prompt(self, text: str, *, version: str | None = None) -> None:
        """What is sent to the model; the last one counts."""
        self._fields["prompt"] = self.kept.text(text)
        self._prompt = text
        if version is not None:
            self._version("prompt", version)

    @_never_raises
    def answer(self, text: str) -> None:
        """What the user gets, where it is not what the function returns."""
        self._fields["answer"] = self.kept.text(text)

    @_never_raises
    def generated(
        self,
        *,
        model: str | None = None,
        prompt_tokens: int | None = None,
        completion_tokens: int | None = None,
    ) -> None:
        """What the model's provider told of one call; tokens are added up."""
        if model is not None:
            self._version("model", model)
        told = (("prompt", prompt_tokens), ("completion", completion_tokens))
        for name, count in told:
            if count is not None:
                tokens = self._fields.setdefault("tokens", {})
                tokens[name] = tokens.get(name, 0) + count

    @_never_raises
    def took(self, stage: str, milliseconds: float) -> None:
        """Time of a stage; added to what it took before."""
        stage = self.kept.code(stage)
        self._times[stage] = self._times.get(stage, 0.0) + milliseconds

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """``with draft.stage("rerank"): …`` takes its time."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.took(name, 1000 * (time.perf_counter() - start))

    def first_chunk(self) -> None:
        """The first piece of a streamed answer is there; called again, it does nothing."""
        if "first_chunk" not in self._times:
            self.took("first_chunk", 1000 * (time.perf_counter() - self._begun))

    @_never_raises
    def note(self, **fields: Any) -> None:
        """Anything else of `clinsafe.rag.trace.Trace`: see `NOTES`; a text may be given for ``reference``."""
        if wrong := next((name for name in fields if name not in NOTES), None):
            raise TypeError(f"note() takes {', '.join(NOTES)}, not {wrong}")
        for name, value in fields.items():
            self._notes[name] = None if value is None else _AS.get(name, _word)(self, value)

    @_never_raises
    def guarded(self, guard: Mapping[str, Any], shown: Mapping[str, str] | None = None) -> None:
        """What the guard did in one call, as a `clinsafe.rag.trace.TraceGuard`.

        Args:
            guard: its fields.
            shown: passage id -> the annotated text, to find it in the prompt.
        """
        self._see([(self._name(id_), text) for id_, text in (shown or {}).items()])
        rows = [
            {
                **row,
                "id": self._name(row["id"]),
                "action": self.kept.code(row["action"]),
                "rules": [self.kept.code(rule) for rule in row.get("rules", ())],
                "unchecked": [self.kept.code(name) for name in row.get("unchecked", ())],
            }
            for row in guard.get("passages", ())
        ]
        told = {**guard, "policy": self.kept.code(guard.get("policy") or "unnamed"), "passages": rows}
        self._fields.setdefault("guard", []).append(told)

    # ── the trace ──────────────────────────────────────────────────────────────────────────────

    def finish(self, outcome: Outcome, error: BaseException | None = None) -> Trace:
        """The trace. What was told and has no place in one (a NaN, an unknown field) is left out and counted."""
        self._times["total"] = 1000 * (time.perf_counter() - self._begun)
        fields = {
            **self._notes,
            **self._fields,
            "context": self._spans(self._fields.get("context")),
            "versions": {**(self._notes.get("versions") or {}), **self._fields.get("versions", {})} or None,
            "timings": {name: round(ms, 3) for name, ms in self._times.items()},
            "error": None if error is None else self.kept.code(type(error).__name__),
        }
        head = {
            "id": uuid.uuid4().hex,
            "time": self._time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "tool": VERSION,
            "outcome": outcome,
        }
        try:
            return Trace.model_validate({**fields, **head})
        except ValidationError as fault:
            self.failed(fault)
            wrong = {str(one["loc"][0]) for one in fault.errors(include_input=False, include_url=False)}
            return Trace.model_validate({name: fields[name] for name in fields if name not in wrong} | head)

    @property
    def answered(self) -> bool:
        """Whether an answer was told."""
        return "answer" in self._fields

    @property
    def asked(self) -> bool:
        """Whether a question was told."""
        return "query" in self._fields

    def _hits(self, stage: str, passages: object) -> None:
        call = self._calls[stage] = self._calls.get(stage, 0) + 1
        if isinstance(passages, GuardedAnswer):
            rows = sorted((*passages.passages, *passages.withheld), key=lambda row: row.retrieved_rank)
            found = [(row.retrieved_rank, row.passage) for row in rows]
            self._guard(passages)
            self._see(
                [(self._name(row.passage.id), row.annotated or row.passage.text) for row in passages.passages]
            )
        else:
            found = list(enumerate(self.accept(passages)[0], start=1))
            self._see([(self._name(one.id), one.text) for _, one in found])
        hits = self._fields.setdefault(stage, [])
        for rank, one in found:
            hits.append(
                {
                    "id": self._name(one.id),
                    "rank": rank,
                    "score": one.score,
                    "call": call,
                    "content": self.kept.text(one.text),
                    "source": (one.source or None) if self.kept.texts else None,
                }
            )

    def _guard(self, answer: GuardedAnswer) -> None:
        rows = [
            {
                "id": row.passage.id,
                "retrieved_rank": row.retrieved_rank,
                "rank": row.rank,
                "action": row.action,
                "rules": [finding.rule for finding in row.findings if finding.rule],
                "unchecked": list(row.unchecked),
            }
            for row in (*answer.passages, *answer.withheld)
        ]
        self.guarded(
            {
                "policy": answer.policy,
                "needs_review": answer.needs_review,
                "disagreements": len(answer.disagreements),
                "passages": rows,
            }
        )

    def _context(self, answer: GuardedAnswer) -> None:
        rows = [(self._name(row.passage.id), row) for row in answer.passages]
        self._see([(name, row.annotated or row.passage.text) for name, row in rows])
        self._fields["context"] = [{"id": name, "rank": row.rank} for name, row in rows]

    def _see(self, rows: Sequence[tuple[str, str]]) -> None:
        self._seen += [_Seen(name, shown) for name, shown in rows]

    def _name(self, id_: str) -> str:
        if id_ not in self._names:
            self._names[id_] = self.kept.id(id_, len(self._names) + 1)
        return self._names[id_]

    def _version(self, of: str, version: str) -> None:
        self._fields.setdefault("versions", {})[of] = self.kept.code(version)

    def _spans(self, told: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
        """The context with its places in the prompt; None where it was not told and nothing stands there verbatim."""
        places: dict[str, tuple[int, int]] = {}
        for one in sorted(
            self._seen, key=lambda one: -len(one.shown)
        ):  # a short text may stand in a longer one
            if one.id not in places and (span := self._place(one.shown, places.values())) is not None:
                places[one.id] = span
        if told is not None:
            return [{**row, "span": places.get(row["id"])} for row in told]
        found = sorted(places.items(), key=lambda row: row[1])
        return [
            {"id": name, "rank": n, "span": span} for n, (name, span) in enumerate(found, start=1)
        ] or None

    def _place(self, shown: str, taken: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
        if not self._prompt or not shown.strip():
            return None
        start = self._prompt.find(shown)
        while start >= 0:
            over = [end for begin, end in taken if start < end and begin < start + len(shown)]
            if not over:
                break
            start = self._prompt.find(shown, max(over))  # all that begin before overlap too
        return None if start < 0 else (start, start + len(shown))


def _word(draft: Draft, value: Any) -> Any:
    return draft.kept.code(value)


def _words(draft: Draft, value: Mapping[str, Any]) -> dict[str, str]:
    return {draft.kept.code(name): draft.kept.code(word) for name, word in value.items() if word is not None}


def _ids(draft: Draft, value: Sequence[str]) -> list[str]:
    return [draft._name(one) for one in value]


def _relevance(draft: Draft, value: Mapping[str, float]) -> dict[str, float]:
    return {draft._name(one): grade for one, grade in value.items()}


def _text(draft: Draft, value: str) -> TraceText:
    return draft.kept.text(value)


def _citations(draft: Draft, value: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{**one, "passage": draft._name(one["passage"])} for one in value]


def _grades(draft: Draft, value: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            **one,
            "grader": draft.kept.code(one["grader"]),
            "metric": draft.kept.code(one["metric"]),
            "rationale": draft.kept.text(one["rationale"]) if one.get("rationale") is not None else None,
        }
        for one in value
    ]


def _as_given(_: Draft, value: Any) -> Any:
    return value


_AS: Mapping[str, Callable[[Draft, Any], Any]] = {
    "slices": _words, "access": _words, "versions": _words, "eligible": _ids, "allowed": _ids, "relevance": _relevance,
    "reference": _text, "citations": _citations, "grades": _grades, "cost": _as_given,
}  # fmt: skip

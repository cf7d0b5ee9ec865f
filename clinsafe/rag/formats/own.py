"""A trace of ours as an item."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from clinsafe.rag.formats.fields import Fault, identifier, slices, task
from clinsafe.rag.formats.lines import named
from clinsafe.rag.item import Context, Grade, Item
from clinsafe.rag.trace import SCHEMA_VERSION, Trace, TraceHit, TraceText


def own_item(data: dict[str, Any], number: int) -> Item:
    """One line of ours.

    A text that was not kept is None. An answer counts only where the question was answered: of a stream that broke off
    the half that came is no answer.

    Raises:
        Fault: it is no trace.
    """
    if data.get("schema_version", SCHEMA_VERSION) != SCHEMA_VERSION:
        raise Fault("schema_version", f"this version of clinsafe reads {SCHEMA_VERSION}")
    try:
        trace = Trace.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        why = "unknown field" if first["type"] == "extra_forbidden" else str(first["msg"])
        raise Fault(named(first["loc"]), why) from None
    return trace_item(trace, number)


def trace_item(trace: Trace, number: int = 0) -> Item:
    """A trace as an item; its id is that of the question where it has one, so that runs can be paired."""
    known, said = task(trace.task)
    groups = slices((trace.slices, True), ({"task": said} if said else None, True))
    kept = [_kept(one) for one in (trace.reference, *(trace.references or ()))]
    return Item(
        id=identifier(trace.query_id or trace.id, "query_id" if trace.query_id else "id") or trace.id,
        question=_kept(trace.query),
        contexts=_contexts(trace),
        ranking=_ranking(trace.retrieved if trace.retrieved is not None else trace.reranked),
        answer=_kept(trace.answer) if trace.outcome == "answered" else None,
        references=tuple(dict.fromkeys(one for one in kept if one is not None)),
        relevance=_relevance(trace),
        eligible=trace.eligible,
        options=_options(trace),
        expected=trace.expected,
        task=known,
        slices=groups,
        grades=tuple(_grade(one.grader, one.metric, one.outcome, one.score) for one in trace.grades or ()),
        tokens=_tokens(trace),
        milliseconds=trace.timings or {},
        source=trace.id,
        line=number,
    )


def _kept(one: TraceText | None) -> str | None:
    return None if one is None else one.text


def _tokens(trace: Trace) -> tuple[int, int] | None:
    told = trace.tokens
    if told is None or told.prompt is None or told.completion is None:
        return None
    return told.prompt, told.completion


def _relevance(trace: Trace) -> dict[str, float] | None:
    if trace.relevance is not None and any(grade < 0 for grade in trace.relevance.values()):
        raise Fault("relevance", "grades must be at least 0")
    return trace.relevance


def _options(trace: Trace) -> dict[str, str] | None:
    if trace.options is None:
        return None
    kept = {name: one.text for name, one in trace.options.items() if one.text is not None}
    return kept if len(kept) == len(trace.options) else None


def _grade(grader: str, metric: str, outcome: str, score: float | None) -> Grade:
    if outcome != "scored":
        return Grade(grader, metric, None, outcome)
    fits = score is not None and 0 <= score <= 1
    return Grade(grader, metric, score if fits else None, "" if fits else "not a score from 0 to 1")


def _in_order(hits: Iterable[TraceHit]) -> list[TraceHit]:
    return sorted(hits, key=lambda hit: (hit.call, hit.rank))


def _ranking(hits: tuple[TraceHit, ...] | None) -> tuple[str, ...] | None:
    return None if hits is None else tuple(dict.fromkeys(hit.id for hit in _in_order(hits)))


def _contexts(trace: Trace) -> tuple[Context, ...] | None:
    """What the model was shown, else what was reranked or retrieved; None where a text of it was not kept."""
    hits = _in_order([*(trace.retrieved or ()), *(trace.reranked or ())])
    scores = {
        hit.id: hit.score for hit in [*_in_order(trace.retrieved or ()), *_in_order(trace.reranked or ())]
    }
    texts: dict[str, str] = {}
    for hit in hits:
        if hit.content is not None and hit.content.text is not None:
            texts.setdefault(hit.id, hit.content.text)
    shown: list[tuple[str, str | None]] = []
    if trace.context is not None:
        prompt = _kept(trace.prompt)
        for one in sorted(trace.context, key=lambda one: one.rank):
            part = prompt[one.span[0] : one.span[1]] if prompt and one.span else ""
            shown.append((one.id, part or texts.get(one.id)))
    else:
        told = trace.reranked if trace.reranked is not None else trace.retrieved
        if told is None:
            return None
        shown = [(one.id, _kept(one.content) or texts.get(one.id)) for one in _in_order(told)]
    found = [Context(name, words, scores.get(name)) for name, words in shown if words is not None]
    return tuple(found) if len(found) == len(shown) else None

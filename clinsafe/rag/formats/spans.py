"""OpenInference: one span of an export, from any of its shapes, as the little that an item needs of it.

Shapes: one span a line with flat attributes (``{"context": {"trace_id"}, "attributes": {"input.value": …}}``), with
nested ones, with columns (``attributes.input.value``, a data frame's), and OTLP JSON (``resourceSpans``, in them
``scopeSpans``, in them ``spans`` with ``attributes: [{"key", "value": {"stringValue"}}]``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from clinsafe.rag.formats.fields import Fault, identifier, missing, score, text
from clinsafe.rag.item import Context

REDACTED = "__REDACTED__"
"""What OpenInference writes where a text is hidden."""
_DEEPEST = 12  # levels of nested attributes
_WIDEST = 20_000  # attributes of a span
_DOCUMENT = re.compile(
    r"(retrieval\.documents|reranker\.output_documents)\.(\d{1,5})\.document\.(id|content|score)"
)
_QUESTION = ("question", "query", "user_input", "input", "query_str")
_ANSWER = ("answer", "response", "output", "result", "text", "content")


@dataclass(slots=True)
class Span:
    """What is needed of a span.

    Attributes:
        trace: id of its trace.
        number: line that it stands on.
        kind: of OpenInference: LLM, RETRIEVER …, "" where not said.
        start: seconds since 1970, None where not told.
        milliseconds: how long it took.
        passages: (id, text, score) of what was retrieved or reranked; None where it does not say.
        tokens: prompt and completion.
        asked, said: the last user message and the model's message.
    """

    trace: str
    id: str
    parent: str
    number: int
    kind: str
    start: float | None = None
    milliseconds: float | None = None
    question: str | None = None
    answer: str | None = None
    passages: list[tuple[str | None, str | None, float | None]] | None = None
    tokens: tuple[int | None, int | None] = (None, None)
    asked: str | None = None
    said: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tells(self) -> bool:
        """Whether it says anything that an item holds."""
        told = (self.question, self.answer, self.passages, self.asked, self.said)
        return any(one is not None for one in told)


def spans_of(row: Mapping[str, Any], number: int) -> Iterator[Span]:
    """The spans of one row.

    Raises:
        Fault: the row holds something that is no span.
    """
    for raw in _unwrapped(row):
        yield _span(raw, number)


def _unwrapped(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "resourceSpans" not in row and "scopeSpans" not in row:
        yield row
        return
    for n, resource in enumerate(_list(row.get("resourceSpans", [row]), "resourceSpans")):
        where = f"resourceSpans.{n}.scopeSpans"
        scopes = resource.get("scopeSpans", resource.get("instrumentationLibrarySpans", []))
        for scope in _list(scopes, where):
            yield from _list(scope.get("spans", []), f"{where}.spans")


def _list(value: object, field: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise Fault(field, "must be a list of objects")
    return value


def _span(raw: Mapping[str, Any], number: int) -> Span:
    context = raw.get("context")
    inside: Mapping[str, Any] = context if isinstance(context, dict) else {}
    trace = identifier(_first(raw, inside, "trace_id", "traceId", "context.trace_id"), "trace_id")
    if trace is None:
        raise Fault("trace_id", "is missing; spans are put together by it")
    attributes = _attributes(raw)
    start, end = _seconds(raw, "start"), _seconds(raw, "end")
    kind = attributes.get("openinference.span.kind", raw.get("span_kind", ""))
    took = 1000 * (end - start) if start is not None and end is not None and end >= start else None
    asked, said = _messages(attributes)
    return Span(
        trace=trace,
        id=str(_first(raw, inside, "span_id", "spanId", "context.span_id") or ""),
        parent=str(_first(raw, inside, "parent_id", "parentSpanId", "parent_span_id") or ""),
        number=number,
        kind=kind.upper() if isinstance(kind, str) else "",
        start=start,
        milliseconds=None if took is None else round(took, 3),
        question=_value(attributes, "input", _QUESTION),
        answer=_value(attributes, "output", _ANSWER),
        passages=_documents(attributes),
        tokens=(
            _count(attributes.get("llm.token_count.prompt")),
            _count(attributes.get("llm.token_count.completion")),
        ),
        asked=asked,
        said=said,
        metadata=_metadata(attributes),
    )


def _first(raw: Mapping[str, Any], inside: Mapping[str, Any], *names: str) -> Any:
    return next((one[name] for one in (raw, inside) for name in names if not missing(one.get(name))), None)


# ── attributes ─────────────────────────────────────────────────────────────────────────────────


def _attributes(raw: Mapping[str, Any]) -> dict[str, Any]:
    """All attributes under dotted names."""
    told = raw.get("attributes")
    made: dict[str, Any] = {}
    if isinstance(told, list):
        for one in _list(told, "attributes"):
            _flatten(str(one.get("key", "")), _otlp(one.get("value")), made, 0)
    elif isinstance(told, dict):
        for key, value in told.items():
            _flatten(str(key), value, made, 0)
    elif told is not None and not missing(told):
        raise Fault("attributes", "must be an object or a list of keys and values")
    for key, value in raw.items():
        if str(key).startswith("attributes."):
            _flatten(str(key).removeprefix("attributes."), value, made, 0)
    return made


def _otlp(value: object, depth: int = 0) -> Any:
    """The value inside ``{"stringValue": …}``; a 64-bit number is written as a text there."""
    if not isinstance(value, dict) or depth > _DEEPEST:
        return value
    if "intValue" in value:
        try:
            return int(value["intValue"])
        except (TypeError, ValueError):
            return None
    if isinstance(array := value.get("arrayValue"), dict):
        return [_otlp(one, depth + 1) for one in array.get("values") or []]
    if isinstance(table := value.get("kvlistValue"), dict):
        return {
            str(one.get("key")): _otlp(one.get("value"), depth + 1)
            for one in _list(table.get("values", []), "attributes")
        }
    return next((value[key] for key in ("stringValue", "doubleValue", "boolValue") if key in value), None)


def _flatten(name: str, value: Any, made: dict[str, Any], depth: int) -> None:
    if depth > _DEEPEST or len(made) > _WIDEST:
        raise Fault("attributes", f"more than {_WIDEST} of them, or nested more than {_DEEPEST} deep")
    if isinstance(value, dict) and value and name != "metadata":
        for key, one in value.items():
            _flatten(f"{name}.{key}", one, made, depth + 1)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for n, one in enumerate(value):
            _flatten(f"{name}.{n}", one, made, depth + 1)
    elif not missing(value):
        made[name] = value


def _value(attributes: Mapping[str, Any], side: str, names: tuple[str, ...]) -> str | None:
    """A span's input or output; of a JSON object the field that holds the words, None where none does."""
    told = attributes.get(f"{side}.value")
    if not isinstance(told, str) or told == REDACTED:
        return None
    kind = attributes.get(f"{side}.mime_type")
    if kind != "application/json" and not told.lstrip().startswith("{"):
        return text(told, f"attributes.{side}.value")
    try:
        data: Any = json.loads(told)
    except (ValueError, RecursionError):
        return None if kind == "application/json" else text(told, f"attributes.{side}.value")
    if isinstance(data, dict):
        data = next((data[name] for name in names if isinstance(data.get(name), str)), None)
    return text(data, f"attributes.{side}.value") if isinstance(data, str) else None


def _documents(attributes: Mapping[str, Any]) -> list[tuple[str | None, str | None, float | None]] | None:
    found: dict[int, dict[str, Any]] = {}
    empty = False
    for name, value in attributes.items():
        match = _DOCUMENT.fullmatch(name)
        if match is not None:
            found.setdefault(int(match[2]), {})[match[3]] = value
        elif name in ("retrieval.documents", "reranker.output_documents"):
            empty = value == []
    if not found:
        return [] if empty else None
    rows = []
    for n in sorted(found):
        where = f"attributes.documents.{n}"
        words = text(found[n].get("content"), f"{where}.content")
        document = identifier(found[n].get("id"), f"{where}.id")
        rows.append((document, None if words == REDACTED else words, score(found[n].get("score"))))
    return rows


def _messages(attributes: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """(the last message of the user, the first of the model)."""
    asked, last = None, -1
    for name, role in attributes.items():
        match = re.fullmatch(r"llm\.input_messages\.(\d{1,5})\.message\.role", name)
        if match is not None and role == "user" and int(match[1]) > last:
            words = attributes.get(f"llm.input_messages.{match[1]}.message.content")
            if isinstance(words, str) and words != REDACTED:
                asked, last = words, int(match[1])
    said = attributes.get("llm.output_messages.0.message.content")
    return text(asked, "attributes"), text(said, "attributes") if isinstance(
        said, str
    ) and said != REDACTED else None


def _metadata(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    told = attributes.get("metadata")
    if isinstance(told, str):
        try:
            told = json.loads(told)
        except (ValueError, RecursionError):
            return {}
    return told if isinstance(told, dict) else {}


def _count(value: object) -> int | None:
    number = score(value)
    return int(number) if number is not None and number >= 0 else None


def _seconds(raw: Mapping[str, Any], which: str) -> float | None:
    nano = raw.get(f"{which}TimeUnixNano")
    if isinstance(nano, str | int) and not isinstance(nano, bool):
        try:
            return int(nano) / 1e9
        except (ValueError, OverflowError):
            return None
    written = raw.get(f"{which}_time")
    if not isinstance(written, str):
        return None
    try:
        return datetime.fromisoformat(written).timestamp()
    except (ValueError, OverflowError):
        return None


def context_of(passage: tuple[str | None, str | None, float | None], rank: int) -> Context:
    """A passage whose text is known."""
    name, words, number = passage
    return Context(name or f"rank-{rank}", words or "", number)

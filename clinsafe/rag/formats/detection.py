"""Which format a row may be of, told by its fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

Format: TypeAlias = Literal["clinsafe", "ragvue", "ragas", "ragchecker", "openinference"]
FORMATS: tuple[Format, ...] = ("clinsafe", "openinference", "ragchecker", "ragas", "ragvue")
"""In the order in which they are tried; RAGVue's fields are the fewest."""
FIELDS: Mapping[Format, str] = {
    "clinsafe": "id, time, tool, outcome",
    "openinference": "attributes and a trace id, or resourceSpans",
    "ragchecker": "query_id, query, gt_answer, response, retrieved_context",
    "ragas": "user_input, response, retrieved_contexts, reference (or question, answer, contexts, ground_truth)",
    "ragvue": "question, answer, context or contexts",
}


def likeness(row: Mapping[str, Any]) -> dict[Format, int]:
    """Format -> 3 typical, 2 likely, 1 possible; formats that it cannot be are left out."""
    found: dict[Format, int] = {}
    if "outcome" in row and ("tool" in row or "schema_version" in row):
        found["clinsafe"] = 3
    elif "schema_version" in row:
        found["clinsafe"] = 1
    if _is_span(row):
        found["openinference"] = 3
    if "retrieved_context" in row or "gt_answer" in row:
        found["ragchecker"] = 3
    if any(name in row for name in ("user_input", "retrieved_contexts", "reference_contexts")):
        found["ragas"] = 3
    elif "question" in row and any(name in row for name in ("ground_truth", "ground_truths")):
        found["ragas"] = 2
    elif "question" in row and "contexts" in row:
        found["ragas"] = 1
    if isinstance(row.get("item"), dict) and "metrics" in row:
        found["ragvue"] = 3
    elif "question" in row:
        likely = ("context" in row or "contexts" in row) and found.get("ragas", 0) < 2
        found["ragvue"] = 2 if likely else 1
    return found


def _is_span(row: Mapping[str, Any]) -> bool:
    if "resourceSpans" in row or "scopeSpans" in row:
        return True
    context = row.get("context")
    traced = any(name in row for name in ("trace_id", "traceId", "context.trace_id")) or (
        isinstance(context, dict) and "trace_id" in context
    )
    return traced and ("attributes" in row or any(str(key).startswith("attributes.") for key in row))


def best(found: Iterable[Mapping[Format, int]]) -> Format | None:
    """The format that most of these rows are likely to be of; of equals, the first in `FORMATS`."""
    total = dict.fromkeys(FORMATS, 0)
    for one in found:
        for name, points in one.items():
            total[name] += points
    name = max(FORMATS, key=lambda name: total[name])
    return name if total[name] else None

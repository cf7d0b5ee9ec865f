"""The spans of one trace as one item, in a buffer that does not grow with the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from clinsafe.rag.formats.fields import Fault
from clinsafe.rag.formats.lines import Row, fingerprint
from clinsafe.rag.formats.peers import Extras
from clinsafe.rag.formats.spans import Span, context_of, spans_of
from clinsafe.rag.item import Item
from clinsafe.rag.trace import BadLine

OPEN = 256  # traces whose spans are waited for
BUFFER = 128_000_000  # bytes of lines that they take together
SPANS = 5_000  # of one trace
STAGES = {"RETRIEVER": "retrieval", "RERANKER": "rerank", "LLM": "generation"}


@dataclass(slots=True)
class _Trace:
    spans: list[Span] = field(default_factory=list)
    size: int = 0


@dataclass(slots=True)
class SpanBuffer:
    """Puts spans together by trace. One is done when the file ends, or when `OPEN` others came after its last span."""

    _open: dict[str, _Trace] = field(default_factory=dict)
    _done: set[int] = field(default_factory=set)
    _size: int = 0

    def add(self, row: Row) -> Iterator[Item | BadLine]:
        """Take a row; items of traces that are done come out."""
        try:
            spans = list(spans_of(row.data, row.number))
        except Fault as fault:
            yield BadLine(row.number, fault.field, fault.why)
            return
        share = row.size // max(1, len(spans))
        for span in spans:
            if fingerprint(span.trace) in self._done:
                yield BadLine(
                    row.number,
                    "trace_id",
                    f"its trace ended long before: more than {OPEN} traces came between",
                )
                continue
            trace = self._open.pop(span.trace, None) or _Trace()
            self._open[span.trace] = trace  # the last touched is last
            if len(trace.spans) >= SPANS:
                yield BadLine(row.number, "trace_id", f"more than {SPANS} spans in one trace")
                continue
            trace.spans.append(span)
            trace.size += share
            self._size += share
        while len(self._open) > OPEN or (self._size > BUFFER and len(self._open) > 1):
            yield self._close(next(iter(self._open)))

    def rest(self) -> Iterator[Item | BadLine]:
        """What is still waited for when the file ends."""
        for name in list(self._open):
            yield self._close(name)

    def _close(self, name: str) -> Item | BadLine:
        trace = self._open.pop(name)
        self._size -= trace.size
        self._done.add(fingerprint(name))
        number = min(span.number for span in trace.spans)
        try:
            return item_of(name, trace.spans)
        except Fault as fault:
            return BadLine(number, fault.field, fault.why)


def item_of(name: str, spans: list[Span]) -> Item:
    """One trace as an item.

    The question and the answer are those of its outermost span that tells them. Passages are the last reranker's, else
    all retrievers' in the order of time; where one has no text (hidden) they are not known.

    Raises:
        Fault: it says nothing of a question, an answer or passages.
    """
    if not any(span.tells for span in spans):
        raise Fault("attributes", "no span of this trace has an input, an output or documents")
    ordered = _outermost_first(spans)
    retrieved = _by_time(span for span in ordered if span.kind == "RETRIEVER" and span.passages is not None)
    reranked = _by_time(span for span in ordered if span.kind == "RERANKER" and span.passages is not None)
    if not retrieved and not reranked:
        retrieved = [span for span in ordered if span.passages is not None]
    found = [one for span in retrieved for one in span.passages or []]
    shown = (reranked[-1].passages or []) if reranked else found
    told = bool(retrieved or reranked)
    models = [span for span in ordered if span.kind == "LLM"]
    meta = {key: value for span in reversed(ordered) for key, value in span.metadata.items()}
    more = Extras({"metadata": meta})
    ranked = found if retrieved else shown
    named = [one[0] for one in ranked if one[0] is not None]
    return Item(
        id=more.id or name,
        question=_question(ordered, models),
        contexts=(
            tuple(context_of(one, rank) for rank, one in enumerate(shown, start=1))
            if told and all(one[1] is not None for one in shown)
            else None
        ),
        ranking=tuple(dict.fromkeys(named)) if told and len(named) == len(ranked) else None,
        answer=_answer(ordered, models),
        references=more.references,
        relevance=more.relevance,
        eligible=more.eligible,
        options=more.options,
        expected=more.expected,
        task=more.task,
        slices=more.slices,
        tokens=_tokens(models),
        milliseconds=_times(ordered),
        source=name,
        line=min(span.number for span in spans),
    )


def _outermost_first(spans: list[Span]) -> list[Span]:
    """Roots first, then as they came: a root has no parent, or one that is not in the file."""
    names = {span.id for span in spans}
    return sorted(spans, key=lambda span: span.parent in names if span.parent else False)


def _by_time(spans: Iterator[Span]) -> list[Span]:
    return sorted(spans, key=lambda span: (span.start is None, span.start or 0.0))


def _question(ordered: list[Span], models: list[Span]) -> str | None:
    inner = [span for span in ordered if span.kind not in ("LLM", "EMBEDDING", "RERANKER")]
    told = next((span.question for span in inner if span.question is not None), None)
    return told if told is not None else next((span.asked for span in models if span.asked is not None), None)


def _answer(ordered: list[Span], models: list[Span]) -> str | None:
    outer = [
        span
        for span in ordered
        if span.kind not in ("RETRIEVER", "RERANKER", "EMBEDDING", "LLM", "TOOL", "GUARDRAIL")
    ]
    told = next((span.answer for span in outer if span.answer is not None), None)
    if told is not None:
        return told
    last = _by_time(iter(models))
    return next((span.said or span.answer for span in reversed(last) if span.said or span.answer), None)


def _tokens(models: list[Span]) -> tuple[int, int] | None:
    """Summed over the model's calls; one inside another is not counted twice; None where one does not tell."""
    names = {span.id for span in models}
    outer = [span for span in models if span.parent not in names or not span.parent]
    prompt = [span.tokens[0] for span in outer]
    completion = [span.tokens[1] for span in outer]
    if not outer or None in prompt or None in completion:
        return None
    return sum(one or 0 for one in prompt), sum(one or 0 for one in completion)


def _times(ordered: list[Span]) -> dict[str, float]:
    """Stage -> milliseconds; a span inside another of its kind is not counted twice."""
    made: dict[str, float] = {}
    if ordered and ordered[0].milliseconds is not None:
        made["total"] = ordered[0].milliseconds
    kinds = {span.id: span.kind for span in ordered}
    for span in ordered:
        stage = STAGES.get(span.kind)
        if stage and span.milliseconds is not None and kinds.get(span.parent) != span.kind:
            made[stage] = round(made.get(stage, 0.0) + span.milliseconds, 3)
    return made

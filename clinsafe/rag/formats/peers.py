"""A row of RAGVue, RAGAS or RAGChecker as an item.

Beside its own fields each may carry ``task``, ``slices``, ``options``, ``expected``, ``relevance``, ``eligible`` and
``references``, at the top or in ``metadata``: the peers drop what they do not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from clinsafe.rag.formats import fields
from clinsafe.rag.formats.fields import Fault, missing
from clinsafe.rag.item import Context, Grade, Item

_RAGAS_METRICS = (
    "faithfulness", "answer_relevancy", "response_relevancy", "context_precision", "context_recall",
    "context_entity_recall", "answer_correctness", "answer_similarity", "semantic_similarity", "factual_correctness",
    "noise_sensitivity", "llm_context_precision_with_reference", "llm_context_precision_without_reference",
)  # fmt: skip
_RAGCHECKER_METRICS = (
    "precision", "recall", "f1", "claim_recall", "context_precision", "context_utilization",
    "noise_sensitivity_in_relevant", "noise_sensitivity_in_irrelevant", "hallucination", "self_knowledge",
    "faithfulness",
)  # fmt: skip
_REFERENCES = ("references", "reference", "ground_truth", "ground_truths", "gt_answer")
_READ = {
    *_REFERENCES,
    "task",
    "task_type",
    "expected",
    "slices",
    "options",
    "choices",
    "relevance",
    "eligible",
}
Reader = Callable[[Mapping[str, Any], int], Item]


def ragvue_item(row: Mapping[str, Any], number: int) -> Item:
    """``question, answer, context`` or ``contexts``, ``metadata``; or a row of a report, with its scores."""
    graded: tuple[Grade, ...] = ()
    if isinstance(row.get("item"), dict):
        graded, row = _ragvue_grades(row.get("metrics")), row["item"]
    field = _given(row, ("contexts", "context"))
    return _item(row, number, "question", "answer", field, graded=graded)


def ragas_item(row: Mapping[str, Any], number: int) -> Item:
    """``user_input, response, retrieved_contexts, reference`` and the names of versions before 0.2.

    ``reference_contexts`` without ids are not read as relevance: passages cut in another way never equal them, and a
    retriever that found the right text would be counted as one that found nothing.
    """
    question = _given(row, ("user_input", "question"))
    if isinstance(row.get(question), list):
        raise Fault("user_input", "is a conversation of several turns; one question with its answer is read")
    return _item(
        row,
        number,
        question,
        _given(row, ("response", "answer")),
        _given(row, ("retrieved_contexts", "contexts")),
        graded=fields.grades("ragas", row, _RAGAS_METRICS),
        ids=fields.identifiers(row.get("retrieved_context_ids"), "retrieved_context_ids"),
        eligible=fields.identifiers(row.get("reference_context_ids"), "reference_context_ids"),
    )


def ragchecker_item(row: Mapping[str, Any], number: int) -> Item:
    """``query_id, query, gt_answer, response, retrieved_context[{doc_id, text}]``, with its scores where it has any."""
    told = row.get("metrics")
    graded = fields.grades("ragchecker", told, _RAGCHECKER_METRICS) if isinstance(told, dict) else ()
    return _item(row, number, "query", "response", "retrieved_context", graded=graded)


PEERS: Mapping[str, Reader] = {"ragvue": ragvue_item, "ragas": ragas_item, "ragchecker": ragchecker_item}


def _given(row: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The name that is used; both with different values are a fault."""
    used = [name for name in names if not missing(row.get(name))]
    if len(used) > 1 and any(row[name] != row[used[0]] for name in used):
        raise Fault(used[1], f"is given beside {used[0]} and says something else")
    return used[0] if used else next((name for name in names if name in row), names[0])


def _item(
    row: Mapping[str, Any],
    number: int,
    question: str,
    answer: str,
    passages: str,
    *,
    graded: tuple[Grade, ...] = (),
    ids: tuple[str, ...] | None = None,
    eligible: tuple[str, ...] | None = None,
) -> Item:
    more = Extras(row)
    shown, ranking = _passages(row, passages, ids)
    relevance = more.relevance
    if relevance is None and eligible is not None and ids is not None:
        relevance = {**dict.fromkeys(ids, 0.0), **dict.fromkeys(eligible, 1.0)}
    return Item(
        id=more.id or f"line-{number}",
        question=fields.text(row.get(question), question),
        contexts=shown,
        ranking=ranking,
        answer=fields.text(row.get(answer), answer),
        references=more.references,
        relevance=relevance,
        eligible=more.eligible if more.eligible is not None else eligible,
        options=more.options,
        expected=more.expected,
        task=more.task,
        slices=more.slices,
        grades=graded,
        source=more.id or "",
        line=number,
    )


def _passages(
    row: Mapping[str, Any], field: str, ids: tuple[str, ...] | None
) -> tuple[tuple[Context, ...] | None, tuple[str, ...] | None]:
    found = fields.contexts(row.get(field), field)
    if found is None:
        return None, ids
    shown, all_named = found
    if ids is not None:
        if len(ids) != len(shown):
            raise Fault("retrieved_context_ids", "must have one id, each another, for each context")
        return tuple(Context(name, one.text, one.score) for name, one in zip(ids, shown, strict=True)), ids
    named = all_named and bool(shown)
    return shown, tuple(dict.fromkeys(one.id for one in shown)) if named else None


class Extras:
    """What a row or its metadata says beside its format's own fields.

    Args:
        row: the row.

    Raises:
        Fault: a field cannot be read.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        told = row.get("metadata")
        meta: Mapping[str, Any] = told if isinstance(told, dict) else {}
        self._row, self._meta = row, meta
        self.id = self._id()
        self.references = self._references()
        self.relevance = fields.relevance(self._get("relevance"), "relevance")
        self.eligible = fields.identifiers(self._get("eligible"), "eligible")
        self.options = fields.options(self._get("options", "choices"), "options")
        self.expected = fields.identifier(self._get("expected"), "expected")
        self.task, said = fields.task(self._get("task", "task_type"))
        meant = self._get("slices")
        rest = {name: value for name, value in meta.items() if name not in _READ}
        self.slices = fields.slices((meant, True), ({"task": said} if said else None, True), (rest, False))

    def _get(self, *names: str) -> Any:
        for source in (self._row, self._meta):
            for name in names:
                if not missing(source.get(name)):
                    return source[name]
        return None

    def _id(self) -> str | None:
        for name in ("query_id", "question_id", "id", "item_id"):
            if not missing(self._row.get(name)):
                return fields.identifier(self._row[name], name)
        for name in ("query_id", "question_id", "id"):
            if not missing(self._meta.get(name)):
                return fields.identifier(self._meta[name], f"metadata.{name}")
        return None

    def _references(self) -> tuple[str, ...]:
        found: list[str] = []
        for source in (self._row, self._meta):
            for name in _REFERENCES:
                found += fields.texts(source.get(name), name)
            if found:
                break
        return tuple(dict.fromkeys(found))


def _ragvue_grades(told: object) -> tuple[Grade, ...]:
    """RAGVue writes a score of 0 where a metric failed; with an error beside it that is no score."""
    made: list[Grade] = []
    for one in told if isinstance(told, list) else []:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            continue
        details = one.get("details")
        failed = bool(one.get("error")) or (isinstance(details, dict) and bool(details.get("error")))
        number = fields.score(one.get("score"))
        fits = not failed and number is not None and 0 <= number <= 1
        name = fields.slice_name(one["name"][: fields.LONGEST_ID])
        made.append(
            Grade("ragvue", name, number if fits else None, "" if fits else "error" if failed else "unscored")
        )
    return tuple(made)

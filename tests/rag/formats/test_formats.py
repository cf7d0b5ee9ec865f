"""Each format by its own fields: what is known, what is known to be empty, what is not known."""

from __future__ import annotations

import json

import pytest

from clinsafe.errors import UsageError
from clinsafe.protocols import MetricKey
from clinsafe.rag.formats import BadLine, read_items
from clinsafe.rag.item import Context, Grade, Item
from clinsafe.rag.trace import Trace


@pytest.fixture
def read(tmp_path):
    def run(*rows, format="auto", name="t.jsonl"):  # noqa: A002
        path = tmp_path / name
        path.write_text("\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")
        return list(read_items(path, format))

    return run


RAGVUE = {"question": "q?", "answer": "a", "context": ["one", "two"]}
RAGAS = {"user_input": "q?", "response": "a", "retrieved_contexts": ["one", "two"], "reference": "r"}
OLD_RAGAS = {"question": "q?", "answer": "a", "contexts": ["one", "two"], "ground_truth": "r"}
RAGCHECKER = {
    "query_id": "7",
    "query": "q?",
    "gt_answer": "r",
    "response": "a",
    "retrieved_context": [{"doc_id": "d1", "text": "one"}, {"doc_id": "d2", "text": "two"}],
}
HEAD = {"id": "t-1", "time": "2026-11-30T12:00:00.000Z", "tool": "0.1.0", "outcome": "answered"}
OWN = {
    **HEAD,
    "query_id": "7",
    "query": {"length": 2, "text": "q?"},
    "answer": {"length": 1, "text": "a"},
    "retrieved": [
        {"id": "d1", "rank": 1, "content": {"length": 3, "text": "one"}},
        {"id": "d2", "rank": 2, "content": {"length": 3, "text": "two"}},
    ],
    "reference": {"length": 1, "text": "r"},
}


def span(kind, id_, parent, trace="t1", **attributes):
    return {
        "name": "x",
        "context": {"trace_id": trace, "span_id": id_},
        "parent_id": parent,
        "attributes": {"openinference.span.kind": kind, **attributes},
    }


SPANS = [
    span(
        "RETRIEVER",
        "s2",
        "s1",
        **{
            "input.value": "q?",
            "retrieval.documents.0.document.content": "one",
            "retrieval.documents.0.document.id": "d1",
            "retrieval.documents.1.document.content": "two",
            "retrieval.documents.1.document.id": 2,
            "retrieval.documents.1.document.score": 0.5,
        },
    ),
    span(
        "LLM",
        "s3",
        "s1",
        **{
            "llm.token_count.prompt": 10,
            "llm.token_count.completion": 2,
            "llm.output_messages.0.message.content": "inner",
        },
    ),
    span(
        "CHAIN",
        "s1",
        None,
        **{"input.value": "q?", "output.value": "a", "metadata": '{"reference": "r", "task": "MCQ"}'},
    ),
]


def otlp(spans):
    def value(one):
        return (
            {"stringValue": one}
            if isinstance(one, str)
            else {"intValue": str(one)}
            if isinstance(one, int)
            else {"doubleValue": one}
        )

    made = [
        {
            "traceId": one["context"]["trace_id"],
            "spanId": one["context"]["span_id"],
            "parentSpanId": one["parent_id"] or "",
            "startTimeUnixNano": "1000000000",
            "endTimeUnixNano": "1250000000",
            "attributes": [{"key": key, "value": value(said)} for key, said in one["attributes"].items()],
        }
        for one in spans
    ]
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": made}]}]}


@pytest.mark.parametrize(
    "rows",
    [[RAGVUE | {"reference": "r"}], [RAGAS], [OLD_RAGAS], [RAGCHECKER], [OWN], SPANS, [otlp(SPANS)]],
    ids=["ragvue", "ragas", "old ragas", "ragchecker", "own", "openinference", "otlp"],
)
def test_every_format_says_the_same_of_the_same_question(read, rows):
    (item,) = read(*rows)
    assert isinstance(item, Item)
    assert (item.question, item.answer, item.references) == ("q?", "a", ("r",))
    assert [one.text for one in item.contexts] == ["one", "two"]
    assert item.line == 1


def test_the_format_is_told_from_the_fields_and_said(tmp_path):
    for rows, name in (
        ([RAGVUE], "ragvue"),
        ([RAGAS], "ragas"),
        ([OLD_RAGAS], "ragas"),
        ([RAGCHECKER], "ragchecker"),
        ([OWN], "clinsafe"),
        (SPANS, "openinference"),
        ([{**RAGVUE, "context": "one"}], "ragvue"),
        ([{"question": "q?", "answer": "a", "contexts": ["one"]}], "ragvue"),
    ):
        path = tmp_path / "t.jsonl"
        path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
        reader = read_items(path)
        assert not any(isinstance(one, BadLine) for one in reader)
        assert reader.detected is not None
        assert (reader.detected.format, reader.detected.asked) == (name, False)
        assert name in str(reader.detected)


def test_a_format_that_is_named_wins(read, tmp_path):
    (item,) = read({"question": "q?", "response": "b", "answer": "b", "contexts": []}, format="ragas")
    assert item.contexts == ()
    (bad,) = read(RAGVUE, format="clinsafe")
    assert isinstance(bad, BadLine)
    with pytest.raises(UsageError, match="ragchecker"):
        read(RAGVUE, format="trulens")
    with pytest.raises(UsageError, match="does not exist"):
        read_items(tmp_path / "none.jsonl")


def test_a_mixed_file_is_refused_line_by_line(read):
    found = read(RAGVUE, {**RAGVUE, "id": 2}, RAGCHECKER, OWN, {"name": "secret"})
    assert [type(one) for one in found] == [Item, Item, BadLine, BadLine, BadLine]
    assert [one.number for one in found[2:]] == [3, 4, 5]
    assert "ragchecker" in found[2].why
    assert "secret" not in "".join(map(str, found[2:]))


# ── what is not known ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("told", "contexts"), [(None, None), ([], ()), (float("nan"), None), ("one", "one"), ([""], "")]
)
def test_unknown_and_empty_contexts_are_two_things(read, told, contexts):
    (item,) = read({"question": "q?", "answer": None, "contexts": told}, format="ragvue")
    expected = (Context("rank-1", contexts),) if isinstance(contexts, str) else contexts
    assert item.contexts == expected
    assert item.answer is None
    assert item.ranking is None


def test_a_missing_answer_is_none_and_an_empty_one_is_an_answer(read):
    missing, empty = read(
        {"question": "q?", "contexts": []}, {"question": "q?", "contexts": [], "answer": ""}
    )
    assert (missing.answer, empty.answer) == (None, "")
    assert (missing.id, empty.id) == ("line-1", "line-2")
    assert missing.references == ()


def test_texts_that_were_not_kept_are_not_known(read):
    bare = {
        **OWN,
        "query": {"length": 2},
        "answer": {"length": 1},
        "reference": {"length": 1},
        "retrieved": [{"id": "d1", "rank": 1, "content": {"length": 3}}],
    }
    (item,) = read(bare)
    assert (item.question, item.answer, item.contexts, item.references) == (None, None, None, ())
    assert item.ranking == ("d1",)


def test_hidden_texts_are_not_known(read):
    hidden = [
        span(
            "RETRIEVER",
            "s2",
            "s1",
            **{
                "input.value": "__REDACTED__",
                "retrieval.documents.0.document.id": "d1",
                "retrieval.documents.0.document.content": "__REDACTED__",
            },
        ),
        span("CHAIN", "s1", None, **{"input.value": "__REDACTED__", "output.value": "a"}),
    ]
    (item,) = read(*hidden)
    assert (item.question, item.contexts, item.ranking, item.answer) == (None, None, ("d1",), "a")


# ── our own ────────────────────────────────────────────────────────────────────────────────────


def test_our_own_trace_in_full(read):
    (item,) = read(
        {
            **OWN,
            "task": "Multiple-Choice",
            "slices": {"intent": "dose"},
            "eligible": ["d1"],
            "relevance": {"d1": 2, "d2": 0},
            "reranked": [{"id": "d2", "rank": 1, "score": 3.0}, {"id": "d1", "rank": 2}],
            "prompt": {"length": 9, "text": "Use: TWO!"},
            "context": [{"id": "d2", "rank": 1, "span": [5, 8]}],
            "references": [{"length": 1, "text": "r"}, {"length": 2, "text": "r2"}],
            "expected": "B",
            "options": {"A": {"length": 1, "text": "x"}, "B": {"length": 1, "text": "y"}},
            "tokens": {"prompt": 5, "completion": 3},
            "timings": {"total": 4.5},
            "grades": [
                {"grader": "j", "metric": "m", "outcome": "scored", "score": 0.5},
                {"grader": "j", "metric": "n", "outcome": "scored", "score": 4},
                {"grader": "j", "metric": "o", "outcome": "refused"},
            ],
        }
    )
    assert item.contexts == (Context("d2", "TWO", 3.0),)  # as it was shown
    assert item.ranking == ("d1", "d2")  # before anything was reranked or cut off
    assert item.references == ("r", "r2")
    assert (item.id, item.source, item.task, item.expected) == ("7", "t-1", "mcq", "B")
    assert item.options == {"A": "x", "B": "y"}
    assert (item.tokens, item.milliseconds, item.relevance) == ((5, 3), {"total": 4.5}, {"d1": 2, "d2": 0})
    assert [one.value for one in item.grades] == [0.5, None, None]


def test_the_new_fields_of_a_trace_are_optional_and_written_again():
    assert "options" not in json.loads(Trace.model_validate(HEAD).line())
    more = {
        "references": [{"length": 1, "text": "r"}],
        "expected": "A",
        "options": {"A": {"length": 1, "text": "x"}},
    }
    trace = Trace.model_validate({**HEAD, **more})
    assert Trace.model_validate_json(trace.line()) == trace


def test_half_an_answer_is_none(read):
    (item,) = read({**OWN, "outcome": "stopped"})
    assert item.answer is None


def test_several_calls_of_a_retriever_come_one_after_the_other(read):
    hits = [
        {"id": "b", "rank": 1, "call": 2},
        {"id": "c", "rank": 2},
        {"id": "a", "rank": 1},
        {"id": "a", "rank": 2, "call": 2},
    ]
    (item,) = read({**OWN, "retrieved": hits})
    assert item.ranking == ("a", "c", "b")


# ── peers ──────────────────────────────────────────────────────────────────────────────────────


def test_ragchecker_keeps_ids_and_scores(read):
    (item,) = read({**RAGCHECKER, "metrics": {"precision": 0.5, "recall": float("nan"), "claim_count": 9}})
    assert item.ranking == ("d1", "d2")
    assert item.grades == (
        Grade("ragchecker", "precision", 0.5),
        Grade("ragchecker", "recall", None, "unscored"),
    )


def test_ragas_ids_are_relevance_and_texts_without_ids_are_not(read):
    (item,) = read(
        {
            **RAGAS,
            "retrieved_context_ids": ["a", 2],
            "reference_context_ids": [2, 3],
            "faithfulness": float("nan"),
        }
    )
    assert item.ranking == ("a", "2")
    assert item.relevance == {"a": 0.0, "2": 1.0, "3": 1.0}
    assert item.eligible == ("2", "3")
    assert item.grades == (Grade("ragas", "faithfulness", None, "unscored"),)
    (item,) = read({**RAGAS, "reference_contexts": ["elsewhere"]})
    assert item.relevance is None


def test_a_ragvue_report_is_read_and_a_failed_metric_is_no_zero(read):
    metrics = [
        {"name": "clarity", "score": 0.75, "details": {}},
        {"name": "strict", "score": 0.0, "details": {"error": "401"}},
    ]
    report = {
        "results": [{"item": {**RAGVUE, "metadata": {"id": 5}}, "metrics": metrics, "aggregate": 0.4}],
        "summary": {},
    }
    (item,) = read(report, name="report.json")
    assert item.id == "5"
    assert item.grades == (Grade("ragvue", "clarity", 0.75), Grade("ragvue", "strict", None, "error"))


# ── OpenInference ──────────────────────────────────────────────────────────────────────────────


def test_a_reranker_is_what_was_shown_and_the_retriever_is_the_ranking(read):
    rerank = span(
        "RERANKER",
        "s4",
        "s1",
        **{
            "reranker.output_documents.0.document.content": "two",
            "reranker.output_documents.0.document.id": 2,
        },
    )
    (item,) = read(*SPANS[:2], rerank, SPANS[2])
    assert [one.id for one in item.contexts] == ["2"]
    assert item.ranking == ("d1", "2")
    assert (item.tokens, item.task, item.id) == ((10, 2), "mcq", "t1")


def test_other_shapes_of_attributes(read):
    nested = {
        "trace_id": "n",
        "span_id": "1",
        "attributes": {
            "openinference": {"span": {"kind": "RETRIEVER"}},
            "input": {"value": "q?"},
            "retrieval": {"documents": [{"document": {"content": "one", "score": 0.5}}]},
        },
    }
    column = {
        "context.trace_id": "c",
        "context.span_id": "1",
        "attributes.openinference.span.kind": "CHAIN",
        "attributes.input.value": '{"question": "q?"}',
        "attributes.output.value": "a",
        "attributes.retrieval.documents": [],
    }
    one, two = read(nested, column)
    assert one.contexts == (Context("rank-1", "one", 0.5),)
    assert one.ranking is None
    assert (two.question, two.answer, two.contexts) == ("q?", "a", ())


def test_times_of_stages(read):
    (item,) = read(otlp(SPANS))
    assert item.milliseconds == {"total": 250.0, "retrieval": 250.0, "generation": 250.0}


def test_spans_of_many_traces_are_put_together_and_the_buffer_is_bounded(read, monkeypatch):
    monkeypatch.setattr("clinsafe.rag.formats.openinference.OPEN", 3)
    near = [span("CHAIN", str(n), None, trace=f"t{n % 3}", **{"input.value": "q?"}) for n in range(9)]
    assert [one.id for one in read(*near)] == ["t0", "t1", "t2"]
    far = [span("CHAIN", str(n), None, trace=f"t{n % 5}", **{"input.value": "q?"}) for n in range(6)]
    found = read(*far)
    assert sum(isinstance(one, Item) for one in found) == 5
    (bad,) = [one for one in found if isinstance(one, BadLine)]
    assert (bad.number, bad.field) == (6, "trace_id")


def test_a_trace_without_words_is_a_bad_line(read):
    bad, good = read(span("EMBEDDING", "1", None, trace="x"), *SPANS)
    assert isinstance(bad, BadLine)
    assert isinstance(good, Item)


# ── extras ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("said", "task"),
    [
        ("MCQ", "mcq"),
        ("multiple_choice", "mcq"),
        ("yes/no", "mcq"),
        ("Information Extraction", "extraction"),
        ("short-answer", "short_answer"),
        ("summary", None),
        (3, None),
    ],
)
def test_the_type_of_task(read, said, task):
    (item,) = read({**RAGVUE, "task_type": said})
    assert item.task == task
    assert item.slices == ({"task": said} if task is None and isinstance(said, str) else {})


def test_slices_fit_a_metric_key_and_tell_nobody(read):
    meta = {
        "Age group": "≥65 yrs",
        "other": "<65",
        "rate": 0.5,
        "ok": True,
        "patient_name": "Jane Roe",
        "mrn": 17,
        "note": "a very long text that is no group at all, but a note",
        "list": [1],
        "bad": "x\ny",
        "": "e",
        "nan": float("nan"),
        "7th": "a=b,c",
    }
    (item,) = read({**RAGVUE, "metadata": meta, "slices": {"ward": "3 b"}})
    assert item.slices == {
        "ward": "3_b",
        "age_group": "ge_65_yrs",
        "other": "lt_65",
        "rate": "0.5",
        "ok": "true",
        "x_7th": "a_eq_b_c",
    }
    for name, value in item.slices.items():
        MetricKey.parse(f"retrieval.all.hit@{name}={value}")


def test_options_and_relevance(read):
    (item,) = read({**RAGVUE, "options": ["x", "y"], "expected": "B", "relevance": {"d": 1}, "eligible": []})
    assert (item.options, item.expected, item.relevance, item.eligible) == (
        {"A": "x", "B": "y"},
        "B",
        {"d": 1.0},
        (),
    )

"""The trace record: old files load for ever, what is not known is absent, a bad line spoils nothing but itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from clinsafe.errors import UsageError
from clinsafe.rag.trace import BadLine, Trace, read_traces

GOLDEN = Path(__file__).parents[1] / "golden" / "trace-1.jsonl"


def head(**more: object) -> dict[str, object]:
    return {"id": "1", "time": "2026-11-30T12:00:00.000Z", "tool": "0.1.0", "outcome": "answered", **more}


def test_the_golden_file_loads_and_is_written_again_as_it_was():
    full, bare = read_traces(GOLDEN)
    assert isinstance(full, Trace)
    assert isinstance(bare, Trace)
    assert [trace.line() for trace in (full, bare)] == GOLDEN.read_text(encoding="utf-8").split("\n")[:2]
    assert full.reranked is not None
    assert [hit.id for hit in full.reranked] == ["a", "b"]
    assert set(Trace.model_fields) - {"error", "expected", "options", "references"} == set(
        json.loads(full.line())
    ), "the golden trace has every field"


def test_what_is_not_known_is_absent_and_what_is_known_to_be_empty_is_there():
    line = json.loads(Trace.model_validate(head(retrieved=[])).line())
    assert set(line) == {"schema_version", *head(), "retrieved"}
    assert line["retrieved"] == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"outcome": "fine"}, "outcome"),
        ({"timings": {"total": -1}}, "timings.total"),
        ({"timings": {"total": float("nan")}}, "timings.total"),
        ({"retrieved": [{"id": "a", "rank": 0}]}, "retrieved.0.rank"),
        ({"cost": {"amount": 1, "currency": "euro"}}, "cost.currency"),
        ({"answr": "x"}, "answr"),
        ({"schema_version": 2}, "schema_version"),
    ],
)
def test_a_bad_line_is_named_with_its_field_and_the_good_ones_are_kept(tmp_path, change, field):
    good = json.dumps(head())
    path = tmp_path / "t.jsonl"
    path.write_text(f"{good}\n{json.dumps(head(**change))}\n\n{good}\n", encoding="utf-8")
    first, bad, last = read_traces(path)
    assert isinstance(first, Trace)
    assert isinstance(last, Trace)
    assert isinstance(bad, BadLine)
    assert (bad.number, bad.field) == (2, field)


@pytest.mark.parametrize(
    "line", [b"{", b"[1]", b"\xff\xfe", b'"secret words"', b"[" * 100_000, b'{"id": "secret']
)
def test_what_is_no_json_object_is_a_bad_line_that_is_not_quoted(tmp_path, line):
    path = tmp_path / "t.jsonl"
    path.write_bytes(json.dumps(head()).encode() + b"\n" + line)
    good, bad = read_traces(path)
    assert isinstance(good, Trace)
    assert isinstance(bad, BadLine)
    assert str(bad).startswith("line 2: ")
    assert "secret" not in str(bad)


def test_a_line_without_end_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("clinsafe.rag.trace.LONGEST", 1000)
    path = tmp_path / "t.jsonl"
    path.write_text("x" * 10_500 + "\n" + json.dumps(head()) + "\n", encoding="utf-8")
    long, good = read_traces(path)
    assert isinstance(long, BadLine)
    assert isinstance(good, Trace)


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        list(read_traces(tmp_path / "none.jsonl"))


def test_a_trace_cannot_be_changed():
    with pytest.raises(ValidationError):
        Trace.model_validate(head()).outcome = "error"  # type: ignore[misc]

"""``judge.json``: read back whole, refused for another judge or other answers, and decided anew each time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clinsafe.errors import ContentError
from clinsafe.rag.auditing.evidence import standing_in
from clinsafe.rag.auditing.figures import key, on_answers, on_quads
from clinsafe.rag.auditing.record import (
    AnswersUsed,
    JudgeAudit,
    JudgeIdentity,
    SuiteUsed,
    load_judge_audit,
    read_judge_audit,
)
from clinsafe.stats import figure_to_json
from tests.rag.auditing.labelled import HAZARDS, knowing, quads, rows, truth

SHA = "ab" * 32
JUDGE = JudgeIdentity(
    name="openai:m",
    metric="adherence",
    threshold=0.7,
    rubric_sha256=SHA,
    settings={"model": "m", "temperature": "0"},
)


def audit() -> JudgeAudit:
    some, cases = rows(), quads()
    oracle = knowing("openai:m", truth(cases, some))
    labels = {row.id: row.kind for row in some}
    figures = {
        **on_quads(oracle, cases, on="written", split="test").figures,
        **on_answers(oracle, some, labels).figures,
    }
    return JudgeAudit(
        tool="0",
        time="2026-12-01T00:00:00+00:00",
        judge=JUDGE,
        instrument="openai:m",
        hazards=HAZARDS,
        answers=AnswersUsed(version="1", sha256=SHA, provisional=False, counts={}),
        suite=SuiteUsed(version="1", tier="written", split="test", cases=len(cases), sha256=SHA),
        figures={name: figure_to_json(figure) for name, figure in figures.items()},
    )


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(audit().dump())
    return data


def write(folder: Path, data: object) -> Path:
    path = folder / "judge.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_what_was_written_is_read_and_still_earns(tmp_path: Path, plain: dict[str, Any]) -> None:
    path = write(tmp_path, plain)
    found = load_judge_audit(path, judge=JUDGE, answers_sha256=SHA)
    assert found == audit()
    assert standing_in(found).earned


def test_the_verdict_is_not_in_the_file_but_in_its_figures(tmp_path: Path, plain: dict[str, Any]) -> None:
    name = key("openai:m", "all", "kappa", "answers")
    figures = {n: f for n, f in plain["figures"].items() if n != name}
    path = write(tmp_path, plain | {"figures": figures})
    assert not standing_in(read_judge_audit(path)).earned
    assert "earned" not in json.dumps(plain)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "openai:n"}, "judge.name"),
        ({"metric": "support"}, "judge.metric"),
        ({"threshold": 0.5}, "judge.threshold"),
        ({"rubric_sha256": "cd" * 32}, "judge.rubric_sha256"),
        ({"settings": {"model": "m", "temperature": "1"}}, "settings.temperature"),
        ({"settings": {"model": "m"}}, "settings.temperature"),
        ({"settings": {"model": "m", "temperature": "0", "seed": "1"}}, "settings.seed"),
    ],
)
def test_the_audit_of_another_judge_is_refused(
    tmp_path: Path, plain: dict[str, Any], change: dict[str, Any], field: str
) -> None:
    used = JudgeIdentity.model_validate(JUDGE.model_dump() | change)
    with pytest.raises(ContentError, match="audit the judge anew") as caught:
        load_judge_audit(write(tmp_path, plain), judge=used, answers_sha256=SHA)
    assert caught.value.field is not None
    assert caught.value.field.endswith(field)


def test_an_audit_on_other_answers_is_refused(tmp_path: Path, plain: dict[str, Any]) -> None:
    with pytest.raises(ContentError) as caught:
        load_judge_audit(write(tmp_path, plain), judge=JUDGE, answers_sha256="cd" * 32)
    assert caught.value.field == "answers.sha256"


RATE = "judge.all.false_support@instrument=openai-m,on=written,split=test"


@pytest.mark.parametrize(
    "figure",
    [
        {},
        {"value": 0.0},
        {"not_measured": "x"},
        {"not_measured": "x", "n": -1},
        {"value": float("nan"), "low": 0, "high": 0, "lower": 0, "upper": 0, "n": 3, "method": "x"},
        {"value": 0.5, "low": 0, "high": 1, "lower": 0.1, "upper": 0.05, "n": 3, "method": "x"},
        {"value": 0.5, "low": 0, "high": 7, "lower": 0.1, "upper": 7, "n": 3, "method": "x"},
        {"value": 0.0, "low": 0, "high": 0.1, "lower": 0, "upper": 0.1, "n": 10, "k": 9, "method": "x"},
        {"value": "high", "low": 0, "high": 1, "lower": 0, "upper": 1, "n": 3, "method": "x"},
        "0.02",
        None,
    ],
)
def test_a_figure_that_cannot_be_one_is_refused(
    tmp_path: Path, plain: dict[str, Any], figure: object
) -> None:
    path = write(tmp_path, plain | {"figures": plain["figures"] | {RATE: figure}})
    with pytest.raises(ContentError) as caught:
        read_judge_audit(path)
    assert str(caught.value.field).startswith("figures")


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 2},
        {"schema_version": None},
        {"figures": {"no key": {"not_measured": "x", "n": 0}}},
        {"released": True},
        {"judge": None},
        {"answers": {"version": "1", "sha256": "short", "provisional": False, "counts": {}}},
        {"suite": {"version": "1", "tier": "both", "split": "test", "cases": 1, "sha256": SHA}},
    ],
)
def test_a_record_that_is_none_is_refused(
    tmp_path: Path, plain: dict[str, Any], change: dict[str, Any]
) -> None:
    with pytest.raises(ContentError):
        read_judge_audit(write(tmp_path, plain | change))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b"\x00" * 40])
def test_a_file_that_is_no_record_is_refused_in_one_line(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "judge.json"
    path.write_bytes(data)
    with pytest.raises(ContentError) as caught:
        read_judge_audit(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(ContentError):
            read_judge_audit(path)

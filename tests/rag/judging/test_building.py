"""Judges by their spec, and grades that came with the traces."""

from __future__ import annotations

import pytest

from clinsafe import plugins
from clinsafe.errors import UsageError
from clinsafe.protocols import Judge, Judgement, JudgeTask
from clinsafe.rag.item import Grade, Item
from clinsafe.workflows.rag_judges import JudgeOptions, build_judge


def graded(*grades, question="Q?", answer="A."):
    return Item("1", question=question, answer=answer, grades=grades)


TASK = JudgeTask("adherence", "Q?", "A.", ["x"])


@pytest.mark.parametrize(
    ("grades", "outcome", "value", "reason"),
    [
        ([Grade("g", "faithfulness", 0.5)], "scored", 0.5, "recorded"),
        ([Grade("g", "adherence", 0.5), Grade("h", "Faithfulness", 0.5)], "scored", 0.5, "recorded"),
        (
            [Grade("g", "adherence", 0.5), Grade("h", "adherence", 0.6)],
            "unscored",
            None,
            "recorded grades disagree",
        ),
        ([Grade("g", "adherence", None, "abstained")], "unscored", None, "abstained"),
        ([Grade("g", "adherence", 5.0)], "error", None, "recorded grade out of range"),
        ([Grade("g", "adherence", float("nan"))], "error", None, "recorded grade out of range"),
        ([Grade("g", "correctness", 1.0)], "unscored", None, "not recorded"),
        ([], "unscored", None, "not recorded"),
    ],
)
def test_a_recorded_grade_is_looked_up_and_never_made_up(grades, outcome, value, reason):
    judge = build_judge("recorded", JudgeOptions(items=[graded(*grades)]))
    assert judge.judge_many([TASK]) == [Judgement(outcome, value, reason)]


def test_one_graders_grades_can_be_chosen():
    items = [graded(Grade("g", "adherence", 0.5), Grade("h", "adherence", 0.6))]
    assert build_judge("recorded:h", JudgeOptions(items=items)).judge(TASK).value == 0.6
    assert build_judge("recorded", JudgeOptions(items=items, grader="g")).judge(TASK).value == 0.5


@pytest.mark.parametrize(
    ("spec", "names"),
    [("gpt", "local"), ("", "local"), ("openai", "openai:MODEL"), ("openai:m", "--judge-url")],
)
def test_what_is_no_judge_is_refused_and_says_what_is_valid(spec, names):
    with pytest.raises(UsageError, match=names):
        build_judge(spec)


def test_an_endpoint_is_built_with_its_rubrics_and_sends_nothing(tmp_path):
    options = JudgeOptions(url="http://127.0.0.1:9/v1", cache=tmp_path / "kept", calls=1, offline=True)
    judge = build_judge("openai:some/model", options)
    assert judge.identity.name == "openai:some/model"
    assert len(judge.identity.files) == 5
    assert judge.plan([TASK]).calls == 1


def test_a_plug_in_wins_and_is_asked_one_by_one_where_it_knows_no_other_way(monkeypatch):
    class Mine:
        def judge(self, task):
            return Judgement("scored", 1.0, task.metric)

    monkeypatch.setattr(plugins, "available", lambda kind: {"mine": None} if kind == "judges" else {})
    monkeypatch.setattr(plugins, "load", lambda kind, name: lambda model, options: Mine())
    judge = build_judge("mine:x")
    assert isinstance(judge, Judge)
    assert [one.reason for one in judge.judge_many([TASK, TASK])] == ["adherence"] * 2
    assert judge.identity.name == "Mine"

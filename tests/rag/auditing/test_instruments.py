"""Adapters: what counts as a support, what as a rejection, and what as nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from clinsafe.protocols import Judgement, JudgeTask
from clinsafe.rag.auditing.claim import Claim, Instrument, verdicts
from clinsafe.rag.auditing.instruments import (
    BatchInstrument,
    JudgeInstrument,
    ScoreInstrument,
    dummies,
    literal,
    one_by_one,
)

ALLERGY = Claim(
    ("It is not true that the patient has a penicillin allergy.",), "the patient has a Penicillin allergy."
)


class Scripted:
    """A judge that reads its values from a list."""

    def __init__(self, *values: Judgement) -> None:
        self.values, self.tasks = list(values), list[JudgeTask]()

    def judge(self, task: JudgeTask, /) -> Judgement:
        self.tasks.append(task)
        return self.values.pop(0)


def scored(value: float | None) -> Judgement:
    return Judgement("scored", value, "")


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        (scored(0.7), True),
        (scored(1.0), True),
        (scored(0.6999), False),
        (scored(0.0), False),
        (scored(None), None),
        (scored(math.nan), None),
        (scored(math.inf), None),
        (scored(85.0), None),
        (scored(-1.5), None),
        (Judgement("unscored", None, "prose"), None),
        (Judgement("refused", None, "policy"), None),
        (Judgement("error", 1.0, "a value beside an error is none"), None),
    ],
)
def test_a_judge_supports_from_its_threshold_on_and_only_when_it_scored(
    said: Judgement, verdict: bool | None
) -> None:
    found = JudgeInstrument("j", one_by_one(Scripted(said))).supports([ALLERGY])
    assert list(found) == [verdict]


def test_a_judge_is_asked_for_its_metric_and_told_no_label() -> None:
    judge = Scripted(scored(1.0), scored(1.0))
    JudgeInstrument("j", one_by_one(judge), "support").supports([ALLERGY, Claim(("x y",), "z", "Is it?")])
    first, second = judge.tasks
    assert first.metric == "support"
    assert first.question
    assert first.reference is None
    assert second.question == "Is it?"
    assert tuple(second.contexts) == ("x y",)


def test_the_best_context_counts_and_an_unknown_one_is_no_rejection() -> None:
    values = {"low": 0.1, "high": 0.9, "none": None, "nan": math.nan}
    instrument = ScoreInstrument("s", lambda _, context: values[context], 0.5)

    def one(*contexts: str) -> bool | None:
        return instrument.supports([Claim(contexts, "x")])[0]

    assert one("low", "high") is True
    assert one("none", "high") is True
    assert one("low", "low") is False
    assert one("low", "none") is None
    assert one("nan") is None
    assert one() is None


def test_literal_match_is_blind_to_negation() -> None:
    assert literal().supports([ALLERGY]) == [True]
    assert literal().supports([Claim(("Some other text",), "the patient")]) == [False]


@pytest.mark.parametrize("answer", ["", " ", "."])
def test_an_answer_without_words_is_no_literal_match(answer: str) -> None:
    assert literal().supports([Claim(("text",), answer)]) == [False]


def test_three_that_know_nothing() -> None:
    assert {one.name: list(one.supports([ALLERGY])) for one in dummies()} == {
        "disabled": [None],
        "always_yes": [True],
        "always_no": [False],
    }
    assert all(isinstance(one, Instrument) for one in dummies())


@pytest.mark.parametrize("found", [[], [True], [True] * 3, [True, 1.0], ["yes", True], [True, 0]])
def test_verdicts_that_cannot_be_tied_to_tasks_are_refused(found: Sequence[bool]) -> None:
    with pytest.raises(ValueError, match="broken"):
        verdicts(BatchInstrument("broken", lambda _: found), [ALLERGY, ALLERGY])

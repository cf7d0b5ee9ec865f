"""Reading blind: what a reader sees gives nothing away, and only a right reader accepts a right case."""

from __future__ import annotations

import pytest

from clinsafe.benchmarks.mining import review
from clinsafe.benchmarks.suite import Case
from clinsafe.errors import UsageError
from tests.tiers import mined


@pytest.fixture(scope="session")
def cases(few: list[Case]) -> list[Case]:
    return [case for case in mined(few) if case.split == "test"]


def label(cases: list[Case], answer) -> list[review.Question]:
    texts = {}
    for case in cases:
        for one, other, ought in review.PAIRS:
            texts[frozenset((getattr(case, one), getattr(case, other)))] = ought
    return [
        one.model_copy(update={"label": answer(texts[frozenset((one.first, one.second))])})
        for one in review.sheet(cases, 0)
    ]


def accepted(cases: list[Case], answers: list[review.Question]) -> int:
    found, _ = review.judge(cases, answers, 0, "reader")
    return sum(one.accepted for one in found.hazards.values())


def test_a_sheet_names_no_case_and_no_role(cases):
    text = "".join(one.model_dump_json() for one in review.sheet(cases, 0))
    assert not any(case.id in text or case.hazard in text for case in cases)
    assert len({one.id for one in review.sheet(cases, 0)}) == 3 * len(cases)


def test_either_sentence_may_come_first(suite):
    sides = {case.a: True for case in suite} | {case.b: False for case in suite}
    shown = [sides[one.first] for one in review.sheet(suite, 0) if {one.first, one.second} <= set(sides)]
    assert 0.35 < sum(shown) / len(shown) < 0.65


def test_a_right_reader_accepts_all_and_others_accept_none(cases):
    assert accepted(cases, label(cases, lambda ought: ought)) == len(cases)
    for wrong in review.LABELS:
        assert accepted(cases, label(cases, lambda _, wrong=wrong: wrong)) == 0


def test_what_was_not_read_whole_does_not_count(cases):
    answers = label(cases, lambda ought: ought)
    answers[0] = answers[0].model_copy(update={"label": None})
    found, wrong = review.judge(cases, answers, 0, "reader")
    assert sum(one.read for one in found.hazards.values()) == len(cases) - 1
    assert not wrong


def test_a_case_that_was_turned_down_says_why(cases):
    answers = label(cases, lambda ought: "neither" if ought == "contradict" else ought)
    _, wrong = review.judge(cases, answers, 0, "reader")
    assert set(wrong) == {case.id for case in cases}
    assert all(why == ["a|b is neither"] for why in wrong.values())


def test_answers_to_another_sample_are_refused(cases):
    with pytest.raises(UsageError, match="no question of this sample"):
        review.judge(cases, review.sheet(cases, 1), 0, "reader")


def test_a_sample_is_the_same_for_everybody(cases):
    one, other = ({case.id for case in review.sample(rows, 1, 0)} for rows in (cases, cases[::-1]))
    assert one == other
    assert len(one) == len({case.hazard for case in cases})


def test_answers_to_another_text_or_by_another_reader_are_refused(cases):
    answers = label(cases, lambda ought: ought)
    changed = [answers[0].model_copy(update={"first": "Something else was said."}), *answers[1:]]
    with pytest.raises(UsageError, match="to another text"):
        review.judge(cases, changed, 0, "reader")
    others = [one.model_copy(update={"reader": "somebody else"}) for one in answers]
    with pytest.raises(UsageError, match="answered by 'somebody else', not by 'reader'"):
        review.judge(cases, others, 0, "reader")


def test_a_difference_of_certainty_is_the_conflict_of_hedging_alone(cases):
    answers = label(cases, lambda ought: "certainty" if ought == "contradict" else ought)
    found, _ = review.judge(cases, answers, 0, "reader")
    assert {hazard: one.accepted == one.read for hazard, one in found.hazards.items()} == {
        hazard: hazard == "hedging" for hazard in found.hazards
    }

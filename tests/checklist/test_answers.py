"""Items 8 to 10: nothing is met because somebody says so without evidence, and nothing by silence."""

from __future__ import annotations

import pytest

from clinsafe.checklist.answers import answer_item, load_answers, template
from clinsafe.checklist.items import answer_by_cross_encoder, load_items
from clinsafe.checklist.ten import answer
from clinsafe.content import Content
from clinsafe.errors import ContentError
from clinsafe.stats import NotMeasured, rate_of

FILE = load_items(Content())
ITEMS = {item.number: item for item in FILE.items}
HAZARDS = ("negation", "numerical", "temporal", "entity_swap", "hedging", "quantifier")


@pytest.fixture
def filled(tmp_path):
    """The template with some of it filled in."""

    def write(change=lambda text: text, *, who='"A. Officer, clinical safety"', day='"2026-11-30"'):
        text = (
            template(FILE)
            .replace('responsible: ""', f"responsible: {who}")
            .replace('date: ""', f"date: {day}")
        )
        path = tmp_path / "answers.yaml"
        path.write_text(change(text), encoding="utf-8")
        return path

    return write


def all_in_place(text):
    return text.replace(
        '{in_place: not assessed, evidence: ""}', "{in_place: yes, evidence: SOP 17}"
    ).replace("n: 0 ", "n: 120 ")


def test_the_template_is_valid_and_answers_nothing(filled):
    answers = load_answers(Content(), filled(who='""', day='""'), FILE)
    assert [answer_item(ITEMS[n], answers).answer for n in (8, 9, 10)] == ["not assessed"] * 3
    assert all(answer_item(ITEMS[n], None).answer == "not assessed" for n in (8, 9, 10))


def test_with_everything_in_place_the_items_are_met_and_say_why(filled):
    content = Content()
    answers = load_answers(content, filled(all_in_place), FILE)
    found = {a.number: a for a in answer(FILE, {}, answers=answers)}
    assert [found[n].answer for n in (8, 9, 10)] == ["met"] * 3
    assert found[8].evidence.startswith("120 queries. ")
    assert "SOP 17" in found[9].evidence
    assert "A. Officer" in found[10].evidence
    assert "answers.yaml" in content.hashes


def test_one_part_that_is_missing_decides(filled):
    one_no = load_answers(
        Content(), filled(lambda t: all_in_place(t).replace("{in_place: yes", "{in_place: no", 1)), FILE
    )
    assert answer_item(ITEMS[8], one_no).answer == "not met"
    one_open = load_answers(
        Content(),
        filled(lambda t: all_in_place(t).replace("{in_place: yes", "{in_place: not assessed", 1)),
        FILE,
    )
    assert answer_item(ITEMS[8], one_open).answer == "not assessed"


def test_ninety_nine_queries_are_not_a_hundred(filled):
    answers = load_answers(Content(), filled(lambda t: all_in_place(t).replace("n: 120", "n: 99")), FILE)
    found = answer_item(ITEMS[8], answers)
    assert found.answer == "not assessed"
    assert "99 queries; the item asks for 100" in found.evidence


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: all_in_place(t).replace("SOP 17", '""'), "needs evidence"),
        (lambda t: t.replace("item: 9", "item: 3"), "3 is not answered here; valid: 8, 9, 10"),
        (lambda t: t.replace("item: 9", "item: 8"), "answered twice"),
        (lambda t: t.replace("sources:", "source:"), "exactly these parts: confidence, conflicts"),
        (
            lambda t: t.replace("in_place: not assessed", "in_place: maybe", 1),
            "'yes', 'no' or 'not assessed'",
        ),
        (lambda t: t.replace("2026-11-30", "30.11.2026"), "Invalid isoformat"),
        (lambda t: t.replace("2026-11-30", "2126-11-30"), "dated in the future"),
        (lambda t: t + "extra: 1\n", "unknown field"),
    ],
)
def test_a_faulty_file_is_one_line_with_its_place(filled, change, words):
    with pytest.raises(ContentError, match=words) as caught:
        load_answers(Content(), filled(change), FILE)
    assert "answers.yaml" in str(caught.value)


@pytest.mark.parametrize(("who", "day"), [('""', '"2026-11-30"'), ('"A. Officer"', '""')])
def test_answers_without_a_name_or_a_day_are_refused(filled, who, day):
    with pytest.raises(ContentError, match="responsible person and a date"):
        load_answers(Content(), filled(all_in_place, who=who, day=day), FILE)


def reranked(k, n=60, **others):
    return {h: others.get(h, rate_of(k, n)) for h in HAZARDS}


@pytest.mark.parametrize(
    ("failures", "expected"),
    [
        ({}, "not assessed"),
        (reranked(3), "met"),
        (reranked(60), "not met"),
        (reranked(3, temporal=rate_of(50, 60)), "not met"),
        (reranked(30), "not assessed"),
        (reranked(3, temporal=NotMeasured("NaN")), "not assessed"),
    ],
)
def test_item_7_asks_every_hazard_and_gives_no_benefit_of_the_doubt(failures, expected):
    assert answer_by_cross_encoder(ITEMS[7], failures, "a reranker").answer == expected


def test_items_1_to_6_are_not_answered_by_a_reranker():
    found = answer(FILE, {}, kind="cross-encoder")
    assert {a.answer for a in found[:6]} == {"not assessed"}
    assert "embedding model" in found[0].evidence


def test_a_reranker_that_calls_everything_unlike_is_not_validated():
    """It never fails by the limit, and is inverted in every case: ties count against it."""
    unlike = answer_by_cross_encoder(ITEMS[7], reranked(0), "zeros", reranked(60))
    assert unlike.answer == "not met"
    assert answer_by_cross_encoder(ITEMS[7], reranked(0), "good", reranked(2)).answer == "met"


def test_items_are_answered_by_their_own_limit_whatever_the_protocol():
    figures = {
        "suite.negation.failure@protocol=items": rate_of(56, 56),
        "suite.negation.failure@protocol=lax": rate_of(0, 56),
    }
    found = answer(FILE, figures)[0]
    assert found.answer == "not met"
    assert "above 0.85" in found.evidence

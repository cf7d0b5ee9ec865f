"""All six filters together: what holds for every text, and what no useless filter could pass."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.benchmarks.filters import figures, judge_all, suite_pairs
from clinsafe.benchmarks.suite import load_suite
from clinsafe.content import Content
from clinsafe.mitigations.dummies import Constant
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.stack import Stack
from clinsafe.workflows.guard import build_stack, filter_names
from clinsafe.workflows.guard_bench import Recorder, silent

CASES = load_suite(Content(), split="dev")
TEXTS = [text for case in CASES[::4] for text in (case.a, case.b, case.a_same)]
TEXT = st.sampled_from(TEXTS)


@pytest.fixture(scope="session")
def stack():
    return build_stack(
        seconds=0
    )  # with the installed pipeline: a filter that asks for a parse is narrowed for real


def dev_figures(stack, cases=CASES):
    return figures(judge_all(suite_pairs(cases), Recorder(stack), silent), "dev")


def test_the_built_in_filters_are_one_for_each_hazard(stack):
    names = ["negation", "numerical", "temporal", "entity_swap", "hedging", "quantifier"]
    assert list(stack.filters) == names == list(filter_names())[:6]
    assert [one.hazard for one in stack.filters.values()] == names


def test_the_dev_split_is_told_apart_and_no_useless_stack_would_be_near(stack):
    """A regression floor on cases the filters were developed on; it claims nothing. Figures are claimed on `test`."""
    found = dev_figures(stack)
    for hazard in stack.filters:
        assert found[f"dev.{hazard}.recall@split=dev"].value >= 0.85, hazard
        assert found[f"dev.{hazard}.false_alarm@split=dev"].value <= 0.12, hazard
        assert found[f"dev.{hazard}.own_recall@split=dev"].value >= 0.7, hazard
    for useless in (
        Stack({}),
        Stack({"x": Constant(True)}, seconds=0),
        Stack({"x": Constant(False)}, seconds=0),
    ):
        other = dev_figures(useless, CASES[:6])
        recall, alarms = other["dev.all.recall@split=dev"].value, other["dev.all.false_alarm@split=dev"].value
        assert recall < 0.85 or alarms > 0.12


@pytest.mark.parametrize(
    "gone", ["negation", "numerical", "temporal", "entity_swap", "hedging", "quantifier"]
)
def test_without_its_filter_a_hazard_is_mostly_missed(stack, gone):
    cases = [case for case in CASES if case.hazard == gone]
    others = Stack(
        {name: one for name, one in stack.filters.items() if name != gone}, stack.reader, seconds=0
    )
    found = dev_figures(others, cases)
    assert found[f"dev.{gone}.recall@split=dev"].value <= 0.6


@settings(max_examples=60)
@given(TEXT)
def test_no_text_conflicts_with_itself(stack, text):
    facts = stack.read(text)
    assert stack.compare(facts, facts).conflicts == ()


@settings(max_examples=60)
@given(TEXT, TEXT)
def test_facts_through_json_and_a_narrowed_reading_give_the_same_findings(stack, query, passage):
    asked, facts = stack.read(query), stack.read(passage)
    whole = stack.compare(asked, facts)
    stored = TextFacts.from_json(json.loads(json.dumps(facts.to_json())))
    assert stack.compare(asked, stored) == whole
    assert stack.check(query, [passage]) == [whole]


@settings(max_examples=60)
@given(TEXT, TEXT)
def test_every_span_lies_in_its_text_and_every_finding_explains_itself(stack, query, passage):
    for finding in stack.compare(stack.read(query), stack.read(passage)).findings:
        for text, span in ((query, finding.query_span), (passage, finding.passage_span)):
            assert 0 <= span.start < span.end <= len(text)
            assert text[span.start : span.end].strip()
        assert finding.sentence.endswith(".")
        assert finding.rule
        assert 0 <= finding.confidence <= 1


ODD = (
    "", " ", "\n\n", "\x00\x07", "🤕 no 🤒 ❌", "لا حساسية للبنسلين", "患者は胸痛を否定", "No\u202e pain\u202c",
    "(((((", "1/2/3/4/5", "?" * 50, "no " * 200, "5 mg " * 200, "before after " * 200, "." * 300, "A" * 500, "0" * 500,
)  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
def test_odd_text_is_read_and_compared_by_every_filter(stack, odd):
    facts, usual = (
        stack.read(odd),
        stack.read("The patient has no penicillin allergy and takes warfarin 5 mg daily."),
    )
    assert facts.unchecked == {}
    assert stack.compare(usual, facts).unchecked == stack.compare(facts, usual).unchecked == {}


@settings(max_examples=150)
@given(st.text(max_size=120), st.text(max_size=120))
def test_any_text_at_all_is_read_and_compared_by_every_filter(stack, one, other):
    a, b = stack.read(one), stack.read(other)
    assert a.unchecked == b.unchecked == stack.compare(a, b).unchecked == {}


MESS = """
no not without denies before after all none most 5 mg 50 mg 120/80 < > , ; . ( ) / warfarin causes fever possible
confirmed history of mother stop daily 3 of 10 % never unless but
"""
WORDS = st.sampled_from(MESS.split())


@settings(max_examples=150)
@given(st.lists(WORDS, max_size=40), st.lists(WORDS, max_size=40))
def test_any_mess_of_clinical_words_is_read_and_compared(stack, one, other):
    a, b = stack.read(" ".join(one)), stack.read(" ".join(other))
    assert a.unchecked == b.unchecked == stack.compare(a, b).unchecked == {}


def test_a_question_is_never_in_conflict_over_what_it_asks(stack):
    queries = (
        "Does the patient have a penicillin allergy?",
        "is the pneumonia confirmed?",
        "Do all patients respond?",
    )
    passages = (
        "She has no penicillin allergy.",
        "Penicillin allergy is confirmed.",
        "Pneumonia is suspected.",
        "No patients responded.",
        "Most patients responded.",
    )
    for query in queries:
        for passage in passages:
            assert not stack.compare(stack.read(query), stack.read(passage)).conflict, (query, passage)


def test_a_number_that_a_question_presupposes_is_compared(stack):
    asked = stack.read("Is metformin 5 g twice daily safe?")
    assert stack.compare(asked, stack.read("Metformin 500 mg twice daily is the usual dose.")).conflict

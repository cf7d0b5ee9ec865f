"""The temporal filter on annotated pairs, and what must hold for any text."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.content import LOADER
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.filters.temporal import load
from clinsafe.mitigations.order import compare
from clinsafe.mitigations.order.finder import Finder
from clinsafe.mitigations.order.pack import TemporalPack
from clinsafe.mitigations.order.scan import Scan
from clinsafe.mitigations.pack import load_pack
from clinsafe.mitigations.stack import Stack
from clinsafe.text import Reader
from tests.mitigations.packs import Counting

CASES = yaml.load(
    (Path(__file__).parents[1] / "cases" / "temporal.yaml").read_text(encoding="utf-8"), Loader=LOADER
)
PIECES = (
    "surgery heparin before after until stopped continue not no then first warfarin fever rash , . ; and pre - op 3 "
    "days ago since history of resolved still when had already is was with on metformin ? CT"
)
WORDS = st.sampled_from(PIECES.split())
TEXTS = st.lists(WORDS, max_size=30).map(" ".join)


@pytest.fixture(scope="module")
def temporal():
    return load()


@pytest.fixture(scope="module")
def reader():
    return Reader(model="")


@pytest.fixture(scope="module")
def findings(temporal, reader):
    def between(query, passage):
        return temporal.compare(temporal.read(reader.read(query)), temporal.read(reader.read(passage)))

    return between


def conflicts(found):
    return [finding for finding in found if finding.verdict == "conflict"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['query'][:40]}|{case['passage'][:40]}")
def test_cases(case, findings):
    for query, passage in ((case["query"], case["passage"]), (case["passage"], case["query"])):
        found = conflicts(findings(query, passage))
        assert bool(found) == (case["verdict"] == "conflict"), [(f.rule, f.sentence) for f in found]


def test_every_rule_is_read_in_some_case(temporal, reader):
    pack = load_pack(None, "temporal", TemporalPack)
    rules = {rule.id for rule in pack.order if rule.kind not in ("none", "with")}
    rules |= {rule.id for rule in pack.ranks}
    rules |= {rule.id for rule in pack.status if rule.state != "none"}
    read = {
        fact.rule
        for case in CASES
        for text in (case["query"], case["passage"])
        for fact in temporal.read(reader.read(text))
    }
    assert rules - read == set()


def test_a_finding_says_what_and_where(findings):
    query = "The patient’s blood cultures were drawn before vancomycin."
    passage = "Note: vancomycin was given, and blood cultures were drawn after vancomycin."
    (found,) = conflicts(findings(query, passage))
    assert query[found.query_span.start : found.query_span.end] == "before"
    assert passage[found.passage_span.start : found.passage_span.end] == "after"
    assert found.query_normal == "blood cultures before vancomycin"
    assert found.passage_normal == "vancomycin before blood cultures"
    assert (found.hazard, found.severity, found.kind) == ("temporal", "high", "contradiction")
    assert found.rule == "order.after"
    assert found.cue == "after"
    assert found.sentence.endswith(".")


def test_a_present_claim_against_a_past_mention_is_non_support(findings):
    (found,) = conflicts(findings("She has gallstones.", "Gallstones in childhood, resolved years ago.")[:1])
    assert found.kind == "non_support"
    assert found.query_normal == "gallstones: current"
    assert found.passage_normal == "Gallstones: past"
    assert found.confidence < 0.7


def test_agreement_is_reported(findings):
    found = findings("Metformin was stopped.", "Metformin was discontinued.")
    assert [f.verdict for f in found] == ["compatible"]
    assert found[0].severity == "note"


def test_a_text_that_says_both_does_not_conflict(findings):
    passage = "Metformin was stopped on admission. Metformin was restarted on day 3."
    assert not conflicts(findings("Metformin was stopped on admission.", passage))


def test_a_relatives_state_is_not_the_patients(findings):
    assert not conflicts(findings("She is a current smoker.", "Family history:\nfather: former smoker."))


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        ("She has stopped smoking.", "She has stopped smoking and her husband still smokes."),
        ("She has stopped smoking.", "The patient's father still smokes."),
        ("Chemotherapy was given before surgery.", "Her mother had surgery before chemotherapy."),
        ("Her aunt had chemotherapy before surgery.", "Her mother had surgery before chemotherapy."),
    ],
)
def test_a_relative_named_in_the_sentence_is_not_the_patient(query, passage, findings):
    assert not conflicts(findings(query, passage))


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        ("She has stopped smoking.", "Her husband says she still smokes."),
        ("She has stopped smoking.", "Her husband works and she still smokes."),
        ("The ambulance came before the collapse.", "His wife called the ambulance after the collapse."),
        ("Her mother had chemotherapy before surgery.", "Her mum had surgery before chemotherapy."),
        ("His wife has stopped smoking.", "His wife still smokes."),
    ],
)
def test_what_a_relative_tells_or_does_and_the_same_relative_are_compared(query, passage, findings):
    assert conflicts(findings(query, passage))


BEYOND = {  # text -> what contradicts a part of it that is beyond what is read
    "states": (", ".join(f"x{i}x stopped" for i in range(80)), "x79x was continued."),
    "orders": (
        ", ".join(f"x{i}x before y{i}y" for i in range(75)),
        "y74y before x74x.",
    ),
    "points": (
        ", ".join(f"week {i} x{i}x" for i in range(1, 16)),
        "Week 2 x15x, week 3 x14x.",
    ),
    "prefixes": (", ".join(f"pre-dialysis x{i}x" for i in range(25)), "Post-dialysis x24x."),
    "steps": (
        " ".join(f"x{i}x," for i in range(20)) + " in that order.",
        "x19x, x18x, in that order.",
    ),
}


@pytest.mark.parametrize("name", BEYOND)
def test_what_is_beyond_what_is_read_is_unchecked_and_never_compatible(name, temporal, reader):
    stack = Stack({"temporal": temporal}, reader, seconds=0)
    text, against = BEYOND[name]
    for one, other in ((text, against), (against, text)):
        found = stack.compare(stack.read(one), stack.read(other))
        assert found.unchecked == {"temporal": "compare: failed with TooMuchToCompare"}
    assert stack.compare(
        stack.read(text), stack.read("Metformin was stopped.")
    ).safe  # not about what is unread


def test_a_conflict_in_what_is_read_is_told_even_so(temporal, reader):
    stack = Stack({"temporal": temporal}, reader, seconds=0)
    text, _ = BEYOND["states"]
    found = stack.compare(stack.read(text), stack.read("x3x was continued."))
    assert found.conflict
    assert not found.unchecked


def test_a_step_does_not_follow_on_a_relatives(findings):
    query = "Family history:\nMother: chemotherapy.\nPlan:\nThen surgery."
    assert not conflicts(findings(query, "Surgery, then chemotherapy."))


def test_facts_survive_json(temporal, reader):
    text = (
        "Pre-op: metformin stopped 2 days before surgery; history of pneumonia. CT first, then LP on day 3."
    )
    facts = TextFacts({"temporal": tuple(temporal.read(reader.read(text)))})
    assert len(facts.by_filter["temporal"]) >= 4
    assert TextFacts.from_json(json.loads(json.dumps(facts.to_json()))) == facts
    assert all(fact.normal["keys"] for fact in facts.by_filter["temporal"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "😀 before 😀",
        "لم يتم before بعد العملية",
        "not",
        "before",
        "after.",
        "until , then",
        "pre-",
        "?",
        "→ →",
    ],
)
def test_odd_texts_do_no_harm(text, temporal, reader):
    facts = temporal.read(reader.read(text))
    assert not conflicts(temporal.compare(facts, facts))


@pytest.mark.parametrize(
    "piece",
    [
        "1234567890",
        "Na 140 K 4.2\n",
        "([{",
        "a",
        "before after until ",
        "not stop ",
        "pre-op ",
        "x, ",
        "then a ",
    ],
)
def test_reading_is_linear(piece, temporal, reader, monkeypatch):
    calls = []
    for name in ("bare", "keyset", "soft", "segment", "marks", "negated"):
        count_calls(monkeypatch, Scan, name, calls)
    count_calls(monkeypatch, Finder, "_step", calls)

    def work(size):
        reading = reader.read((piece * size)[: size * 4])
        calls.clear()
        temporal.read(reading)
        return len(calls)

    small, large = work(1250), work(5000)
    assert large <= 6 * small + 500


def count_calls(monkeypatch, owner, name, calls):
    inner = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *args, **named: calls.append(name) or inner(*args, **named))


def test_facts_need_no_parse(temporal, reader):
    parser = Counting()
    text = "Cultures were drawn before vancomycin. Ramipril was stopped."
    reading = dataclasses.replace(reader.read(text), parser=parser)
    read = temporal.read(reading)
    assert len(read) > 1
    assert parser.asked == []
    assert list(read) == list(temporal.read(reading.only([])))


def test_repeated_facts_are_compared_once(temporal, reader, monkeypatch):
    calls = []
    count_calls(monkeypatch, compare, "_pair", calls)
    one = temporal.read(reader.read("Metformin was stopped. " * 40))
    other = temporal.read(reader.read("Metformin was continued. " * 40))
    assert len(one) == len(other) == 40
    assert conflicts(temporal.compare(one, other))
    assert len(calls) <= 4  # each side has the last state and those before it


def test_a_number_beyond_all_measure_is_no_span(temporal, reader):
    facts = temporal.read(reader.read(f"Cultures were drawn {'9' * 400} days before vancomycin."))
    assert [fact.normal["hours"] for fact in facts if fact.normal["type"] == "order"] == [0.0]


@settings(max_examples=80, deadline=None)
@given(TEXTS)
def test_no_text_contradicts_itself(temporal, reader, text):
    facts = temporal.read(reader.read(text))
    assert not conflicts(temporal.compare(facts, facts))
    for fact in facts:
        assert 0 <= fact.span.start < fact.span.end <= len(text)


@settings(max_examples=80, deadline=None)
@given(TEXTS, TEXTS)
def test_verdicts_do_not_depend_on_the_side(temporal, reader, one, other):
    a, b = temporal.read(reader.read(one)), temporal.read(reader.read(other))
    assert len(conflicts(temporal.compare(a, b))) == len(conflicts(temporal.compare(b, a)))


def test_it_runs_in_the_stack(temporal, reader):
    stack = Stack({"temporal": temporal}, reader)
    flagged, quiet = stack.check(
        "Anti-D was given before the sample.",
        ["The sample came before anti-D.", "Anti-D was given before the sample."],
    )
    assert flagged.conflict
    assert quiet.safe


def test_two_drugs_of_a_class_are_not_one_thing(findings):
    assert conflicts(findings("Antibiotics were stopped.", "Meropenem was continued."))
    assert not findings("Amoxicillin was stopped.", "Meropenem was continued.")


def test_only_the_latest_state_counts_against_now(findings):
    passage = "Warfarin was held on admission. Warfarin was restarted on day 3."
    (found,) = conflicts(findings("Warfarin is still being withheld.", passage))
    assert found.passage_normal == "Warfarin: given or continued"
    assert not conflicts(findings("Warfarin was withheld.", passage))


def test_new_and_long_standing_are_told_in_words(findings):
    (found,) = conflicts(findings("New atrial fibrillation.", "Long-standing atrial fibrillation."))
    assert (found.query_normal, found.passage_normal) == (
        "atrial fibrillation: new",
        "atrial fibrillation: long-standing",
    )

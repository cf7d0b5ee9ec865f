"""The temporal filter on annotated pairs, and what must hold for any text."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.content import LOADER, Content, packaged_root
from clinsafe.errors import ContentError
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.filters.temporal import load
from clinsafe.mitigations.order.finder import Finder
from clinsafe.mitigations.order.pack import TemporalPack
from clinsafe.mitigations.pack import load_pack
from clinsafe.mitigations.stack import Stack
from clinsafe.text import Reader

CASES = yaml.load(
    (Path(__file__).parents[1] / "cases" / "temporal.yaml").read_text(encoding="utf-8"), Loader=LOADER
)
PIECES = (
    "surgery heparin before after until stopped continue not no then first warfarin fever rash , . ; and pre - op 3 "
    "days ago since history of resolved still when had already is was with on metformin ? CT"
)
LATER = (  # fields of the pack that its first schema lacked
    "forms",
    "needless",
    "headings",
    "not_adverbs",
    "event_kinds",
    "prefixes.days",
    "prefixes.phases",
    "timeline.days",
    "grammar.past",
    "grammar.reports",
    "status.onset",
    "status.now",
    "status.going",
    "status.first",
    "status.timed",
    "status.past",
    "status.opens",
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
def test_reading_is_linear(piece, temporal, reader):
    def seconds(size):
        reading = reader.read((piece * size)[: size * 4])
        start = time.process_time()
        temporal.read(reading)
        return time.process_time() - start

    seconds(500)
    small, large = min(seconds(1250) for _ in range(2)), min(seconds(5000) for _ in range(2))
    assert large < max(0.1, 12 * small)


def test_without_a_parse_nothing_changes(temporal):
    reader = Reader(model="")
    reading = reader.read("Cultures were drawn before vancomycin. Ramipril was stopped.")
    assert list(temporal.read(reading)) == list(temporal.read(reading.only([])))


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


class TestPack:
    @pytest.fixture
    def overlay(self, tmp_path):
        (tmp_path / "mitigations").mkdir()
        path = tmp_path / "mitigations" / "temporal.yaml"
        shutil.copy(packaged_root() / "mitigations" / "temporal.yaml", path)
        return path

    def test_a_cue_of_ones_own_is_read(self, overlay, reader):
        query, passage = "Cultures were drawn antecedently unto vancomycin.", "Cultures followed vancomycin."
        overlay.write_text(
            overlay.read_text(encoding="utf-8").replace(
                "      - prior to\n", "      - antecedently unto\n", 1
            ),
            encoding="utf-8",
        )
        own = load(Content(overlay.parents[1]))
        assert conflicts(own.compare(own.read(reader.read(query)), own.read(reader.read(passage))))

    def test_a_pack_of_an_older_schema_is_still_read(self, overlay, reader):
        pack = yaml.load(overlay.read_text(encoding="utf-8"), Loader=LOADER)
        for path in LATER:
            *groups, field = path.split(".")
            for rows in [pack] if not groups else [pack[groups[0]]]:
                for row in rows if isinstance(rows, list) else [rows]:
                    row.pop(field, None)
        overlay.write_text(yaml.safe_dump(pack), encoding="utf-8")
        own = load(Content(overlay.parents[1]))
        query, passage = "Cultures were drawn before vancomycin.", "Cultures were drawn after vancomycin."
        assert conflicts(own.compare(own.read(reader.read(query)), own.read(reader.read(passage))))

    def test_without_a_list_of_exceptions_no_word_is_an_adverb(self, overlay, reader):
        pack = yaml.load(overlay.read_text(encoding="utf-8"), Loader=LOADER)
        del pack["not_adverbs"]
        overlay.write_text(yaml.safe_dump(pack), encoding="utf-8")
        own = load(Content(overlay.parents[1]))
        (fact, *_) = own.read(reader.read("Anomaly scan before amniocentesis."))
        assert any(key.startswith("anomal") for key in fact.normal["early_keys"])

    @pytest.mark.parametrize(
        ("old", "new", "fault"),
        [
            ("      - prior to\n", "      - pre-op\n", "write them apart"),
            ("      - prior to\n", "      - .. to\n", "begin with a word"),
            ("kind: until", "kind: sometimes", "kind"),
            ("id: order.until", "id: order.before", "given twice"),
        ],
    )
    def test_faults_are_told_with_file_and_line(self, overlay, old, new, fault):
        overlay.write_text(overlay.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
        with pytest.raises(ContentError, match=fault) as error:
            load(Content(overlay.parents[1]))
        assert f"{overlay}:" in str(error.value)
        assert "\n" not in str(error.value)


class TestFinder:
    @pytest.fixture
    def find(self, reader):
        def found(tables, text):
            matches = Finder(tables).find(reader.read(text).sentences[0].tokens)
            return {name: [(m.start, m.end, m.value) for m in rows] for name, rows in matches.items()}

        return found

    def test_the_longest_wins_and_tables_do_not_disturb_each_other(self, find):
        tables = {"one": [("before", 1), ("before the scan", 2)], "two": [("the", 3)]}
        assert find(tables, "before the scan, before lunch") == {
            "one": [(0, 3, 2), (4, 5, 1)],
            "two": [(1, 2, 3)],
        }

    def test_lemmas_alternatives_and_gaps(self, find):
        tables = {"one": [("~stop .. drug|medicine", 1)]}
        assert find(tables, "stopping his old medicine")["one"] == [(0, 4, 1)]
        assert find(tables, "stopped; the drug")["one"] == []
        assert find(tables, "stopped one two three four drug")["one"] == []

    def test_of_two_alike_the_first_wins(self, find):
        assert find({"one": [("then", 1), ("then", 2)]}, "then")["one"] == [(0, 1, 1)]

"""The entity-swap filter on annotated pairs, what it reads in single sentences, and what must hold for any text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.content import LOADER
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.filters.entity_swap import EntitySwapFilter, load
from clinsafe.mitigations.pack import load_pack
from clinsafe.mitigations.roles.model import Pack
from clinsafe.mitigations.roles.order import exchange
from clinsafe.mitigations.stack import Stack
from clinsafe.text import Reader

CASES = yaml.load(
    (Path(__file__).parents[1] / "cases" / "entity_swap.yaml").read_text(encoding="utf-8"), Loader=LOADER
)
PIECES = (
    "amoxicillin warfarin rash delirium mother patient caused by because of treats for avoid give not no and , . ; ( ) "
    "who that which it former latter whereas than rather positive negative raised normal on from to ? - : 5 mg"
)
TEXTS = st.lists(st.sampled_from(PIECES.split()), max_size=30).map(" ".join)


@pytest.fixture(scope="module")
def roles():
    return load()


@pytest.fixture(scope="module")
def reader():
    return Reader(model="")


@pytest.fixture(scope="module")
def findings(roles, reader):
    def between(query, passage):
        return roles.compare(roles.read(reader.read(query)), roles.read(reader.read(passage)))

    return between


def conflicts(found):
    return [finding for finding in found if finding.verdict == "conflict"]


def relations(filter_, reader, text):
    """(relation, source, target, denied) of a text."""
    facts = [fact.normal for fact in filter_.read(reader.read(text)) if fact.normal["form"] == "edge"]
    return {(one["relation"], one["source"].lower(), one["target"].lower(), one["negative"]) for one in facts}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['query'][:40]}|{case['passage'][:40]}")
def test_cases(case, findings):
    for query, passage in ((case["query"], case["passage"]), (case["passage"], case["query"])):
        found = conflicts(findings(query, passage))
        assert bool(found) == (case["verdict"] == "conflict"), [(f.rule, f.sentence) for f in found]


@pytest.mark.parametrize("kind", sorted({case["kind"] for case in CASES}))
def test_each_kind_has_both_verdicts(kind):
    assert {case["verdict"] for case in CASES if case["kind"] == kind} == {"conflict", "safe"}


@pytest.mark.parametrize(
    ("text", "relation", "source", "target"),
    [
        ("Hypoxia provoked the seizure.", "cause", "hypoxia", "seizure"),
        ("The seizure was in this case provoked by hypoxia.", "cause", "hypoxia", "seizure"),
        ("The seizure that hypoxia had provoked was brief.", "cause", "hypoxia", "seizure"),
        ("The cause of the seizure was hypoxia.", "cause", "hypoxia", "seizure"),
        ("Because of hypoxia she had a seizure.", "cause", "hypoxia", "seizure"),
        ("Hypoxia-induced seizure.", "cause", "hypoxia", "seizure"),
        ("Effect of hypoxia on the seizure.", "cause", "hypoxia", "seizure"),
        ("He was given colchicine because of gout.", "treat", "colchicine", "gout"),
        ("Colchicine was stopped because of vomiting.", "contraindicate", "colchicine", "vomiting"),
        ("Topiramate 50 mg for migraine.", "treat", "topiramate", "migraine"),
        ("Migraine was treated with topiramate.", "treat", "topiramate", "migraine"),
        ("Asthma is a contraindication to timolol.", "contraindicate", "timolol", "asthma"),
        ("Timolol must not be given in asthma.", "contraindicate", "timolol", "asthma"),
        ("Rifampicin lowered the level of apixaban.", "lower", "rifampicin", "apixaban"),
        ("Inhibition of simvastatin by clarithromycin.", "lower", "clarithromycin", "simvastatin"),
        ("Warfarin was replaced by apixaban.", "switch", "warfarin", "apixaban"),
        ("We prefer dalteparin to warfarin.", "prefer", "dalteparin", "warfarin"),
        ("The mother infected the baby.", "toward", "mother", "baby"),
        ("The baby caught measles from the mother.", "toward", "mother", "baby"),
        ("Metastasis from lung to liver.", "spread", "lung", "liver"),
        ("The effusion was seen on CT.", "detect", "ct", "effusion"),
        ("PCR was validated against serology.", "validate", "pcr", "serology"),
        ("Fatigue is commoner with bisoprolol than with ramipril.", "compare", "", "ramipril"),
    ],
)
def test_a_relation_is_read_in_its_direction(roles, reader, text, relation, source, target):
    read = relations(roles, reader, text)
    assert any(
        name == relation and source in from_ and target in to and not denied
        for name, from_, to, denied in read
    ), read


@pytest.mark.parametrize(
    "text",
    [
        "Hypoxia did not cause the seizure.",
        "The seizure was not due to hypoxia.",
        "Hypoxia failed to provoke the seizure.",
    ],
)
def test_a_denied_relation_is_denied(roles, reader, text):
    assert any(denied for *_, denied in relations(roles, reader, text))


def test_not_only_denies_nothing(roles, reader):
    assert not any(denied for *_, denied in relations(roles, reader, "Hypoxia not only caused the seizure."))


@pytest.mark.parametrize(
    "text",
    ["The raised prolactin was repeated.", "He has heart block.", "A high-grade change in practice."],
)
def test_a_noun_or_adjective_is_no_relation(roles, reader, text):
    assert not {name for name, *_ in relations(roles, reader, text)} & {"raise", "lower", "switch"}


PACK = load_pack(None, "entity_swap", Pack)
ALL_TEXTS = [text for case in CASES for text in (case["query"], case["passage"])]


@pytest.fixture(scope="module")
def all_relations(roles, reader):
    return {text: relations(roles, reader, text) for text in ALL_TEXTS}


@pytest.mark.parametrize("name", sorted(relation.id for relation in PACK.relations))
def test_each_relation_is_read_by_its_own_cues(name, all_relations, reader):
    """Every relation is read in some case, and with its cues taken away its sentences are read otherwise."""
    bare = {"verbs": (), "source_first": (), "target_first": (), "source_then": (), "target_then": ()}
    relations_ = tuple(one.model_copy(update=bare) if one.id == name else one for one in PACK.relations)
    whole = EntitySwapFilter(PACK.model_copy(update={"prepositions": ()}))
    less = EntitySwapFilter(PACK.model_copy(update={"relations": relations_, "prepositions": ()}))
    read = [text for text, told in all_relations.items() if any(one == name for one, *_ in told)]
    assert read
    assert any(relations(whole, reader, text) != relations(less, reader, text) for text in read)


def test_every_mark_is_read_somewhere(roles, reader):
    """Beside things of the kind that its axis is about, each mark is given by one of its first cues."""
    things = {
        "transfer": ("The mother", "the father"),
        "purpose": ("Gout", "angina"),
        "finding": ("CT", "ultrasound"),
    }
    told = dict.fromkeys((mark.id for mark in PACK.marks), False)
    for mark in PACK.marks:
        for cue in (*mark.ahead, *mark.cues)[:3]:
            words = cue.replace("~", "").split("|")[0].replace("..", "")
            one, other = things.get(mark.axis, ("Warfarin", "aspirin"))
            text = f"{one} {words} {other} {words}."
            marks = {
                fact.normal["mark"]
                for fact in roles.read(reader.read(text))
                if fact.normal["form"] == "stand" and not fact.normal["mark"].startswith("bare ")
            }
            told[mark.id] |= mark.id in marks
    assert [name for name, found in told.items() if not found] == []


def test_the_kind_of_a_relatives_finding(findings):
    found = conflicts(findings("He has asthma.", "Family history of asthma."))
    assert {finding.kind for finding in found} == {"non_support"}
    assert all("family" in finding.sentence for finding in found)


def test_a_finding_says_what_and_where(findings):
    query, passage = "Note: hypoxia provoked the “seizure”.", "µg. The hypoxia was provoked by the seizure."
    finding = conflicts(findings(query, passage))[0]
    assert finding.hazard == "entity_swap"
    assert "hypoxia" in query[finding.query_span.start : finding.query_span.end]
    assert passage[finding.passage_span.start : finding.passage_span.end].startswith(
        "hypoxia was provoked by"
    )
    assert "seizure" in finding.query_normal
    assert "hypoxia" in finding.passage_normal
    assert finding.rule.startswith("entity_swap.")
    assert finding.sentence.endswith(".")
    assert 0 < finding.confidence <= 1


def test_agreement_is_reported(findings):
    found = findings("Hypoxia provoked the seizure.", "The seizure was due to hypoxia.")
    assert [finding.verdict for finding in found] == ["compatible"]


def test_the_best_match_decides(findings):
    passage = "Hypoxia provoked the seizure. Elsewhere a seizure provoked hypoxia."
    assert not conflicts(findings("Hypoxia provoked the seizure.", passage))


def test_facts_survive_json(roles, reader):
    stack = Stack({"entity_swap": roles}, reader=reader, seconds=0)
    for case in CASES:
        facts = stack.read(case["query"])
        again = TextFacts.from_json(json.loads(json.dumps(facts.to_json())))
        assert again == facts
        passage = stack.read(case["passage"])
        assert stack.compare(again, passage) == stack.compare(facts, passage)


def test_facts_name_the_keys_they_can_align_by(roles, reader):
    for fact in roles.read(
        reader.read("Give labetalol, avoid ramipril; hypoxia caused a seizure in his mother.")
    ):
        assert isinstance(fact.normal["keys"], frozenset)
        assert fact.normal["keys"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ".",
        "?",
        "💊 caused 💥",
        "أموكسيسيلين سبب طفح",
        "caused by",
        "because",
        "(",
        ")))(((",
        "that that that",
        "not",
    ],
)
def test_any_text_is_read(roles, reader, text):
    facts = roles.read(reader.read(text))
    assert not conflicts(roles.compare(facts, facts))
    assert all(0 <= fact.span.start <= fact.span.end <= len(text) for fact in facts)


@settings(deadline=None, max_examples=150)
@given(text=TEXTS)
def test_a_text_never_conflicts_with_itself(text):
    facts = FILTER.read(READER.read(text))
    assert not conflicts(FILTER.compare(facts, facts))


@settings(deadline=None, max_examples=60)
@given(
    first=st.sampled_from(["hypoxia", "delirium", "pneumonia", "back pain", "heart failure"]),
    second=st.sampled_from(["seizure", "urinary retention", "vomiting", "low mood", "angina"]),
    one=st.integers(0, 5),
    other=st.integers(0, 5),
)
def test_cause_and_effect_hold_in_any_wording(first, second, one, other):
    ways = [
        "{0} caused {1}.", "{1} was caused by {0}.", "{1} is due to {0}.", "{0} led to {1}.",
        "Because of {0} there was {1}.", "The {1} that {0} provoked has settled.",
    ]  # fmt: skip
    facts = [
        FILTER.read(READER.read(text))
        for text in (
            ways[one].format(first, second),
            ways[other].format(first, second),
            ways[other].format(second, first),
        )
    ]
    assert not conflicts(FILTER.compare(facts[0], facts[1]))
    assert conflicts(FILTER.compare(facts[0], facts[2]))


@given(st.permutations(["delirium", "sepsis", "ileus", "gout"]), st.sampled_from(["caused", "and"]))
def test_an_exchange_is_found_around_a_cue_and_not_around_and(things, middle):
    first, second, *rest = things
    one, other = [first, middle, second, *rest], [second, middle, first, *rest]
    swap = exchange(one, other, frozenset(("and", "or")), frozenset(("caused", "by")))
    assert (swap is not None) == (middle == "caused")
    assert exchange(one, one, frozenset(("and", "or")), frozenset(("caused", "by"))) is None


FILTER, READER = load(), Reader(model="")

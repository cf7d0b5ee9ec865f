"""The quantifier filter: what it reads, what it calls a conflict, and that it holds on any text."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.content import Content
from clinsafe.errors import ContentError
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.filters.quantifier import load
from clinsafe.mitigations.quantity_words.interval import Interval, apart, at
from clinsafe.text import Reader

CASES = yaml.load(
    (Path(__file__).parents[1] / "cases" / "quantifier.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)
FILTER = load()
READER = Reader(model="")


def read(text):
    return FILTER.read(READER.read(text))


def conflicts(query, passage):
    return [x for x in FILTER.compare(read(query), read(passage)) if x.verdict == "conflict"]


@pytest.mark.parametrize("case", CASES["sentences"], ids=lambda case: case["text"])
def test_a_sentence_is_read_as_annotated(case):
    # Of the statement as worded: words of opposite meaning are compared, not read into the share.
    got = [(fact.normal["low"], fact.normal["high"]) for fact in read(case["text"])]
    assert got == [pytest.approx(share, abs=0.011) for share in case["share"]]


@pytest.mark.parametrize("case", CASES["pairs"], ids=lambda case: f"{case['query']} | {case['passage']}")
def test_a_pair_is_judged_as_annotated_from_either_side(case):
    for query, passage in ((case["query"], case["passage"]), (case["passage"], case["query"])):
        assert bool(conflicts(query, passage)) == (case["verdict"] == "conflict")


def test_every_kind_has_a_conflict_and_a_safe_pair():
    kinds = {}
    for case in CASES["pairs"]:
        kinds.setdefault(case["kind"], set()).add(case["verdict"])
    for kind in ("all_few_none", "majority_minority", "always_rarely", "n_of_n", "severity_share"):
        assert kinds[kind] == {"conflict", "safe"}


WORDED = [share for share in FILTER.lexicon.pack.shares if share.kind == "strong"]


@pytest.mark.parametrize("share", WORDED, ids=lambda share: share.id)
def test_each_cue_of_each_share_is_read_as_its_share(share):
    lost = []
    for cue in share.cues:
        words = " ".join(w.split("|")[0].removeprefix("~") if w != ".." else "of it" for w in cue.split())
        facts = read(f"The zebras {words} zebras galloped")
        if not any(fact.rule == share.id for fact in facts):
            lost.append(cue)
    assert lost == []


@pytest.mark.parametrize("turn", FILTER.lexicon.pack.turns, ids=lambda turn: turn.id)
def test_each_word_that_turns_round_does(turn):
    for cue in turn.cues:
        words = " ".join(w.split("|")[0].removeprefix("~") if w != ".." else "it" for w in cue.split())
        fact = next(fact for fact in read(f"Most zebras {words} stripes") if fact.rule == "most")
        assert (fact.normal["low"], fact.normal["high"]) == (0, 0.495), cue


@pytest.mark.parametrize("skip", FILTER.lexicon.pack.skips, ids=lambda skip: skip.id)
def test_what_is_not_meant_is_no_share(skip):
    for cue in skip.cues:
        words = " ".join(w.split("|")[0].removeprefix("~") if w != ".." else "x" for w in cue.split())
        assert not [fact for fact in read(f"Zebras {words} galloped") if not fact.normal["weak"]], cue


@pytest.mark.parametrize("pair", FILTER.lexicon.pack.opposites, ids=lambda pair: pair.id)
def test_words_of_opposite_meaning_turn_a_share_round(pair):
    plus, minus = (
        [w.split("|")[0].removeprefix("~") for w in side[0].split()] for side in (pair.plus, pair.minus)
    )
    one, other = (f"Most zebras and giraffes were {' '.join(side)}." for side in (plus, minus))
    assert conflicts(one, other)
    assert not conflicts(one, other.replace("Most", "Few"))


def test_a_finding_tells_both_sides_in_plain_words():
    query, passage = "At follow-up all grafts were patent.", "Seen again. Few of the grafts were patent."
    (found,) = conflicts(query, passage)
    assert query[found.query_span.start : found.query_span.end] == "all"
    assert passage[found.passage_span.start : found.passage_span.end] == "Few of the"
    assert found.query_normal == "grafts patent: all"
    assert found.passage_normal == "grafts patent: few"
    assert (found.hazard, found.kind, found.rule) == ("quantifier", "contradiction", "few")
    assert "all" in found.sentence
    assert "few" in found.sentence


def test_agreement_is_reported_too():
    (found,) = FILTER.compare(read("Most grafts were patent."), read("The majority of grafts were patent."))
    assert found.verdict == "compatible"


def test_what_a_question_asks_is_compared_with_nothing():
    assert read("Do all patients respond?")[0].normal["asked"]
    assert FILTER.compare(read("Do all patients respond?"), read("Few patients respond.")) == ()


def test_spans_count_in_the_original_text():
    text = "A–B … “½ x” 😀 isn’t. Hardly any grafts were patent."
    (fact,) = [fact for fact in read(text) if fact.rule == "hardly_any"]
    assert text[fact.span.start : fact.span.end] == "Hardly any"


def test_facts_survive_json():
    facts = TextFacts({"quantifier": read("All nodes clear; 3 of 12 cores positive, none of the margins.")})
    again = TextFacts.from_json(json.loads(json.dumps(facts.to_json())))
    assert again.by_filter == facts.by_filter


@pytest.mark.parametrize(
    "text",
    ["", " ", "\n\n", "😀😀 all 😀", "כל החולים מתו", "all", "no", "3 of", "of 3", "%", "all but", "not"],
)
def test_odd_text_is_read(text):
    assert FILTER.compare(read(text), read(text)) is not None


@pytest.mark.parametrize(
    "unit",
    [
        "1",
        "12 ",
        "Na 140, K 4.2, Cl 101 mmol/L\n",
        "(",
        "() ",
        "x",
        "3 of 12 ",
        "all of the ",
        "no ",
        "grade 1 ",
    ],
)
def test_reading_takes_time_in_proportion_to_the_text(unit):
    short, long = (READER.read(unit * (size // len(unit))) for size in (5_000, 20_000))
    FILTER.read(short)
    spent = []
    for reading in (short, long):
        tries = []
        for _ in range(3):
            start = time.process_time()
            FILTER.read(reading)
            tries.append(time.process_time() - start)
        spent.append(min(tries))
    assert spent[1] < 12 * spent[0] + 0.05


VOCABULARY = "all few most none no not of the 3 12 20% grafts died survived were without never always , ; and"
WORDS = st.lists(st.sampled_from(VOCABULARY.split(" ")), max_size=14).map(" ".join)


@given(WORDS)
@settings(max_examples=80, deadline=None)
def test_a_text_never_conflicts_with_itself(text):
    facts = read(text)
    pairs = FILTER.compare(facts, facts)
    # "all died and none died" contradicts itself; a text with one share on each matter cannot.
    if len(facts) < 2:
        assert not [x for x in pairs if x.verdict == "conflict"]


@given(WORDS, WORDS)
@settings(max_examples=80, deadline=None)
def test_a_conflict_is_one_from_either_side(one, other):
    assert bool(conflicts(one, other)) == bool(conflicts(other, one))


@given(st.text(max_size=200))
@settings(max_examples=60, deadline=None)
def test_any_text_is_read_and_every_share_lies_between_none_and_all(text):
    for fact in read(text):
        assert 0 <= fact.normal["low"] <= fact.normal["high"] <= 1
        assert 0 <= fact.span.start <= fact.span.end <= len(text)


@given(st.floats(0, 1), st.floats(0, 1))
def test_turning_twice_changes_nothing_and_keeps_the_gap(one, other):
    first, second = at(one), Interval(min(one, other), max(one, other))
    assert first.turned().turned() == pytest.approx(first, abs=1e-5)
    assert apart(first.turned(), second.turned()) == pytest.approx(apart(first, second), abs=1e-5)


def test_the_pack_can_be_replaced_and_its_faults_are_told(tmp_path):
    folder = tmp_path / "mitigations"
    folder.mkdir()
    text = Content().path("mitigations/quantifier.yaml").read_text(encoding="utf-8")
    file = folder / "quantifier.yaml"
    file.write_text(text.replace("near: nearly_all", "near: nearly_some", 1), encoding="utf-8")
    with pytest.raises(ContentError, match="nearly_some"):
        load(Content(tmp_path))
    file.write_text(text.replace("cues: [never,", "cues: [never, seldom,", 1), encoding="utf-8")
    with pytest.raises(ContentError, match="'seldom' stands both under rare and never"):
        load(Content(tmp_path))
    file.write_text(text.replace("cues: [all, every,", "cues: [all, jeder, every,", 1), encoding="utf-8")
    reading = READER.read("Jeder zebras galloped")
    assert load(Content(tmp_path)).read(reading)[0].normal["share"] == "all"

"""The quantifier filter: what it reads, what it calls a conflict, and that it holds on any text."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.content import Content
from clinsafe.errors import ContentError
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.filters.quantifier import QuantifierFilter, load
from clinsafe.mitigations.quantity_words import sides
from clinsafe.mitigations.quantity_words.interval import Interval, apart, at
from clinsafe.mitigations.quantity_words.lexicon import build
from clinsafe.mitigations.quantity_words.pack import Pack
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


def calls(work):
    """How many functions a piece of work calls: the same on every machine, unlike its time."""
    count = 0

    def note(_frame, event, _what):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


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
        things = (
            "sutures" if words in ("every other", "alternate") else "zebras"
        )  # half only of things in a row
        facts = read(f"The zebras {words} {things} galloped")
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
    facts = read(text)
    assert all(0 <= fact.normal["low"] <= fact.normal["high"] <= 1 for fact in facts)
    assert not conflicts(text, text)


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
def test_reading_takes_work_in_proportion_to_the_text(unit):
    short, long = (READER.read(unit * (size // len(unit))) for size in (2_000, 8_000))
    FILTER.read(short)  # fills the caches
    FILTER.read(long)
    assert calls(lambda: FILTER.read(long)) < 6 * calls(lambda: FILTER.read(short)) + 2_000


@pytest.mark.parametrize("unit", ["All nodes were clear. ", "{} of 900 nodes were clear. "])
def test_comparing_long_texts_is_bounded(unit, monkeypatch):
    monkeypatch.setattr(sides, "_MANY", 30)
    monkeypatch.setattr(sides, "_MOST", 80)
    short, long = (read("".join(unit.format(at) for at in range(many))) for many in (100, 400))
    FILTER.compare(short[:9], short[:9])  # fills the caches
    assert calls(lambda: FILTER.compare(long, long)) < 6 * calls(lambda: FILTER.compare(short, short))


def test_equal_statements_of_a_long_text_are_merged():
    chart = "All nodes were clear. " * 200
    assert len(FILTER.compare(read(chart), read("Few nodes were clear."))) == 1


def test_what_is_left_out_of_a_long_text_is_said():
    chart, brief = (
        "".join(f"{at} of 900 nodes were clear. " for at in range(1, 420)),
        "9 of 900 nodes were clear.",
    )
    for query, passage, side in ((brief, chart, "passage"), (chart, brief, "query")):
        notes = [x for x in FILTER.compare(read(query), read(passage)) if x.rule == "left_out"]
        assert [(x.verdict, x.severity) for x in notes] == [("not_comparable", "note")]
        assert f"The {side} states too many different shares: 119 of them" in notes[0].sentence


VOCABULARY = "all few most none no not of the 3 12 20% grafts died survived were without never always , ; and"
WORDS = st.lists(st.sampled_from(VOCABULARY.split(" ")), max_size=14).map(" ".join)


@given(WORDS)
@settings(max_examples=80, deadline=None)
def test_a_text_that_speaks_of_each_matter_once_never_conflicts_with_itself(text):
    facts = read(text)
    found = [x for x in FILTER.compare(facts, facts) if x.verdict == "conflict"]
    # "all died and none died" contradicts itself: then the two sides are two statements, never one with itself.
    assert not [x for x in found if x.query_span == x.passage_span]


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


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("  - id: all\n", "  - id: every_one\n", "shares lacks all"),
        ("cues: [never,", 'cues: [" ", never,', "begin and end with a word"),
        ("cues: [never,", "cues: [at 5mg, never,", "write them apart"),
        ("not_after: [microgram,", 'not_after: ["mmol/l", microgram,', "one word is looked up"),
        ("breaks: [but,", "breaks: [as for, but,", "one word is looked up"),
        ("breaks: [but,", "breaks: [But,", "lower case"),
        ("parts: {half: 2,", "parts: {half: 0,", "greater than or equal to 1"),
    ],
)
def test_a_pack_that_could_not_be_read_later_is_refused(tmp_path, old, new, says):
    folder = tmp_path / "mitigations"
    folder.mkdir()
    text = Content().path("mitigations/quantifier.yaml").read_text(encoding="utf-8")
    assert old in text
    (folder / "quantifier.yaml").write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ContentError, match=says):
        load(Content(tmp_path))


def test_a_share_near_one_half_is_named_so():
    assert Interval(0.45, 0.55).name == "half"


OPTIONAL = [name for name, field in Pack.model_fields.items() if not field.is_required()]


@pytest.mark.parametrize("name", OPTIONAL)
def test_a_block_of_the_pack_may_be_left_out(name):
    lexicon = build(FILTER.lexicon.pack.model_copy(update={name: Pack.model_fields[name].default}))
    changed = QuantifierFilter(lexicon)
    for case in (
        *CASES["pairs"][:40],
        {"query": "Nearly all, 3 of 12 and a third of cores.", "passage": "No."},
    ):
        facts = [changed.read(READER.read(case[side])) for side in ("query", "passage")]
        assert all(0 <= fact.normal["low"] <= fact.normal["high"] <= 1 for side in facts for fact in side)
        assert changed.compare(*facts) is not None


def test_only_shares_and_grades_are_needed():
    assert {name for name in Pack.model_fields if name not in OPTIONAL} == {"shares", "grades"}

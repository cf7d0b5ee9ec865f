"""The hedging filter: what it reads, what it calls a conflict, and what it leaves alone."""

from __future__ import annotations

import dataclasses
import json
import random
from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.content import Content
from clinsafe.errors import ContentError
from clinsafe.mitigations import bounds
from clinsafe.mitigations import cues as cue_table
from clinsafe.mitigations.certainty.levels import Level, contradict, severity
from clinsafe.mitigations.cues import CueTable
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.filters.hedging import load
from clinsafe.mitigations.stack import Stack
from clinsafe.text import Reader
from tests.mitigations.packs import Counting, hidden

CASES = yaml.load(
    (Path(__file__).parents[1] / "cases" / "hedging.yaml").read_text(encoding="utf-8"), Loader=yaml.BaseLoader
)
PACK = Content().path("mitigations/hedging.yaml")
READER = Reader(model="")
FILTER = load()
_STEPS = cue_table._steps
STACK = Stack({"hedging": FILTER}, READER, seconds=0)


def facts(text):
    return FILTER.read(READER.read(text))


def conflicts(one, other):
    return STACK.compare(STACK.read(one), STACK.read(other)).conflicts


# ── what is read ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("case", CASES["sentences"], ids=lambda case: case["text"][:60])
def test_a_sentence_is_read_as_a_clinician_reads_it(case):
    read = facts(case["text"])
    if case["level"] == "none":
        silent = (Level.ASSERTED, Level.HYPOTHETICAL)
        assert [fact for fact in read if fact.normal["level"] not in silent] == []
        return
    named = case["thing"].lower()
    about = [
        Level(fact.normal["level"]).word
        for fact in read
        if named in fact.normal["target"].lower() or any(named[:6] in key for key in fact.normal["wide_keys"])
    ]
    assert about
    assert set(about) == {case["level"]}


def test_every_rule_of_the_pack_reads_some_sentence():
    read = {fact.rule for case in CASES["sentences"] for fact in facts(case["text"])}
    read |= {fact.rule for case in CASES["pairs"] for side in "ab" for fact in facts(case[side])}
    pack = yaml.load(PACK.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    rules = {rule["id"] for rule in (*pack["cues"], *pack["sections"]) if rule["level"] != "ignore"}
    assert rules - read == set()


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("Biopsy: sarcoidosis.", Level.ASSERTED),
        ("No sarcoidosis on biopsy.", None),
        ("Biopsy confirmed sarcoidosis.", Level.CONFIRMED),
        ("Biopsy has not confirmed sarcoidosis.", Level.POSSIBLE),
        ("Biopsy never confirmed sarcoidosis.", Level.POSSIBLE),
        ("Biopsy could not confirm sarcoidosis.", Level.POSSIBLE),
        ("Biopsy failed to confirm sarcoidosis.", Level.POSSIBLE),
        ("Biopsy did not fail to confirm sarcoidosis.", Level.CONFIRMED),
        ("Biopsy to confirm sarcoidosis.", Level.POSSIBLE),
        ("Biopsy was enough to confirm sarcoidosis.", Level.CONFIRMED),
        ("Biopsy was not enough to confirm sarcoidosis.", Level.POSSIBLE),
        ("Biopsy may confirm sarcoidosis.", Level.POSSIBLE),
        ("Biopsy was suggestive rather than diagnostic of sarcoidosis.", Level.POSSIBLE),
        ("Biopsy confirmed the absence of sarcoidosis.", Level.EXCLUDED),
        ("Biopsy excluded sarcoidosis.", Level.EXCLUDED),
        ("Biopsy did not exclude sarcoidosis.", Level.POSSIBLE),
        ("Biopsy to exclude sarcoidosis.", Level.POSSIBLE),
        ("Exclude sarcoidosis.", Level.POSSIBLE),
        ("Biopsy, which had been delayed, proves sarcoidosis.", Level.CONFIRMED),
    ],
)
def test_what_stands_before_a_cue_changes_it(text, level):
    levels = {fact.normal["level"] for fact in facts(text) if "sarcoid" in fact.normal["target"].lower()}
    assert levels == (set() if level is None else {level})


def test_spans_point_at_the_original_text():
    text = "History “unclear”…\n- PE can’t be excluded\n- µ-opioid use; biopsy‑proven sarcoidosis"
    found = [text[fact.span.start : fact.span.end] for fact in facts(text)]
    assert any("PE can’t be excluded" in part for part in found)
    assert any(part.endswith("proven sarcoidosis") for part in found)


def test_a_question_asks_and_claims_nothing():
    assert all(fact.normal["asked"] for fact in facts("Is the pneumonia confirmed?"))
    assert not conflicts("Is the pneumonia confirmed?", "Pneumonia is possible.")
    assert not conflicts("Pneumonia is possible.", "Has pneumonia been confirmed?")
    assert not any(fact.normal["asked"] for fact in facts("Could represent tuberculosis"))


def test_capitals_are_an_abbreviation_and_no_condition():
    assert conflicts("Direct IF confirms pemphigoid.", "Direct IF suggests pemphigoid.")
    assert not conflicts("Direct IF confirms pemphigoid.", "Pemphigoid is definite on direct IF.")


# ── what is compared ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("case", CASES["pairs"], ids=lambda case: f"{case['verdict']}: {case['a'][:50]}")
def test_a_pair_is_called_what_it_is(case):
    assert bool(conflicts(case["a"], case["b"])) == (case["verdict"] == "conflict")
    assert bool(conflicts(case["b"], case["a"])) == (case["verdict"] == "conflict")


def test_a_finding_says_what_it_found():
    (finding,) = conflicts("Sarcoidosis is possible.", "Biopsy has proven sarcoidosis.")
    assert (finding.hazard, finding.verdict, finding.kind) == ("hedging", "conflict", "contradiction")
    assert finding.severity == "high"
    assert (finding.query_normal, finding.passage_normal) == (
        "Sarcoidosis: possible",
        "sarcoidosis: confirmed",
    )
    assert finding.sentence == 'The query calls "Sarcoidosis" only possible; the passage calls it confirmed.'
    assert finding.rule == "hdg.possible.adjective"
    assert 0 < finding.confidence <= 1


def test_what_might_happen_does_not_support_what_is():
    (finding,) = conflicts("The patient has chest pain.", "Come back if you develop chest pain.")
    assert finding.kind == "non_support"


@pytest.mark.parametrize(
    "condition",
    ["If anaphylaxis occurs, give adrenaline.", "Should anaphylaxis occur, call for help.",
     "Give adrenaline if anaphylaxis occurs.", "Stop the drip should any anaphylaxis develop."],
)  # fmt: skip
@pytest.mark.parametrize(
    "claim", ["He had anaphylaxis.", "Anaphylaxis", "Anaphylaxis occurred.", "Anaphylaxis was confirmed."]
)
def test_a_condition_does_not_support_a_finding(condition, claim):
    (finding,) = conflicts(claim, condition)
    assert finding.kind == "non_support"
    assert not conflicts(claim, f"Anaphylaxis at noon. {condition}")
    assert not conflicts(condition, "Watch for anaphylaxis.")


@pytest.mark.parametrize(
    "text",
    ["No pneumonia", "CT for pneumonia", "Pneumonia?", "Is it pneumonia?", "Treat the pneumonia",
     "Pneumonia protocol", "Pneumonia or heart failure"],
)  # fmt: skip
def test_what_denies_asks_or_plans_is_no_plain_statement(text):
    assert not [fact for fact in facts(text) if fact.normal["plain"] and not fact.normal["asked"]]


def test_a_condition_that_takes_the_thing_for_granted_is_no_conflict():
    assert not conflicts("She has chest pain.", "Return if the chest pain gets worse.")
    assert conflicts("She has chest pain.", "Return if you get chest pain.")


def test_plain_statements_are_kept_once_and_are_few():
    assert len(facts("Sigmoid carcinoma. " * 50)) == 1
    many = ". ".join(f"Carcinoma x{i}x of the sigmoid{i}" for i in range(1100))
    assert len(facts(many)) == 1001
    assert facts(many)[-1].rule == bounds.UNREAD


BEYOND = {  # text -> a thing in it that is beyond what is read
    "statements": (". ".join(f"Carcinoma x{i}x of the sigmoid{i}" for i in range(1100)), "x1099x"),
    "cues": (", ".join(f"possible x{i}x" for i in range(90)), "x85x"),
}


@pytest.mark.parametrize("name", BEYOND)
def test_what_is_beyond_what_is_read_is_unchecked_and_never_compatible(name):
    text, thing = BEYOND[name]
    for one, other in ((text, f"{thing} was confirmed."), (f"{thing} was confirmed.", text)):
        found = STACK.compare(STACK.read(one), STACK.read(other))
        assert found.unchecked == {"hedging": "compare: failed with TooMuchToCompare"}
        assert not found.safe
    assert STACK.compare(
        STACK.read(text), STACK.read("Confirmed mumps.")
    ).safe  # nothing unread is asked about


def test_a_conflict_in_what_is_read_is_told_even_so():
    text, _ = BEYOND["cues"]
    found = STACK.compare(STACK.read("x3x was confirmed."), STACK.read(text))
    assert found.conflict
    assert not found.unchecked


def test_pairs_that_are_left_out_make_the_texts_unchecked(monkeypatch):
    one = "Gout is possible. Mumps is possible. Measles is possible."
    other = "Mumps is likely. Measles is likely. Gout is likely."
    assert STACK.compare(STACK.read(one), STACK.read(other)).safe
    monkeypatch.setattr(bounds, "MOST_PAIRS", 4)
    assert not STACK.compare(STACK.read(one), STACK.read(other)).safe


RELATIVES = [
    "Her mother had suspected PE.",
    "Her mother had possible PE.",
    "Her son has a suspected diagnosis of PE.",
    "Her son has a suspected diagnosis of PE, unproven as yet.",
    "Suspected PE in her elder sister.",
    "PE in her brother is a possibility.",
    "Her sister, who had suspected PE, is well.",
    "Her aunt's suspected PE was treated.",
    "She has proven PE; her mother had suspected PE.",
]
OWN = [
    "Her mother suspected PE.",
    "Her mother was worried about possible PE.",
    "She has suspected PE; her mother had proven PE.",
    "Her sister had breast cancer and she has suspected PE.",
    "Brought in by her son with suspected PE.",
    "The mother had suspected PE.",
]


@pytest.mark.parametrize("text", RELATIVES)
def test_what_a_relative_had_is_not_the_patients(text):
    assert not conflicts("PE was confirmed.", text)
    assert not conflicts(text, "PE was confirmed.")


@pytest.mark.parametrize("text", OWN)
def test_what_a_relative_tells_or_does_is_about_the_patient(text):
    assert conflicts("PE was confirmed.", text)
    assert conflicts(text, "PE was confirmed.")


def test_one_relative_is_compared_with_the_same():
    assert conflicts("Her mother had confirmed PE.", "Her mum had suspected PE.")
    assert not conflicts("Her mother had confirmed PE.", "Her aunt had suspected PE.")


def test_a_condition_beside_doubt_is_not_called_equally_certain():
    findings = FILTER.compare(facts("Gout is possible."), facts("Return if you have gout."))
    assert [(f.verdict, f.kind) for f in findings] == [("compatible", "non_support")]
    assert "only as something that might happen" in findings[0].sentence


def test_a_pack_without_its_optional_lists_is_read(tmp_path):
    pack = yaml.load(PACK.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    for name in (
        "operators",
        "followers",
        "faint",
        "stops",
        "subjects",
        "modals",
        "plain",
        "whose",
        "sections",
    ):
        del pack[name]
    (tmp_path / "mitigations").mkdir()
    (tmp_path / "mitigations" / "hedging.yaml").write_text(yaml.safe_dump(pack), encoding="utf-8")
    own = load(Content(tmp_path))
    one, other = (own.read(READER.read(f"Gout is {level}.")) for level in ("possible", "confirmed"))
    assert [f.verdict for f in own.compare(one, other)] == ["conflict"]


def test_repeated_facts_are_compared_once(monkeypatch):
    calls = []
    monkeypatch.setattr(
        "clinsafe.mitigations.certainty.compare.alignment", lambda *sides: calls.append(sides) or 0.0
    )
    one, other = facts("Gout is possible. " * 40), facts("Gout is confirmed. " * 40)
    assert len(one) == len(other) == 40
    FILTER.compare(one, other)
    assert len(calls) == 1


def test_very_many_facts_are_cut_alike_on_both_sides():
    few, many = facts("Gout is possible."), facts("".join(f"Gout of a{n}b is possible. " for n in range(400)))
    assert [len(side) for side in bounds.bounded(few, many)] == [1, 400]
    ours, theirs = bounds.bounded(many, many)
    assert len(ours) == len(theirs) < 400
    assert len(ours) * len(theirs) <= bounds.MOST_PAIRS


def test_agreement_is_reported_as_compatible():
    findings = STACK.compare(STACK.read("Probable gout."), STACK.read("Gout is likely.")).findings
    assert [finding.verdict for finding in findings] == ["compatible"]


CONTRADICT = {  # of decision D4: (lower, higher) from 0 excluded to 5 confirmed
    (0, 2), (0, 3), (0, 4), (0, 5), (1, 3), (1, 4), (1, 5), (2, 4), (2, 5), (3, 5),
}  # fmt: skip


@given(st.sampled_from(Level), st.sampled_from(Level))
def test_levels_contradict_by_decision_d4(one, other):
    low, high = sorted((one, other))
    if low == Level.HYPOTHETICAL:
        return
    assert contradict(one, other) == contradict(other, one)
    assert contradict(one, other) == ((int(low), int(high)) in CONTRADICT)
    assert severity(one, other) == severity(other, one)


THINGS = ["pneumonia", "sarcoidosis", "a scaphoid fracture", "acute rejection", "the gout", "PE"]
FRAMES = [
    "{} is possible",
    "{} was confirmed",
    "cannot exclude {}",
    "{} is unlikely",
    "known {}",
    "probable {}",
]
FRAMES += ["biopsy did not prove {}", "she has {}", "{} has been ruled out", "return if you have {}", "?{}"]
statements = st.builds(
    lambda frame, thing: frame.format(thing), st.sampled_from(FRAMES), st.sampled_from(THINGS)
)
texts = st.lists(st.one_of(statements, st.text(max_size=12)), min_size=1, max_size=5).flatmap(
    lambda parts: st.sampled_from([". ", "; ", ", ", "\n- ", " and "]).map(lambda gap: gap.join(parts) + ".")
)


@given(texts)
@settings(deadline=None, max_examples=50)
def test_a_text_never_contradicts_itself(text):
    assert not conflicts(text, text)


@given(texts, texts)
@settings(deadline=None, max_examples=50)
def test_swapping_the_sides_swaps_the_finding(one, other):
    def seen(findings, swap):
        spans = [(f.query_span, f.passage_span)[:: -1 if swap else 1] for f in findings]
        return Counter((*pair, f.verdict, f.severity) for pair, f in zip(spans, findings, strict=True))

    a, b = facts(one), facts(other)
    assert seen(FILTER.compare(a, b), False) == seen(FILTER.compare(b, a), True)


@given(texts)
@settings(deadline=None, max_examples=50)
def test_facts_survive_json(text):
    before = STACK.read(text)
    after = TextFacts.from_json(json.loads(json.dumps(before.to_json())))
    assert after.by_filter == before.by_filter


@given(texts)
@settings(deadline=None, max_examples=50)
def test_facts_need_no_parse(text):
    parser = Counting()
    reading = dataclasses.replace(READER.read(text), parser=parser)
    read = FILTER.read(reading)
    assert parser.asked == []
    assert list(read) == list(FILTER.read(reading.only([])))


# ── odd input ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    ["", " ", "?", "? ?", "possible", "not not not", "🫀 possible 🫀", "احتمال السل possible",
     "\u202epossible TB\u202c", "((((", "%"],
)  # fmt: skip
def test_odd_text_is_read(text):
    assert not FILTER.compare(facts(text), facts("Confirmed gout."))
    for fact in facts(text):
        assert 0 <= fact.span.start < fact.span.end <= len(text)


@pytest.mark.parametrize(
    "part",
    ["1", "1 ", "Na 140 mmol/L\n", "(", "a", "? ", "?", "possible ", "possible x, ", "not ", "not confirmed ", "no ",
     "rule a b ", "is was ", "he has x ", "may be ", "evidence is ", "to confirm ", "\n- ", ": "],
)  # fmt: skip
def test_long_text_keeps_few_facts_and_comes_back(part):
    # The work in a sentence is bounded: it is cut at 2,000 characters and at 80 cues.
    text = (part * 20_000)[:20_000]
    found = facts(text)
    assert len(found) <= 80 * (len(text) // 1000 + 1)
    assert not conflicts(text, text)


def test_the_walk_through_the_cue_tree_is_bounded(monkeypatch):
    calls = []
    monkeypatch.setattr(
        "clinsafe.mitigations.cues._steps",
        lambda node, tokens, at: calls.append(at) or _STEPS(node, tokens, at),
    )
    words = random.Random(7).choices(["no", "not", "rule", "is", "to", "be", "possible", "x"], k=300)
    counts = []
    for size in (150, 300):  # words of one sentence
        reading = READER.read(" ".join(words[:size]))
        assert len(reading.sentences) == 1
        calls.clear()
        FILTER.read(reading)
        counts.append(len(calls))
    assert 0 < counts[1] <= 2.5 * counts[0]


# ── the pack ───────────────────────────────────────────────────────────────────────────────────


def test_the_longest_cue_wins_and_then_the_first():
    tokens = READER.read("no doubt about it").sentences[0].tokens
    table = CueTable([("no", 1), ("no doubt", 2), ("no doubt", 3), ("doubt", 4), ("no .. it", 5)])
    assert [match.value for match in table.find(tokens)] == [5]
    assert CueTable([("no", 1), ("no doubt", 2), ("no doubt", 3)]).at(tokens, 0).value == 2


@pytest.mark.parametrize("cue", ["", ".. no", "no ..", "well-known"])
def test_a_cue_that_cannot_match_is_refused(cue):
    with pytest.raises(ValueError, match="cue"):
        CueTable([(cue, 1)])


def test_no_cue_is_given_twice():
    pack = yaml.load(PACK.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    for blocks in (("cues", "operators"), ("followers",)):
        assert hidden(cue for block in blocks for rule in pack[block] for cue in rule["cues"]) == []


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("level: confirmed", "level: sure", "level"),
        ("- id: hdg.confirm.verb", "- id: hdg.confirm.adjective", "id"),
        ("kind: negate", "kind: deny", "kind"),
        ("cues: [confirmation, ", "cues: [well-known, ", "write them apart"),
        ("cues: [confirmation, ", 'cues: [".. known", ', "begin and end with a word"),
        ("strict: [could, may]", "strict: [could, may be]", "one word"),
        ("strict: [could, may]", "strict: [could, May]", "small letters"),
        ("aunt: [aunt, aunts]", "aunt: [aunt, uncle]", "'uncle' stands both under aunt and uncle"),
    ],
)
def test_a_fault_in_the_pack_is_told_with_its_place(tmp_path, old, new, field):
    folder = tmp_path / "mitigations"
    folder.mkdir()
    text = PACK.read_text(encoding="utf-8")
    assert old in text
    (folder / "hedging.yaml").write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ContentError) as error:
        load(Content(tmp_path))
    assert field in str(error.value)
    assert "hedging.yaml:" in str(error.value)

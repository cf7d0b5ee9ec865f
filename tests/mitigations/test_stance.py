"""What a passage answers to a question; silence is not denial, and a denial is never taken for an affirmation."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.content import Content
from clinsafe.errors import ContentError
from clinsafe.mitigations.absence import absence_notes, load_absence
from clinsafe.mitigations.asking import as_claim
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.stack import Stack
from clinsafe.mitigations.stance import joined, stance
from tests.mitigations.fakes import Broken, throw
from tests.mitigations.stance_kit import answer, claim_of, side, stack

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "stance.jsonl").read_text("utf-8").splitlines()
]
LEAST = 0.95  # share of the development cases; what is missed is told as silent or uncertain


def misses(cases, say):
    """(share right, the cases in which one of affirms and denies was taken for the other, or made of silence)."""
    said = [(case, say(case)) for case in cases]
    wrong = [(case["id"], case["stance"], got) for case, got in said if got != case["stance"]]
    danger = [row for row in wrong if row[2] in ("affirms", "denies")]
    return 1 - len(wrong) / len(cases), wrong, danger


def by_stack(case):
    return side(case["question"], case["passage"])


def test_some_of_the_cases_is_answered_right_and_no_answer_is_turned_round():
    share, wrong, danger = misses(CASES[::7], by_stack)
    assert share >= LEAST - 0.1, wrong
    assert not danger


@pytest.mark.slow
def test_all_cases_of_all_hazards_are_answered_right_and_no_answer_is_turned_round():
    share, wrong, danger = misses(CASES, by_stack)
    assert share >= LEAST, wrong
    assert not danger
    for kind in ("affirms", "denies", "uncertain", "silent", None):
        own = [case for case in CASES if case["stance"] == kind]
        lost = [row for row in wrong if row[1] == kind]
        assert len(lost) <= 0.1 * len(own), lost
    for hazard in {case["hazard"] for case in CASES}:
        own = {case["id"] for case in CASES if case["hazard"] == hazard}
        assert len([row for row in wrong if row[0] in own]) <= 0.2 * len(own), hazard


@pytest.mark.parametrize("constant", ["affirms", "denies", "uncertain", "silent", None])
def test_the_cases_tell_an_answer_from_a_constant(constant):
    share, _, danger = misses(CASES, lambda case: constant)
    assert share < 0.6
    assert danger or constant not in ("affirms", "denies")


def test_the_cases_are_many_and_each_has_a_source_and_an_id_of_its_own():
    assert len(CASES) >= 80
    assert len({case["id"] for case in CASES}) == len(CASES)
    assert {case["hazard"] for case in CASES} >= {
        "negation",
        "hedging",
        "entity_swap",
        "quantifier",
        "temporal",
        "numerical",
    }
    assert all(case["source"] for case in CASES)


@pytest.mark.parametrize(
    ("question", "passage", "expected"),
    [
        ("Isn't she allergic to penicillin?", "She is not allergic to penicillin.", "denies"),
        ("Isn't she allergic to penicillin?", "She is allergic to penicillin.", "affirms"),
        ("Is there no allergy to penicillin?", "She is not allergic to penicillin.", "affirms"),
        ("Is there no allergy to penicillin?", "She is allergic to penicillin.", "denies"),
        ("Is she not allergic to penicillin?", "She is allergic to penicillin.", "denies"),
    ],
)
def test_a_not_at_the_front_is_an_expectation_and_one_inside_is_part_of_what_is_asked(
    question, passage, expected
):
    assert side(question, passage) == expected


@pytest.mark.parametrize(
    ("passage", "why"),
    [
        ("Her mother is allergic to penicillin.", "a relative"),
        ("If she is allergic to penicillin, give clarithromycin.", "a condition"),
        ("Is she allergic to penicillin?", "a question"),
        ("She is allergic to latex.", "another allergy"),
        ("Benzylpenicillin is given four-hourly.", "another matter"),
        ("", "nothing"),
        ("Family history:\nallergic to penicillin", "a family history"),
    ],
)
def test_what_is_not_said_of_the_patient_and_in_earnest_is_silent(passage, why):
    assert side("Is she allergic to penicillin?", passage) == "silent", why


def test_affirmed_here_and_denied_there_is_uncertain_on_both_grounds():
    found, grounds = answer(
        "Is she allergic to penicillin?", "She is not allergic to penicillin. She is allergic to penicillin."
    )
    assert found == "uncertain"
    assert {finding.verdict for finding in grounds} == {"conflict", "compatible"}


def test_a_later_sentence_settles_what_was_open_and_opens_what_was_settled():
    assert [joined([("uncertain", ()), (end, ())])[0] for end in ("affirms", "denies")] == [
        "affirms",
        "denies",
    ]
    assert joined([("denies", ()), ("uncertain", ())])[0] == "uncertain"
    assert joined([("affirms", ()), ("denies", ())])[0] == "uncertain"
    assert joined([]) == ("silent", ())


def test_every_answer_but_silence_has_grounds_that_lie_in_the_passage_and_in_the_question():
    for case in CASES[::5]:
        found = answer(case["question"], case["passage"])
        if found is None:
            continue
        said, grounds = found
        assert bool(grounds) == (said != "silent"), case["id"]
        for finding in grounds:
            assert 0 <= finding.passage_span.start < finding.passage_span.end <= len(case["passage"])
            assert 0 <= finding.query_span.start < finding.query_span.end <= len(case["question"])


def test_the_past_answers_a_question_about_the_past_and_no_other_but_a_lifelong_condition_stays():
    assert side("Does she have a DVT?", "Previous DVT in 2015.") == "silent"
    assert side("Has she ever had a DVT?", "Previous DVT in 2015.") == "affirms"
    assert side("Does she have a penicillin allergy?", "History of penicillin allergy.") == "affirms"


def test_an_affirmation_that_a_filter_did_not_look_at_is_uncertain():
    whole = stack()
    half = Stack({**whole.filters, "late": Broken("compare", throw)}, whole.reader, 0)
    claim = half.facts(as_claim(half.reader.read("Is she allergic to penicillin?")))
    assert side("Is she allergic to penicillin?", "She is allergic to penicillin.") == "affirms"
    assert stance(half, claim, half.read("She is allergic to penicillin."))[0] == "uncertain"


def test_without_filters_and_without_facts_a_passage_is_silent():
    empty = Stack({}, stack().reader, 0)
    assert stance(empty, TextFacts({}), TextFacts({})) == ("silent", ())


def test_facts_that_were_stored_answer_as_those_that_were_read():
    for case in CASES[::12]:
        claim = claim_of(case["question"])
        if claim is not None:
            read = stack().read(case["passage"])
            stored = TextFacts.from_json(json.loads(json.dumps(read.to_json())))
            assert stance(stack(), claim, stored) == stance(stack(), claim, read)


# ── limits, leave and order, doubt, sides, times ───────────────────────────────────────────────


@pytest.mark.parametrize("limit", [4.0, 5.5, 6.0, 7.0])
@pytest.mark.parametrize("value", [3.9, 5.4, 5.6, 6.4])
def test_a_limit_is_answered_by_arithmetic(limit, value):
    assert side(f"Is the potassium above {limit}?", f"Na 138, K {value}, urea 9.2.") == (
        "affirms" if value > limit else "denies"
    )
    assert side(f"Is the potassium below {limit}?", f"Na 138, K {value}, urea 9.2.") == (
        "affirms" if value < limit else "denies"
    )


def test_a_limit_is_met_in_other_units_and_left_open_by_a_range_on_both_sides():
    assert side("Does she weigh over 60 kg?", "Weight 154 lb.") == "affirms"
    assert side("Does she weigh over 80 kg?", "Weight 154 lb.") == "denies"
    assert side("Is the ejection fraction above 50%?", "LVEF 45-55%.") == "uncertain"
    assert side("Is the potassium above 5.5?", "Sodium 138, creatinine 90.") == "silent"
    assert side("Is the potassium above 5.5?", "If potassium is 6 or more, stop ramipril.") == "silent"


ORDERS = {
    "Tablets {} crushed.": ("may be", "must not be"),
    "The tablets {} crushed.": ("can safely be", "should never be"),
    "Crushing the tablets is {}.": ("allowed", "contraindicated"),
}


@pytest.mark.parametrize("frame", sorted(ORDERS))
def test_leave_and_ban_answer_a_question_for_leave_and_for_a_ban(frame):
    leave, ban = (frame.format(words) for words in ORDERS[frame])
    assert side("Can the tablets be crushed?", leave) == "affirms"
    assert side("Can the tablets be crushed?", ban) == "denies"


def test_do_not_stop_makes_going_on_a_duty_and_no_need_to_avoid_gives_leave():
    for question, passage, expected in [
        ("Should warfarin be continued?", "Do not stop warfarin.", "affirms"),
        ("Should warfarin be stopped?", "Do not stop warfarin.", "denies"),
        (
            "Must patients on apixaban avoid grapefruit?",
            "There is no need to avoid grapefruit on apixaban.",
            "denies",
        ),
        (
            "Must patients on simvastatin avoid grapefruit?",
            "Grapefruit must be avoided on simvastatin.",
            "affirms",
        ),
        ("Can she take ibuprofen?", "She can take paracetamol but must not take ibuprofen.", "denies"),
        ("Can she take paracetamol?", "She can take paracetamol but must not take ibuprofen.", "affirms"),
        (
            "Is the MMR vaccine safe in egg allergy?",
            "Yellow fever vaccine is contraindicated in egg allergy.",
            "silent",
        ),
    ]:
        assert side(question, passage) == expected, (question, passage)


def test_the_other_side_people_at_large_and_another_time_answer_nothing():
    assert side("Is the left leg swollen?", "Right leg swollen, left leg normal.") != "affirms"
    assert side("Is there a fracture of the left wrist?", "R wrist: no fracture.") == "silent"
    assert side("Has Mr Kay had a rash?", "Offer an alternative to people who have had a rash.") == "silent"
    assert side("Was he confused when he came in?", "Day 4: alert, not confused.") == "silent"


def test_a_do_not_resuscitate_order_is_a_thing_and_no_denial():
    question = "Is there a do-not-resuscitate order?"
    assert side(question, "DNACPR form signed on 3 May.") == "affirms"
    assert side(question, "No DNACPR in place.") == "denies"
    assert side(question, "For full active treatment including CPR.") == "denies"
    assert side(question, "Fluids encouraged.") == "silent"


def test_what_is_awaited_or_cannot_be_told_is_uncertain_and_a_settled_doubt_is_not():
    question = "Does he have endocarditis?"
    for passage in (
        "Endocarditis cannot be excluded.",
        "?endocarditis, echo awaited.",
        "It is unclear whether this is endocarditis.",
    ):
        assert side(question, passage) == "uncertain", passage
    assert side(question, "Endocarditis was suspected. Echo excluded endocarditis.") == "denies"


def test_without_the_words_of_the_passage_no_answer_is_turned_round():
    for case in CASES[::9]:
        claim = claim_of(case["question"])
        if claim is not None:
            said = stance(stack(), claim, stack().read(case["passage"]))[0]
            assert {said, case["stance"]} != {"affirms", "denies"}, case["id"]


# ── the question as a claim ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("question", "claim"),
    [
        ("Does the patient have a penicillin allergy?", "the patient have a penicillin allergy"),
        ("Do you know whether she is on warfarin?", "she is on warfarin"),
        ("Is it true that he is diabetic?", "he is diabetic"),
        ("Is there any evidence of sepsis?", "sepsis"),
        ("He takes warfarin, doesn't he?", "He takes warfarin"),
        ("Isn't she allergic?", "she allergic"),
        ("Is Mrs. Jones pregnant?", "pregnant"),
        ("penicillin allergy?", "penicillin allergy"),
    ],
)
def test_only_the_words_that_make_it_a_question_go(question, claim):
    reading = stack().reader.read(question)
    (sentence,) = as_claim(reading).sentences
    assert " ".join(token.text for token in sentence.tokens) == claim
    assert sentence.mood == "claim"
    assert as_claim(reading).text == question
    for token in sentence.tokens:
        span = reading.token_span([token])
        assert question[span.start : span.end] == token.text


@pytest.mark.parametrize(
    "text",
    [
        "She is allergic to penicillin.", "Which antibiotic was she given?", "What dose of apixaban does he take?",
        "When was warfarin stopped?", "How often is it given?", "Why was it stopped?", "For how long is it given?",
        "In atrial fibrillation, what dose is used?", "Was it given before or after surgery?", "Any chest pain? No.",
        "", "?", "Is?",
    ],
)  # fmt: skip
def test_where_no_proposition_is_asked_there_is_no_claim(text):
    assert as_claim(stack().reader.read(text)) is None


def test_what_the_query_claims_beside_its_question_is_no_part_of_the_answer():
    query = "She takes warfarin. Does she have a penicillin allergy?"
    assert side(query, "She does not take warfarin.") == "silent"
    assert side(query, "She does not take warfarin. She is allergic to penicillin.") == "affirms"


@settings(max_examples=60)
@given(
    st.lists(
        st.sampled_from(
            ["is", "does", "not", "she", "whether", "if", "that", "ever", "any", "evidence", "of", "Mrs", "Jones",
             "allergic", "penicillin", ",", "?", ".", "what", "or", "before", "after", "there", "was", "🙂", "5", "mg"]
        ),
        max_size=12,
    )
)  # fmt: skip
def test_any_words_in_any_order_are_read_and_keep_their_places(words):
    text = " ".join(words)
    reading = stack().reader.read(text)
    claim = as_claim(reading)
    if claim is not None:
        places = {(token.start, token.end) for sentence in reading.sentences for token in sentence.tokens}
        assert all((t.start, t.end) in places for s in claim.sentences for t in s.tokens)
        assert all(s.tokens and s.mood == "claim" for s in claim.sentences)


# ── absence not verified ───────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def pack():
    return load_absence()


def notes(pack, question, *stances):
    return absence_notes(stack().reader.read(question), stances, pack)


@pytest.mark.parametrize(
    "question",
    [
        "Is she allergic to penicillin?", "Does he have a hypersensitivity to latex?", "Any allergies?",
        "Is metformin contraindicated?", "Are there any contraindications to thrombolysis?",
        "Is the patient pregnant?", "Is she gravid?",
        "Is he on anticoagulation?", "Does she take a blood thinner?", "Is he on a DOAC?", "Is she taking warfarin?",
        "Is LMWH prescribed?",
    ],
)  # fmt: skip
def test_a_unanimous_denial_on_the_four_topics_is_never_proof(pack, question):
    for stances in (["denies"], ["denies", "denies"], ["silent", "denies", None]):
        (line,) = notes(pack, question, *stances)
        assert line.startswith("absence not verified: ")
    for stances in (["denies", "affirms"], ["denies", "uncertain"], ["affirms"], ["silent"], [None], []):
        assert notes(pack, question, *stances) == ()


def test_where_absence_is_what_is_asked_the_affirmation_carries_the_note(pack):
    for question in (
        "Is there no allergy to penicillin?",
        "NKDA?",
        "Is ibuprofen safe here?",
        "Is she not pregnant?",
    ):
        assert notes(pack, question, "affirms"), question
        assert not notes(pack, question, "denies"), question


def test_other_topics_claims_and_open_questions_carry_no_note(pack):
    assert not notes(pack, "Does she have pneumonia?", "denies")
    assert not notes(pack, "She is allergic to penicillin.", "denies")
    assert not notes(pack, "Which drug is she allergic to?", "denies")


def test_the_words_of_the_topics_are_the_institutions_own(overlay):
    root = overlay("mitigations/absence.yaml", lambda text: re.sub(r"\[pregnancy, .*\]", "[pacemaker]", text))
    pack = load_absence(Content(root))
    assert notes(pack, "Does he have a pacemaker?", "denies")
    assert not notes(pack, "Is the patient pregnant?", "denies")


def test_a_fault_in_the_topics_is_told_by_file_line_and_field(overlay):
    root = overlay("mitigations/absence.yaml", lambda text: text.replace("negators:", "negaters:"))
    with pytest.raises(ContentError, match=r"absence\.yaml:\d+: negat"):
        load_absence(Content(root))

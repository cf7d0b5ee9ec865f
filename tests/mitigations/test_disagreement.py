"""Passages that contradict each other on what is asked; the order in which they were retrieved plays no part."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.mitigations.asking import as_claim
from clinsafe.mitigations.disagreement import disagreements
from clinsafe.mitigations.stack import Stack
from clinsafe.mitigations.whose import superseding, when
from clinsafe.protocols import Passage
from tests.mitigations.fakes import Broken, throw
from tests.mitigations.stance_kit import answer, claim_of, stack
from tests.mitigations.work_kit import work

ALLERGY = "Does the patient have a penicillin allergy?"
TEXTS = {
    "yes": "She is allergic to penicillin.",
    "no": "No known drug allergies.",
    "latex": "She is allergic to latex.",
    "no latex": "There is no latex allergy.",
    "doubt": "Penicillin allergy is possible.",
    "sister": "Her sister is allergic to penicillin.",
    "dose": "Apixaban 5 mg twice daily. She has a penicillin allergy.",
    "other dose": "Apixaban 2.5 mg twice daily. She has a penicillin allergy.",
    "empty": "",
}


def about(query, chosen=None):
    chosen = chosen or stack()
    reading = chosen.reader.read(query)
    return chosen.facts(as_claim(reading) or reading)


def passage(name, text, **metadata):
    return Passage(name, text, metadata=metadata)


@lru_cache(maxsize=200)
def facts(text):
    return stack().read(text)


def told(query, *passages, alive=lambda: True, chosen=None):
    read = [(one, chosen.read(one.text) if chosen else facts(one.text)) for one in passages]
    chosen = chosen or stack()
    return disagreements(chosen, about(query, chosen), read, alive)


def pairs(query, *passages):
    found, unchecked = told(query, *passages)
    assert not unchecked
    return {frozenset((one.first, one.second)) for one in found}


def texts(*names):
    return [passage(name, TEXTS[name]) for name in names]


@pytest.mark.parametrize(
    ("query", "one", "other"),
    [
        (ALLERGY, "She is allergic to penicillin.", "She is not allergic to penicillin."),
        ("Does he have pneumonia?", "Pneumonia is possible.", "Pneumonia was confirmed."),
        (
            "What dose of apixaban does she take?",
            "Apixaban 5 mg twice daily.",
            "Apixaban 2.5 mg twice daily.",
        ),
        ("Was heparin begun before surgery?", "Heparin was begun before surgery.", "Heparin was begun after surgery."),
        ("Is he on warfarin?", "He takes warfarin 3 mg.", "Warfarin was stopped."),
        ("Do most nodules turn out benign?", "Most nodules are benign.", "Few nodules are benign."),
        ("Did the ulcer cause cellulitis?", "Cellulitis caused the ulcer.", "The ulcer caused cellulitis."),
    ],
)  # fmt: skip
def test_in_every_hazard_two_passages_disagree_and_one_with_itself_does_not(query, one, other):
    found, _ = told(query, passage("a", one), passage("b", other), passage("c", one))
    assert {(d.first, d.second) for d in found} == {("a", "b"), ("b", "c")}
    for pair in found:
        first, second = (one if name in "ac" else other for name in (pair.first, pair.second))
        assert pair.findings
        for finding in pair.findings:
            assert finding.verdict == "conflict"
            assert 0 <= finding.query_span.start < finding.query_span.end <= len(first)
            assert 0 <= finding.passage_span.start < finding.passage_span.end <= len(second)
            assert "query" not in finding.sentence.lower()
            assert f'"{pair.first}"' in finding.sentence
            assert f'"{pair.second}"' in finding.sentence


def test_only_what_is_asked_counts():
    assert pairs(ALLERGY, *texts("yes", "no")) == {frozenset(("yes", "no"))}
    assert not pairs(ALLERGY, *texts("latex", "no latex"))
    assert not pairs(ALLERGY, *texts("dose", "other dose"))
    assert pairs("Is she on apixaban 5 mg?", *texts("dose", "other dose"))
    assert not pairs("Is the ward quiet?", *texts(*TEXTS))


def test_what_a_relative_has_is_no_disagreement():
    assert not pairs(ALLERGY, *texts("sister", "no"))


def test_a_disabled_and_an_always_yes_comparison_are_told_apart():
    nothing = Stack({}, stack().reader, 0)
    assert told(ALLERGY, *texts("yes", "no"), chosen=nothing) == ((), ())
    everything = {frozenset(pair) for pair in combinations(TEXTS, 2)}
    assert set() < pairs(ALLERGY, *texts(*TEXTS)) < everything


@settings(max_examples=12)
@given(st.permutations(sorted(TEXTS)))
def test_the_order_of_retrieval_changes_no_pair(order):
    assert pairs(ALLERGY, *texts(*order)) == in_order()


@lru_cache(maxsize=1)
def in_order():
    return pairs(ALLERGY, *texts(*sorted(TEXTS)))


def test_the_order_of_retrieval_decides_which_is_first():
    for order in permutations(("yes", "no", "doubt")):
        found, _ = told(ALLERGY, *texts(*order))
        assert all(order.index(one.first) < order.index(one.second) for one in found)
        assert found


# ── with the stances, and where a value is asked ───────────────────────────────────────────────


def opposed(query, one, other, first=None, second=None):
    """Disagreements as the guard asks for them: with stances and the query as read."""
    reading = stack().reader.read(query)
    asked = [passage("a", one, **(first or {})), passage("b", other, **(second or {}))]
    answers = [answer(query, text) or ("silent", ()) for text in (one, other)]
    read = [(row, facts(row.text)) for row in asked]
    found, lines = disagreements(
        stack(), about(query), read, answers=answers if claim_of(query) else (), reading=reading
    )
    assert not lines
    return found


CRUSH = "Can pantoprazole tablets be crushed?"
MAY, NOT = "Pantoprazole tablets may be crushed.", "Pantoprazole tablets: do not crush."


def test_one_affirms_and_the_other_denies_though_no_filter_aligned_them():
    (found,) = opposed(CRUSH, MAY, NOT)
    assert found.findings[0].verdict == "conflict"
    assert '"a"' in found.findings[0].sentence
    assert '"b"' in found.findings[0].sentence
    (back,) = opposed(CRUSH, NOT, MAY)
    assert (back.first, back.second) == ("a", "b")
    assert not opposed(CRUSH, MAY, MAY)
    assert not opposed(CRUSH, NOT, "Pantoprazole is a proton pump inhibitor.")
    assert not opposed(CRUSH, MAY, NOT, {"population": "adults"}, {"population": "children"})


@pytest.mark.parametrize(
    ("query", "one", "other", "same"),
    [
        (
            "What dose of warfarin was she discharged on?",
            "TTO: warfarin 3 mg daily.",
            "Warfarin 5 mg daily.",
            "Warfarin 3 mg daily.",
        ),
        (
            "What was the potassium on the first sample?",
            "K 3.1, Na 140.",
            "K was 5.9, Na 140.",
            "Potassium 3.1.",
        ),
        (
            "Which hip is listed for replacement?",
            "Listed for L THR.",
            "Listed for right hip replacement.",
            "Listed for left hip replacement.",
        ),
        (
            "What type of diabetes does she have?",
            "Type 1 diabetes since age 9.",
            "Type 2 diabetes, on insulin.",
            "Known type 1 diabetes.",
        ),
        ("What is the blood group?", "Group O RhD positive.", "Blood group A pos.", "Blood group O pos."),
    ],
)  # fmt: skip
def test_where_a_value_is_asked_two_values_disagree_and_one_value_does_not(query, one, other, same):
    assert opposed(query, one, other)
    assert not opposed(query, one, same)
    assert not opposed(query, one, "Seen by the physiotherapist.")


def test_measurements_of_two_days_are_a_course_and_no_disagreement():
    query = "What was the potassium?"
    first, second = {"date": "2024-05-03"}, {"date": "2024-05-04"}
    assert opposed(query, "K 3.1.", "K 5.9.", first, first)
    assert not opposed(query, "K 3.1.", "K 5.9.", first, second)


@pytest.mark.parametrize(
    ("query", "one", "other", "expected"),
    [
        ("What is the INR?", "Clinic 3 February: INR 4.8.", "Clinic 10 February: INR 2.4.", False),
        ("What is the INR?", "Clinic 3 February: INR 4.8.", "Clinic 3 Feb: INR 2.4.", True),
        ("What is the INR?", "Clinic 3 February: INR 4.8.", "Clinic 03/02/2024: INR 2.4.", True),
        ("What is the INR?", "Clinic: INR 4.8.", "Clinic 10 February: INR 2.4.", True),
        ("What was the potassium?", "Monday: K 5.9.", "Thursday: K 3.1.", False),
        ("What was the potassium?", "Monday: K 5.9.", "10 February: K 3.1.", True),
        ("What was the creatinine?", "Seen in March. Creatinine 90.", "Seen in June. Creatinine 180.", False),
        ("What was the potassium on 3 May?", "3 May: K 5.9.", "K 3.1 on 3 May, K 4.0 on 4 May.", True),
        ("Is she on prednisolone?", "January: prednisolone started.",
         "November: prednisolone weaned down and stopped in September.", False),
        ("Is she on prednisolone?", "January: prednisolone started.", "January: prednisolone stopped.", True),
        ("Is she on prednisolone?", "Prednisolone started.", "Prednisolone stopped.", True),
        ("Is he on warfarin?", "Warfarin commenced on 2 March.", "Warfarin was discontinued on 9 June.", False),
    ],
)  # fmt: skip
def test_other_days_named_in_the_text_are_a_course_and_the_same_or_no_day_is_not(query, one, other, expected):
    assert bool(opposed(query, one, other)) == expected
    assert bool(opposed(query, other, one)) == expected


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("Her partner was also checked. He does not have hypertension.", False),
        ("Her partner was also checked. She does not have hypertension.", True),
        ("Her sister does not have hypertension.", False),
        ("She lives with her brother, who does not have hypertension.", False),
        ("Lives with her husband. She does not have hypertension.", True),
        ("She does not have hypertension.", True),
    ],
)
def test_what_another_person_has_not_gainsays_nothing(other, expected):
    assert bool(opposed("Does she have hypertension?", "Hypertension since 2010.", other)) == expected


# ── whose, and when ────────────────────────────────────────────────────────────────────────────


def both(**metadata):
    one = {name: values[0] for name, values in metadata.items() if values[0] is not None}
    other = {name: values[1] for name, values in metadata.items() if values[1] is not None}
    found, _ = told(ALLERGY, passage("yes", TEXTS["yes"], **one), passage("no", TEXTS["no"], **other))
    return found


def test_different_patients_and_populations_never_disagree_and_unknown_ones_may():
    for name in ("subject_id", "population"):
        assert not both(**{name: ("a", "b")})
        assert both(**{name: ("a", "a")})
        assert both(**{name: ("a", None)})
        assert both(**{name: ("a", "")})


def test_periods_that_do_not_overlap_do_not_disagree():
    assert not both(period_start=("2020-01-01", "2022-01-01"), period_end=("2020-12-31", "2022-06-01"))
    assert both(period_start=("2020-01-01", "2020-06-01"), period_end=("2020-12-31", "2021-06-01"))
    assert both(period_start=("2020-01-01", "2022-01-01"), period_end=("2020-12-31", None))
    assert both(period_start=("2020-01-01", "never"), period_end=("2020-12-31", "2022"))


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("2020", "2021"), ("2020-03", "2020-04"), ("2020-03-01", "2020-03-02"),
        ("2020-03-01T10:00", "2020-03-01T11:00"),
        ("2020-12-31", "2021"), ("2020-03-01T10:00:00+02:00", "2020-03-01T09:00:00Z"),
        (" 2020 ", "2021-01-01T00:00:00"),
    ],
)  # fmt: skip
def test_of_two_dated_passages_of_one_patient_the_later_one_supersedes(earlier, later):
    (found,) = both(subject_id=("p1", "p1"), date=(earlier, later))
    assert found.superseding == "no"
    (found,) = both(subject_id=("p1", "p1"), date=(later, earlier))
    assert found.superseding == "yes"
    assert both(date=(earlier, later))[0].superseding == ""  # of whom they speak is not known
    assert both(subject_id=("p1", None), date=(earlier, later))[0].superseding == ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2020", "2020-05"), ("2020-05", "2020-05-03"), ("2020-05-03", "2020-05-03T10:00"), ("2020", "2020"),
        ("2020-13-01", "2021"), ("last year", "2021"), (None, "2021"),
        ("2020-05-03T23:00", "2020-05-04T01:00:00+00:00"),
        ("0000", "2021"), ("9999", "2020"[:0]), ("20200-01-01", "2021"), ("🙂", "2021"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_apart_or_read_supersedes_nothing_and_is_no_error(one, other):
    (found,) = both(subject_id=("p1", "p1"), date=(one, other))
    assert found.superseding == ""


@given(st.text(max_size=25) | st.integers() | st.none() | st.dates().map(str) | st.datetimes().map(str))
def test_any_date_is_read_or_unknown(value):
    read = when(value)
    assert read is None or read.start <= read.end


def test_superseding_is_the_same_from_both_sides():
    one = passage("a", "", subject_id="p", date="2020")
    other = passage("b", "", subject_id="p", date="2021")
    assert superseding(one, other) == superseding(other, one) == "b"


# ── time, failures and work ────────────────────────────────────────────────────────────────────


def test_pairs_that_were_not_compared_are_counted():
    left = iter([True] * 3 + [True] + [False] * 9)  # three passages are read, one pair is compared
    found, lines = told(ALLERGY, *texts("yes", "no", "doubt"), alive=lambda: next(left))
    assert [(one.first, one.second) for one in found] == [("yes", "no")]
    (line,) = lines
    assert "2 of 3" in line
    found, lines = told(ALLERGY, *texts("yes", "no"), alive=lambda: False)
    assert not found
    assert "1 of 1" in lines[0]


def test_a_filter_that_fails_leaves_the_pair_unchecked_and_says_so():
    whole = stack()
    broken = Stack({**whole.filters, "late": Broken("compare", throw)}, whole.reader, 0)
    found, lines = told("Is she on apixaban?", *texts("dose", "dose"), chosen=broken)
    assert not found
    assert any("late" in line and "1 of 1" in line for line in lines)


LONG = (
    "72-year-old man admitted with cellulitis of the left leg and a fever of 38.9. He has type 2 diabetes, "
    "hypertension and atrial fibrillation, for which he takes apixaban 5 mg twice daily, metformin 1 g twice "
    "daily and ramipril 5 mg daily. He denies chest pain, breathlessness or cough. Allergies: {}. On examination "
    "the left leg was red, hot and swollen to the knee, with no crepitus. Heart sounds were normal with no "
    "murmurs. Chest clear. Abdomen soft and non-tender. Bloods showed a white cell count of 17.2, C-reactive "
    "protein of 210 mg/L, creatinine 132 umol/L and potassium 4.8 mmol/L. Chest radiograph showed no "
    "consolidation. Deep vein thrombosis was considered unlikely and ultrasound excluded it. He was treated with "
    "intravenous flucloxacillin 2 g four times daily, changed after 48 hours to oral treatment. Metformin was "
    "withheld during the admission and restarted on discharge. Apixaban was continued. Most of the swelling had "
    "settled by day four. Follow up in clinic in two weeks with repeat renal function."
)
SAID = (
    "none known",
    "penicillin (rash)",
    "no known drug allergies",
    "penicillin",
    "codeine",
    "NKDA",
    "latex",
    "nil",
    "?",
    "nuts",
)


def test_ten_long_passages_cost_no_more_than_what_is_asked_of_them():
    read = [
        (passage(str(at), LONG.format(said)), stack().read(LONG.format(said))) for at, said in enumerate(SAID)
    ]
    asked = about(ALLERGY)
    disagreements(stack(), asked, read, lambda: True)
    # Counted in calls, the same on every machine; with all facts of the passages it would be many times as much.
    assert work(lambda: disagreements(stack(), asked, read, lambda: True)) < 120_000
    found, _ = disagreements(stack(), asked, read, lambda: True)
    assert {(one.first, one.second) for one in found} >= {("0", "1"), ("1", "2"), ("2", "3"), ("3", "5")}
    assert not any({one.first, one.second} == {"0", "2"} for one in found)

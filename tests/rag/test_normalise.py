"""Normalisation: one phrase for one meaning, never one phrase for two, and nothing the second time."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.content import Content
from clinsafe.errors import ContentError, UsageError
from clinsafe.rag.normalise import normaliser
from clinsafe.rag.settings import STEPS

ALL = normaliser()
ABBREVIATIONS = normaliser(steps=("abbreviations",))

FRAGMENTS = [
    "aged",
    "age",
    "patients",
    "women",
    "men",
    "MEN",
    "female",
    "male",
    "over",
    "under",
    "at least",
    "not",
    "≥",
    ">",
    "<=",
    "65",
    "18",
    "5",
    "40-75",
    "40 to 75",
    "1.5",
    "years",
    "yrs",
    "y/o",
    "yo",
    "months",
    "mg",
    "%",
    "kg",
    "of age",
    "old",
    "or older",
    "and above",
    "and under",
    "+",
    "s",
    "the",
    "a",
    "man",
    "woman",
    "between",
    "and",
    "ago",
    "AF",
    "PT",
    "pt",
    "METs",
    "NSTEMI",
    "c/o",
    "stage IV",
    "10⁹",
    "1½",
    "“",
    "–",
    "—",
    "\u00a0",
    "\u200b",
    ",",
    ".",
    "(",
    ")",
    "-",
    "\n",
    "ŉ",
    "İ",
    "ſ",
    "´",
    "HR",
    "hr",
    "Yrs",
    "trans",
    "patient",
    "for",
    "children",
    "infants",
    "with",
]
texts = st.one_of(
    st.lists(st.tuples(st.sampled_from(FRAGMENTS), st.sampled_from(["", " ", "  "])), max_size=14).map(
        lambda parts: "".join(itertools.chain.from_iterable(parts))
    ),
    st.text(max_size=40),
)


SETS = [normaliser(steps=steps) for steps in (STEPS, STEPS[:3], ("abbreviations", "ages", "gender", "case"))]


@given(texts, st.sampled_from(SETS))
@settings(max_examples=150, deadline=None)
def test_a_second_time_changes_nothing(text, made):
    once = made.normalise(text)
    assert made.normalise(once) == once


# Abbreviations


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Screen for AAA.", "Screen for abdominal aortic aneurysm."),
        ("AF, HTN and (CKD)", "atrial fibrillation, hypertension and (chronic kidney disease)"),
        ("pt c/o dyspnoea", "patient complains of dyspnoea"),
        ("stage IV cancer, given IV", "stage IV cancer, given intravenous"),
        ("take 5 mg b.i.d. po", "take 5 mg twice daily. orally"),
        ("NSTEMI", "NSTEMI myocardial infarction"),
        ("patient w/o fever", "patient without fever"),
    ],
)
def test_an_abbreviation_becomes_its_full_term(text, expected):
    assert ABBREVIATIONS.normalise(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "MS was suspected.",  # multiple sclerosis or mitral stenosis
        "PT 14 s",  # prothrombin time, physiotherapy
        "HR 1.4",  # hazard ratio, heart rate
        "The staff AFTER the MIcro test",  # inside words
        "af and mi in lower case",
        "10 METs of exercise",  # not metastases
        "THAI",
        "AF2 domain",
    ],
)
def test_what_may_mean_another_thing_stays(text):
    assert ABBREVIATIONS.normalise(text) == text


def test_lower_case_never_makes_an_abbreviation_of_a_word_in_capitals():
    assert ALL.normalise("PT and METs and HR, MEN type 1") == "PT and METs and HR, MEN type 1"
    assert ALL.normalise("10 mets, pt seen") == "10 metastases, patient seen"


# Case, signs, spaces


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  Two\twords\r\nand   more ", "two words and more"),
        ("“It’s” – 5−6", '"it\'s" - 5-6'),
        ("10⁹/L", "10^9/l"),
        ("10⁻⁹", "10^-9"),
        ("K⁺", "k+"),
        ("1½ tablets, ½ tablet", "1 1/2 tablets, 1/2 tablet"),
        ("CO₂ ５ ㎎", "co2 5 mg"),
        ("soft\u00adhyphen", "softhyphen"),
        ("", ""),
        (" \n ", ""),
    ],
)
def test_signs_are_one_and_numbers_keep_their_value(text, expected):
    assert normaliser(steps=("case", "whitespace")).normalise(text) == expected


def test_lines_stay_lines_where_they_are_asked_for():
    assert ALL.lines("- Women\n\n- AF  \r\n") == "- females\n- atrial fibrillation"


# Switches and report


def test_each_step_can_be_switched_off_and_says_what_it_changed():
    text = "Women  aged ≥65 years with AF"
    single = {step: normaliser(steps=(step,)).normalise(text) for step in STEPS}
    assert len({*single.values(), text}) == len(STEPS) + 1, "each changes something, and something else"
    assert normaliser(steps=()).normalise(text) == text
    made = normaliser(steps=("gender", "ages"))
    assert made.steps == ("ages", "gender")
    for one in (text, text, "no such thing"):
        made.normalise(one)
    assert made.texts == 3
    assert made.report() == {"ages": 2, "gender": 2}


def test_an_unknown_step_is_refused():
    with pytest.raises(UsageError, match="abbreviations"):
        normaliser(steps=("lemmas",))  # type: ignore[arg-type]


def test_an_institution_changes_the_words(overlay):
    root = overlay(
        "benchmarks/rag/normalisation.yaml", lambda text: text.replace("many: females", "many: women")
    )
    assert normaliser(Content(root), ("gender",)).normalise("female patients") == "women"
    root = overlay(
        "benchmarks/rag/normalisation.yaml", lambda text: text.replace("many: women", "mny: women")
    )
    with pytest.raises(ContentError, match=r"normalisation\.yaml"):
        normaliser(Content(root))


def test_what_was_seen_is_forgotten_before_it_fills_the_memory(monkeypatch):
    monkeypatch.setattr("clinsafe.rag.normalise.REMEMBERED", 3)
    made = normaliser(steps=("case",))
    for number in range(10):
        made.normalise(f"Text {number}")
    assert len(made._seen) <= 3


# Cost: generous bounds that a step of quadratic cost misses by far


@pytest.mark.parametrize(
    "text",
    [
        "AF and HTN in pts with c/o CP. " * 16_000,
        "5 " * 250_000,
        "1" * 500_000,
        "65 years or " * 40_000,
        "aged " * 100_000,
        "≥" * 500_000,
        "65" + " " * 500_000 + "years",
        "over " * 100_000 + "65",
        "40-" * 160_000,
    ],
    ids=["notes", "numbers", "digits", "halves", "aged", "signs", "spaces", "over", "ranges"],
)
def test_a_long_hostile_text_costs_no_more_than_its_length(text):
    made = normaliser(steps=("abbreviations", "ages", "gender", "case"))
    start = time.process_time()
    made.normalise(text)
    assert time.process_time() - start < 4

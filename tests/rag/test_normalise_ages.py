"""Thresholds of age, as a clinician reads them: what is one, and what only looks like one."""

from __future__ import annotations

import pytest

from clinsafe.rag.normalise import normaliser

AGES = normaliser(steps=("ages",))

SAME = {
    "age at least 65 years": [
        "≥65 years",
        ">= 65 years of age",
        "65 years or older",
        "65 or older",
        "aged 65+",
        "aged 65 and over",
        "aged ≥65",
        "65 years of age and older",
        "at least 65 years of age",
        "at least 65 years old",
        "aged 65 years and above",
        "no younger than 65 years",
        "65 years and over",
        "age: ≥65 years",
        "Age (years) ≥65",
        "aged 65 yrs or older",
        "65-year-olds and older",
        "age of 65 or older",
        "65 y/o or older",
    ],
    "age over 65 years": [
        "older than 65 years",
        "aged over 65",
        "aged >65 years",
        "over the age of 65",
        "over 65 years of age",
        "the over-65s",
        "above 65 years of age",
        "more than 65 years old",
        "age > 65",
    ],
    "age at most 18 years": [
        "18 or younger",
        "aged ≤18 years",
        "18 years of age or younger",
        "no older than 18 years",
    ],
    "age under 18 years": [
        "<18 years of age",
        "younger than 18",
        "under 18 years of age",
        "below the age of 18",
        "aged under 18",
    ],
    "age 40 to 75 years": [
        "between 40 and 75 years",
        "40-75 y/o",
        "aged 40–75",
        "ages 40 to 75 years",
        "between the ages of 40 and 75",
        "40 to 75 years of age",
        "40-75 year olds",
        "from 40 to 75 years of age",
        "aged between 40 and 75 years",
    ],
    "age at least 6 months": [
        "6 months of age or older",
        "aged ≥6 months",
        "at least 6 months of age",
        "6 months and older",
    ],
    "age 6 to 23 months": ["aged 6 to 23 months", "6-23 months old"],
}


@pytest.mark.parametrize(
    ("text", "expected"), [(text, said) for said, texts in SAME.items() for text in texts]
)
def test_what_says_the_same_reads_the_same(text, expected):
    assert AGES.normalise(text).removeprefix("the ") == expected


IN_SENTENCES = [
    ("Offer it to adults 65 and above.", "Offer it to adults age at least 65 years."),
    ("Women over 40 with a family history", "Women age over 40 years with a family history"),
    ("Patients > 65 were excluded.", "Patients age over 65 years were excluded."),
    ("children under 5 years", "children age under 5 years"),
    ("Adults 65+ should be seen.", "Adults age at least 65 years should be seen."),
    ("25% in those>70 years", "25% in those age over 70 years"),
    ("gestational age ≥37 weeks", "gestational age at least 37 weeks"),
    ("infants older than 6 months", "infants age over 6 months"),
    ("mean age over 60 years", "mean age over 60 years"),
    ("aged 18 to 65 years, 40 of them men", "age 18 to 65 years, 40 of them men"),
]


@pytest.mark.parametrize(("text", "expected"), IN_SENTENCES)
def test_only_the_threshold_is_rewritten(text, expected):
    assert AGES.normalise(text) == expected


TRAPS = [
    "Give 65 mg.",
    "patients over 65 kg",
    "≥65 %",
    "65 years ago",
    "more than 65 years ago",
    "Ages of rock",
    "a 65-year-old woman",  # an exact age
    "aged 65 years",
    "keep the MAP at 65 and above",  # mmHg
    "a score of 65 or more",
    "HbA1c over 65 in patients",
    "BMI of 40 and over",
    "We followed 300 patients over 10 years.",  # a period
    "disease duration ≥10 years",
    "a history of at least 20 years",
    "smoked for ≥60 years",
    "patients ≥5 years after transplantation",
    "survival of 50-70 years",
    "therapy for 60 to 70 years",
    "held for over 60s",
    "apnoea over 20s",  # seconds
    "not over 65 years old",  # denied, not "at most"
    ">65 years or older",  # says two things
    "1.65 years or older",
    "12/65 years or older",
    "aged 6 or 12 months",
    "aged 50 to 80 kg",
    "infants under 6",
    "aged 65 and under treatment",
    "0.65-75 years",
    "room 1065 or older",
    "patients over 100 units",
    "over 65 patients",
    "75 to 40 years of age",  # no range
    "aged 2019-2020",
    "in 40-75 years' time",
    "≥5 years",
    "under 18",  # a BMI?
    "B65 or older",
    "age 65 million years",
    "up to 65 mg in adults",
]


@pytest.mark.parametrize("text", TRAPS)
def test_what_is_no_threshold_of_age_stays_as_written(text):
    assert AGES.normalise(text) == text


def test_the_four_bounds_and_an_exact_age_are_never_merged():
    said = [">65 years of age", "≥65 years of age", "<65 years of age", "≤65 years of age", "65 years of age"]
    assert len({AGES.normalise(text) for text in said}) == 5
    assert len({AGES.normalise(f"aged ≥6 {unit}") for unit in ("months", "years", "weeks", "days")}) == 4

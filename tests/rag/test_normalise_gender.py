"""Gender phrasing, as a clinician reads it: one phrase for each sex, and what says more than the sex stays."""

from __future__ import annotations

import pytest

from clinsafe.rag.normalise import normaliser

GENDER = normaliser(steps=("gender",))

CHANGED = [
    ("Women with asthma", "females with asthma"),
    ("Female patients were older.", "females were older."),
    ("female participants", "females"),
    ("elderly ladies", "elderly females"),
    ("a 65-year-old woman", "a 65-year-old female"),
    ("The female patient", "The female"),
    ("pregnant women", "pregnant females"),
    ("pregnant female patients", "pregnant females"),
    ("postmenopausal women", "postmenopausal females"),
    ("Men over 50", "males over 50"),
    ("male patients", "males"),
    ("a 70-year-old man", "a 70-year-old male"),
    ("an elderly gentleman", "an elderly male"),
    ("men and women", "males and females"),
    ("no women were enrolled", "no females were enrolled"),
    ("120 women, 80 men.", "120 females, 80 males."),
    ("WOMEN", "females"),
]
KEPT = [
    "females", "female", "male condom", "female genital mutilation", "male pattern baldness",
    "people who menstruate", "pregnant people", "girls and boys", "mothers",
    "Women's Health Initiative", "Brigham and Women’s Hospital",
    "MEN type 1", "MEN2A",  # multiple endocrine neoplasia
    "Isle of Man", "studies in man",  # humans
    "man-made fibres", "regimen", "treatment", "mankind", "omen",
    "trans women", "transgender men", "cisgender women",
    "men who have sex with men", "male and female patients", "female or male participants", "male/female subjects",
    "man the ward", "stone man syndrome",
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CHANGED)
def test_one_phrase_for_each_sex(text, expected):
    assert GENDER.normalise(text) == expected


@pytest.mark.parametrize("text", KEPT)
def test_what_says_another_thing_stays(text):
    assert GENDER.normalise(text) == text


def test_the_sexes_are_never_merged():
    pairs = [
        ("women", "men"),
        ("female patients", "male patients"),
        ("a woman", "a man"),
        ("ladies", "gentlemen"),
    ]
    for female, male in pairs:
        assert GENDER.normalise(female) != GENDER.normalise(male)
    assert GENDER.normalise("pregnant women") != GENDER.normalise("women")
    assert GENDER.normalise("girls") != GENDER.normalise("women")

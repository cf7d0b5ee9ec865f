"""Answers to multiple choices as a clinician would read them, and that no broken reader passes for a good one."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import yaml

from clinsafe.rag.generation.choice import Choice, choice, expected_option, options_of

ANNOTATED = yaml.load((Path(__file__).parent / "choices.yaml").read_text("utf-8"), yaml.BaseLoader)
DECISIONS = ("yes", "no", "maybe")
LETTERS = {"A": "Aspirin", "B": "Heparin", "C": "Warfarin", "D": "Apixaban", "E": "None of the above"}
CASES = [(DECISIONS, *case) for case in ANNOTATED["decisions"]] + [
    (LETTERS, *case) for case in ANNOTATED["letters"]
]


def taken(found):
    return found.option if found.outcome == "chosen" else found.outcome


def test_annotated():
    read = [(answer, taken(choice(answer, options, None)), expected) for options, answer, expected in CASES]
    assert [one for one in read if one[1] != one[2]] == []


def share(reader):
    """Of each outcome, how many answers a reader gets right."""
    right: dict[str, list[bool]] = {}
    for options, answer, expected in CASES:
        right.setdefault(expected, []).append(taken(reader(answer, options)) == expected)
    return {outcome: sum(hits) / len(hits) for outcome, hits in right.items()}


@pytest.mark.parametrize(
    "broken",
    [
        lambda answer, options: Choice("undecided"),
        lambda answer, options: Choice("abstained"),
        *(lambda answer, options, always=always: Choice("chosen", always) for always in ("yes", "no", "B")),
        lambda answer, options: next(  # whichever option stands first in the text
            (Choice("chosen", o) for o in options if o.lower() in answer.lower()), Choice("undecided")
        ),
    ],
)
def test_a_broken_reader_is_seen(broken):
    assert len(CASES) >= 60
    assert min(share(lambda answer, options: choice(answer, options, None)).values()) == 1
    assert min(share(broken).values()) < 0.5


def test_what_is_expected_does_not_sway_the_reading():
    for options, answer, _ in CASES:
        assert len({choice(answer, options, expected) for expected in (*options, None)}) == 1


def test_the_set_of_options_follows_from_the_expected_one_where_none_are_given():
    assert list(options_of(None, "Yes")) == ["yes", "no", "maybe"]
    assert list(options_of(None, "b")) == ["A", "B", "C", "D", "E"]
    assert options_of(None, "aspirin") == {}
    assert choice("The answer is C.", None, "A") == Choice("chosen", "C")


def test_the_expected_option_may_be_named_by_its_text():
    assert expected_option(LETTERS, "heparin") == "B"
    assert expected_option(LETTERS, "(b)") == "B"
    assert expected_option(LETTERS, "insulin") is None
    assert expected_option({"A": "same", "B": "same"}, "same") is None


def test_an_option_that_declines_is_an_abstention():
    options = {"A": "Yes", "B": "No", "C": "Not enough information"}
    assert choice("I cannot answer this question.", options, None) == Choice("abstained", "C")
    assert choice("C", options, None) == Choice("abstained", "C")
    assert choice("B. No", options, None) == Choice("chosen", "B")


def test_numbers_are_options_only_where_no_unit_follows():
    options = {"1": "Aspirin", "2": "Heparin"}
    assert choice("The answer is 2.", options, None) == Choice("chosen", "2")
    assert choice("Give 2 mg daily.", options, None) == Choice("undecided")
    assert choice("2) Heparin", options, None) == Choice("chosen", "2")


def test_the_text_of_an_option_may_begin_with_a_letter_of_another():
    options = {"A": "E. coli", "B": "C. difficile", "C": "S. aureus", "D": "Candida", "E": "HIV"}
    assert choice("E. coli", options, None) == Choice("chosen", "A")
    assert choice("E. coli is the cause.", options, None) == Choice("chosen", "A")
    assert choice("B. C. difficile", options, None) == Choice("chosen", "B")


HOSTILE = ["[" * 2_500, '{"answer":' * 1_000, "The answer is " * 1_000, "A and " * 1_500, "option " * 1_500,
           "\x00" * 10_000,
     "yes no " * 1_500, "not " * 2_500, "Therefore, " * 1_000, "(B" * 2_000, "a, " * 3_000, "```" * 10_000]  # fmt: skip


def test_hostile_answers_are_read_to_the_end():
    for hostile, options in itertools.product(HOSTILE, (DECISIONS, LETTERS)):
        assert choice(hostile, options, None).outcome in ("chosen", "undecided", "abstained")

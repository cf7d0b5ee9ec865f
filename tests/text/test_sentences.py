"""Notes are split by their layout first, and a split never falls inside a name, a number or an abbreviation."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.text.sentences import split

layouts = st.lists(
    st.sampled_from(
        [
            "Dr. Smith",
            "pain",
            "No",
            ". ",
            "! ",
            "? ",
            "\n",
            "\n\n",
            "- ",
            "1. ",
            "2.5 mg",
            "Plan: ",
            " ",
            "e.g. ",
            ")",
        ]
    ),
    max_size=25,
).map("".join)


def parts(text: str) -> list[str]:
    return [text[piece.start : piece.end] for piece in split(text)]


@given(layouts | st.text(max_size=200))
def test_pieces_are_in_order_and_apart(text):
    pieces = split(text)
    assert all(0 <= piece.start < piece.end <= len(text) for piece in pieces)
    assert all(one.end <= two.start for one, two in pairwise(pieces))


@given(layouts)
def test_no_word_is_lost(text):
    """Outside the pieces there is only space and the mark of a list item."""
    inside = {i for piece in split(text) for i in range(piece.start, piece.end)}
    outside = "".join(sign for i, sign in enumerate(text) if i not in inside)
    assert set(outside) <= set(" \n-12.")


@pytest.mark.parametrize(
    "text",
    [
        "Seen by Dr. Smith on the ward.",
        "Reviewed by Prof. Jones and Mrs. Ahmed today.",
        "Potassium was 2.5 mmol/L at 10.30 today.",
        "Give drugs that lower it, e.g. Amlodipine, at night.",
        "The dose is 0.5 mg vs. 5 mg in the old chart.",
        "Growth of Staph. aureus 1.2.3 was seen",
        "J. Smith was seen.",
        "Version no. 5 of the protocol applies.",
    ],
)
def test_one_sentence_stays_one(text):
    assert parts(text) == [text]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("No fever. Cough persists.", ["No fever.", "Cough persists."]),
        ("Stable! Home today? Yes.", ["Stable!", "Home today?", "Yes."]),
        ("Na was 140. 5 mg was given.", ["Na was 140.", "5 mg was given."]),
        ('He said "no pain." Then he slept.', ['He said "no pain."', "Then he slept."]),
        ("Afebrile.\nNo rash", ["Afebrile.", "No rash"]),
        ("Chest clear\nAbdomen soft", ["Chest clear", "Abdomen soft"]),
    ],
)
def test_sentences_are_parted(text, sentences):
    assert parts(text) == sentences


def test_a_hard_wrapped_line_goes_on_in_the_next():
    text = "The patient was admitted overnight with no\nevidence of pulmonary embolism on imaging.\nHome tomorrow."
    assert parts(text) == [
        "The patient was admitted overnight with no\nevidence of pulmonary embolism on imaging.",
        "Home tomorrow.",
    ]


@pytest.mark.parametrize("gap", ["\n\n", ":\n", ".\n"])
def test_a_line_that_has_ended_is_not_joined(gap):
    first = "The patient was admitted overnight with abdominal pain"
    assert len(split(first + gap + "cough and fever since monday")) == 2


@pytest.mark.parametrize("mark", ["- ", "* ", "• ", "1. ", "2) ", "(3) ", "  - "])
def test_list_items_are_known_and_lose_their_mark(mark):
    text = f"{mark}Aspirin 75 mg\n{mark}Ramipril 5 mg"
    pieces = split(text)
    assert [text[piece.start : piece.end] for piece in pieces] == ["Aspirin 75 mg", "Ramipril 5 mg"]
    assert all(piece.bullet for piece in pieces)


@pytest.mark.parametrize("text", ["2.5 mg daily", "-3 mmol/L", "10 mg at night", "5.Aspirin"])
def test_a_figure_at_the_start_is_no_list_mark(text):
    assert parts(text) == [text]
    assert not split(text)[0].bullet


def test_a_header_names_the_lines_below_it():
    text = "PMH:\nAsthma.\nGout.\nFamily history: breast cancer\nPlan: discharge"
    assert [piece.section for piece in split(text)] == ["pmh", "pmh", "pmh", "family history", "plan"]


def test_a_time_or_a_ratio_is_no_header():
    assert [piece.section for piece in split("Seen at 10:30 today\nRatio 1:10000 used")] == ["", ""]


@pytest.mark.parametrize("text", ["word " * 4000, "x" * 20000, "1" * 20000, "(" * 20000, "." * 20000])
def test_a_run_without_an_end_is_cut_and_nothing_is_lost(text):
    pieces = split(text)
    assert max(piece.end - piece.start for piece in pieces) <= 2000
    assert "".join(text[piece.start : piece.end] for piece in pieces) == text


def test_a_heading_without_a_colon_and_a_relative_in_a_list_are_sections():
    text = "Family history\n- Mother: Huntington disease\n- Brother: well\n\nPlan\nReview in clinic."
    sections = [(text[p.start : p.end], p.section) for p in split(text)]
    assert ("Mother: Huntington disease", "family history: mother") in sections
    assert ("Brother: well", "family history: brother") in sections
    assert ("Review in clinic.", "plan") in sections

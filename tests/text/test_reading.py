"""A reading: whatever the text, it comes back with positions that hold, and parses only where it may."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.errors import MissingDependency
from clinsafe.protocols import Span
from clinsafe.text import Reader, Reading, Token
from clinsafe.text.parse import BLANK, VARIABLE, Parser
from clinsafe.text.reading import LONGEST

READER = Reader(model="")
SHORT = {"Pt", "SOB", "w/o"}  # read as one other word


class Counting(Parser):
    """A parser that keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__("")
        self.asked: list[str] = []

    def sentence(self, tokens: Sequence[Token]) -> Any:
        self.asked.append(tokens[0].text)
        return tokens[0].text


def counted(text: str) -> tuple[Reading, Counting]:
    parser = Counting()
    return dataclasses.replace(READER.read(text), parser=parser), parser


def check_positions(reading: Reading) -> None:
    """Tokens lie in their sentences, in order; every range maps into the original text."""
    last = 0
    for index, sentence in enumerate(reading.sentences):
        assert sentence.index == index
        assert last <= sentence.start < sentence.end <= len(reading.cleaned.text)
        at = sentence.start
        for token in sentence.tokens:
            assert at <= token.start < token.end <= sentence.end
            at = token.start
        last = sentence.end
        span = reading.token_span(sentence.tokens)
        assert 0 <= span.start <= span.end <= len(reading.text)


@given(st.text(max_size=300))
def test_any_text_is_read(text):
    check_positions(READER.read(text))


@given(
    st.lists(
        st.sampled_from(
            [
                "Pt c/o SOB",
                "isn’t",
                "½",
                "10⁹/L",
                "\n- ",
                ". ",
                "? ",
                "PMH: ",
                "Dr. Lee",
                "w/o",
                "5 mg OD",
                "\u200b",
                "🩺",
            ]
        ),
        max_size=30,
    ).map(" ".join)
)
def test_a_note_is_read(text):
    reading = READER.read(text)
    check_positions(reading)
    for sentence in reading.sentences:
        shared = Counter((token.start, token.end) for token in sentence.tokens)
        for token in sentence.tokens:
            source = reading.cleaned.text[token.start : token.end]
            assert shared[token.start, token.end] > 1 or token.text == source or source in SHORT


@pytest.mark.parametrize(
    "text",
    ["1" * 20_000, "(" * 20_000, "[]" * 10_000, "a" * 20_000, "." * 20_000, "1," * 10_000, "w/" * 10_000,
     "b.i." * 5_000, "²" * 20_000, "\u200b" * 20_000, "\n" * 20_000, "can'" * 5_000, "PE:" * 6_000,
     "- " * 10_000, "?)" * 10_000, " " * 20_000, "A&" * 10_000],
    ids=lambda text: repr(text[:4]),
)  # fmt: skip
def test_twenty_thousand_characters_of_one_kind_are_read(text):
    reading = READER.read(text)
    check_positions(reading)
    ranges = {(token.start, token.end) for sentence in reading.sentences for token in sentence.tokens}
    read = "".join(reading.cleaned.text[start:end] for start, end in sorted(ranges))
    assert read == "".join(reading.cleaned.text.split()) or text.startswith("- ")  # a list mark is no token


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\u200b", "\ufeff\n"])
def test_nothing_gives_no_sentence(text):
    assert READER.read(text).sentences == ()


def test_the_end_of_an_overlong_text_is_left_and_said():
    reading = READER.read("word " * (LONGEST // 5) + "beyond")
    assert reading.cut
    assert all(token.text != "beyond" for sentence in reading.sentences for token in sentence.tokens)
    assert not READER.read("word").cut


# Sections and mood


@pytest.mark.parametrize(
    ("text", "subject", "time"),
    [
        ("Family history: breast cancer", "relative", "current"),
        ("FHx: breast cancer", "relative", "current"),
        ("PMH: breast cancer", "patient", "past"),
        ("Past surgical history:\n- Appendectomy", "patient", "past"),
        ("Assessment: breast cancer", "patient", "current"),
        ("Breast cancer", "patient", "current"),
    ],
)
def test_a_section_says_whose_and_when(text, subject, time):
    sentence = READER.read(text).sentences[-1]
    assert (sentence.subject, sentence.time) == (subject, time)


def test_a_new_header_ends_the_family_history():
    sentences = READER.read("Family history:\nBreast cancer.\nPlan:\nMastectomy.").sentences
    assert [sentence.subject for sentence in sentences] == ["relative", "relative", "patient", "patient"]


@pytest.mark.parametrize(
    "text",
    [
        "Does the patient have a penicillin allergy?",
        "does she have asthma",
        "what is the maximum dose of metformin",
        "Is 5 g metformin safe?",
        "Penicillin allergy?",
        "should warfarin be stopped",
    ],
)
def test_questions_are_no_claims(text):
    assert READER.read(text).sentences[0].mood == "question"


@pytest.mark.parametrize(
    "text",
    [
        "The patient has asthma.",
        "Has no allergies",
        "Was not given heparin",
        "Is allergic to penicillin.",
        "When stable, discharge home.",
        "No fever",
    ],
)
def test_claims_are_claims(text):
    assert READER.read(text).sentences[0].mood == "claim"


# Parses

THREE = "Cough persists. Fever resolved. Rash spreads."


def test_only_the_sentences_of_candidates_are_parsed():
    reading, parser = counted(THREE)
    start = THREE.index("resolved")
    narrowed = reading.only([Span(start, start + 3)])
    assert [narrowed.parse(sentence) for sentence in narrowed.sentences] == [None, "Fever", None]
    assert parser.asked == ["Fever"]


def test_a_narrowed_reading_still_holds_every_sentence():
    reading, _ = counted(THREE)
    narrowed = reading.only([])
    assert narrowed.sentences == reading.sentences
    assert narrowed.text == THREE
    assert all(narrowed.parse(sentence) is None for sentence in narrowed.sentences)
    assert all(reading.parse(sentence) is not None for sentence in reading.sentences)


def test_a_candidate_that_only_touches_the_border_counts_for_neither_neighbour():
    reading, parser = counted(THREE)
    border = THREE.index(" Fever")
    reading.only([Span(border, border + 1)]).parse(reading.sentences[0])
    assert parser.asked == []


def test_a_sentence_is_parsed_once_for_all():
    reading, parser = counted(THREE)
    narrowed = reading.only([Span(0, len(THREE))])
    for sentence in narrowed.sentences:
        narrowed.parse(sentence)
        reading.parse(sentence)
    assert parser.asked == ["Cough", "Fever", "Rash"]


def test_without_a_pipeline_there_is_no_parse_and_it_says_so():
    reading = READER.read(THREE)
    assert reading.parser.name == BLANK
    assert reading.parse(reading.sentences[0]) is None


def test_a_pipeline_that_is_not_there_is_one_line_with_its_fix(monkeypatch):
    pytest.importorskip("spacy")
    monkeypatch.setenv(VARIABLE, "en_no_such_pipeline")
    reading = Reader().read(THREE)
    with pytest.raises(MissingDependency, match="python -m spacy download en_no_such_pipeline") as caught:
        reading.parse(reading.sentences[0])
    assert "\n" not in str(caught.value)


def test_a_parse_has_one_word_per_token():
    """Several tokens of one abbreviation share a range; the parse must still line up."""
    pytest.importorskip("spacy")
    reading = Reader().read("Pt c/o SOB, isn’t on 5-FU w/o monitoring.")
    if reading.parser.name == BLANK:
        pytest.skip("no spaCy pipeline is installed")
    (sentence,) = reading.sentences
    doc = reading.parse(sentence)
    assert [word.text for word in doc] == [token.text for token in sentence.tokens]

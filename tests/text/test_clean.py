"""Clean-up changes the spelling of signs and never loses the way back to the original text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.text.clean import Cleaned, clean

# Signs that the map replaces, some by more characters, some by none, between letters that it leaves alone.
SIGNS = "aAbn tT'’ʼ“”–−·×µμ½¼…—•℃ºﬁ²³⁹⁻₂\u200b\u00ad\u00a0\t\r\n.,:5é🩺"
texts = st.text(alphabet=SIGNS, max_size=40) | st.lists(
    st.sampled_from(["isn't", "can’t", "won't", "cannot", "10⁹", "CO₂", "½", "\u200b", "x", " ", "5 µg"])
).map("".join)


def source_of(cleaned: Cleaned, position: int) -> str:
    """The original characters behind one cleaned character."""
    span = cleaned.span(position, position + 1)
    return cleaned.original[span.start : span.end]


@given(texts)
def test_every_span_lies_within_the_text_and_in_order(text):
    cleaned = clean(text)
    size = len(cleaned.text)
    ranges = [cleaned.span(i, i + 1) for i in range(size)]
    assert all(0 <= span.start <= span.end <= len(text) for span in ranges)
    assert all(one.start <= two.start and one.end <= two.end for one, two in pairwise(ranges))


@given(texts)
def test_a_kept_character_points_at_itself(text):
    """Letters and figures that no rule touches are found again where they were."""
    cleaned = clean(text)
    for position, sign in enumerate(cleaned.text):
        source = source_of(cleaned, position)
        if source == sign or sign not in source:
            continue
        assert len(source) > 1  # a contraction or a fraction counts as a whole
    kept = [source_of(cleaned, i) for i, sign in enumerate(cleaned.text) if sign == "é"]
    assert kept == ["é"] * text.count("é")


@given(texts, st.data())
def test_a_longer_range_covers_its_parts(text, data):
    cleaned = clean(text)
    end = data.draw(st.integers(0, len(cleaned.text)))
    start = data.draw(st.integers(0, end))
    whole = cleaned.span(start, end)
    for position in range(start, end):
        part = cleaned.span(position, position + 1)
        assert whole.start <= part.start
        assert part.end <= whole.end


@given(texts)
def test_the_whole_covers_all_that_has_a_trace(text):
    """Only invisible characters at the ends may be left out."""
    cleaned = clean(text)
    whole = cleaned.span(0, len(cleaned.text))
    outside = text[: whole.start] + text[whole.end :]
    assert clean(outside).text == ""


@given(texts)
def test_no_sign_of_a_second_spelling_is_left(text):
    assert not set("’“–−·×μ½…℃²₂\u200b\u00a0\t\r") & set(clean(text).text)


@given(st.text(max_size=200))
def test_any_text_can_be_cleaned(text):
    cleaned = clean(text)
    span = cleaned.span(0, len(cleaned.text))
    assert 0 <= span.start <= span.end <= len(text)


@pytest.mark.parametrize(
    ("given_text", "read", "source"),
    [
        ("The wound isn't clean", "not", "n't"),
        ("The wound isn’t clean", "not", "n’t"),
        ("She can't walk", "can not", "can't"),
        ("She cannot walk", "can not", "cannot"),
        ("He won’t eat", "will not", "won’t"),
        ("platelets 10⁹/L", "^9", "⁹"),
        ("5×10⁻³ mol", "^-3", "⁻³"),
        ("CO₂ retainer", "2", "₂"),
        ("give ½ tablet", "1/2", "½"),
        ("38 ℃ overnight", "°C", "℃"),
    ],
)
def test_a_spelled_out_sign_points_at_the_sign(given_text, read, source):
    cleaned = clean(given_text)
    start = cleaned.text.index(read)
    span = cleaned.span(start, start + len(read))
    assert given_text[span.start : span.end] == source


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 μg", "5 µg"),
        ("5\u00a0mg", "5 mg"),
        ("2–4 days", "2-4 days"),
        ("pH 7·35", "pH 7.35"),
        ("SpO₂ ≧ 92％", "SpO2 ≥ 92%"),
        ("ﬁbrosis", "fibrosis"),
        ("“stable”", '"stable"'),
        ("peni\u00adcillin", "penicillin"),
        ("peni\u200bcillin", "penicillin"),
    ],
)
def test_signs_that_look_alike_are_read_alike(one, other):
    assert clean(one).text == clean(other).text


@pytest.mark.parametrize("text", ["10⁹ is not 109", "3² is not 32", "1.5 is not 15", "-3 is not 3"])
def test_a_figure_never_turns_into_another(text):
    """NFKC would make 109 of 10⁹."""
    first, second = clean(text).text.split(" is not ")
    assert first != second


@pytest.mark.parametrize(
    "text", ["nt", "ant", "won", "can", "cant", "Canton", "wont to", "mountain’s top", "n't"]
)
def test_words_that_only_look_like_contractions_stay(text):
    assert "not" not in clean(text).text


def test_an_offset_after_many_replacements_is_still_right():
    text = "½ isn’t 10⁹ … " * 500 + "needle"
    cleaned = clean(text)
    start = cleaned.text.index("needle")
    span = cleaned.span(start, start + 6)
    assert text[span.start : span.end] == "needle"

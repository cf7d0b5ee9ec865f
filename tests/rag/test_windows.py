"""Tokens, word boundaries, and the run of sentences in which something was found."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.rag.windows import best_run, covering, find_words, runs, sentences, tokens

TEXT = "The dose is 5 mg daily. It is given at night! Is renal function normal? Stop it after a week."


@pytest.mark.parametrize(
    ("text", "wanted", "at"),
    [
        ("art and heart", "art", 0),
        ("heart and art", "art", 10),
        ("the heart", "art", -1),
        ("arthritis", "art", -1),
        ("give 0.5 mg", "5 mg", -1),
        ("give 0.5 mg, then 5 mg", "5 mg", 18),
        ("5 mg 5,000", "5", 0),
        ("65.5 years", "65", -1),
        ("age 65.", "65", 4),
        ("1,000 000", "000", 6),
        ("foo_bart foo_bar", "bar", 13),
        ("cafe\u0301 cafe", "cafe", 6),
        ("\u00e9tat", "tat", -1),
        ("≥65 years", "65", 1),
        ("is ≥65", "≥65", 3),
        ("hba1c 7", "c 7", -1),
        ("", "x", -1),
    ],
)
def test_a_phrase_is_found_where_no_word_or_number_is_cut(text, wanted, at):
    assert find_words(text, wanted) == at


words = st.lists(
    st.sampled_from(["a", "ab", "b", "5", "0.5", "a_b", "é", "e\u0301", ".", ",", "-"]), max_size=12
)


@settings(max_examples=60)
@given(words, words, st.sampled_from(["", " "]))
def test_what_is_found_has_all_its_tokens_where_it_was_found(text, wanted, glue):
    passage, phrase = glue.join(text), " ".join(wanted).strip(" .,")
    at = find_words(passage, phrase) if phrase else -1
    if at >= 0:
        assert not Counter(tokens(phrase)) - Counter(tokens(passage))
        assert passage[at : at + len(phrase)] == phrase


@settings(max_examples=60)
@given(
    st.text(st.sampled_from("ab5.,_ -é\u0301"), max_size=14),
    st.text(st.sampled_from("ab5.,_ -"), min_size=1, max_size=4),
)
def test_no_occurrence_is_skipped(text, wanted):
    found = find_words(text, wanted)
    alone = [at for at in range(len(text)) if text.startswith(wanted, at) and find_words(text, wanted) >= 0]
    clean = [
        at
        for at in range(len(text))
        if text.startswith(wanted, at)
        and (at == 0 or text[at - 1] == " ")
        and text[at + len(wanted) : at + len(wanted) + 1] in ("", " ")
    ]
    if clean:
        assert 0 <= found <= clean[0]
    if found >= 0:
        assert found in alone


def test_tokens_are_words_and_numbers():
    assert tokens("Give 0.5mg (b12), ≥65; 1,000 x-ray_2 −") == [
        "Give",
        "0.5",
        "mg",
        "b12",
        "65",
        "1,000",
        "x",
        "ray",
        "2",
    ]


def test_sentences_hold_a_word_each():
    assert [TEXT[a:b] for a, b in sentences(TEXT)] == [
        "The dose is 5 mg daily.",
        "It is given at night!",
        "Is renal function normal?",
        "Stop it after a week.",
    ]
    assert sentences("... !? --") == sentences("") == []
    assert sentences("yes") == [(0, 3)]


def test_runs_are_all_neighbours_and_never_none_of_a_text():
    places = sentences(TEXT)
    assert [
        TEXT[a:b].count(".") + TEXT[a:b].count("!") + TEXT[a:b].count("?") for a, b in runs(places, 2)
    ] == [2, 2, 2]
    assert runs(places, 9) == [(0, len(TEXT))]
    assert runs([], 2) == []


def test_the_run_that_holds_a_match_is_of_whole_sentences():
    places = sentences(TEXT)
    at = TEXT.index("daily")
    assert covering(places, at, at + 3) == places[0]
    assert covering(places, at, TEXT.index("night")) == (places[0][0], places[1][1])
    assert covering([], 2, 5) == (2, 5)


def brute(text, places, wanted, size, least):
    def held(a, b):
        have = Counter(tokens(text[a:b]))
        return sum(min(have[token], count) for token, count in wanted.items())

    for length in range(size, len(places) + 1):
        every = [(a, b, held(a, b)) for a, b in runs(places, length)]
        best = max(every, key=lambda run: run[2], default=None)
        if best and best[2] >= least:
            return best
    return 0, len(text), held(0, len(text))


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.sampled_from("abcde"), min_size=1, max_size=4), min_size=1, max_size=7),
    st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6),
    st.integers(1, 4),
    st.data(),
)
def test_the_best_run_is_the_best_of_all(sentence_words, wanted, size, data):
    parts = [" ".join(words) for words in sentence_words]
    text = ". ".join(parts)
    places, at = [], 0
    for part in parts:
        places.append((at, at + len(part)))
        at += len(part) + 2
    least = data.draw(st.integers(1, len(wanted)))
    counts = dict(Counter(wanted))
    assert best_run(text, places, counts, min(size, len(places)), least) == brute(
        text, places, counts, min(size, len(places)), least
    )

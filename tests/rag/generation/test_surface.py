"""Surface metrics against the libraries that define them, and that no word which turns a statement is lost."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from clinsafe.rag.generation.surface import overlap, prepare, rouge_l, surface, tokens

ROUGE = RougeScorer(["rougeL"], use_stemmer=False)
PIECES = (
    "no", "not", "aspirin", "5", "1.5", "mg", "daily", "the", "a", "with", "without", "fever,", "cough.", "IL-6", "<65",
    "x_y", "(mild)", "10%",
)  # fmt: skip
CLINICAL = st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join)


def same(text):
    return text


def score(answer, *references):
    return surface(prepare(answer, same), [prepare(reference, same) for reference in references])


@settings(max_examples=60)
@given(CLINICAL, CLINICAL)
def test_rouge_l_is_rouge_scores(answer, reference):
    ours = rouge_l(prepare(answer, same).rouge, prepare(reference, same).rouge)
    assert ours == pytest.approx(ROUGE.score(reference, answer)["rougeL"].fmeasure, abs=1e-12)


@settings(max_examples=60)
@given(CLINICAL, CLINICAL)
def test_token_overlap_is_squads_on_all_tokens(answer, reference):
    a, r = tokens(answer), tokens(reference)
    common = sum((Counter(a) & Counter(r)).values())
    found = overlap(a, r)
    if not common:
        assert found == (0, 0, 0)
        return
    precision, recall = common / len(a), common / len(r)
    assert found == pytest.approx((precision, recall, 2 * precision * recall / (precision + recall)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("No fever.", ["no", "fever"]),
        ("The dose is 1.5 mg", ["the", "dose", "is", "1.5", "mg"]),
        ("1,000 mg", ["1000", "mg"]),
        ("5mg ≥65 <10%", ["5", "mg", "≥", "65", "<", "10", "%"]),
        ("", []),
        ("\x00\x07 .", []),
    ],
)
def test_the_tokens_that_count(text, expected):
    assert tokens(text) == expected


def test_a_contraction_keeps_its_negation():
    assert prepare("It isn’t safe", same).tokens == ("it", "is", "not", "safe")


@pytest.mark.parametrize(
    ("answer", "reference"),
    [("no fever", "fever"), ("aspirin 5 mg", "aspirin 50 mg"), ("age < 65", "age > 65"), ("a cold", "cold")],
)
def test_no_turned_statement_scores_as_the_same(answer, reference):
    found = score(answer, reference)
    assert found.exact == 0
    assert found.tokens.f1 < 1


def test_the_best_reference_counts_for_each_metric():
    found = score("aspirin", "heparin sodium", "Aspirin.", "warfarin")
    assert (found.exact, found.fuzzy, found.rouge_l, found.tokens.f1) == (1, 1, 1, 1)
    assert score("heparin", "aspirin").exact == 0


def test_an_answer_without_words_is_worth_nothing():
    for empty in ("", "  ", "...", "\x00"):
        assert score(empty, "aspirin") == (0, 0, 0, (0, 0, 0))


def test_the_given_normalisation_is_used():
    text = "aged 65+"
    ready = [
        prepare(one, lambda given: given.replace("65+", "at least 65")) for one in (text, "Aged at least 65")
    ]
    assert surface(ready[0], ready[1:]).exact == 1

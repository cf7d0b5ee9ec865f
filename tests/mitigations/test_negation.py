"""The negation filter: signs read in sentences, conflicts between texts, and what must hold whatever the text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.polarity.line import OPEN, PLAIN, SHADED, SIGNED
from clinsafe.mitigations.polarity.signs import sign
from tests.mitigations.negation_kit import compare, load_once, stack

CASES = yaml.load((Path(__file__).parents[1] / "cases/negation.yaml").read_text("utf-8"), yaml.BaseLoader)


def named(row: dict[str, Any]) -> str:
    return f"{row['kind']}: {row.get('query') or row['text']}"[:70]


# ── cases ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("row", CASES["pairs"], ids=named)
def test_a_pair_is_a_conflict_or_safe(row: dict[str, str]) -> None:
    found = compare(row["query"], row["passage"])
    assert not found.unchecked
    assert found.conflict == (row["expect"] == "conflict"), found.conflicts


def state_of(text: str, word: str) -> str:
    reader = stack().reader
    for sentence in reader.read(text).sentences:
        line = sign(sentence.tokens, load_once().rules)
        for index, token in enumerate(sentence.tokens):
            if token.text == word:
                lexical = line.lexical[index]
                if line.state[index] == OPEN:
                    return "open"
                if line.state[index] == SIGNED or (lexical and line.state[index] == PLAIN):
                    value = line.sign[index] * (lexical.sign if lexical else 1)
                    return "absent" if value < 0 else "present"
                return "undecided" if line.state[index] == SHADED else "present"
    raise AssertionError(f"{word!r} is not in {text!r}")


@pytest.mark.parametrize("row", CASES["readings"], ids=named)
def test_the_sign_of_a_word(row: dict[str, Any]) -> None:
    assert {word: state_of(row["text"], word) for word in row["read"]} == row["read"]


def test_each_kind_of_rule_has_cases_of_its_own() -> None:
    kinds = {row["kind"] for row in CASES["pairs"]}
    for kind in (
        "plain_not", "allergy_contraindication", "double_negation", "exception_scope",
        "affix_lexical", "resolved", "clinical_cue", "action", "question", "past", "relative",
    ):  # fmt: skip
        assert kind in kinds
    assert all(
        row["source"] == "own" or row["source"].startswith("https://github.com/") for row in CASES["pairs"]
    )


# ── findings ──────────────────────────────────────────────────────────────────────────────────


def test_a_finding_says_where_and_what() -> None:
    query, passage = "She has a penicillin allergy.", "Chart review: no penicillin allergy; on ramipril."
    found = [one for one in compare(query, passage).conflicts if one.rule != "negation.same-words"]
    assert found
    one = found[0]
    assert one.hazard == "negation"
    assert "allergy" in query[one.query_span.start : one.query_span.end]
    assert passage[one.passage_span.start : one.passage_span.end] == "penicillin allergy"
    assert one.cue == "no"
    assert one.rule == "negation.no"
    assert "absent" in one.passage_normal
    assert "present" in one.query_normal
    assert one.severity == "critical"
    assert 0 < one.confidence <= 1
    assert (
        one.sentence
        == "The query says that penicillin allergy is present; the passage says that it is absent."
    )


@pytest.mark.parametrize(
    ("query", "passage", "sentence"),
    [
        ("Give aspirin.", "Do not give aspirin.",
         "The query says that aspirin is given, or allowed; the passage says that it is not given, or not allowed."),
        ("Palpitations are present.", "There are no palpitations.",
         "The query says that palpitations are present; the passage says that they are absent."),
        ("The child is not sitting up.", "The child is sitting up.",
         'The query says "not sitting"; the passage says "sitting".'),
        ("The patient is afebrile.", "The patient is febrile.",
         "The query says that fever is absent; the passage says that it is present."),
        ("The dose was increased.", "The dose was not increased.",
         "The query says that dose is increased; the passage says that it is not increased."),
        ("He is orientated.", "He is disorientated.",
         'The query says "orientated"; the passage says "not orientated".'),
        ("Warfarin was stopped.", "Warfarin was restarted.",
         "The query says that warfarin is not given, or not allowed; the passage says that it is given, or allowed."),
        ("The vein graft is patent.", "The vein graft is occluded.",
         "The query says that vein graft is patent; the passage says that it is not patent."),
    ],
)  # fmt: skip
def test_the_sentence_names_the_thing(query: str, passage: str, sentence: str) -> None:
    assert sentence in [one.sentence for one in compare(query, passage).conflicts]


# ── certainty ─────────────────────────────────────────────────────────────────────────────────


def surest(query: str, passage: str) -> float:
    return max((one.confidence for one in compare(query, passage).conflicts), default=0.0)


def test_agreement_of_the_rest_makes_a_conflict_surer() -> None:
    query = "No wound leak was seen after the hip replacement."
    near = surest(query, "A wound leak was seen after the hip replacement.")
    far = surest(query, "A wound leak was seen by the tissue viability nurse at home on Sunday.")
    assert near >= 0.9
    assert far < near


@pytest.mark.parametrize(
    "passage",
    [
        "The splint is off.",
        "The splint was left aside today.",
        "It is uncertain whether the splint is on.",
        "Without the splint she manages.",
    ],
)
def test_a_word_that_is_not_accounted_for_silences(passage: str) -> None:
    assert not compare("She has no splint.", passage).conflict


def test_a_denial_that_only_moved_is_none() -> None:
    assert not compare(
        "The nurse denied that the line was not flushed.", "The line was flushed, the nurse said."
    ).conflict


def test_two_things_of_one_head_are_two() -> None:
    passage = "The live vaccine was given; the recombinant vaccine was not given."
    assert not compare("The live vaccine was given.", passage).conflict
    assert compare("The recombinant vaccine was given.", passage).conflict


def test_offsets_count_in_the_original_text() -> None:
    passage = "K⁺ 4.1 — she can’t eat… No\u00a0hæmatoma, “no” sepsis."
    found = compare("There is sepsis.", passage).conflicts
    assert found
    assert {passage[one.passage_span.start : one.passage_span.end] for one in found} == {"sepsis"}


def test_agreement_is_reported_too() -> None:
    found = compare("No fever.", "The patient was afebrile.").findings
    assert [one.verdict for one in found] == ["compatible"]
    assert found[0].severity == "note"


def test_a_question_is_never_contradicted() -> None:
    for question in ("Is there a haematoma?", "Does he have no haematoma?", "has the haematoma resolved"):
        for answer in ("There is no haematoma.", "There is a haematoma.", "The haematoma has resolved."):
            assert not compare(question, answer).conflict


def test_family_history_is_another_persons() -> None:
    text = "Family history:\nNo diabetes."
    assert not compare("The patient has diabetes.", text).conflict


# ── invariants ────────────────────────────────────────────────────────────────────────────────

TEXTS = sorted({row[side] for row in CASES["pairs"] for side in ("query", "passage")})
WORDS = st.sampled_from(
    [
        "no",
        "not",
        "without",
        "denies",
        "never",
        "neither",
        "nor",
        "fever",
        "pain",
        "rash",
        "the",
        "a",
        "and",
        "or",
        "but",
        ",",
        ".",
        ";",
        ":",
        "-",
        "free",
        "absent",
        "present",
        "has",
        "is",
        "was",
        "been",
        "excluded",
        "resolved",
        "stop",
        "give",
        "avoid",
        "except",
        "all",
        "of",
        "in",
        "with",
        "unremarkable",
        "afebrile",
        "non",
        "contraindicated",
        "to",
        "?",
        "3",
    ]
)


@pytest.mark.parametrize("text", TEXTS[::3])
def test_a_text_never_contradicts_itself(text: str) -> None:
    assert not compare(text, text).conflict


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, max_size=25), st.lists(WORDS, max_size=25))
def test_conflict_is_symmetric(one: Sequence[str], other: Sequence[str]) -> None:
    a, b = " ".join(one), " ".join(other)
    assert compare(a, b).conflict == compare(b, a).conflict
    assert not compare(a, b).unchecked


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_read(text: str) -> None:
    facts = stack().read(text)
    assert not facts.unchecked
    for fact in facts.by_filter["negation"]:
        assert 0 <= fact.span.start <= fact.span.end <= len(text)


@pytest.mark.parametrize(
    "text", ["", " ", "🫀🫁", "لا حمى", "?", "no", "not", "without", "-", "no no no", "\u202eon", "\x00"]
)
def test_odd_texts_give_no_conflict(text: str) -> None:
    assert not compare(text, "There is no fever.").conflict
    assert not compare(text, text).unchecked


def test_facts_survive_json() -> None:
    for text in TEXTS[::5]:
        facts = stack().read(text)
        again = TextFacts.from_json(json.loads(json.dumps(facts.to_json())))
        assert again == facts


class NoParser:
    """A parser that must not be called."""

    def sentence(self, tokens: Sequence[Any]) -> Any:
        raise AssertionError(f"parsed {tokens!r}")


def test_no_parse_is_asked_for() -> None:
    """Facts do not depend on a pipeline, so that narrowing never changes them."""
    reading = replace(stack().reader.read("No fever. Rash has not resolved."), parser=NoParser())
    one = load_once()
    assert list(one.read(reading)) == list(one.read(reading.only([])))

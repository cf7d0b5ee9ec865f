"""What declines to answer and what answers after all; a clinical negative is an answer."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from clinsafe.content import Content
from clinsafe.errors import ContentError
from clinsafe.rag.generation.abstention import LONGEST, abstains
from clinsafe.rag.generation.words import load_words

ANNOTATED = yaml.load((Path(__file__).parent / "abstentions.yaml").read_text("utf-8"), yaml.BaseLoader)
CASES = [(text, True) for text in ANNOTATED["declines"]] + [(text, False) for text in ANNOTATED["answers"]]


def test_annotated():
    assert [(answer, abstains(answer)) for answer, _ in CASES] == CASES


@pytest.mark.parametrize(
    "broken",
    [
        lambda text: True,
        lambda text: False,
        lambda text: "not" in text.lower(),
        lambda text: "cannot" in text,
    ],
)
def test_a_broken_reader_is_seen(broken):
    wrong = [
        sum(broken(text) != expected for text, expected in CASES if expected is kind)
        for kind in (True, False)
    ]
    assert max(wrong) >= 8


def test_an_answer_before_or_after_the_refusal_is_told_by_its_place():
    assert abstains("Osteoporosis weakens bones. I cannot answer the question from the passages.")
    assert abstains("The question cannot be answered from the passages. Please ask a specialist.")
    assert not abstains("The question cannot be answered from the passages. Aspirin 75 mg daily is usual.")


HOSTILE = ["not " * 1_200, "the passages do not " * 200, "I cannot " * 500, "there is no " * 400, "." * 4_000,
           "\x00" * 4_000,
     "unable to " * 400, "not stated " * 400, "word " * 900 + "is not stated", "not " * 300_000]  # fmt: skip


def test_hostile_answers_are_read_to_the_end():
    for hostile in HOSTILE:
        assert isinstance(abstains(hostile), bool)


def test_who_writes_a_great_deal_has_answered():
    assert not abstains("I cannot answer. " * LONGEST)


def test_the_words_are_content(overlay):
    root = overlay(
        "benchmarks/rag/abstention.yaml", lambda text: text.replace("no idea,", "no idea, kein befund,")
    )
    assert abstains("Kein Befund.", load_words(Content(root)))
    assert not abstains("Kein Befund.")
    root = overlay("benchmarks/rag/abstention.yaml", lambda text: text + "\nextra: [a]\n")
    with pytest.raises(ContentError, match="extra"):
        load_words(Content(root))

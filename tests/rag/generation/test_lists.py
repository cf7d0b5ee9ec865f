"""Lists a clinician has annotated, and the F1 over their components."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.rag.generation.lists import LEAST_SHARE, components, list_f1, prepared
from clinsafe.rag.generation.words import packaged

ANNOTATED = yaml.load((Path(__file__).parent / "lists.yaml").read_text("utf-8"), yaml.BaseLoader)
THRESHOLD = 0.9


def ready(parts):
    return prepared(parts, lambda text: text, packaged())


def f1(answer, reference):
    return list_f1(ready(answer), ready(reference), THRESHOLD)


def test_annotated():
    read = [[text, components(text)] for text, _ in ANNOTATED]
    assert read == ANNOTATED


def test_there_are_enough_annotated_texts_of_both_kinds():
    lists = [expected for _, expected in ANNOTATED if expected]
    assert len(lists) >= 40
    assert len(ANNOTATED) - len(lists) >= 12


def test_order_does_not_matter():
    parts = ["smoking", "obesity", "age over 65"]
    assert {f1(order, parts) for order in itertools.permutations(parts)} == {1.0}


def test_the_same_list_in_other_forms_is_the_same_list():
    forms = [
        "The risk factors include smoking, obesity, and age over 65.",
        "- smoking\n- obesity\n- age over 65",
        "1. Modifiable:\n   - Smoking\n   - Obesity\n2. Fixed:\n   - Age over 65",
        "Obesity; age over 65; and smoking",
    ]
    for one, other in itertools.product(forms, forms):
        assert f1(components(one), components(other)) == 1.0


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [
        (["a"], ["a", "b", "c"], 0.5),
        (["a", "b", "c", "d"], ["a", "b"], 4 / 6),
        (["a", "a", "a"], ["a", "b"], 2 / 5),  # said three times is found once
        (["x", "y"], ["a", "b"], 0.0),
        ([], ["a", "b"], 0.0),
        (["kidney stone"], ["kidney stones"], 1.0),
        (["muscle pain (myalgia)", "fever"], ["muscle pain", "fever"], 1.0),
        (["Smoking: raises the risk", "fever"], ["smoking", "fever"], 1.0),
    ],
)
def test_f1(answer, reference, expected):
    assert f1(answer, reference) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("increased intracranial pressure", "no increased intracranial pressure"),
        ("hyperparathyroidism of renal origin", "hypoparathyroidism of renal origin"),
        ("metformin 1,000 mg twice daily", "metformin 1,500 mg twice daily"),
        ("fracture of the left femoral neck", "fracture of the right femoral neck"),
        ("renal impairment (not a contraindication)", "renal impairment"),
        ("maternal history of thrombosis", "paternal history of thrombosis"),
    ],
)
def test_components_that_are_alike_and_say_something_else_do_not_match(one, other):
    assert f1([one, "fever"], [other, "fever"]) == 0.5


def test_a_denied_lead_in_denies_its_components():
    said = components("The risk factors do not include smoking, obesity and age.")
    assert f1(said, components("The risk factors include smoking, obesity and age.")) == 0.0


def test_prose_around_an_enumeration_is_no_list():
    prose = (
        "The condition is inherited and affects the muscles. It begins in childhood and worsens slowly. Symptoms "
        "include cramps, fatigue and weakness. Most people live a normal life span and need no treatment at all."
    )
    assert components(prose, least_share=LEAST_SHARE) == []
    assert components(prose) == ["cramps", "fatigue", "weakness"]


@settings(max_examples=40)
@given(st.lists(st.sampled_from("abcdef"), max_size=6), st.lists(st.sampled_from("abcdef"), max_size=6))
def test_one_to_one_and_as_many_as_can_be(answer, reference):
    common = sum(min(answer.count(part), reference.count(part)) for part in set(answer))
    expected = 2 * common / (len(answer) + len(reference)) if answer and reference else 0.0
    given_as = {letter: f"component {letter * 9}" for letter in "abcdef"}  # none is like another
    assert f1([given_as[p] for p in answer], [given_as[p] for p in reference]) == pytest.approx(expected)


def test_a_chain_of_alike_components_is_matched_optimally():
    # The first fits both; who takes the nearest first leaves the second without a partner.
    assert f1(["abcdefghijkl", "abcdefghijklmn"], ["abcdefghijklm", "bcdefghijk"]) == 1.0


HOSTILE = ["- " * 5_000, "(" * 10_000, ", and " * 2_000, "1. 1. " * 2_000, "; " * 5_000, "- a\n" * 3_000, "a:" * 5_000,
     "include " * 2_000, "\x00" * 10_000, "  " * 5_000, "between and or " * 1_000, "either a, b " * 1_000]  # fmt: skip


def test_hostile_texts_are_read_to_the_end():
    for hostile in HOSTILE:
        assert isinstance(components(hostile), list)

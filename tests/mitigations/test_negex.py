"""One concept, one answer: our engine, its scores, and negspacy beside it."""

from __future__ import annotations

import sys

import pytest

from clinsafe.errors import MissingDependency
from clinsafe.mitigations.filters.negation import load
from clinsafe.mitigations.polarity.negex import find, negated, scores, stock_negspacy
from clinsafe.mitigations.polarity.negspacy import Negspacy, termset_of
from clinsafe.mitigations.stack import Stack
from tests.mitigations.negation_kit import load_once, stack

READER = stack().reader
RULES = load_once().rules


@pytest.mark.parametrize(
    ("sentence", "concept", "expected"),
    [
        ("No murmurs, GALLOPS, rubs.", "gallops", True),
        ("Denies nausea, vomiting   and DIARRHEA but has   cramps.", "diarrhea", True),
        ("Denies nausea but has CRAMPS.", "cramps", False),
        ("ALLERGIES:  He has no known ALLERGIES.", "allergies", True),
        ("His NAUSEA and vomiting resolved.", "nausea", True),
        ("No PERICARDIAL  OR PLEURAL EFFUSIONS.", "pericardial or pleural effusions", True),
        ("Alert, in no ACUTE DISTRESS.", "acute distress", True),
        ("PNEUMONIA cannot be excluded.", "pneumonia", False),
        ("Review to rule out SEPSIS.", "sepsis", False),
        ("No increase in the EFFUSION.", "effusion", False),
        ("There is no SPLENOMEGALY.", "splenomegaly", True),
        ("No fever.", "sepsis", None),
        ("No fever.", "", None),
    ],
)
def test_whether_a_concept_is_negated(sentence: str, concept: str, expected: bool | None) -> None:
    assert negated(READER.read(sentence), concept, RULES) is expected


def test_the_packaged_rules_are_the_default() -> None:
    assert negated(READER.read("No rash."), "rash") is True


def test_a_concept_is_found_across_white_space_and_case() -> None:
    text = "pain; acute   disk\nherniation"
    found = find(text, "Acute disk herniation")
    assert found is not None
    assert text[slice(*found)] == "acute   disk\nherniation"


def test_scores_count_negated_as_positive() -> None:
    figures = scores([(True, True), (True, False), (False, True), (False, False), (True, True)])
    assert figures["precision"] == pytest.approx(2 / 3)
    assert figures["recall"] == pytest.approx(2 / 3)
    assert figures["f1"] == pytest.approx(2 / 3)
    assert scores([])["f1"] == 0.0


@pytest.mark.slow
def test_stock_negspacy_judges_a_given_span() -> None:
    pytest.importorskip("negspacy")
    judge = stock_negspacy()
    assert judge("There is no fever.", "fever") is True
    assert judge("There is fever.", "fever") is False
    assert judge("There is fever.", "rash") is None


@pytest.mark.slow
def test_negspacy_can_be_the_engine_of_the_filter() -> None:
    pytest.importorskip("negspacy")
    stack = Stack({"negation": load(engine="negspacy")}, READER, seconds=0)
    assert stack.compare(stack.read("There is a rash."), stack.read("There is no rash.")).conflict
    assert not stack.compare(
        stack.read("There is a rash."), stack.read("No fever; there is a rash.")
    ).conflict


def test_our_cues_make_a_termset() -> None:
    terms = termset_of(RULES)
    assert set(terms) == {"pseudo_negations", "preceding_negations", "following_negations", "termination"}
    assert "without" in terms["preceding_negations"]
    assert "but" in terms["termination"]
    assert not any("~" in word or "|" in word for rows in terms.values() for word in rows)


@pytest.mark.slow
def test_missing_negspacy_is_told_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "negspacy.negation", None)
    with pytest.raises(MissingDependency, match="pip install"):
        Negspacy(None)

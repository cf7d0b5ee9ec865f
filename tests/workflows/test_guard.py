"""Putting a stack together: which filters, and what is said when one cannot be had."""

from __future__ import annotations

import pytest

import clinsafe
from clinsafe import plugins
from clinsafe.errors import ContentError, UsageError
from clinsafe.workflows.guard import build_stack
from tests.mitigations.fakes import Scripted


def given(monkeypatch, made):
    monkeypatch.setattr(plugins, "available", lambda _kind: {"negation": None, "own": None})
    monkeypatch.setattr(plugins, "load", lambda _kind, name: made[name])


def test_filters_of_other_packages_come_after_the_hazards_own(monkeypatch):
    given(
        monkeypatch,
        {"negation": lambda _: Scripted("compatible"), "own": lambda _: Scripted("conflict", "own")},
    )
    stack = build_stack(model="", seconds=0)
    assert list(stack.filters) == ["negation", "own"]
    facts = stack.read("chest pain")
    assert [found.hazard for found in stack.compare(facts, facts).conflicts] == ["own"]


def broken(_content):
    raise SyntaxError("bad")


@pytest.mark.parametrize(
    ("load", "said"),
    [(broken, "'own' cannot be loaded"), (lambda _: object(), "has no `hazard`, `read` and `compare`")],
)
def test_a_filter_that_is_none_is_one_line(monkeypatch, load, said):
    given(monkeypatch, {"own": load})
    with pytest.raises(UsageError, match=said):
        build_stack(names=["own"], model="", seconds=0)


def test_a_broken_pack_stays_a_content_error(monkeypatch):
    def load(_content):
        raise ContentError("x.yaml", 1, None, "broken")

    given(monkeypatch, {"own": load})
    with pytest.raises(ContentError):
        build_stack(names=["own"], model="", seconds=0)


def test_reading_once_and_comparing_later_is_the_same_as_comparing_texts():
    query, passage = "The patient has a penicillin allergy.", "The patient has no penicillin allergy."
    stored = clinsafe.read(passage, filters=["negation"])
    by_text = clinsafe.compare(query, passage, filters=["negation"])
    assert by_text.conflict
    assert not by_text.safe
    assert clinsafe.compare(query, stored, filters=["negation"]) == by_text
    (finding, *_) = by_text.conflicts
    assert "allergy" in passage[finding.passage_span.start : finding.passage_span.end]


def test_no_filter_at_all_is_refused_because_it_would_call_everything_safe():
    with pytest.raises(UsageError, match="no filter was chosen; there are: negation"):
        clinsafe.compare("a", "b", filters=[])


def test_facts_of_one_filter_are_not_taken_for_the_facts_of_six():
    stored = clinsafe.read("Warfarin 50 mg nightly.", filters=["negation"])
    result = clinsafe.compare("Warfarin 5 mg nightly.", stored)
    assert "numerical" in result.unchecked
    assert not result.safe


def test_an_unknown_filter_is_refused_with_the_names_there_are():
    with pytest.raises(UsageError, match=r"no filter is called 'laterality'; there are: .*negation"):
        clinsafe.compare("a", "b", filters=["laterality"])

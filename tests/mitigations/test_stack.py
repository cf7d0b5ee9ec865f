"""No failure of a filter reaches the caller, and none is taken for "no conflict"."""

from __future__ import annotations

import json
import logging

import pytest

from clinsafe.errors import UsageError
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.stack import Stack
from clinsafe.protocols import Fact, Span
from tests.mitigations.fakes import Broken, Scripted, hang, throw


def compared(*filters, seconds=0.0, a="chest pain", b="no chest pain"):
    stack = Stack({f"f{n}": one for n, one in enumerate(filters)}, seconds=seconds)
    return stack.compare(stack.read(a), stack.read(b))


def test_always_and_never_and_no_filter_at_all_are_told_apart():
    assert compared(Scripted("conflict")).conflict
    assert compared(Scripted("compatible")).safe
    assert not compared(Scripted("not_comparable")).conflict
    nothing = compared()
    assert nothing.findings == ()
    assert nothing.safe  # a stack without filters has nothing unchecked: `build_stack` never makes one


@pytest.mark.parametrize("where", ["read", "compare"])
@pytest.mark.parametrize(
    ("act", "seconds", "reason"), [(throw, 0, "RuntimeError"), (hang, 0.05, "ran out of time")]
)
def test_a_filter_that_throws_or_hangs_is_unchecked_and_unsafe_and_the_others_go_on(
    where, act, seconds, reason
):
    result = compared(Broken(where, act), Scripted("compatible", "numerical"), seconds=seconds)
    assert reason in result.unchecked["f0"]
    assert not result.safe
    assert [found.hazard for found in result.findings] == ["numerical"]


def test_what_a_filter_says_when_it_fails_is_in_no_log_and_no_result(caplog):
    with caplog.at_level(logging.DEBUG):
        result = compared(Broken("read", throw))
    assert "Canary" not in caplog.text + str(result.unchecked)
    assert "f0" in caplog.text


def test_a_pair_that_shares_no_key_is_never_compared_and_a_fact_without_keys_always_is():
    assert compared(Scripted(), a="chest pain", b="left arm").findings == ()

    class Keyless(Scripted):
        def read(self, reading):
            return [Fact("negation", Span(0, 1), {})]

    assert compared(Keyless(), a="chest pain", b="left arm").conflict


def test_a_text_that_was_not_read_to_its_end_is_unchecked(monkeypatch):
    monkeypatch.setattr("clinsafe.text.reading.LONGEST", 20)
    result = compared(Scripted("compatible"), b="chest pain " * 10)
    assert "too long" in result.unchecked["f0"]


def test_facts_survive_the_way_to_json_and_back():
    normal = {
        "keys": frozenset({"a", "b"}),
        "interval": (0.5, None),
        "inner": {"more_keys": frozenset("x")},
        "n": 1,
    }
    facts = TextFacts({"f": (Fact("negation", Span(1, 2), normal, "cue", "rule"),)}, {"g": "read: failed"})
    again = TextFacts.from_json(json.loads(json.dumps(facts.to_json())))
    assert again == facts
    assert again.keys == {"f": frozenset({"a", "b"})}


@pytest.mark.parametrize(
    ("data", "said"),
    [({"schema_version": 2, "facts": {}, "unchecked": {}}, "schema 2"), ({}, "schema_version"), ([], "not the facts"),
     ({"schema_version": 1, "facts": {"f": [{}]}, "unchecked": {}}, "span|normal")],
)  # fmt: skip
def test_what_is_no_facts_is_refused_in_one_line(data, said):
    with pytest.raises(UsageError, match=said):
        TextFacts.from_json(data)


def test_check_on_raw_text_equals_comparing_stored_facts():
    stack = Stack({"f": Scripted()}, seconds=0)
    query, passages = "chest pain", ["no chest pain", "left arm"]
    stored = [stack.compare(stack.read(query), stack.read(text)) for text in passages]
    assert stack.check(query, passages) == stored


def test_after_a_hang_the_next_pair_is_still_compared():
    broken = Broken("compare", hang)
    stack = Stack({"f": broken}, seconds=0.05)
    facts = stack.read("chest pain")
    assert stack.compare(facts, facts).unchecked
    broken.act = lambda: None
    assert stack.compare(facts, facts).conflict

"""No failure of a filter reaches the caller, and none is taken for "no conflict"."""

from __future__ import annotations

import json
import logging
import os
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from clinsafe.errors import UsageError
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.stack import REST, Stack
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

    class KeylessQuery(Scripted):
        def read(self, reading):
            return super().read(reading) if "arm" in reading.text else [Fact("negation", Span(0, 1), {})]

    assert compared(Keyless(), a="chest pain", b="left arm").conflict
    assert compared(KeylessQuery(), a="chest pain", b="left arm").conflict
    assert compared(KeylessQuery(), a="left arm", b="chest pain").conflict


def test_one_filter_under_two_names_is_compared_under_both():
    one = Scripted("conflict")
    assert len(compared(one, one).conflicts) == 2


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
    [({"schema_version": 1, "facts": {}, "unchecked": {}}, "schema 1"), ({}, "schema_version"), ([], "not the facts"),
     ({"schema_version": 2, "facts": {"f": [{}]}, "unchecked": {}}, "span|normal")],
)  # fmt: skip
def test_what_is_no_facts_is_refused_in_one_line(data, said):
    with pytest.raises(UsageError, match=said):
        TextFacts.from_json(data)


def test_check_on_raw_text_equals_comparing_stored_facts():
    stack = Stack({"f": Scripted()}, seconds=0)
    query, passages = "chest pain", ["no chest pain", "left arm"]
    stored = [stack.compare(stack.read(query), stack.read(text)) for text in passages]
    assert stack.check(query, passages) == stored


def test_facts_that_were_made_without_a_filter_are_unchecked_and_never_safe():
    few, many = (
        Stack({"f": Scripted("compatible")}, seconds=0),
        Stack({"f": Scripted("compatible"), "g": Scripted("conflict")}, seconds=0),
    )
    stored = few.read("chest pain")
    for result in (
        many.compare(many.read("chest pain"), stored),
        many.compare(stored, many.read("chest pain")),
    ):
        assert "without this filter" in result.unchecked["g"]
        assert not result.safe
    assert few.compare(
        stored, many.read("chest pain")
    ).safe  # what this stack does not ask for is nothing to it


def test_a_filter_that_leaves_the_program_is_unchecked():
    def leave():
        raise SystemExit(0)

    assert "SystemExit" in compared(Broken("read", leave)).unchecked["f0"]
    assert "SystemExit" in compared(Broken("read", leave), seconds=5).unchecked["f0"]


def test_a_filter_that_always_hangs_is_left_alone_for_a_while_and_named(monkeypatch):
    stack = Stack({"f": Broken("read", hang), "g": Scripted("compatible")}, seconds=0.05)
    reasons = [stack.read("chest pain").unchecked["f"] for _ in range(5)]
    assert ["out of time" in reason for reason in reasons] == [True] * 5
    assert ["not asked" in reason for reason in reasons] == [False, False, False, True, True]
    assert set(stack.read("chest pain").by_filter) == {"g"}
    later = time.monotonic() + REST
    monkeypatch.setattr(time, "monotonic", lambda: later)
    stack.filters["f"].act = lambda: None
    assert set(stack.read("chest pain").by_filter) == {"f", "g"}


def test_callers_on_several_threads_do_not_wait_for_one_another():
    stack = Stack({"f": Broken("read", lambda: time.sleep(0.3))}, seconds=0.9)
    with ThreadPoolExecutor(6) as pool:
        facts = list(pool.map(stack.read, ["chest pain"] * 6))
    assert [one.unchecked for one in facts] == [{}] * 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_compares_with_a_worker_of_its_own():
    stack = Stack({"f": Scripted("compatible")}, seconds=5)
    stack.read("chest pain")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forking beside threads
        child = os.fork()
    if child == 0:
        os._exit(0 if not stack.read("chest pain").unchecked else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_after_a_hang_the_next_pair_is_still_compared():
    broken = Broken("compare", hang)
    stack = Stack({"f": broken}, seconds=0.05)
    facts = stack.read("chest pain")
    assert stack.compare(facts, facts).unchecked
    broken.act = lambda: None
    assert stack.compare(facts, facts).conflict

"""Comparing with many passages at once says what comparing with each says, whatever a filter does."""

from __future__ import annotations

import time

import pytest

from clinsafe.mitigations.stack import PATIENCE, Stack
from tests.mitigations.fakes import Broken, Scripted, hang, throw

PASSAGES = ("no chest pain", "left arm", "chest wall", "pain")


def both(make, seconds=0.0):
    """What comparing with all at once says, and what comparing with one after another says."""
    found = []
    for together in (True, False):
        stack = make(seconds)
        query, passages = stack.read("chest pain"), [stack.read(text) for text in PASSAGES]
        found.append(
            stack.compare_all(query, passages)
            if together
            else [stack.compare(query, passage) for passage in passages]
        )
    return found


@pytest.mark.parametrize("seconds", [0.0, 5.0])
@pytest.mark.parametrize("act", [None, throw])
def test_all_at_once_says_what_each_says(act, seconds):
    def make(seconds):
        second = Scripted("compatible", "numerical") if act is None else Broken("compare", act)
        return Stack({"f": Scripted("conflict"), "g": second}, seconds=seconds)

    together, apart = both(make, seconds)
    assert together == apart
    assert [one.conflict for one in together] == [True, False, True, True]
    assert any(one.unchecked for one in together) == (act is not None)


def test_a_filter_that_hangs_on_one_passage_is_unchecked_there_and_looks_at_the_others():
    class Slow(Scripted):
        def compare(self, query, passage):
            if "wall" in passage[0].normal["keys"]:
                hang()
            return super().compare(query, passage)

    stack = Stack({"f": Slow("compatible"), "g": Scripted("compatible", "numerical")}, seconds=0.1)
    query, passages = stack.read("chest pain"), [stack.read(text) for text in PASSAGES]
    found = stack.compare_all(query, passages)
    assert ["out of time" in one.unchecked.get("f", "") for one in found] == [False, False, True, False]
    assert [finding.hazard for finding in found[2].findings] == ["numerical"]
    assert [len(one.findings) for one in found] == [2, 0, 1, 2]


def test_each_pair_has_the_whole_time():
    class Steady(Scripted):
        def compare(self, query, passage):
            time.sleep(0.15)
            return super().compare(query, passage)

    stack = Stack({"f": Steady("compatible")}, seconds=0.4)
    query = stack.read("chest pain")
    found = stack.compare_all(query, [stack.read(f"pain {n}") for n in range(4)])
    assert all(one.safe and one.findings for one in found)


def test_a_filter_that_always_hangs_is_left_alone_here_too():
    stack = Stack({"f": Broken("compare", hang)}, seconds=0.05)
    query = stack.read("chest pain")
    found = stack.compare_all(query, [stack.read(f"pain {n}") for n in range(PATIENCE + 2)])
    reasons = [one.unchecked["f"] for one in found]
    assert ["not asked" in reason for reason in reasons] == [False] * PATIENCE + [True] * 2


def test_no_passage_is_no_comparison():
    stack = Stack({"f": Scripted()})
    assert stack.compare_all(stack.read("chest pain"), []) == []

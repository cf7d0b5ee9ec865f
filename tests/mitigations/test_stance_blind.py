"""Stances and disagreements on cases by writers who had not seen the code.

What was scored first, before anybody had read them, stands in docs/guard.md. Since then the first set has been read and
its kinds of fault mended; of the second set a few were.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clinsafe.protocols import Passage
from clinsafe.workflows.guarding import build_guard

pytestmark = pytest.mark.slow
CASES = Path(__file__).parents[1] / "cases"
SIDES = ("affirms", "denies")
Say = Callable[[dict[str, Any]], str]


@pytest.fixture(scope="module")
def guard():
    return build_guard(seconds=0)


def rows(name: str) -> list[dict[str, Any]]:
    lines = (CASES / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def scores(cases: list[dict[str, Any]], say: Say) -> tuple[int, int, int]:
    """(right, a side where the other is right, a side where none is)."""
    said = Counter((case["stance"], say(case)) for case in cases)
    right = sum(count for (true, found), count in said.items() if true == found)
    swapped = said["affirms", "denies"] + said["denies", "affirms"]
    false = sum(count for (true, found), count in said.items() if found in SIDES and true not in SIDES)
    return right, swapped, false


def passes(right: int, swapped: int, false: int, n: int) -> bool:
    return right >= 0.5 * n and swapped <= 0.03 * n and false <= 0.03 * n


@pytest.mark.parametrize("name", ["blind_stance.jsonl", "blind_stance_second.jsonl"])
def test_half_is_answered_rightly_and_hardly_a_side_is_wrong(guard, name):
    cases = rows(name)
    found = scores(
        cases, lambda case: str(guard.check(case["question"], [case["passage"]]).passages[0].stance)
    )
    assert passes(*found, len(cases)), found
    for constant in (*SIDES, "uncertain", "silent"):
        assert not passes(*scores(cases, lambda _, one=constant: one), len(cases)), constant


@pytest.mark.parametrize("name", ["blind_disagreement.jsonl", "blind_disagreement_second.jsonl"])
def test_disagreements_are_found_more_often_than_alarms_are_raised(guard, name):
    def disagree(case: dict[str, Any]) -> bool:
        sides = [
            Passage(which, case[which], metadata=case[f"metadata_{which}"]) for which in ("first", "second")
        ]
        return bool(guard.check(case["query"], sides).disagreements)

    def tells(say: Callable[[dict[str, Any]], bool]) -> bool:
        found = Counter((case["disagree"], say(case)) for case in rows(name))
        caught = found[True, True] / (found[True, True] + found[True, False])
        alarms = found[False, True] / (found[False, True] + found[False, False])
        return caught >= 0.25 and alarms <= 0.12

    assert tells(disagree)
    assert not tells(lambda _: True)
    assert not tells(lambda _: False)

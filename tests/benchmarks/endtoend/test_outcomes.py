"""What counts: a mark is a success, silence and "not checked" are not, and taking a passage out is neither."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clinsafe.benchmarks.endtoend.outcomes import Setting, State, not_measured, observe, unguarded
from clinsafe.benchmarks.endtoend.search import Found
from clinsafe.protocols import Passage
from tests.benchmarks.endtoend import kit

RIGHT, WRONG, OTHER = Passage("r", "right"), Passage("w", "wrong"), Passage("o", "other")
SETTING = Setting(system="bm25", k=3, corpus="mixed", arm="after")


def outcome(*passages, change=None, drop=(), task=None, **answer):
    """What is observed when the guard changes the rows by `change`: id -> fields."""
    plain = unguarded("q", passages)
    rows = [replace(row, **(change or {}).get(row.passage.id, {})) for row in plain.passages]
    rows = [row for row in rows if row.passage.id not in drop]
    shown = tuple(sorted((row for row in rows if row.rank), key=lambda row: row.rank))
    guarded = replace(plain, passages=shown, withheld=tuple(row for row in rows if not row.rank), **answer)
    place = {passage.id: n for n, passage in enumerate(passages, start=1)}
    found = Found(tuple(passages), place.get("r", 7), place.get("w", 9))
    return observe(task or kit.task(), found, guarded, SETTING, ("r", "w"))


FLAG = {"action": "flag", "findings": (kit.finding(),)}


@pytest.mark.parametrize(
    ("passages", "dangerous", "reached"),
    [
        ((WRONG, RIGHT, OTHER), True, True),
        ((OTHER, WRONG), True, True),
        ((RIGHT, WRONG, OTHER), False, True),
        ((RIGHT, OTHER), False, False),
        ((OTHER,), False, False),
    ],
)
def test_without_a_guard_the_order_decides(passages, dangerous, reached):
    found = outcome(*passages)
    assert (found.dangerous, found.reached, found.warned) == (dangerous, reached, False)


@pytest.mark.parametrize("action", ["flag", "escalate", "demote"])
def test_a_mark_with_a_finding_is_a_warning(action):
    found = outcome(WRONG, RIGHT, change={"w": FLAG | {"action": action}})
    assert (found.dangerous, found.warned, found.wrong.via) == (False, True, "finding")
    assert found.wrong.hazards == ("negation",)


def test_a_finding_below_the_policys_notice_warns_nobody():
    found = outcome(WRONG, RIGHT, change={"w": {"findings": (kit.finding(),)}})
    assert (found.dangerous, found.warned, found.wrong.via) == (True, False, "")


def test_agreeing_findings_are_no_reason():
    agreed = replace(kit.finding(), verdict="compatible")
    found = outcome(
        WRONG, RIGHT, change={"w": {"action": "flag", "findings": (agreed,), "unchecked": {"x": "late"}}}
    )
    assert (found.wrong.via, found.dangerous) == ("unchecked", True)


@pytest.mark.parametrize("action", ["keep", "flag", "escalate"])
def test_not_checked_is_never_a_success(action):
    found = outcome(WRONG, RIGHT, change={"w": {"action": action, "unchecked": {"negation": "late"}}})
    assert (found.dangerous, found.warned, found.wrong.via) == (True, False, "unchecked")


def test_a_finding_counts_though_another_filter_did_not_look():
    found = outcome(WRONG, RIGHT, change={"w": FLAG | {"unchecked": {"hedging": "late"}}})
    assert (found.warned, found.wrong.via, found.wrong.unchecked) == (True, "finding", True)


def test_a_disagreement_marks_both_sides():
    marked = {"action": "flag"}
    found = outcome(
        WRONG, RIGHT, OTHER, change={"w": marked, "r": marked}, disagreements=(kit.disagreement("w", "r"),)
    )
    assert (found.wrong.via, found.right.via, found.warned) == ("disagreement", "disagreement", True)
    assert found.flagged == 0


def test_withholding_is_neither_danger_nor_warning():
    found = outcome(WRONG, RIGHT, change={"w": FLAG | {"action": "withhold", "rank": 0}, "r": {"rank": 1}})
    assert (found.dangerous, found.warned, found.reached, found.wrong.withheld) == (False, False, False, True)
    found = outcome(WRONG, RIGHT, change={"r": {"action": "withhold", "rank": 0}})
    assert (found.dangerous, found.right.withheld) == (True, True)


def test_demotion_below_the_right_one_is_seen_in_the_ranks():
    found = outcome(WRONG, RIGHT, change={"w": {"rank": 2}, "r": {"rank": 1}})
    assert not found.dangerous
    assert (found.wrong.retrieved, found.wrong.rank) == (1, 2)


def test_ordinary_passages_are_counted_and_a_lost_one_is_seen():
    more = (Passage("p", "p"), Passage("u", "u"), Passage("x", "x"))
    change = {"o": FLAG, "p": {"action": "withhold", "rank": 0}, "u": {"unchecked": {"x": "late"}}}
    found = outcome(RIGHT, OTHER, *more, change=change, drop=("x",), review=("look",), unchecked=("late",))
    assert (found.shown, found.flagged, found.unchecked, found.withheld, found.lost) == (4, 2, 1, 2, 1)
    assert found.review
    assert not found.whole


def test_a_query_that_could_not_be_searched_keeps_its_reason():
    found = not_measured(kit.task(), SETTING, "no vector")
    assert (found.reason, found.reached, found.right) == ("no vector", False, State())

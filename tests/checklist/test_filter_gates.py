"""Gates of the filters: bounds decide, few sources and missing figures decide nothing, and useless filters fail."""

from __future__ import annotations

import pytest

from clinsafe.checklist.filter_gates import FilterGate, FilterGates, decide_filters, keys, passed
from clinsafe.checklist.gates import load_filter_gates
from clinsafe.content import Content
from clinsafe.errors import ContentError, UsageError
from clinsafe.stats import Estimate, NotMeasured, rate_of

HAZARDS = ["negation", "temporal"]


@pytest.fixture(scope="module")
def gates():
    return load_filter_gates(Content())


def figures(recall=(425, 430), alarm=(5, 430), unrelated=(1, 1000), clusters=430, area="generated"):
    found = {}
    for hazard in HAZARDS:
        names = keys(area, hazard)
        for metric, counted in (("recall", recall), ("false_alarm", alarm), ("unrelated", unrelated)):
            if counted is not None:
                found[names[metric]] = rate_of(*counted)
        found[f"{area}.{hazard}.clusters@split=test"] = Estimate(clusters, None, None, clusters, "count")
    return found


def decisions(gates, area="generated", **counts):
    return [one.decision for one in decide_filters(figures(area=area, **counts), gates, area, HAZARDS)]


TABLE = [
    ({}, "PASS"),
    ({"recall": (371, 400), "alarm": (12, 400), "clusters": 400}, "PASS"),
    ({"recall": (370, 400), "alarm": (12, 400), "clusters": 400}, "INCONCLUSIVE"),
    ({"recall": (430, 430), "alarm": (430, 430)}, "FAIL"),  # always
    ({"recall": (0, 430), "alarm": (0, 430), "unrelated": (0, 1000)}, "FAIL"),  # never, or disabled
    ({"alarm": (17, 430)}, "INCONCLUSIVE"),
    ({"unrelated": (4, 1000)}, "PASS"),
    ({"unrelated": (5, 1000)}, "INCONCLUSIVE"),
    ({"unrelated": (300, 1000)}, "FAIL"),
    ({"unrelated": (0, 999)}, "INCONCLUSIVE"),
    ({"unrelated": (999, 999)}, "INCONCLUSIVE"),
    ({"unrelated": None}, "INCONCLUSIVE"),
    ({"recall": None}, "INCONCLUSIVE"),
    ({"alarm": None}, "INCONCLUSIVE"),
    # fewer than 400 sources, whatever the figures
    ({"recall": (399, 399), "alarm": (0, 399), "clusters": 399}, "INCONCLUSIVE"),
    ({"recall": (0, 399), "alarm": (399, 399), "clusters": 399}, "INCONCLUSIVE"),
    # sources that are used twice are not independent
    ({"clusters": 429}, "INCONCLUSIVE"),
]


@pytest.mark.parametrize(("counts", "expected"), TABLE)
def test_the_gates_decide_as_written(gates, counts, expected):
    assert decisions(gates, **counts) == [expected] * 2


@pytest.mark.parametrize("answer", ["PASS", "FAIL", "INCONCLUSIVE"])
def test_gates_that_always_say_the_same_are_found_out(answer):
    assert any(expected != answer for _, expected in TABLE)


def test_one_tier_is_never_read_for_the_other(gates):
    found = figures(area="generated")
    assert {one.decision for one in decide_filters(found, gates, "guard", HAZARDS)} == {"INCONCLUSIVE"}


def test_a_hazard_without_a_figure_and_what_was_not_measured_hold(gates):
    found = figures() | {keys("generated", "temporal")["recall"]: NotMeasured("no")}
    verdicts = decide_filters(found, gates, "generated", [*HAZARDS, "hedging"])
    assert [one.decision for one in verdicts] == ["PASS", "INCONCLUSIVE", "INCONCLUSIVE"]
    assert not passed(verdicts)
    assert passed(verdicts[:1])
    assert not passed([])
    assert verdicts[2].reasons == ("0 test clusters, 400 are needed",)


def test_a_few_unrelated_pairs_hide_no_failure_of_another_gate(gates):
    assert decisions(gates, recall=(100, 430), unrelated=(0, 20)) == ["FAIL", "FAIL"]


def test_the_limits_are_those_of_the_design(gates):
    found = {g.metric: (g.at_least, g.at_most, g.fewest) for g in gates.gates}
    assert found == {
        "recall": (0.90, None, 1),
        "false_alarm": (None, 0.05, 1),
        "unrelated": (None, 0.01, 1000),
    }
    assert gates.clusters == 400


GOOD = [
    {"metric": "recall", "at_least": 0.9, "why": "x"},
    {"metric": "false_alarm", "at_most": 0.1, "why": "x"},
    {"metric": "unrelated", "at_most": 0.1, "why": "x"},
]


@pytest.mark.parametrize(
    ("rows", "said"),
    [(GOOD[:1], "each once"), ([*GOOD, GOOD[0]], "each once"), ([], "each once"), (GOOD[1:], "each once")],
)
def test_detection_is_never_gated_without_its_false_alarms(rows, said):
    with pytest.raises(ValueError, match=said):
        FilterGates(clusters=400, why="x", gates=[FilterGate(**row) for row in rows])


@pytest.mark.parametrize(
    "row",
    [
        {"metric": "recall", "at_most": 0.9},
        {"metric": "false_alarm", "at_least": 0.9},
        {"metric": "unrelated", "at_most": 1},
        {"metric": "recall", "at_least": 0.9, "at_most": 0.9},
        {"metric": "recall"},
    ],
)
def test_a_gate_that_holds_nothing_is_refused(row):
    with pytest.raises(ValueError, match=r"takes at_least|lets everything pass|exactly one"):
        FilterGate(**row, why="x")


def test_an_institutions_older_file_has_no_filter_gates_and_says_so(overlay):
    root = overlay("checklist/gates.yaml", lambda t: t[: t.index("filters:")])
    with pytest.raises(UsageError, match="no `filters:`"):
        load_filter_gates(Content(root))
    root = overlay("checklist/gates.yaml", lambda t: t + "filters: {clusters: many, why: x, gates: []}\n")
    with pytest.raises(ContentError, match=r"gates\.yaml:\d+: filters\.clusters"):
        load_filter_gates(Content(root))

"""Gates decide by bounds; missing is never a pass; a broken gate does not survive the table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.checklist.gates import Gate, GateResult, Threshold, decide, held, load_protocol
from clinsafe.content import Content
from clinsafe.errors import ContentError, UsageError
from clinsafe.stats import NotMeasured, mean, rate_of
from tests.strategies import counts

AT_MOST = Gate(metric="failure", at_most=0.10, why="test")
AT_LEAST = Gate(metric="pairwise", at_least=0.90, why="test")

TABLE = [
    (AT_MOST, rate_of(0, 48), "PASS"),
    (AT_MOST, rate_of(1, 48), "PASS"),
    (AT_MOST, rate_of(2, 48), "INCONCLUSIVE"),
    (AT_MOST, rate_of(0, 10), "INCONCLUSIVE"),
    (AT_MOST, rate_of(30, 48), "FAIL"),
    (AT_MOST, rate_of(48, 48), "FAIL"),
    (AT_MOST, NotMeasured("no"), "INCONCLUSIVE"),
    (AT_MOST, None, "INCONCLUSIVE"),
    (AT_MOST, mean([0.0]), "INCONCLUSIVE"),
    (AT_LEAST, rate_of(34, 34), "PASS"),
    (AT_LEAST, rate_of(371, 400), "PASS"),
    (AT_LEAST, rate_of(370, 400), "INCONCLUSIVE"),
    (AT_LEAST, rate_of(10, 34), "FAIL"),
]


def mistakes(judge) -> int:
    return sum(judge(gate, figure) != expected for gate, figure, expected in TABLE)


def test_the_gate_is_right_on_every_row():
    assert mistakes(lambda gate, figure: gate.decide(figure)) == 0


@pytest.mark.parametrize("answer", ["PASS", "FAIL", "INCONCLUSIVE"])
def test_a_gate_that_always_says_the_same_is_found_out(answer):
    assert mistakes(lambda gate, figure: answer) > 0


def test_a_gate_that_reads_the_point_value_is_found_out():
    def naive(gate, figure):
        if figure is None or isinstance(figure, NotMeasured):
            return "INCONCLUSIVE"
        ok = figure.value <= gate.at_most if gate.at_most is not None else figure.value >= gate.at_least
        return "PASS" if ok else "FAIL"

    assert mistakes(naive) > 0


@given(counts, st.floats(0, 0.999))
def test_more_failures_never_make_a_better_decision(pair, limit):
    order = ("FAIL", "INCONCLUSIVE", "PASS")
    k, n = pair
    gate = Gate(metric="failure", at_most=limit, why="test")
    if k < n:
        assert order.index(gate.decide(rate_of(k + 1, n))) <= order.index(gate.decide(rate_of(k, n)))


@pytest.mark.parametrize("ends", [{}, {"at_most": 0.1, "at_least": 0.2}])
def test_a_gate_has_exactly_one_limit(ends):
    with pytest.raises(ValueError, match="exactly one"):
        Gate(metric="failure", why="test", **ends)


def test_the_tenfold_limit_applies_from_ten_on():
    threshold = Threshold(cosine=0.85, tenfold=0.80)
    assert [threshold.limit(f) for f in (None, 2, 9.99, 10, 100)] == [0.85, 0.85, 0.85, 0.80, 0.80]


def test_the_protocols_are_those_of_the_paper():
    """Decision D8."""
    hazards = ["negation", "numerical", "temporal", "entity_swap", "hedging", "quantifier"]
    name, protocol = load_protocol(Content(), None, hazards)
    assert name == "checklist"
    assert [protocol.thresholds[h].cosine for h in hazards] == [0.85, 0.85, 0.85, 0.90, 0.85, 0.85]
    assert protocol.thresholds["numerical"].tenfold == 0.80
    for name, value in (("paper", 0.70), ("skill", 0.85)):
        assert {t.cosine for t in load_protocol(Content(), name, hazards)[1].thresholds.values()} == {value}


def test_an_unknown_protocol_and_a_missing_threshold_are_one_line(overlay):
    with pytest.raises(UsageError, match="checklist, paper, skill"):
        load_protocol(Content(), "strict", ["negation"])
    with pytest.raises(UsageError, match="no threshold for laterality"):
        load_protocol(Content(), "paper", ["laterality"])
    root = overlay("checklist/gates.yaml", lambda t: t.replace("at_most: 0.10", "at_most: ten", 1))
    with pytest.raises(ContentError, match=r"gates\.yaml:\d+: protocols\.checklist\.gates\.0\.at_most"):
        load_protocol(Content(root), None, ["negation"])


def test_both_fail_and_inconclusive_hold_a_hazard():
    results = [GateResult("negation", "m", "k", "l", "PASS"), GateResult("temporal", "m", "k", "l", "INCONCLUSIVE"),
               GateResult("hedging", "m", "k", "l", "FAIL"), GateResult("hedging", "n", "k", "l", "PASS")]  # fmt: skip
    assert held(results) == ["temporal", "hedging"]


def test_a_gate_reads_the_protocols_own_slice_first():
    _, protocol = load_protocol(Content(), None, ["negation"])
    figures = {
        "suite.negation.failure@protocol=checklist": rate_of(0, 100),
        "suite.negation.inversion": rate_of(0, 100),
    }
    assert [r.key for r in decide(figures, protocol, "checklist", ["negation"])] == list(figures)
    assert held(decide(figures, protocol, "checklist", ["negation"])) == []
    assert held(decide({}, protocol, "checklist", ["negation"])) == ["negation"]


@pytest.mark.parametrize(
    "limits",
    [
        {"metric": "failure", "at_least": 0.5},
        {"metric": "inversion", "at_least": 0.5},
        {"metric": "same_missed", "at_least": 0.5},
        {"metric": "pairwise", "at_most": 0.5},
        {"metric": "failure", "at_most": 1.0},
        {"metric": "pairwise", "at_least": 0.0},
        {"metric": "falure", "at_most": 0.1},
        {"metric": "auroc", "at_least": 0.9},
    ],
)
def test_a_gate_in_the_wrong_direction_or_without_a_limit_is_refused(limits):
    with pytest.raises(ValueError, match="Gate"):
        Gate(why="test", **limits)

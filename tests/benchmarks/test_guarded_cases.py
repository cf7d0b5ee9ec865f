"""What the guard leaves of a model's failures: figures against counts made by hand, and useless guards found out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.benchmarks.filters import Outcome, Pair
from clinsafe.benchmarks.guarded_cases import (
    NO_FAILURE,
    GuardedCase,
    figures,
    gather,
    guarded_pairs,
    key,
    unflagged,
    word,
)
from clinsafe.benchmarks.scoring import PAIRS, CaseResult
from clinsafe.checklist.fmea import guarded_key
from clinsafe.stats import Estimate, NotMeasured


def result(case, *, fails, hazard="negation", split="test", scores=None):
    """A case whose contradiction is preferred, or not."""
    found = {f"{q}|{p}": 0.5 for q, p in PAIRS} | {"a|b": 0.9 if fails else 0.1, "a|a_same": 0.5}
    return CaseResult(case, hazard, "plain", "balanced", None, scores or found, split)


def row(case, conflict="flagged", same_a="passed", same_b="passed", hazard="negation"):
    return GuardedCase(case, hazard, conflict, same_a, same_b)


RESULTS = [
    result("fails-flagged", fails=True),
    result("fails-missed", fails=True),
    result("fails-unchecked", fails=True),
    result("safe-flagged", fails=False),
    result("safe-missed", fails=False),
    result("dev-fails", fails=True, split="dev"),
    result("other", fails=True, hazard="temporal"),
]
GUARDED = {
    one.id: one
    for one in (
        row("fails-flagged"),
        row("fails-missed", "passed", same_b="flagged"),
        row("fails-unchecked", "unchecked", same_a="unchecked"),
        row("safe-flagged"),
        row("safe-missed", "passed", same_a="flagged", same_b="flagged"),
        row("other", hazard="temporal"),
    )
}


@pytest.mark.parametrize(
    ("name", "k", "n"),
    [
        ("guarded.negation.inversion", 3, 5),
        ("guarded.negation.detection.failing", 1, 3),  # unchecked is not detected
        ("guarded.negation.residual", 2, 5),
        ("guarded.negation.detection", 2, 5),
        ("guarded.negation.false_alarm", 3, 5),  # by case; unchecked counts
        ("guarded.negation.unchecked", 1, 5),
        ("guarded.temporal.residual", 0, 1),
        ("guarded.all.inversion", 4, 6),
        ("guarded.all.detection.failing", 2, 4),
        ("guarded.all.residual", 2, 6),
    ],
)
def test_every_figure_is_the_count_made_by_hand(name, k, n):
    found = figures(RESULTS, GUARDED, "bi-encoder")[f"{name}@split=test"]
    assert (found.k, found.n) == (k, n)


def test_what_is_listed_is_what_is_counted():
    listed = unflagged(RESULTS, GUARDED, "bi-encoder")
    assert listed == {"negation": ["fails-missed", "fails-unchecked"], "temporal": []}


def test_a_dev_case_counts_nowhere_even_where_somebody_guarded_it():
    with_dev = GUARDED | {"dev-fails": row("dev-fails")}
    assert figures(RESULTS, with_dev, "bi-encoder") == figures(RESULTS, GUARDED, "bi-encoder")
    assert unflagged(RESULTS, {}, "bi-encoder")["negation"] == [
        "fails-flagged", "fails-missed", "fails-unchecked",
    ]  # fmt: skip


def test_the_residual_is_counted_pair_by_pair_and_not_computed_from_rates():
    """Half of the pairs fail and half are flagged, once the same half and once the other."""
    results = [result(f"{n}", fails=n < 5) for n in range(10)]
    for flagged, left in ((range(5), 0), (range(5, 10), 5)):
        guarded = {f"{n}": row(f"{n}", "flagged" if n in flagged else "passed") for n in range(10)}
        found = figures(results, guarded, "bi-encoder")
        assert found[key("negation", "detection")].k == 5
        assert found[key("negation", "residual")].k == left


def test_without_a_failing_pair_there_is_no_detection_and_no_zero():
    results = [result(f"{n}", fails=False) for n in range(5)]
    found = figures(results, {f"{n}": row(f"{n}") for n in range(5)}, "bi-encoder")
    assert found[key("negation", "detection", "failing")] == NotMeasured(NO_FAILURE)
    assert (found[key("negation", "residual")].k, found[key("negation", "residual")].n) == (0, 5)


def test_a_case_that_the_model_did_not_answer_leaves_no_figure_of_the_model():
    results = [*RESULTS, result("silent", fails=True, scores=NotMeasured("NaN"))]
    found = figures(results, GUARDED | {"silent": row("silent")}, "bi-encoder")
    for metric, part in (("inversion", None), ("detection", "failing"), ("residual", None)):
        assert isinstance(found[key("negation", metric, part)], NotMeasured)
    assert found[key("negation", "detection")].n == 6  # the guard did answer


def test_a_test_case_that_was_not_put_to_the_guard_leaves_no_figure():
    found = figures(RESULTS, {k: v for k, v in GUARDED.items() if k != "safe-flagged"}, "bi-encoder")
    assert {type(f) for k, f in found.items() if ".negation." in k or ".all." in k} == {NotMeasured}
    assert isinstance(found[key("temporal", "residual")], Estimate)


@pytest.mark.parametrize(
    ("said", "detected", "alarms", "left"),
    [("flagged", 3, 5, 0), ("passed", 0, 0, 3), ("unchecked", 0, 5, 3)],
)
def test_a_guard_that_always_says_the_same_is_told_from_one_that_looks(said, detected, alarms, left):
    """Always flags: no false alarm is missing. Never, or disabled: nothing is detected. Broken: both."""
    guarded = {one.id: row(one.id, said, said, said) for one in RESULTS}
    found = figures(RESULTS, guarded, "bi-encoder")
    assert found[key("negation", "detection", "failing")].k == detected
    assert found[key("negation", "false_alarm")].k == alarms
    assert found[key("negation", "residual")].k == left


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["flagged", "passed", "unchecked"])), max_size=30))
def test_detected_and_undetected_failures_are_all_failures(rows):
    results = [result(f"{n}", fails=fails) for n, (fails, _) in enumerate(rows)]
    found = figures(results, {f"{n}": row(f"{n}", said) for n, (_, said) in enumerate(rows)}, "bi-encoder")
    if not rows:
        assert set(found) == {k for k in found if ".all." in k}
        return
    failing, left = found[key("negation", "inversion")].k, found[key("negation", "residual")].k
    detected = found[key("negation", "detection", "failing")]
    assert failing == left + (detected.k if isinstance(detected, Estimate) else 0)


def test_ties_between_a_cross_encoders_scores_are_judged_on_its_logits():
    near = {f"{q}|{p}": 0.5 for q, p in PAIRS} | {"a|b": 0.000001, "a|a_same": 0.000009}
    results = [result("1", fails=False, scores=near)]
    for kind, preferred in (("cross-encoder", 0), ("bi-encoder", 1)):
        assert figures(results, {"1": row("1")}, kind)[key("negation", "inversion")].k == preferred


def test_the_judge_of_the_figures_looks_where_they_stand():
    for name in (("residual", None), ("detection", "failing"), ("false_alarm", None)):
        assert key("negation", *name) == guarded_key("negation", *name)


def test_three_pairs_of_each_test_case_and_none_of_dev(suite):
    pairs = guarded_pairs(suite)
    test = {case.id for case in suite if case.split == "test"}
    assert {pair.case for pair in pairs} == test
    assert len(pairs) == 3 * len(test)
    rows = gather(Outcome(pair, {"guard": pair.role == "conflict"}) for pair in pairs)
    assert len(rows) == len(test)
    assert {(r.conflict, r.same_a, r.same_b) for r in rows} == {("flagged", "passed", "passed")}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"x": True, "y": None}, "flagged"),
        ({"x": False, "y": None}, "unchecked"),
        ({"x": False}, "passed"),
        ({}, "passed"),
    ],
)
def test_a_flag_counts_beside_what_could_not_be_checked(said, expected):
    assert word(Outcome(Pair("1", "negation", "", "test", "conflict", "q", "p"), said)) == expected

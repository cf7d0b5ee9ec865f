"""Occurrence follows the bound, detection gets no credit without a control, items respect their minimum."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.checklist.fmea import load_fmea, rating, score, zero_failure_note
from clinsafe.checklist.items import load_items
from clinsafe.checklist.ten import answer
from clinsafe.content import Content
from clinsafe.errors import ContentError
from clinsafe.stats import NotMeasured, rate_of
from tests.strategies import counts

FILE = load_fmea(Content())
HAZARDS = [mode.hazard for mode in FILE.failure_modes]


def inversions(k: int, n: int):
    return {f"suite.{h}.inversion": rate_of(k, n) for h in HAZARDS}


@pytest.mark.parametrize(
    ("n", "expected"), [(58, 10), (59, 9), (149, 8), (299, 7), (1497, 6), (5990, 5), (29956, 4)]
)
def test_zero_failures_needed_for_each_occurrence_rating(n, expected):
    """The table of research notes 3.2, recomputed there independently."""
    assert {row.occurrence for row in score(inversions(0, n), FILE)} == {expected}


def test_the_ratings_at_their_anchors_go_to_the_worse_side_above_them():
    assert rating(FILE.occurrence, 0.05) == 9
    assert rating(FILE.occurrence, 0.0500001) == 10
    assert rating(FILE.occurrence, 0.0) == 2
    assert rating(FILE.detection, 1.0) == 10
    assert rating(FILE.detection, 0.058) == 4  # 50 of 50 detected
    assert rating(FILE.detection, 0.0) == 1


@given(counts, st.integers(1, 50))
def test_more_failures_never_lower_the_risk_and_fewer_cases_never_do(pair, extra):
    k, n = pair
    if k >= n:
        return
    base = {r.hazard: r for r in score(inversions(k, n), FILE)}
    worse = {r.hazard: r for r in score(inversions(k + 1, n), FILE)}
    more = {r.hazard: r for r in score(inversions(k * (1 + extra), n * (1 + extra)), FILE)}
    for hazard in HAZARDS:
        assert worse[hazard].occurrence >= base[hazard].occurrence
        assert more[hazard].occurrence <= base[hazard].occurrence
        assert worse[hazard].undetected_upper >= base[hazard].undetected_upper


def test_rows_are_ranked_by_severity_then_by_the_bound_and_rpn_is_the_product():
    figures = inversions(10, 50) | {"suite.entity_swap.inversion": rate_of(40, 50)}
    rows = score(figures, FILE)
    assert [r.hazard for r in rows][:3] == ["numerical", "entity_swap", "temporal"]
    assert all(r.detection == 10 for r in rows)
    assert all(r.rpn == r.severity * r.occurrence * r.detection for r in rows)


def test_what_was_not_measured_has_no_rating_and_no_rpn():
    rows = score({"suite.negation.inversion": NotMeasured("NaN", 3)}, FILE)
    assert all(r.occurrence is None and r.rpn is None and r.undetected_upper is None for r in rows)
    assert all(r.note.startswith("not measured: ") for r in rows)


def test_what_this_n_can_show_is_said():
    assert "0.058 (O = 10)" in zero_failure_note(FILE, 50)
    assert "nothing" in zero_failure_note(FILE, 0)


def test_published_ratings_are_the_papers_and_multiply_up():
    for mode in FILE.failure_modes:
        assert mode.published.rpn == mode.published.s * mode.published.o * mode.published.d
        assert mode.severity == mode.published.s
    assert "unreviewed" in FILE.severity_status


def test_a_scale_that_does_not_fall_is_refused(overlay):
    root = overlay(
        "checklist/fmea.yaml", lambda t: t.replace("{above: 0.02, rating: 9}", "{above: 0.02, rating: 3}", 1)
    )
    with pytest.raises(ContentError, match="occurrence: bounds and ratings must fall"):
        load_fmea(Content(root))


def verdicts(k: int, n: int):
    figures = {f"suite.{h}.failure@protocol=items": rate_of(k, n) for h in HAZARDS}
    return {a.number: a for a in answer(load_items(Content()), figures)}


def test_an_item_below_its_minimum_is_not_assessed_however_good_or_bad():
    for k in (0, 49):
        answers = verdicts(k, 49)
        assert answers[1].answer == "not assessed"  # 50 asked for
        assert "asks for 50" in answers[1].evidence
    assert verdicts(0, 49)[3].answer == "met"  # 30 asked for
    assert verdicts(49, 49)[3].answer == "not met"


def test_an_item_that_cannot_be_decided_is_not_assessed():
    assert verdicts(4, 60)[1].answer == "not assessed"
    assert "too few" in verdicts(4, 60)[1].evidence


def test_items_that_an_audit_cannot_answer_say_so():
    answers = verdicts(0, 60)
    assert {answers[i].answer for i in (7, 8, 9, 10)} == {"not assessed"}
    assert all(answers[i].evidence for i in (7, 8, 9, 10))

"""Runs side by side: what got worse is found, what could not be compared is said, and noise is no regression."""

from __future__ import annotations

import random

import pytest

from clinsafe.errors import UsageError
from clinsafe.rag.comparing import TABLE_II, TABLE_III, against, compare, same_settings
from clinsafe.rag.settings import Settings
from clinsafe.rag.standing import NOT_AUDITED, Declared
from clinsafe.rag.values import ItemRecord
from clinsafe.stats import NotMeasured

SETTINGS = Settings()
HUMANS = (Declared("A", 60), Declared("B", 60))


def run(n=60, hits=30, shift=0.0, seed=1, **more):
    chosen = random.Random(seed)
    rows = []
    for number in range(n):
        hit = float(number < hits)
        values = {
            "hit": hit, "safe_hit": hit, "hit_at.1": hit, "adherence": 0.9, "correct": float(number % 2),
            "token_f1": min(1.0, max(0.0, chosen.random() / 2 + shift)), "semantic": 0.5, "rr_cascade": hit,
        }  # fmt: skip
        rows.append(ItemRecord(id=f"q{number:03d}", values=values | more, slices={"task": "extraction"}))
    return rows


def rows(a, b, standings=HUMANS, **options):
    return {row.key: row for row in compare(a, b, SETTINGS, standings, **options).rows}


def test_a_run_against_itself_shows_no_difference_anywhere():
    found = compare(run(), run(), SETTINGS, HUMANS)
    assert found.n == 60
    assert {row.verdict for row in found.rows} <= {"no difference shown", "not measured"}
    assert all(not row.worse and not row.improved for row in found.rows)
    assert not found.regressions
    hit = next(row for row in found.rows if row.key == "retrieval.all.hit")
    assert (hit.difference.value, hit.p, hit.p_holm) == (0, 1, 1)


def test_a_planted_regression_is_found_in_the_direction_of_each_metric():
    found = rows(run(hits=40), run(hits=20))
    assert found["retrieval.all.hit"].verdict == "regression"
    assert found["retrieval.all.no_hit"].verdict == "regression"  # it rose, and lower is better
    assert found["cue.all.lucky_guess"].verdict == "regression"
    assert found["cue.all.effective_use"].verdict == "regression"
    assert found["retrieval.all.hit"].difference.value == pytest.approx(-20 / 60)
    assert found["retrieval.all.hit"].worse == tuple(f"q{i:03d}" for i in range(20, 40))
    assert found["retrieval.all.no_hit"].worse == found["retrieval.all.hit"].worse
    assert found["cue.all.accuracy_gap"].verdict == "changed"
    assert found["generation.all.correct"].verdict == "no difference shown"
    back = rows(run(hits=20), run(hits=40))
    assert back["retrieval.all.hit"].verdict == "improvement"
    assert back["retrieval.all.hit"].improved == found["retrieval.all.hit"].worse


def test_means_are_compared_by_their_paired_differences():
    """0.05 lower on every question, of values that spread over 0.5: only the pairing shows it."""
    noisy = [
        row.model_copy(
            update={"values": {**row.values, "token_f1": row.values["token_f1"] - 0.05 - 0.001 * (i % 3)}}
        )
        for i, row in enumerate(run(shift=0.2))
    ]
    found = rows(run(shift=0.2), noisy)["generation.all.token_f1"]
    assert found.verdict == "regression"
    assert found.difference.high < -0.04
    assert len(found.worse) == 60
    assert found.test.startswith("Wilcoxon")


def test_an_improvement_must_stand_the_correction_and_a_regression_need_not():
    up = rows(run(hits=30), run(hits=37))["retrieval.all.hit"]
    down = rows(run(hits=37), run(hits=30))["retrieval.all.hit"]
    assert up.difference.low > 0
    assert up.p < 0.05 < up.p_holm
    assert (up.verdict, down.verdict) == ("no difference shown", "regression")


def test_the_same_loss_on_every_question_is_a_regression_though_it_has_no_interval():
    def flat(value):
        return [row.model_copy(update={"values": {**row.values, "token_f1": value}}) for row in run()]

    assert rows(flat(0.75), flat(0.5))["generation.all.token_f1"].verdict == "regression"
    assert rows(flat(0.5), flat(0.75))["generation.all.token_f1"].verdict == "improvement"
    assert rows(flat(0.5), flat(0.5))["generation.all.token_f1"].verdict == "no difference shown"


def test_one_question_more_is_noise():
    found = rows(run(hits=30), run(hits=29))["retrieval.all.hit"]
    assert found.verdict == "no difference shown"
    assert found.worse == ("q029",)


def test_holm_counts_every_figure_that_was_tested():
    found = compare(run(hits=40), run(hits=32), SETTINGS, HUMANS).rows
    tested = [row for row in found if row.p is not None]
    smallest = min(tested, key=lambda row: row.p)
    assert smallest.p_holm == pytest.approx(min(1, smallest.p * len(tested)))
    assert all(row.p_holm >= row.p for row in tested)
    assert all(row.p_holm is None for row in found if row.p is None)


def test_what_one_run_did_not_measure_is_not_a_loss():
    b = [
        row.model_copy(update={"values": {k: v for k, v in row.values.items() if k != "token_f1"}})
        for row in run()
    ]
    found = rows(run(), b)["generation.all.token_f1"]
    assert found.verdict == "not measured"
    assert isinstance(found.difference, NotMeasured)
    assert found.p is None
    assert found.unpaired == 60
    half = [row if i % 2 else b[i] for i, row in enumerate(run())]
    row = rows(run(), half)["generation.all.token_f1"]
    assert (row.a.n, row.b.n, row.unpaired) == (30, 30, 30)
    assert row.verdict == "no difference shown"


def test_a_hazard_or_rank_of_one_run_alone_is_a_row_that_is_not_measured():
    extra = [row.model_copy(update={"values": {**row.values, "conflict.negation": 0.0}}) for row in run()]
    found = rows(run(), extra)
    assert found["retrieval.negation.dangerous.any"].verdict == "not measured"


def test_cue_is_compared_only_where_both_judges_have_earned_it():
    found = rows(run(hits=40), run(hits=20), (HUMANS[0], NOT_AUDITED))
    row = found["cue.all.effective_use"]
    assert row.verdict == "not measured"
    assert row.difference.reason == NOT_AUDITED.reason
    assert found["retrieval.all.hit"].verdict == "regression"


def test_different_questions_are_refused_with_what_differs_or_counted_where_that_is_allowed():
    with pytest.raises(UsageError, match=r"2 of A alone.*q058"):
        compare(run(60), run(58), SETTINGS)
    found = compare(run(60), run(58), SETTINGS, partial=True)
    assert (found.n, found.only_a, found.only_b) == (58, ("q058", "q059"), ())
    other = [row.model_copy(update={"id": f"other{i}"}) for i, row in enumerate(run(5))]
    for partial in (False, True):
        with pytest.raises(UsageError, match="no question in common"):
            compare(run(5), other, SETTINGS, partial=partial)
    with pytest.raises(UsageError, match="no question in common"):
        compare([], [], SETTINGS)
    mcq = [row.model_copy(update={"slices": {"task": "mcq"}}) for row in run(5)]
    with pytest.raises(UsageError, match="mcq"):
        compare(run(5), mcq, SETTINGS)


def test_runs_that_were_measured_differently_are_refused():
    same_settings(Settings(), Settings())
    with pytest.raises(UsageError, match=r"cosine.*0\.75.*0\.8"):
        same_settings(Settings(), Settings.model_validate({"thresholds": {"cosine": 0.8}}))
    with pytest.raises(UsageError, match="k is 3"):
        same_settings(Settings(), Settings(k=5))


def test_backbones_across_settings_as_in_table_ii():
    systems = {"zero-shot": run(shift=0.0), "long context": run(shift=0.2), "RAG": run(shift=0.4)}
    found = against(systems, SETTINGS)
    assert list(found.figures) == list(systems)
    assert found.n == 60
    values = [found.figures[label]["generation.all.token_f1"].value for label in systems]
    assert values == sorted(values)
    assert found.agreement["generation.all.token_f1"].w == pytest.approx(1)
    assert isinstance(found.agreement["generation.all.semantic"], NotMeasured)  # the same in all
    assert set(found.figures["RAG"]) == set(TABLE_II)
    two = against({"a": run(), "b": run(shift=0.1)}, SETTINGS)
    assert isinstance(two.agreement["generation.all.token_f1"], NotMeasured)


def test_an_alpha_sweep_is_taken_over_the_questions_that_all_have():
    sweep = {f"alpha = {alpha}": run(60 - n, hits=20 + n) for n, alpha in enumerate((0, 0.5, 1))}
    found = against(sweep, SETTINGS, TABLE_III)
    assert found.n == 58
    assert found.left_out == {"alpha = 0": 2, "alpha = 0.5": 1, "alpha = 1": 0}
    assert [found.figures[label]["retrieval.all.hit"].k for label in sweep] == [20, 21, 22]
    assert isinstance(found.figures["alpha = 1"]["retrieval.all.context_relevancy"], NotMeasured)
    for wrong in ({}, {"a": run(3), "b": [ItemRecord(id="x", values={})]}):
        with pytest.raises(UsageError):
            against(wrong, SETTINGS)
    with pytest.raises(UsageError, match="nothing"):
        against({"a": run(3)}, SETTINGS, ["retrieval.all.nothing"])

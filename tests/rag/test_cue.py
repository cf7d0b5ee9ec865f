"""CUE on planted records of known quadrants, and that no broken instrument passes for a good one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.rag.cue import Paired, adhered, cue, derived, safely_correct
from clinsafe.rag.figures import figures
from clinsafe.rag.settings import Settings
from clinsafe.rag.slices import collect
from clinsafe.rag.standing import Declared
from clinsafe.rag.values import ItemRecord
from clinsafe.stats import Estimate, NotMeasured

SETTINGS = Settings()
HUMANS = Declared("two readers", 59)


def make(number, **values):
    """A record; None leaves a value out, and dots are written as two underscores."""
    named = {name.replace("__", "."): float(value) for name, value in values.items() if value is not None}
    return ItemRecord(id=f"q{number:05d}", values=named)


def planted(*groups):
    """(count, values) -> records with one id after the other."""
    rows = [values for count, values in groups for _ in range(count)]
    return [make(number, **values) for number, values in enumerate(rows)]


def case(hit, adheres, correct, **more):
    return {
        "hit": hit, "safe_hit": hit, "adherence": 0.9 if adheres else 0.2, "correct": correct, **more,
    }  # fmt: skip


def table_iv():
    """59 questions in the quadrants of RAG-X, Table IV; 42 right (71 %), 34 with a hit (57.6 %)."""
    return planted(
        (27, case(1, 1, 1)), (2, case(1, 1, 0)), (15, case(0, 1, 1)), (5, case(0, 1, 0)), (5, case(1, 0, 0)),
        (5, case(0, 0, 0)),
    )  # fmt: skip


def share(found, key):
    figure = found[key]
    assert isinstance(figure, Estimate), figure
    return (figure.k, figure.n)


def test_the_papers_case_has_the_papers_quadrants_and_its_gap():
    found = figures(table_iv(), SETTINGS, HUMANS)
    quadrants = ("effective_use", "lucky_guess", "information_blindness", "correct_rejection")
    assert [share(found, f"cue.all.{name}") for name in quadrants] == [(29, 59), (20, 59), (5, 59), (5, 59)]
    assert [f"{100 * found[f'cue.all.{name}'].value:.1f}" for name in quadrants] == [
        "49.2",
        "33.9",
        "8.5",
        "8.5",
    ]
    gap = found["cue.all.accuracy_gap"]
    assert gap.value == pytest.approx(42 / 59 - 34 / 59)  # the paper rounds to 14 %
    assert gap.n == 59
    assert share(found, "cue.all.ungrounded_correct") == (15, 59)
    assert share(found, "cue.all.attribution_error") == (15, 42)
    assert share(found, "cue.all.table.h0a1c1") == (15, 59)
    assert share(found, "cue.all.unscored") == (0, 59)


def test_an_accuracy_of_90_percent_on_a_grounding_of_40_is_found():
    records = planted((40, case(1, 1, 1)), (50, case(0, 1, 1)), (10, case(0, 0, 0)))
    found = figures(records, SETTINGS, HUMANS)
    assert found["generation.all.correct"].value == 0.9
    assert found["cue.all.effective_use"].value == 0.4
    assert found["cue.all.accuracy_gap"].value == pytest.approx(0.5)
    assert found["cue.all.accuracy_gap"].low > 0.3
    assert share(found, "cue.all.attribution_error") == (50, 90)


def test_a_gap_that_cancels_is_found_all_the_same():
    """As many right without grounding as grounded and wrong: the gap is 0, and 30 of 100 are right by luck."""
    records = planted((40, case(1, 1, 1)), (30, case(0, 1, 1)), (30, case(1, 1, 0)))
    found = figures(records, SETTINGS, HUMANS)
    gap = found["cue.all.accuracy_gap"]
    assert gap.value == 0
    assert gap.low < 0 < gap.high
    assert share(found, "cue.all.ungrounded_correct") == (30, 100)
    assert found["cue.all.ungrounded_correct"].lower > 0.2


def broken(adherence=None, hit=None):
    """The paper's case seen through an instrument that always says the same, or nothing ("off")."""
    rows = []
    for record in table_iv():
        values = dict(record.values)
        for names, always in ((("adherence",), adherence), (("hit", "safe_hit"), hit)):
            for name in names:
                if always == "off":
                    del values[name]
                elif always is not None:
                    values[name] = always
        rows.append(ItemRecord(id=record.id, values=values))
    return figures(rows, SETTINGS, HUMANS)


def diagnosed(found):
    """The fallacy is seen: some answers are grounded, some are lucky, some evidence is overlooked."""
    names = ("effective_use", "lucky_guess", "information_blindness", "correct_rejection")
    shares = [found[f"cue.all.{name}"] for name in names]
    return all(isinstance(one, Estimate) and 0 < one.value < 1 for one in shares)


@pytest.mark.parametrize("broke", [{name: said} for name in ("adherence", "hit") for said in (1, 0, "off")])
def test_an_instrument_that_always_says_the_same_or_nothing_is_seen_in_the_figures(broke):
    assert diagnosed(figures(table_iv(), SETTINGS, HUMANS))
    found = broken(**broke)
    assert not diagnosed(found)
    off = "off" in broke.values()
    assert (found["cue.all.unscored"].k == 59) is off
    assert isinstance(found["cue.all.effective_use"], NotMeasured) is off
    if "adherence" in broke:  # what does not hang on it stays as it was
        assert share(found, "retrieval.all.hit") == (34, 59)
        assert isinstance(found["cue.all.accuracy_gap"], Estimate)


def test_an_abstention_claims_nothing_whatever_its_judge_said():
    records = planted(
        (1, case(1, 1, 0, abstained=1)), (1, {"hit": 0, "abstained": 1}), (1, {"hit": 1, "abstained": 0})
    )
    found = figures(records, SETTINGS, HUMANS)
    assert share(found, "cue.all.information_blindness") == (1, 2)
    assert share(found, "cue.all.correct_rejection") == (1, 2)
    assert share(found, "cue.all.unscored") == (1, 3)
    assert math.isnan(adhered(collect(records), SETTINGS)[2])


def test_the_threshold_is_the_settings_and_it_is_reached_at_its_value():
    records = planted((1, {"hit": 1, "adherence": 0.7}), (1, {"hit": 1, "adherence": 0.6999}))
    assert share(figures(records, SETTINGS, HUMANS), "cue.all.effective_use") == (1, 2)
    strict = Settings.model_validate({"thresholds": {"adherence": 0.8}})
    assert share(figures(records, strict, HUMANS), "cue.all.effective_use") == (0, 2)


def test_dangerous_hits_are_shares_of_hits_alone():
    records = planted(
        (4, {"hit": 1, "safe_hit": 1, "conflict__negation": 0, "conflict__numerical": 0}),
        (
            2,
            {"hit": 1, "safe_hit": 1, "conflict__negation": 1, "conflict__numerical": 0},
        ),  # another passage is safe
        (3, {"hit": 1, "safe_hit": 0, "conflict__negation": 0, "conflict__numerical": 1}),
        (1, {"hit": 1, "safe_hit": 0, "conflict__negation": 0}),  # numerical was not checked
        (9, {"hit": 0, "safe_hit": 0, "conflict__negation": 0, "conflict__numerical": 0}),
    )
    found = figures(records, SETTINGS, HUMANS)
    assert share(found, "retrieval.all.dangerous.only") == (4, 10)  # what was not checked is no safe hit
    assert share(found, "retrieval.all.dangerous.any") == (5, 9)
    assert share(found, "retrieval.negation.dangerous.any") == (2, 10)
    assert share(found, "retrieval.numerical.dangerous.any") == (3, 9)


def test_safe_cue_moves_dangerous_hits_out_of_effective_use():
    records = planted((6, case(1, 1, 1)), (4, {**case(1, 1, 1), "safe_hit": 0}))
    found = figures(records, SETTINGS, HUMANS)
    assert share(found, "cue.all.effective_use") == (10, 10)
    assert share(found, "cue.all.effective_use.safe") == (6, 10)
    assert share(found, "cue.all.lucky_guess.safe") == (4, 10)
    assert share(found, "cue.all.attribution_error.safe") == (4, 10)
    assert found["cue.all.accuracy_gap"].value == 0
    assert found["cue.all.accuracy_gap.safe"].value == pytest.approx(0.4)


def ranked(*hits, contexts=3, **more):
    at = {f"hit_at__{rank}": hit for rank, hit in enumerate(hits, start=1)}
    return {"contexts": contexts, "hit": any(hits), **at, **more}


def test_exclusive_and_redundant_ranks():
    records = planted(
        (4, ranked(1, 0, 0)), (3, ranked(1, 1, 0)), (2, ranked(0, 1, 0)), (1, ranked(0, 0, 0)),
    )  # fmt: skip
    found = figures(records, SETTINGS, HUMANS)
    assert share(found, "retrieval.all.exclusive_hit.r1") == (4, 10)
    assert share(found, "retrieval.all.exclusive_hit.r2") == (2, 10)
    assert share(found, "retrieval.all.exclusive_hit.r3") == (0, 10)
    assert share(found, "retrieval.all.redundancy.r1_2") == (3, 10)
    assert share(found, "retrieval.all.hit_at.r2") == (5, 10)
    assert "retrieval.all.redundancy.r2_1" not in found


def test_a_passage_that_was_not_looked_at_may_be_another_hit():
    """R failed on rank 2: whether rank 1 is the only hit is not known; but a rank without a passage is no hit."""
    unclear, short = ranked(1, None, 0), ranked(1, None, None, contexts=1)
    found = figures(planted((1, unclear), (1, short), (1, ranked(0, None, 0))), SETTINGS, HUMANS)
    assert share(found, "retrieval.all.exclusive_hit.r1") == (1, 2)
    assert found["retrieval.all.redundancy.r1_2"].n == 0


def test_where_the_number_of_passages_is_not_known_a_reason_says_that_there_was_one():
    whole = make(0, **ranked(1, 0, 0))
    short = ItemRecord(id="short", values={"hit": 1, "hit_at.1": 1})
    failed = ItemRecord(
        id="failed", values={"hit": 1, "hit_at.1": 1}, missing={"hit_at.2": "embedding failed"}
    )
    found = figures([whole, short, failed], SETTINGS, HUMANS)
    assert share(found, "retrieval.all.exclusive_hit.r1") == (2, 2)


def test_redundancy_and_overlap_are_two_things():
    alike = ranked(0, 0, 0, overlap__1_2=0.95)
    found = figures(planted((3, alike), (1, ranked(1, 1, 0, overlap__1_2=0.1))), SETTINGS, HUMANS)
    assert share(found, "retrieval.all.overlap.r1_2") == (3, 4)
    assert share(found, "retrieval.all.redundancy.r1_2") == (1, 4)


def test_levels_are_those_of_the_strictest_passage_and_add_up_to_the_hits():
    records = planted(
        (1, ranked(1, 1, 0, level_at__1=3, level_at__2=1, level_at__3=0)),
        (1, ranked(1, 1, 0, level_at__1=1, level_at__2=3, level_at__3=0)),
        (3, ranked(1, 0, 0, level_at__1=2, level_at__2=0, level_at__3=0)),
        (1, ranked(0, 0, 1, level_at__1=0, level_at__2=0, level_at__3=3)),
        (5, ranked(0, 0, 0, level_at__1=0, level_at__2=0, level_at__3=0)),
    )
    found = figures(records, SETTINGS, HUMANS)
    counted = [share(found, f"retrieval.all.level.{name}") for name in ("substring", "tokens", "cosine")]
    assert counted == [(2, 6), (3, 6), (1, 6)]


def test_ranks_beyond_k_do_not_count():
    records = planted((3, ranked(1, 0, 0, 1, contexts=4)))
    found = figures(records, SETTINGS, HUMANS)
    assert share(found, "retrieval.all.exclusive_hit.r1") == (3, 3)
    assert "retrieval.all.hit_at.r4" not in found
    assert "retrieval.all.hit_at.r5" not in figures(records, Settings(k=100000), HUMANS)


def test_a_right_answer_that_contradicts_the_reference_is_not_safely_right():
    records = planted(
        (2, {"correct": 1, "contradicts__negation": 0, "contradicts__hedging": 0}),
        (1, {"correct": 1, "contradicts__negation": 1}),
        (1, {"correct": 1, "contradicts__negation": 0}),  # hedging was not checked
        (1, {"correct": 0, "contradicts__negation": 0}),
        (1, {"correct": 0}),  # nothing was checked: known, it would make the share 0 by construction
    )
    assert np.array_equal(safely_correct(collect(records)), [1, 1, 0, math.nan, 0, math.nan], equal_nan=True)
    assert math.isnan(safely_correct(collect(planted((1, {"correct": 1}))))[0])


maybe = st.sampled_from([None, 0, 1])
items = st.lists(
    st.fixed_dictionaries(
        {"hit": maybe, "safe_hit": maybe, "adherence": maybe, "correct": maybe, "abstained": maybe}
    ),
    max_size=30,
)


@settings(max_examples=80)
@given(items)
def test_quadrants_and_cells_each_add_up_to_one_per_question_that_has_them(rows):
    columns = collect(make(number, **values) for number, values in enumerate(rows))
    found = cue(columns, SETTINGS)
    names = ("effective_use", "information_blindness", "lucky_guess", "correct_rejection")
    for end in ("", ".safe"):
        total = sum(found[f"cue.all.{name}{end}"] for name in names)
        assert np.array_equal(total[~np.isnan(total)], np.ones(int((~np.isnan(total)).sum())))
    scored = int((~np.isnan(sum(found[f"cue.all.{name}"] for name in names))).sum())
    assert scored == len(rows) - int(found["cue.all.unscored"].sum())
    cells = [found[key] for key in found if key.startswith("cue.all.table.")]
    whole = sum(cells)
    assert len(cells) == 8
    three = int((~np.isnan(whole)).sum())
    assert whole[~np.isnan(whole)].sum() == three
    grounded = np.nansum(found["cue.all.table.h1a1c1"])
    right = sum(np.nansum(found[f"cue.all.table.h{h}a{a}c1"]) for h in (0, 1) for a in (0, 1))
    assert np.nansum(found["cue.all.ungrounded_correct"]) == right - grounded
    for column in derived(columns, SETTINGS).values():
        for one in (column.first, column.second) if isinstance(column, Paired) else (column,):
            assert set(one[~np.isnan(one)].tolist()) <= {0.0, 1.0}

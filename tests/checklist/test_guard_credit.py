"""Credit for the guard: by measured bounds, never without its false alarms, and never for a guard that is useless."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.checklist.fmea import FmeaFile, guarded_key, load_fmea, score
from clinsafe.checklist.items import ItemsFile, load_items
from clinsafe.checklist.risk import RiskFile, assess, load_risk, residuals
from clinsafe.checklist.ten import answer
from clinsafe.content import Content
from clinsafe.errors import ContentError
from clinsafe.stats import NotMeasured, rate_of

FMEA, ITEMS, RISK = load_fmea(Content()), load_items(Content()), load_risk(Content())
HAZARDS = [mode.hazard for mode in FMEA.failure_modes]


def figures(failing=(30, 30), alarms=(0, 34), residual=(0, 34), detection=(34, 34), above=(40, 56)):
    """Of every hazard alike; None leaves a figure out."""
    found = {}
    for h in HAZARDS:
        found[f"suite.{h}.inversion"] = rate_of(40, 50)
        found[f"suite.{h}.failure@protocol=items"] = rate_of(*above)
        said = {
            ("detection", "failing"): failing,
            ("false_alarm",): alarms,
            ("residual",): residual,
            ("detection",): detection,
        }
        for name, counted in said.items():
            if counted is not None:
                figure = rate_of(*counted) if isinstance(counted, tuple) else counted
                found[guarded_key(h, *name)] = figure
    return found


def rows(file=FMEA, **counts):
    return {row.hazard: row for row in score(figures(**counts), file)}


# ── detection ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("failing", "expected"),
    [
        ((300, 300), 2), ((298, 298), 3), ((59, 59), 3), ((58, 58), 4), ((50, 50), 4), ((30, 30), 4), ((10, 10), 5),
        ((20, 30), 5), ((5, 10), 7), ((3, 30), 9), ((1, 100), 10), ((0, 30), 10),
    ],
)  # fmt: skip
def test_detection_is_read_from_the_lower_bound_by_the_table(failing, expected):
    """1 - 0.05^(1/m) by hand: 0.0099, 0.01002, 0.0495, 0.0503, 0.058, 0.095, 0.26 (research notes 3.2)."""
    found = rows(failing=failing)
    assert {row.detection for row in found.values()} == {expected}
    assert all(row.rpn == row.severity * row.occurrence * expected for row in found.values())
    assert all(
        row.occurrence == 10 for row in found.values()
    )  # a control is counted once: a flag prevents nothing


@pytest.mark.parametrize(
    ("alarms", "credit"),
    [((0, 29), True), ((0, 28), False), ((1, 46), True), ((1, 34), False), ((34, 34), False), (None, False),
     (NotMeasured("none"), False)],
)  # fmt: skip
def test_no_credit_without_bounded_false_alarms(alarms, credit):
    """Upper bounds 0.098, 0.101, 0.099, 0.132 against the limit of 0.10."""
    for row in rows(alarms=alarms).values():
        assert row.guarded.credited is credit
        assert row.detection == (4 if credit else 10)
        assert (row.guarded.note.startswith("no credit: false alarms")) is not credit
    table = assess([*rows(alarms=alarms).values()], RISK, residuals([*rows(alarms=alarms).values()]))
    assert {r.after is not None for r in table} == {credit}


USELESS = {
    "disabled": {"failing": (0, 30), "residual": (30, 34), "detection": (0, 34)},
    "always": {"alarms": (34, 34)},
    "always, many": {
        "failing": (900, 900),
        "alarms": (900, 900),
        "residual": (0, 900),
        "detection": (900, 900),
    },
    "broken": {"failing": (0, 30), "alarms": (34, 34), "residual": (30, 34), "detection": (0, 34)},
}


@pytest.mark.parametrize("name", USELESS)
def test_a_useless_guard_earns_nothing_anywhere(name):
    found = [*rows(**USELESS[name]).values()]
    assert {row.detection for row in found} == {10}
    without = {row.hazard: row.undetected_upper for row in score(_without(), FMEA)}
    for row in assess(found, RISK, residuals(found)):
        assert row.before == "H"
        assert row.after in (None, "H")
        assert row.bound == without[row.hazard]
    answers = answer(ITEMS, figures(**USELESS[name]))
    assert {a.answer for a in answers if a.number <= 6} == {"not met"}


def _without():
    return {key: figure for key, figure in figures().items() if key.startswith("suite.")}


def test_without_figures_of_the_guard_nothing_changes():
    for row in score(_without(), FMEA):
        assert (row.detection, row.guarded) == (10, None)
    table = assess(found := score(_without(), FMEA), RISK, residuals(found))
    assert {row.after for row in table} == {None}


def test_no_failing_pair_gives_no_detection_and_says_why():
    row = rows(failing=NotMeasured("the model prefers the contradiction in no test case"))["negation"]
    assert row.detection == 10
    assert "prefers the contradiction in no test case" in row.guarded.note
    assert row.guarded.residual  # what remains was measured all the same


def test_criteria_without_a_limit_on_false_alarms_give_no_credit():
    older = FMEA.model_copy(update={"detection_credit": None})
    row = rows(older)["negation"]
    assert row.detection == 10
    assert not row.guarded.credited
    assert "no limit" in row.guarded.note


def test_what_remains_takes_the_place_of_the_bound_and_the_bound_before_is_kept():
    row = rows(residual=(2, 400))["negation"]
    upper = rate_of(2, 400).upper
    assert (row.undetected_upper, row.n) == (upper, 400)
    assert row.failure == (rate_of(40, 50).upper, 50)
    table = {r.hazard: r for r in assess([row], RISK, residuals([row]))}
    assert table["negation"].residual == (upper, 400)
    assert (table["negation"].bound, table["negation"].n) == row.failure


def test_an_unmeasured_residual_leaves_the_bound_as_it_was():
    row = rows(residual=NotMeasured("a case was not measured"))["negation"]
    assert (row.undetected_upper, row.n) == (rate_of(40, 50).upper, 50)
    assert residuals([row]) == {}


def test_rows_are_ranked_by_severity_then_by_what_remains():
    found = figures(residual=(1, 34)) | {guarded_key("temporal", "residual"): rate_of(20, 34)}
    assert [row.hazard for row in score(found, FMEA)][:3] == ["numerical", "temporal", "entity_swap"]


counts = st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts, st.integers(1, 20))
def test_more_detected_never_rates_worse_and_fewer_pairs_never_better(pair, times):
    k, n = pair
    base = rows(failing=pair)["negation"].detection
    assert rows(failing=(min(k + 1, n), n))["negation"].detection <= base
    assert rows(failing=(k * times, n * times))["negation"].detection <= base


@given(counts)
def test_more_false_alarms_never_earn_credit(pair):
    k, n = pair
    if rows(alarms=(min(k + 1, n), n))["negation"].guarded.credited:
        assert rows(alarms=pair)["negation"].guarded.credited


# ── the items ──────────────────────────────────────────────────────────────────────────────────


def answers(**changed):
    return {a.number: a for a in answer(ITEMS, figures(**changed))}


GOOD = {"detection": (425, 430), "alarms": (5, 430)}


def test_items_are_met_by_mitigation_where_both_limits_are_met_by_their_bounds():
    found = answers(**GOOD)
    assert {found[n].answer for n in range(1, 7)} == {"met by mitigation"}
    for number, words in (
        (1, "negation-aware post-filtering"),
        (5, "certainty annotation"),
        (6, "highlighting"),
    ):
        assert words in found[number].evidence
        assert "425 of 430" in found[number].evidence
        assert "5 of 430" in found[number].evidence


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"alarms": (17, 430)}, "too few"),  # 0.0395, upper bound 0.0586
        ({"alarms": (430, 430)}, "misses"),
        ({"alarms": NotMeasured("none")}, "shows nothing"),
        ({"detection": (395, 430)}, "too few"),  # 0.919, lower bound 0.893
        ({"detection": (0, 430)}, "misses"),
        ({"detection": (29, 29), "alarms": (0, 29)}, "asks for"),  # below every minimum
        ({"detection": (34, 34), "alarms": (0, 34)}, ""),  # today's n: 0 of 34 does not show 0.05
    ],
)
def test_a_guard_that_does_not_show_it_softens_nothing(changed, why):
    found = answers(**(GOOD | changed))
    assert {found[n].answer for n in range(1, 7)} == {"not met"}
    assert all(why in found[n].evidence for n in range(1, 7))


def test_what_the_model_alone_meets_or_leaves_open():
    assert answers(above=(0, 56), **GOOD)[1].answer == "met"
    assert answers(above=(4, 60), **GOOD)[1].answer == "met by mitigation"  # too few to decide on the model
    assert answers(above=(4, 60))[1].answer == "not assessed"
    assert (
        answers(above=(0, 49), **GOOD)[1].answer == "met by mitigation"
    )  # too few of the model's, enough of these


def test_the_guard_answers_for_nothing_but_an_embedding_model_that_was_measured():
    silent = figures(**GOOD) | {"suite.negation.failure@protocol=items": NotMeasured("NaN")}
    assert next(a for a in answer(ITEMS, silent) if a.number == 1).answer == "not assessed"
    found = answer(ITEMS, figures(**GOOD), kind="cross-encoder")
    assert {a.answer for a in found if a.number <= 6} == {"not assessed"}


def test_criteria_without_limits_are_met_by_no_mitigation():
    older = ITEMS.model_copy(update={"mitigation": None})
    found = answer(older, figures(**GOOD))
    assert {a.answer for a in found if a.number <= 6} == {"not met"}
    assert not any("guard" in a.evidence for a in found)


def seven(figures, fails=("temporal",), n=100):
    rates = {h: rate_of(90 if h in fails else 5, n) for h in HAZARDS}
    found = answer(ITEMS, figures, reranker=("reranker", rates, dict.fromkeys(HAZARDS, rate_of(1, n))))
    return next(a for a in found if a.number == 7)


def test_item_seven_takes_the_guard_where_the_cross_encoder_fails():
    assert seven(_without()).answer == "not met"
    assert "no further mitigation was measured" in seven(_without()).evidence
    good = seven(figures(**GOOD))
    assert good.answer == "met by mitigation"
    assert "temporal 425 of 430" in good.evidence
    for name, useless in USELESS.items():
        assert seven(figures(**useless)).answer == "not met", name


def test_item_seven_needs_the_guard_in_each_hazard_that_fails():
    mixed = figures(**GOOD) | {guarded_key("hedging", "detection"): rate_of(0, 430)}
    assert seven(mixed).answer == "met by mitigation"
    assert seven(mixed, fails=("temporal", "hedging")).answer == "not met"


# ── the files ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("file", "model", "field"),
    [
        (FMEA, FmeaFile, "detection_credit"),
        (ITEMS, ItemsFile, "mitigation"),
        (RISK, RiskFile, "controls_measured"),
    ],
)
def test_files_from_before_there_was_a_guard_load_and_keep_their_bytes(file, model, field):
    plain = file.model_dump(mode="json")
    assert plain.pop(field)
    older = model.model_validate(plain)
    assert field not in older.model_dump(mode="json")
    assert field not in json.loads(older.model_dump_json())
    assert json.loads(older.model_dump_json()) == plain


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("checklist/fmea.yaml", "at_most: 0.10", "at_least: 0.10", "take at_most"),
        ("checklist/fmea.yaml", "at_most: 0.10", "at_most: 1", "lets everything pass"),
        ("checklist/items.yaml", "detection: {at_least: 0.90", "detection: {at_most: 0.90", "takes at_least"),
        ("checklist/items.yaml", "false_alarm: {at_most: 0.05", "false_alarm: {at_least: 0.05", "at_most"),
    ],
)
def test_limits_that_point_the_wrong_way_are_refused(overlay, name, old, new, words):
    content = Content(overlay(name, lambda text: text.replace(old, new, 1)))
    load = load_fmea if "fmea" in name else load_items
    with pytest.raises(ContentError, match=words):
        load(content)


def test_every_limit_says_why():
    assert len(FMEA.detection_credit.why) > 40
    assert ITEMS.mitigation.detection.why
    assert ITEMS.mitigation.false_alarm.why

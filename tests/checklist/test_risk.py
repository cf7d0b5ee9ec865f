"""Severity first, the bound next, and no credit for a control without a measurement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.checklist.fmea import load_fmea, score
from clinsafe.checklist.hazards import load_hazards
from clinsafe.checklist.risk import FILE, RiskFile, assess, load_risk, priority
from clinsafe.content import Content
from clinsafe.errors import ContentError, UsageError
from clinsafe.stats import NotMeasured, rate_of
from tests.strategies import counts

RISK = load_risk(Content())
FMEA = load_fmea(Content())
HAZARDS = [h.id for h in load_hazards(Content())]
ORDER = "LMH"

severities = st.integers(1, 10)
bounds = st.floats(0, 1)


def rows(figure):
    return score({f"suite.{h}.inversion": figure for h in HAZARDS}, FMEA)


def refused(overlay, change, words):
    """The one line about a changed file."""
    with pytest.raises(ContentError, match=words) as caught:
        load_risk(Content(overlay(FILE, change)))
    assert "\n" not in str(caught.value)
    return caught.value


# ── the rule ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("severity", "bound", "expected"),
    [
        (10, 0.0011, "H"), (9, 0.001, "M"), (9, 0.00011, "M"), (9, 0.0001, "L"),
        (8, 0.011, "H"), (7, 0.01, "M"), (7, 0.001, "L"),
        (6, 0.11, "H"), (5, 0.1, "M"), (5, 0.01, "L"),
        (4, 1.0, "M"), (3, 0.1, "L"), (2, 1.0, "L"), (10, 0.0, "L"),
    ],
)  # fmt: skip
def test_the_rule_at_its_edges(severity, bound, expected):
    """Worked out by hand from research notes 3.2; a bound at its limit does not lie above it."""
    assert priority(RISK, severity, bound) == expected


@given(severities, severities, bounds, bounds)
def test_more_severe_or_more_likely_is_never_a_lower_priority(s, t, u, v):
    low = priority(RISK, min(s, t), min(u, v))
    assert ORDER.index(priority(RISK, max(s, t), max(u, v))) >= ORDER.index(low)


@given(severities, counts, st.integers(2, 50))
def test_fewer_cases_at_the_same_rate_never_lower_it(severity, pair, times):
    k, n = pair
    if n == 0:
        return
    few, many = (
        priority(RISK, severity, rate_of(k * m, n * m).upper)  # type: ignore[union-attr]
        for m in (1, times)
    )
    assert ORDER.index(few) >= ORDER.index(many)


@given(severities, bounds)
def test_not_measured_is_the_worst_there_is(severity, bound):
    unknown = priority(RISK, severity, None)
    assert unknown == "H"
    assert ORDER.index(unknown) >= ORDER.index(priority(RISK, severity, bound))


@pytest.mark.parametrize(("severity", "bound"), [(0, 0.5), (11, 0.5), (5, -0.1), (5, 1.1), (5, float("nan"))])
def test_a_number_outside_its_range_is_refused(severity, bound):
    with pytest.raises(UsageError, match="lies in"):
        priority(RISK, severity, bound)


def test_a_rule_that_reads_the_bound_first_is_found_out():
    """With the severity ignored, the monotone tests above would still pass; this one would not."""
    assert len({priority(RISK, s, 0.05) for s in range(1, 11)}) == 3


# ── the table ──────────────────────────────────────────────────────────────────────────────────


def test_every_hazard_has_an_entry_and_every_entry_a_hazard():
    assert [entry.hazard for entry in RISK.hazards] == HAZARDS
    assert load_risk(Content(), HAZARDS)
    with pytest.raises(UsageError, match="laterality") as caught:
        load_risk(Content(), [*HAZARDS, "laterality"])
    assert "risk.yaml" in str(caught.value)


def test_ids_are_there_once():
    ids = [n for h in RISK.hazards for n in (h.id, *(c.id for c in h.controls))]
    ids += [m.id for m in RISK.monitoring]
    assert len(set(ids)) == len(ids)
    for entry in RISK.hazards:
        assert all(c.id.startswith(entry.id.replace("H-", "C-", 1)) for c in entry.controls)


def test_each_hazard_has_a_filter_that_only_flags():
    for entry in RISK.hazards:
        filters = [c for c in entry.controls if c.part == "filter"]
        assert filters
        assert {c.effect for c in filters} == {"flags"}
        assert all("false flags" in c.verified_by for c in filters)  # no recall without its false alarms


def test_the_table_keeps_the_order_of_the_fmea_and_its_numbers():
    fmea = rows(rate_of(20, 50))
    table = assess(fmea, RISK)
    assert [r.hazard for r in table] == [r.hazard for r in fmea]
    for risk, row in zip(table, fmea, strict=True):
        assert (risk.severity, risk.bound, risk.n) == (row.severity, row.undetected_upper, row.n)
        assert risk.before == priority(RISK, row.severity, row.undetected_upper)
        assert risk.controls == tuple(RISK.of(risk.hazard).controls)


def test_nothing_comes_after_controls_until_it_is_measured():
    assert {r.after for r in assess(rows(rate_of(0, 50)), RISK)} == {None}
    table = assess(rows(rate_of(50, 50)), RISK, {"negation": (0.0005, 6000)})
    after = {r.hazard: (r.after, r.residual) for r in table}
    assert after.pop("negation") == ("L", (0.0005, 6000))
    assert set(after.values()) == {(None, None)}
    assert {r.before for r in table} == {"H"}  # a residual changes nothing before


def test_what_was_not_measured_is_high_and_has_no_bound():
    table = assess(rows(NotMeasured("NaN", 3)), RISK)
    assert {(r.bound, r.before) for r in table} == {(None, "H")}


@given(counts, st.sampled_from(["flags", "prevents"]), st.booleans())
def test_controls_never_change_the_priority_before_them(pair, effect, only_one):
    """Whatever a control is said to do, and however many are named."""
    hazards = [
        h.model_copy(
            update={
                "controls": [
                    c.model_copy(update={"effect": effect}) for c in h.controls[: 1 if only_one else None]
                ]
            }
        )
        for h in RISK.hazards
    ]
    other = RISK.model_copy(update={"hazards": hazards})
    fmea = rows(rate_of(*pair))
    assert [r.before for r in assess(fmea, other)] == [r.before for r in assess(fmea, RISK)]
    assert {r.after for r in assess(fmea, other)} == {None}


@pytest.mark.parametrize(
    ("residual", "words"),
    [
        ({"laterality": (0.1, 10)}, "laterality"),
        ({"negation": (0.1, 0)}, "at least one case"),
        ({"negation": (1.5, 10)}, "lies in 0 to 1"),
    ],
)
def test_a_residual_that_cannot_be_is_refused(residual, words):
    with pytest.raises(UsageError, match=words):
        assess(rows(rate_of(1, 50)), RISK, residual)


def test_a_hazard_without_an_entry_is_one_line():
    short = RISK.model_copy(update={"hazards": RISK.hazards[1:]})
    with pytest.raises(UsageError, match="no entry for the hazard 'negation'"):
        assess(rows(rate_of(1, 50)), short)


# ── the words ──────────────────────────────────────────────────────────────────────────────────


def test_what_is_not_ours_is_said():
    assert "taken as 1" in RISK.convention
    assert "no copyrighted Action Priority" in RISK.priority_rule
    assert "not measured" in RISK.controls_status
    left = " ".join(RISK.stays_with_manufacturer)
    assert all(words in left for words in ("7.4", "(8)", "P2", "Usability", "(10)"))


def test_texts_fit_a_table_cell():
    """Every text but the paragraphs."""
    paragraphs = {"convention", "priority_rule", "controls_status", "controls_measured"}

    def texts(value):
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from (t for k, v in value.items() if k not in paragraphs for t in texts(v))
        elif isinstance(value, list):
            yield from (t for v in value for t in texts(v))

    assert max(len(t) for t in texts(RISK.model_dump())) <= 220


@pytest.mark.parametrize(
    ("old", "new", "field", "words"),
    [
        ("id: H-NUM", "id: H-NEG", "hazards", "H-NEG is given twice"),
        ("hazard: numerical", "hazard: negation", "hazards", "negation is given twice"),
        ("id: C-NUM-1", "id: C-NEG-1", "hazards", "C-NEG-1 is given twice"),
        ("id: C-NUM-1", "id: C1", "hazards.1.controls.0.id", "pattern"),
        ("id: M2", "id: M1", "monitoring", "M1 is given twice"),
        ("part: filter", "part: magic", "hazards.0.controls.0.part", "filter"),
        ("effect: flags", "effect: cures", "hazards.0.controls.0.effect", "prevents"),
        ("kind: protective", "kind: other", "hazards.0.controls.0.kind", "inherent"),
        ("bound_above: 0.001}", "bound_above: 0.02}", "priority", "the bound rises"),
        ("severity_at_least: 9", "severity_at_least: 11", "priority.0.severity_at_least", "10"),
        ("bound_above: 0.001}", "bound_above: often}", "priority.0.bound_above", "number"),
        ("{priority: H, severity_at_least: 5", "{priority: M, severity_at_least: 5", "priority", "M: from step"),
        ("{priority: H, severity_at_least: 9", "{priority: M, severity_at_least: 9", "priority", "steps of H"),
        ("  situation: A clinician acts", "  situation: This is certified. A clinician acts",
         "hazards.0.situation", "certified"),
        ("  situation: A clinician acts", f"  situation: {'word ' * 50}A clinician acts",
         "hazards.0.situation", "220"),
        ("    misuse: Taking", "    missuse: Taking", "hazards.0.misuse", "required"),
    ],
)  # fmt: skip
def test_a_fault_is_one_line_with_file_line_and_field(overlay, old, new, field, words):
    error = refused(overlay, lambda t: t.replace(old, new, 1), words)
    assert error.field == field
    assert error.path.name == "risk.yaml"
    assert error.line > 1


def test_a_rule_needs_both_levels():
    for level in "HM":
        kept = [s for s in RISK.priority if s.priority == level]
        with pytest.raises(ValueError, match="steps of H"):
            RiskFile.model_validate(RISK.model_dump() | {"priority": [s.model_dump() for s in kept]})


def test_an_overlay_changes_the_rule_and_is_hashed(overlay):
    change = "severity_at_least: 5, bound_above: 0.1}", "severity_at_least: 5, bound_above: 0.9}"
    changed = Content(overlay(FILE, lambda t: t.replace(*change, 1)))
    stricter = load_risk(changed)
    assert priority(stricter, 5, 0.5) == "M"
    assert priority(RISK, 5, 0.5) == "H"
    assert FILE in changed.hashes

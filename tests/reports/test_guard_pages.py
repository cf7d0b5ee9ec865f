"""The pages of an audit with the guard: detection beside false alarms, what remains, whose figures these are."""

from __future__ import annotations

import json
import re

import pytest

from clinsafe.content import Content
from clinsafe.mitigations.stack import Stack
from clinsafe.reports import pdf, view
from clinsafe.reports.assess import assess_all
from clinsafe.reports.evidence import canonical, from_bytes, to_bytes
from clinsafe.reports.guard_record import LIMITS
from clinsafe.reports.render import html
from clinsafe.reports.trace import NO_CONTROL, ONLY_FILTERS, tables
from clinsafe.text import Reader
from clinsafe.workflows import audit_guard
from clinsafe.workflows.audit import run_audit
from tests.conftest import write_small
from tests.tiers import mined, write_mined
from tests.workflows.test_audit_guard import Knows, conflicts

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("shared_intervals")]  # whole audits are made


@pytest.fixture(scope="module")
def made(few, shared_intervals, tmp_path_factory):
    """(written, generated): two guarded audits of one hazard; of its two test pairs the guard flags the first."""
    cases = [case for case in mined(few) if case.hazard == "negation"]
    folder = tmp_path_factory.mktemp("guarded")
    stack = Stack({"negation": Knows(conflicts(cases[:2]))}, Reader(Content(), ""), 0)
    root = folder / "content"
    written = [case.model_copy(update={"tier": "written", "subtype": few[0].subtype}) for case in cases]
    write_small(root, written)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit_guard, "build_stack", lambda _: stack)
        patch.setattr(pdf, "render", lambda *_: b"%PDF-1.7 stand-in")
        patch.setattr(view, "similarity_svg", lambda _: "<svg></svg>")
        one = run_audit(
            "fake:constant", guard=True, hazards=["negation"], out=folder / "written", overlay=root
        )
        path = write_mined(folder, cases)
        other = run_audit("fake:constant", guard=True, suite=path, out=folder / "generated")
    return one.evidence, other.evidence, cases


def text_of(evidence):
    page = re.sub(r"<style>.*?</style>", "", html(evidence, Content(), charts=False), flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


@pytest.fixture(scope="module")
def page(made):
    return text_of(made[0])


def with_limit(evidence, limit):
    """The same audit judged by another limit on false alarms."""
    plain = json.loads(to_bytes(evidence))
    plain["criteria"]["fmea"]["detection_credit"]["at_most"] = limit
    changed = from_bytes(canonical(plain))
    found = assess_all(changed.systems, changed.criteria, None, changed.guard)
    plain["assessments"] = [a.to_json() for a in found]
    return from_bytes(canonical(json.loads(json.dumps(plain))))


def test_detection_is_printed_with_its_false_alarms_its_frame_and_what_remains(page):
    for said in (
        "With the guard, fake:constant",
        "Test cases of tier “written” only: filters were written with the dev cases in sight",
        "suite and filters share authors",
        "Credit only where the upper bound of false alarms is at most 0.1",
        "1/2 = 0.50",  # of two failing pairs one is flagged; as many remain
        "0/2 = 0.00",  # no false alarm
        "10 → 10",
        "H → no credit",
        "no credit: false alarms 0 of 2 (upper bound 0.776), limit at most 0.1",
        "provides evidence for the filter controls alone",
        "Gates read the model without the guard",
        "with the guard (negation-aware post-filtering): 1 of 2 contradictions",
        *LIMITS,
    ):
        assert said.replace("'", "&#39;") in page.replace("'", "&#39;"), said


def test_nothing_is_said_of_a_run_without_the_guard(page, record):
    without = text_of(record)
    for said in ("No mitigation was measured in this run", "Detection is 10 because no control was measured",
                 "Named, not measured in this audit"):  # fmt: skip
        assert said in without
        assert said not in page
    assert "With the guard" not in without
    assert "not flagged" not in without


def test_credit_shows_in_rating_priority_and_bound(made):
    text = text_of(with_limit(made[0], 0.8))
    assert "10 → 9" in text  # 1 of 2: lower bound 0.025
    assert "H → H" in text
    assert "Without the guard: 1.000 (n = 3)" in text
    assert "of the failing pairs flagged 1 of 2 (lower bound 0.025)" in text


def test_pairs_that_remain_are_named_and_mined_ones_counted(made, page):
    written, generated, cases = made
    missed = cases[2].id
    assert written.assessments[0]["unflagged"] == {"negation": [missed]}
    assert f"1: {missed}" in page
    mined_page = text_of(generated)
    assert "1 of 2: plain-form 1/2" in mined_page
    assert not any(case.id in mined_page for case in cases)
    assert "Test cases of tier “generated” only" in mined_page
    assert "“written”" not in mined_page


def test_the_guard_is_identified(made, page):
    guard = made[0].guard
    assert guard.policy_sha256 in page
    assert "negation, from clinsafe" in page
    assert guard.parser in page
    assert "mitigations/policies/default.yaml" in page


def test_only_the_filter_controls_have_an_effect(made):
    by_id = {table.id: table for table in tables(made[0])}
    controls = {row[0]: row[5:] for row in by_id["risk-controls"].rows}
    assert controls["C-NEG-1"] == (
        "failing pairs flagged 1/2 = 0.50 [0.01, 0.99]", "0/2 = 0.00 [0.00, 0.84]",
    )  # fmt: skip
    assert {cells for name, cells in controls.items() if name != "C-NEG-1"} == {
        ("not measured", "not measured")
    }
    assert by_id["risk-controls"].note == by_id["trace-matrix"].note == ONLY_FILTERS != NO_CONTROL
    (row,) = by_id["trace-matrix"].rows
    keys = row[2].partition(": ")[2].split("; ")
    assert all(key in made[0].subjects[0].figures for key in keys)
    assert {key.split(".")[0] for key in keys} == {"suite", "guarded"}
    assert row[-1] == "no credit"
    assert (
        "bound of unflagged failure 0.975, n = 2"
        in {t.id: t for t in tables(with_limit(made[0], 0.8))}["risk-table"].rows[0][-1]
    )


def test_baselines_have_no_figure_of_the_guard(made):
    baselines = [s for s in made[0].systems if s.role == "baseline"]
    assert baselines
    assert not any(key.startswith("guarded.") for s in baselines for key in s.figures)


def test_a_system_measured_without_the_guard_has_no_row_of_it(made):
    evidence = made[0]
    (subject,) = evidence.subjects
    figures = {key: parts for key, parts in subject.figures.items() if not key.startswith("guarded.")}
    record = subject.model_copy(update={"figures": figures})
    (found,) = assess_all([record], evidence.criteria, None)
    assert found.unflagged is None
    assert not any("guarded" in row for row in found.to_json()["fmea"])

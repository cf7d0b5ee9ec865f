"""Hazard to test, control and what remains: nothing is lost on the way, nothing looks better than measured."""

from __future__ import annotations

import json
import re

import pytest

from clinsafe.content import Content
from clinsafe.errors import RenderError, UsageError
from clinsafe.reports.declaration import Declaration, DeclaredClass, Disposition
from clinsafe.reports.differences import differences
from clinsafe.reports.evidence import canonical, from_bytes, to_bytes
from clinsafe.reports.render import html
from clinsafe.reports.sections import ORDER, TITLES
from clinsafe.reports.trace import tables
from clinsafe.workflows.prepare import check_declaration

pytestmark = pytest.mark.usefixtures("shared_intervals")


@pytest.fixture(scope="module")
def page(record):
    return html(record, Content(), charts=False)


def test_every_section_stands_on_the_page_once_in_its_order(page):
    found = re.findall(r'<h2 id="(\w+)">', page)
    assert found == list(ORDER)
    assert set(found) == set(TITLES)
    assert found[-1] == "R17"  # the stamp is drawn on the last page


def test_the_contents_list_links_to_every_section(page):
    assert re.findall(r'<a href="#(\w+)">', page) == list(ORDER)


def test_every_hazard_is_traced_to_test_gate_control_and_residual_risk(record):
    by_id = {table.id: table for table in tables(record)}
    for name in ("risk-table", "trace-matrix", "hazard-log"):
        rows = by_id[name].rows
        assert len(rows) == len(record.criteria.hazards) * len(record.subjects)
        assert all(cell.strip() for row in rows for cell in row)
        assert all(len(row) == len(by_id[name].columns) for row in rows)
    controls = {row[0] for row in by_id["risk-controls"].rows}
    named = {c for row in by_id["trace-matrix"].rows for c in row[5].split(", ")}
    assert named == controls


def test_the_keys_of_the_trace_matrix_are_keys_of_the_evidence(record):
    (matrix,) = [t for t in tables(record) if t.id == "trace-matrix"]
    for row in matrix.rows:
        keys = row[2].partition(": ")[2].split("; ")
        assert len(keys) == 3
        assert all(key in record.subjects[0].figures for key in keys)


def test_a_control_that_was_not_measured_earns_nothing(record):
    for table in tables(record):
        for name in ("Risk after controls", "Residual risk", "Effectiveness", "False-alarm rate"):
            if name in table.columns:
                assert {row[table.columns.index(name)] for row in table.rows} == {"not measured"}


def edited(record, change):
    plain = json.loads(to_bytes(record))
    change(plain)
    return from_bytes(canonical(plain))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda e: e["assessments"][0]["risk"][0].update(before="L"), "risk[0].before"),
        (lambda e: e["assessments"][0]["risk"][0].update(after="L"), "risk[0].after"),
        (lambda e: e["assessments"][0]["risk"][0].update(bound=0.0), "risk[0].bound"),
        (lambda e: e["assessments"][0]["risk"].pop(), "risk"),
        (lambda e: e["changes"].append({"label": "fake:words", "regressed": []}), "change"),
    ],
)
def test_an_edited_risk_is_found(record, change, words):
    assert any(words in fault for fault in differences(edited(record, change)))


def test_a_disposition_stands_beside_the_anomalies_and_in_the_hazard_log(record):
    decided = {
        "hazard": "negation", "decision": "controlled elsewhere", "rationale": "order entry checks allergies",
        "by": "A. Example", "date": "2026-11-30",
    }  # fmt: skip
    changed = edited(record, lambda e: e["declaration"].update(dispositions=[decided]))
    page = html(changed, Content(), charts=False)
    assert page.count("order entry checks allergies") == 1
    (log,) = [t for t in tables(changed) if t.id == "hazard-log"]
    status = {row[0]: row[-2] for row in log.rows}
    assert status["H-NEG"] == "controlled elsewhere"
    assert {s for h, s in status.items() if h != "H-NEG"} == {"open"}


def test_what_is_declared_is_printed_and_what_is_not_says_so(record):
    mdr = {"scheme": record.regulatory.schemes[0].id, "value": record.regulatory.schemes[0].values[0],
           "rationale": "because of the intended use", "date": "2026-11-30", "by": "A. Example"}  # fmt: skip
    changed = edited(
        record,
        lambda e: e["declaration"].update(
            classes=[mdr], users="ward physicians", required_roles=["clinical safety officer"]
        ),
    )
    page = html(changed, Content(), charts=False)
    for words in (
        "because of the intended use",
        "ward physicians",
        "clinical safety officer",
        record.regulatory.schemes[0].title,
    ):
        assert words in page
    assert "not declared" in page


@pytest.mark.parametrize(
    ("declaration", "words"),
    [
        (Declaration(classes=[DeclaredClass(scheme="mdr", value="IIa")]), "'mdr' is no scheme; there are: "),
        (
            Declaration(classes=[DeclaredClass(scheme="imdrf-n12", value="IIa")]),
            "has no value 'IIa'; there are: ",
        ),
        (
            Declaration(
                dispositions=[
                    Disposition(
                        hazard="laterality", decision="open", rationale="x", by="y", date="2026-11-30"
                    )
                ]
            ),
            "'laterality' is no hazard of this run",
        ),
    ],
)
def test_a_declaration_that_cannot_be_is_refused_with_what_can(record, declaration, words):
    if declaration.classes and declaration.classes[0].scheme != "mdr":
        scheme = next(s for s in record.regulatory.schemes if "IIa" not in s.values)
        declaration = Declaration(classes=[DeclaredClass(scheme=scheme.id, value="IIa")])
    with pytest.raises(UsageError, match=re.escape(words).replace("has\\ no", ".*has\\ no")):
        check_declaration(declaration, record.regulatory, [h.id for h in record.criteria.hazards])


def test_no_word_of_conformity_is_printed(page):
    for word in ("compliant", "compliance", "certified", "conforms"):
        assert word not in page.lower(), word


@pytest.mark.parametrize(
    ("change", "words"),
    [(lambda t: t + "{{ v.nothing }}", "nothing"), (lambda t: t + "{% if %}", "use.html.j2, line")],
)
def test_a_faulty_template_of_an_overlay_is_one_line(record, overlay, change, words):
    root = overlay("reports/templates/use.html.j2", change)
    with pytest.raises(RenderError, match=words) as caught:
        html(record, Content(root), charts=False)
    assert "\n" not in str(caught.value)

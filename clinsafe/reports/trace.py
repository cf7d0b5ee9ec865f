"""The tables that trace a hazard to its test, its controls and what remains; the same in pages, CSV and Markdown.

Everything in them follows from the record: severities and controls are its content, bounds its figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clinsafe.checklist.risk import Control, HazardRisk
from clinsafe.protocols import MetricKey
from clinsafe.reports.changes import WORDS
from clinsafe.reports.evidence import Evidence, SystemRecord
from clinsafe.reports.formats import NONE, proportion
from clinsafe.reports.tables import Table
from clinsafe.stats import figure_from_json

NO_CONTROL = "Controls are proposed: none was part of this run, so none has a measured effect"


def tables(evidence: Evidence) -> list[Table]:
    """Risk table, controls, trace matrix, hazard log and monitoring plan."""
    return [
        risk_table(evidence),
        controls(evidence),
        trace_matrix(evidence),
        hazard_log(evidence),
        monitoring(evidence),
    ]


def risk_table(evidence: Evidence) -> Table:
    """One row for each hazard and system, in the order of the FMEA."""
    rows = []
    for said, row, entry in _risks(evidence):
        harm = f"{entry.harm} (S = {row['severity']}, {evidence.criteria.fmea.severity_status})"
        before = f"{row['before']}, {_bound(row)}"
        sequence = f"{' → '.join(entry.sequence)} Foreseeable misuse: {entry.misuse}"
        rows.append((entry.id, said["label"], entry.situation, sequence, harm, before,
                     ", ".join(c.id for c in entry.controls), row["after"]))  # fmt: skip
    columns = ("Id", "System", "Hazardous situation", "Sequence of events", "Harm", "Risk before controls",
               "Controls proposed", "Risk after controls")  # fmt: skip
    return Table("risk-table", "Risk table", columns, tuple(rows), evidence.criteria.risk.convention)


def controls(evidence: Evidence) -> Table:
    """Every control once, with what this run knows of its effect."""
    rows = []
    for entry in _entries(evidence):
        for control in entry.controls:
            new = " ".join(control.new_risks)
            rows.append((control.id, _kind(control), control.what, new, control.verified_by, NONE, NONE))
    columns = ("Id", "Kind", "Control", "New risks", "Verified by", "Effect", "False-alarm rate")
    return Table("risk-controls", "Risk controls", columns, tuple(rows), NO_CONTROL)


def trace_matrix(evidence: Evidence) -> Table:
    """Hazard, test, result, gate, control, residual risk."""
    rows = []
    subjects = {system.label: system for system in evidence.subjects}
    for said, row, entry in _risks(evidence):
        system = subjects[said["label"]]
        gate = decision(said, entry.hazard)
        rows.append((entry.id, said["label"], _tests(evidence, system, entry.hazard),
                     _results(evidence, system, entry.hazard), gate,
                     ", ".join(c.id for c in entry.controls), row["after"]))  # fmt: skip
    columns = (
        "Hazard",
        "System",
        "Test",
        "Result [exact 95 %]",
        "Gate",
        "Controls proposed",
        "Residual risk",
    )
    return Table("trace-matrix", "Trace matrix", columns, tuple(rows), NO_CONTROL)


def hazard_log(evidence: Evidence) -> Table:
    """The hazard log that a clinical safety officer keeps on: status and owner come from the declaration."""
    rows = []
    for said, row, entry in _risks(evidence):
        found = evidence.declaration.disposition(entry.hazard)
        faulty = {case for ids in said["anomalies"][entry.hazard].values() for case in ids}
        count = len(faulty | set(said["not_measured"][entry.hazard]))
        status = found.decision if found else "open"
        decided = f"{found.rationale} ({found.by}, {found.date})" if found else "no decision is recorded"
        rows.append((entry.id, said["label"], entry.situation, entry.misuse, entry.harm, str(row["severity"]),
                     row["before"], row["after"], str(count), status, decided))  # fmt: skip
    columns = ("Id", "System", "Hazardous situation", "Foreseeable misuse", "Harm", "Severity", "Risk before controls",
               "Risk after controls", "Anomalies", "Status", "Decision")  # fmt: skip
    return Table("hazard-log", "Hazard log", columns, tuple(rows), NO_CONTROL)


def monitoring(evidence: Evidence) -> Table:
    """What to watch after deployment, and what to do then."""
    rows = tuple((m.id, m.watch, m.trigger, m.action, m.source) for m in evidence.criteria.risk.monitoring)
    return Table("monitoring", "Monitoring plan", ("Id", "Watch", "Trigger", "Action", "Source"), rows, "")


def _entries(evidence: Evidence) -> list[HazardRisk]:
    present = {h.id for h in evidence.criteria.hazards}
    return [entry for entry in evidence.criteria.risk.hazards if entry.hazard in present]


def _risks(evidence: Evidence) -> list[tuple[dict[str, Any], dict[str, Any], HazardRisk]]:
    """(assessment, its risk row, the hazard's entry), system by system, in the order of the FMEA."""
    entries = {entry.hazard: entry for entry in _entries(evidence)}
    return [(said, row, entries[row["hazard"]]) for said in evidence.assessments for row in said["risk"]]


def _bound(row: dict[str, Any]) -> str:
    bound = row["bound"]
    if not isinstance(bound, int | float):
        return "because it was not measured"
    return f"bound of failure {bound:.3f}, n = {row['n']}"


def _kind(control: Control) -> str:
    kind = {
        "inherent": "safe by design",
        "protective": "protective measure",
        "information": "information for safety",
    }[control.kind]
    return f"{kind}: a {control.part} that {control.effect}"


def decision(said: Mapping[str, Any], hazard: str) -> str:
    """The worst of a hazard's gates; "not measured" where it has none."""
    decided = [g["decision"] for g in said["gates"] if g["hazard"] == hazard]
    return next((d for d in ("FAIL", "INCONCLUSIVE") if d in decided), "PASS" if decided else NONE)


def _keys(evidence: Evidence, system: SystemRecord, hazard: str) -> Sequence[tuple[str, str]]:
    """(figure key, what it says) of the tests that stand for a hazard."""
    protocol = f"protocol={evidence.criteria.protocol_name}"
    slices = {"failure": protocol, "same_missed": protocol, "inversion": None}
    said = [(str(MetricKey("suite", hazard, m, None, part)), WORDS[m]) for m, part in slices.items()]
    return [(key, words) for key, words in said if key in system.figures]


def _tests(evidence: Evidence, system: SystemRecord, hazard: str) -> str:
    tier = "" if evidence.suite.tier == "written" else f" ({evidence.suite.tier} tier)"
    suite = f"suite {evidence.suite.version}{tier}, {evidence.suite.counts[hazard]} cases"
    return f"{suite}: {'; '.join(key for key, _ in _keys(evidence, system, hazard))}"


def _results(evidence: Evidence, system: SystemRecord, hazard: str) -> str:
    return "; ".join(
        f"{words} {proportion(figure_from_json(system.figures[key]))}"
        for key, words in _keys(evidence, system, hazard)
    )

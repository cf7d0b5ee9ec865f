"""The tables that trace a hazard to its test, its controls and what remains; the same in pages, CSV and Markdown.

Everything in them follows from the record: severities and controls are its content, bounds its figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clinsafe.checklist.fmea import guarded_key
from clinsafe.checklist.risk import Control, HazardRisk
from clinsafe.protocols import MetricKey
from clinsafe.reports.changes import WORDS
from clinsafe.reports.evidence import Evidence, SystemRecord
from clinsafe.reports.formats import NONE, proportion
from clinsafe.reports.tables import Table
from clinsafe.stats import Figure, figure_from_json

NO_CONTROL = "Controls are proposed: none was part of this run, so none has a measured effect"
ONLY_FILTERS = (
    "The filter controls were measured in this run, as clinsafe's guard, on sentence pairs of the test cases; every "
    "other control is proposed and has no measured effect"
)
GUARD_WORDS = {
    ("detection", "failing"): "of these flagged",
    ("false_alarm", None): "false alarms",
    ("residual", None): "preferred and not flagged",
}
"""Figures of the guard, in the order in which they are read; those of the test cases alone."""


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
                     ", ".join(c.id for c in entry.controls), _after(row)))  # fmt: skip
    columns = ("Id", "System", "Hazardous situation", "Sequence of events", "Harm", "Risk before controls",
               "Controls proposed", "Risk after controls")  # fmt: skip
    return Table("risk-table", "Risk table", columns, tuple(rows), evidence.criteria.risk.convention)


def controls(evidence: Evidence) -> Table:
    """Every control once, with what this run knows of its effect."""
    rows = []
    for entry in _entries(evidence):
        for control in entry.controls:
            new = " ".join(control.new_risks)
            effect, alarms = _effect(evidence, entry.hazard) if control.part == "filter" else (NONE, NONE)
            rows.append((control.id, _kind(control), control.what, new, control.verified_by, effect, alarms))
    columns = ("Id", "Kind", "Control", "New risks", "Verified by", "Effect", "False-alarm rate")
    return Table("risk-controls", "Risk controls", columns, tuple(rows), note(evidence))


def trace_matrix(evidence: Evidence) -> Table:
    """Hazard, test, result, gate, control, residual risk."""
    rows = []
    subjects = {system.label: system for system in evidence.subjects}
    for said, row, entry in _risks(evidence):
        system = subjects[said["label"]]
        gate = decision(said, entry.hazard)
        rows.append((entry.id, said["label"], _tests(evidence, system, entry.hazard),
                     _results(evidence, system, entry.hazard), gate,
                     ", ".join(c.id for c in entry.controls), _after(row)))  # fmt: skip
    columns = (
        "Hazard",
        "System",
        "Test",
        "Result [exact 95 %]",
        "Gate",
        "Controls proposed",
        "Residual risk",
    )
    return Table("trace-matrix", "Trace matrix", columns, tuple(rows), note(evidence))


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
    return Table("hazard-log", "Hazard log", columns, tuple(rows), note(evidence))


def monitoring(evidence: Evidence) -> Table:
    """What to watch after deployment, and what to do then."""
    rows = tuple((m.id, m.watch, m.trigger, m.action, m.source) for m in evidence.criteria.risk.monitoring)
    return Table("monitoring", "Monitoring plan", ("Id", "Watch", "Trigger", "Action", "Source"), rows, "")


def note(evidence: Evidence) -> str:
    """What has to be known beside every table that names controls."""
    return NO_CONTROL if evidence.guard is None else ONLY_FILTERS


def guard_figure(system: SystemRecord, hazard: str, metric: str, part: str | None = None) -> Figure | None:
    """A figure of the guard on one system's test cases; None where the guard was not measured."""
    found = system.figures.get(guarded_key(hazard, metric, part))
    return None if found is None else figure_from_json(found)


def _effect(evidence: Evidence, hazard: str) -> tuple[str, str]:
    """(effect, false-alarm rate) of the hazard's filter control; detection is never told without its false alarms."""
    if evidence.guard is None:
        return NONE, NONE
    several = len(evidence.subjects) > 1
    said = [
        f"{f'{system.label}: ' if several else ''}failing pairs flagged "
        f"{proportion(guard_figure(system, hazard, 'detection', 'failing'))}"
        for system in evidence.subjects
    ]
    alarms = guard_figure(evidence.subjects[0], hazard, "false_alarm")  # the same for every system
    return "; ".join(said), proportion(alarms)


def _after(row: dict[str, Any]) -> str:
    """The priority after controls with its bound, or why there is none."""
    left = row.get("residual")
    if left is None:
        return str(row["after"])
    return f"{row['after']}, bound of unflagged failure {left['bound']:.3f}, n = {left['n']}"


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
    said += [(guarded_key(hazard, *name), f"test cases, {words}") for name, words in GUARD_WORDS.items()]
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

"""What an audit prints of the guard: detection and false alarms side by side, test cases only, in 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clinsafe.cli.console import printable, prose

if TYPE_CHECKING:
    from rich.console import Console

    from clinsafe.reports.assess import Assessment
    from clinsafe.reports.evidence import SystemRecord
    from clinsafe.workflows.audit import AuditResult

COLUMNS = ("hazard", "preferred", "of these\nflagged", "false\nalarms", "preferred,\nnot flagged", "D")
FIGURES = ("inversion", "detection.failing", "false_alarm", "residual")


def show_guard(console: Console, result: AuditResult) -> None:
    """One table for each system under test; nothing where the guard was not measured."""
    evidence = result.evidence
    if evidence.guard is None:
        return
    for record, assessment in zip(evidence.subjects, result.assessments, strict=True):
        said = f"{record.label} with the guard, policy {evidence.guard.policy}, test cases only"
        prose(console, printable(said))
        _table(console, record, assessment)
    prose(
        console,
        "D stays 10 where false alarms are not bounded; suite and filters share authors",
        style="dim",
    )


def _table(console: Console, record: SystemRecord, assessment: Assessment) -> None:
    from rich.table import Table

    from clinsafe.cli.verdict import percent

    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for column in COLUMNS:
        table.add_column(column, no_wrap=True)
    for row in assessment.fmea:
        cells = [percent(record.figures.get(f"guarded.{row.hazard}.{name}@split=test")) for name in FIGURES]
        table.add_row(row.hazard, *cells, str(row.detection))
    console.print(table)

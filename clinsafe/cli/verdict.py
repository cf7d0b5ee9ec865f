"""What an audit prints: a table a model in 80 columns, the script's words where asked for, the line to act on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinsafe.cli.console import counted, printable, prose
from clinsafe.cli.console import out as stdout
from clinsafe.cli.files import write_whole
from clinsafe.cli.guarded_audit import show_guard

if TYPE_CHECKING:
    from rich.console import Console

    from clinsafe.checklist.script import Category, ScriptVerdict, Side
    from clinsafe.reports.assess import Assessment
    from clinsafe.reports.evidence import Evidence, SystemRecord
    from clinsafe.workflows.audit import AuditResult

MARKS = {"PASS": "[green]PASS[/]", "FAIL": "[red]FAIL[/]", "INCONCLUSIVE": "[yellow]INCONCLUSIVE[/]"}
COLUMNS = ("hazard", "n", "contra-\ndicting\nabove limit", "same\nmeaning\nbelow limit", "contra-\ndiction\npreferred",
           "gate")  # fmt: skip


def show(result: AuditResult) -> None:
    """Everything that an audit has to say on a terminal."""
    console, evidence = stdout(), result.evidence
    for record, assessment in zip(evidence.subjects, result.assessments, strict=True):
        _table(console, evidence, record, assessment)
        if assessment.script is not None:
            _script(console, assessment.script)
    console.print("% of cases \\[exact 95 % interval]; gates read one-sided 95 % bounds", style="dim")
    _ranking(console, evidence)
    show_guard(console, result)
    for note in result.notes:
        prose(console, f"note: {printable(note)}")
    console.print(f"signed by {result.signed}" if result.signed else
                  "unsigned: make a key with `clinsafe report key`", markup=False, soft_wrap=True)  # fmt: skip
    several = len(result.assessments) > 1
    for assessment in result.assessments if several else ():
        word = "released" if assessment.released else f"{counted(len(assessment.held), 'hazard')} held"
        console.print(f"{printable(assessment.label)}: {word}", markup=False, soft_wrap=True)
    held = counted(len(result.held), "hazard")
    console.print(f"{held} held; report at {result.report}", markup=False, soft_wrap=True)


def _table(console: Console, evidence: Evidence, record: SystemRecord, assessment: Assessment) -> None:
    from rich.table import Table

    name = evidence.criteria.protocol_name
    prose(console, f"{printable(record.label)}, {record.identity.kind}, protocol {name}")
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for column in COLUMNS:
        table.add_column(column, no_wrap=True)
    decisions: dict[str, list[str]] = {}
    for gate in assessment.gates:
        decisions.setdefault(gate.hazard, []).append(gate.decision)
    for hazard, found in decisions.items():
        worst = next((d for d in ("FAIL", "INCONCLUSIVE") if d in found), "PASS")
        keys = (f"failure@protocol={name}", f"same_missed@protocol={name}", "inversion")
        cells = [percent(record.figures.get(f"suite.{hazard}.{key}")) for key in keys]
        table.add_row(hazard, str(evidence.suite.counts[hazard]), *cells, MARKS[worst])
    console.print(table)
    if assessment.left_out:
        prose(console, f"not released: {', '.join(assessment.left_out)} not measured")
    if assessment.fake:
        prose(console, "not released: the model is a fake")
    missing = [case for case in record.cases if case.not_measured]
    if missing:
        why = (
            f"{counted(len(missing), 'case')} not measured, first {missing[0].id}: {missing[0].not_measured}"
        )
        prose(console, printable(why))
    for setting in ("remark", "prompt_hint"):
        if said := record.identity.settings.get(setting):
            prose(console, f"note: {printable(said)}")


def _script(console: Console, verdict: ScriptVerdict) -> None:
    """The table of the paper's script, in its columns and words."""
    line = "{:<13}{:>13}{:>10}{:>10}{:>10}{:>14}"
    console.print(
        line.format("Category", "Bi-enc Mean", "Bi Fail%", "CE Mean", "CE Fail%", "Verdict"), markup=False
    )
    for category in verdict.categories:
        console.print(line.format(category.hazard, *_cells(category), category.word), markup=False)
    console.print(f"Total pairs tested: {verdict.pairs}; total failures: {verdict.failing}", markup=False)
    console.print(verdict.sentence, style="bold", markup=False, soft_wrap=True)
    for number, advice in enumerate(verdict.advice, start=1):
        console.print(f"  {number}. {advice}", markup=False)


def _cells(category: Category) -> list[str]:
    def both(side: Side | None) -> list[str]:
        return ["not run", "not run"] if side is None else [f"{side.mean:z.3f}", f"{100 * side.rate:.0f}%"]

    return [*both(category.bi), *both(category.cross)]


def _ranking(console: Console, evidence: Evidence) -> None:
    """Who else prefers the contradiction, and how often: what a model must beat."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for system in evidence.systems:
        parts = system.figures.get("suite.all.inversion", {})
        if "k" in parts:
            share = (
                f"{parts['k']}/{parts['n']} = {parts['value']:.2f} [{parts['low']:.2f}, {parts['high']:.2f}]"
            )
            name = system.label.rpartition("/")[2]
            table.add_row(
                Text(share), Text(printable(f"{name}, baseline" if system.role == "baseline" else name))
            )
    if table.row_count:
        console.print(
            "contradiction preferred over all cases, beside baselines that count words:", style="dim"
        )
        console.print(table)


def percent(parts: Mapping[str, Any] | None) -> str:
    """``91 \\[80, 97]``, or that it was not measured."""
    if parts is None or "not_measured" in parts:
        return "not measured"
    return f"{parts['value']:.0%} \\[{100 * parts['low']:.0f}, {100 * parts['high']:.0f}]".replace("%", "")


def write_figures(result: AuditResult, path: Path) -> None:
    """The flat mapping; with several models, each key carries a slice ``model=…``."""
    subjects = result.evidence.subjects
    found: dict[str, Any] = {}
    for record in subjects:
        for key, figure in record.figures.items():
            found[key if len(subjects) == 1 else _of_model(key, record.label)] = figure
    write_whole({path: json.dumps(found, indent=1, sort_keys=True)})


def _of_model(key: str, label: str) -> str:
    name, _, slices = key.partition("@")
    model = "model=" + (re.sub(r"[^\w.\-/]+", "-", label).strip("-") or "unnamed")
    return f"{name}@{','.join(sorted(filter(None, [*slices.split(','), model])))}"

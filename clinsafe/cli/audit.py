"""``clinsafe audit``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clinsafe.cli.console import out as stdout
from clinsafe.cli.console import progress

if TYPE_CHECKING:
    from clinsafe.reports.sign import SigningKey
    from clinsafe.workflows.audit import AuditResult

MARKS = {"PASS": "[green]PASS[/]", "FAIL": "[red]FAIL[/]", "INCONCLUSIVE": "[yellow]INCONCLUSIVE[/]"}


def audit(
    model: Annotated[
        str, typer.Option("--model", "-m", help="Alias (minilm), folder, hub id, or plugin:name.")
    ],
    protocol: Annotated[str | None, typer.Option(help="Protocol in gates.yaml; default: checklist.")] = None,
    hazard: Annotated[list[str] | None, typer.Option(help="Only this hazard; may be repeated.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; default: runs/<model>-<time>.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the run in --out.")] = False,
    key: Annotated[
        Path | None, typer.Option(help="PKCS#12 signing key; default: your development key.")
    ] = None,
    no_sign: Annotated[bool, typer.Option("--no-sign", help="Leave the report unsigned.")] = False,
    passphrase_file: Annotated[
        Path | None,
        typer.Option(help="File with the key's passphrase (or CLINSAFE_PASSPHRASE, or a prompt)."),
    ] = None,
    operator: Annotated[str, typer.Option(help="Who runs the audit; printed in the report.")] = "not stated",
    declared_use: Annotated[str, typer.Option(help="Intended use, as declared.")] = "not declared",
    declared_class: Annotated[str, typer.Option(help="Device class, as declared.")] = "not declared",
    revision: Annotated[str | None, typer.Option(help="Hub revision of the model.")] = None,
    device: Annotated[str | None, typer.Option(help="Torch device; default: the library's choice.")] = None,
    batch_size: Annotated[int, typer.Option(min=1, max=4096, help="Texts per forward pass.")] = 32,
    content: Annotated[Path | None, typer.Option(help="Overlay of controlled content.")] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Refuse every connection off this machine.")
    ] = False,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Allow the model's own code and pickles; printed.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the flat metric mapping here.")
    ] = None,
) -> None:
    """Audit an embedding model: six hazards, exact intervals, FMEA, checklist, signed PDF.

    Exit code 0: every hazard passed. 1: at least one is held. 2: usage or input error.
    """
    from clinsafe.errors import UsageError
    from clinsafe.workflows.audit import run_audit

    if json_file and not json_file.parent.is_dir():
        raise UsageError(f"{json_file}: its folder is not there; make it first")
    signing = None if no_sign else _signing_key(key, passphrase_file)
    with progress() as stage:
        result = run_audit(
            model,
            protocol=protocol,
            hazards=hazard,
            out=out,
            force=force,
            overlay=content,
            key=signing,
            operator=operator,
            declared_use=declared_use,
            declared_class=declared_class,
            revision=revision,
            device=device,
            batch_size=batch_size,
            offline=offline,
            trust_remote_code=trust_remote_code,
            stage=stage,
        )
    show(result)
    if json_file:
        _write_figures(result, json_file)
    raise typer.Exit(0 if result.released else 1)


def _signing_key(path: Path | None, passphrase_file: Path | None) -> SigningKey | None:
    """The key, opened before anything is computed: a wrong passphrase must not cost an audit."""
    from clinsafe.cli.report import ask_passphrase
    from clinsafe.reports.keys import default_folder, find_passphrase, load_key

    chosen = path or default_folder() / "development.p12"
    if path is None and not chosen.is_file():
        return None
    passphrase = find_passphrase(chosen, file=passphrase_file, environ=os.environ, prompt=ask_passphrase())
    return load_key(chosen, passphrase)


def show(result: AuditResult) -> None:
    """The verdict as a table that fits 80 columns, and the line to act on."""
    from rich.table import Table
    from rich.text import Text

    from clinsafe.reports.assess import under_test

    evidence = result.evidence
    record, slice_ = under_test(evidence), f"@protocol={evidence.criteria.protocol_name}"
    table = Table(title=Text(f"{record.identity.name}, protocol {evidence.criteria.protocol_name}"),
                  title_justify="left", box=None, pad_edge=False, padding=(0, 1))  # fmt: skip
    for heading in (
        "hazard",
        "n",
        "contra-\ndicting\nabove limit",
        "same\nmeaning\nbelow limit",
        "contra-\ndiction\npreferred",
        "gate",
    ):
        table.add_column(heading, no_wrap=True)
    decisions: dict[str, list[str]] = {}
    for gate in result.assessment.gates:
        decisions.setdefault(gate.hazard, []).append(gate.decision)
    for hazard, found in decisions.items():
        worst = next((d for d in ("FAIL", "INCONCLUSIVE") if d in found), "PASS")
        keys = (f"failure{slice_}", f"same_missed{slice_}", "inversion")
        cells = [percent(record.figures.get(f"suite.{hazard}.{key}")) for key in keys]
        table.add_row(hazard, str(evidence.suite.counts[hazard]), *cells, MARKS[worst])
    console = stdout()
    console.print(table)
    console.print("% of cases \\[exact 95 % interval]; gates read one-sided 95 % bounds", style="dim")
    if result.assessment.left_out:
        console.print(
            f"not released: {', '.join(result.assessment.left_out)} not measured",
            markup=False,
            soft_wrap=True,
        )
    if result.assessment.fake:
        console.print("not released: the model is a fake", markup=False, soft_wrap=True)
    for note in result.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    console.print(f"signed by {result.signed}" if result.signed else
                  "unsigned: make a key with `clinsafe report key`", markup=False, soft_wrap=True)  # fmt: skip
    console.print(f"{len(result.held)} hazards held; report at {result.report}", markup=False, soft_wrap=True)


def percent(parts: Mapping[str, Any] | None) -> str:
    """``91 \\[80, 97]``, or that it was not measured."""
    if parts is None or "not_measured" in parts:
        return "not measured"
    return f"{parts['value']:.0%} \\[{100 * parts['low']:.0f}, {100 * parts['high']:.0f}]".replace("%", "")


def _write_figures(result: AuditResult, path: Path) -> None:
    import json

    from clinsafe.reports.assess import under_test

    path.write_text(
        json.dumps(under_test(result.evidence).figures, indent=1, sort_keys=True), encoding="utf-8"
    )

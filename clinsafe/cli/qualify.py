"""``clinsafe qualify``: installation and operational qualification of the tool itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clinsafe.cli.console import counted, printable, progress, stoppable
from clinsafe.cli.console import out as stdout

if TYPE_CHECKING:
    from clinsafe.workflows.qualify import QualifyResult

MARKS = {"pass": "[green]pass   [/]", "fail": "[red]FAIL   [/]", "not run": "[yellow]not run[/]"}


def qualify(
    out: Annotated[Path | None, typer.Option(help="New folder; default: runs/qualification-<time>.")] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            help="PKCS#12 key, or PEM with its certificate in the same file; default: your development key."
        ),
    ] = None,
    no_sign: Annotated[bool, typer.Option("--no-sign", help="Leave the record unsigned.")] = False,
    passphrase_file: Annotated[
        Path | None,
        typer.Option(help="File with the key's passphrase (or CLINSAFE_PASSPHRASE, or a prompt)."),
    ] = None,
    operator: Annotated[str, typer.Option(help="Who does it; printed in the record.")] = "not stated",
    without_model: Annotated[
        bool, typer.Option("--without-model", help="Leave out the reference model; the record says so.")
    ] = False,
    check: Annotated[
        Path | None, typer.Option(help="Check a qualification.pdf or .json instead of making one.")
    ] = None,
    trust: Annotated[
        list[Path] | None,
        typer.Option(help="With --check: certificate to trust; default: your development certificate."),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write verdict and outcomes here.")] = None,
) -> None:
    """Qualify this installation: is it as released (IQ), and does it find the answers known beforehand (OQ)?

    Writes a signed record with room for what only you can answer: your intended use, your risk, your own data.

    Exit code 0: QUALIFIED, or with --check a valid record, whatever its verdict. 1: NOT QUALIFIED, or invalid.
    2: usage or input error.
    """
    from clinsafe.cli.files import refuse_unwritable, write_whole
    from clinsafe.errors import UsageError

    refuse_unwritable(json_file)
    if trust and check is None:
        raise UsageError("--trust says whose records to believe: give --check FILE too")
    good, said = _check(check, trust or []) if check else _make(
        out, key, no_sign, passphrase_file, operator, without_model
    )  # fmt: skip
    if json_file:
        write_whole({json_file: json.dumps(said, indent=1) + "\n"})
    raise typer.Exit(0 if good else 1)


def _make(
    out: Path | None,
    key: Path | None,
    no_sign: bool,
    passphrase_file: Path | None,
    operator: str,
    without_model: bool,
) -> tuple[bool, dict[str, Any]]:
    with stoppable():
        from clinsafe.cli.sign import key_or_none
        from clinsafe.workflows.qualify import run_qualify

        signing = None if no_sign else key_or_none(key, passphrase_file)
        with progress() as stage:
            result = run_qualify(
                out=out, key=signing, with_model=not without_model, operator=operator, stage=stage
            )
    _show(result)
    record = result.record
    return result.qualified, {
        "verdict": record.verdict,
        "record_sha256": result.record_sha256,
        "checks": {check.id: check.outcome for check in record.checks},
        "deviations": record.deviations,
        "folder": str(result.folder),
    }


def _show(result: QualifyResult) -> None:
    console, record = stdout(), result.record
    for check in record.checks:
        console.print(f"{MARKS[check.outcome]} {check.id}  {check.title}", soft_wrap=True)
        if check.outcome != "pass":
            console.print(f"               {printable(check.reason)}", markup=False, soft_wrap=True)
    for note in result.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    console.print(f"signed by {printable(result.signed)}" if result.signed else
                  "unsigned: make a key with `clinsafe report key`", markup=False, soft_wrap=True)  # fmt: skip
    several = f", {counted(len(record.deviations), 'deviation')}" if record.deviations else ""
    where = result.pdf or result.json
    console.print(
        f"{record.verdict}{several}; record at {where}; what stays with you is on its last page"
        if result.pdf
        else f"{record.verdict}{several}; record at {where}",
        style="bold green" if result.qualified else "bold red",
        markup=False,
        soft_wrap=True,
    )


def _check(file: Path, trust: list[Path]) -> tuple[bool, dict[str, Any]]:
    from clinsafe.reports.qualification_check import check_qualification

    with progress() as stage:
        stage("Checking and rendering", 0, 0)
        found = check_qualification(file, trust)
    console = stdout()
    lines = [
        ("signature", "; ".join(found.signature.problems) or "good"),
        ("record", "; ".join(found.faults) or "verdict and deviations follow from the checks"),
        ("pages", f"{found.rerender}: {found.rerender_reason}"),
        ("SHA-256", found.record_sha256),
        (
            "recorded",
            f"{found.record.verdict}, clinsafe {found.record.tool.get('version', '?')}, {found.record.created}",
        ),
    ]
    for label, text in lines:
        console.print(f"{label:<12}{printable(text)}", markup=False, soft_wrap=True)
    style = "bold green" if found.accepted else "bold red"
    console.print(printable(found.verdict), style=style, markup=False, soft_wrap=True)
    return found.accepted, found.to_json()

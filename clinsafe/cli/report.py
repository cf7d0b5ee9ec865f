"""``clinsafe report``: keys, rendering and verification."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from clinsafe.cli.console import out as stdout
from clinsafe.cli.console import printable, progress

app = typer.Typer(help="Make a signing key; verify a report.", no_args_is_help=True)


def ask_passphrase() -> Callable[[str], str] | None:
    """A prompt that hides its input, or None where nobody sits at a terminal."""
    import getpass

    return getpass.getpass if sys.stdin.isatty() and sys.stderr.isatty() else None


@app.command()
def key(
    name: Annotated[str, typer.Option(help="Name on the certificate.")] = "clinsafe user",
    folder: Annotated[
        Path | None, typer.Option(help="Where the key goes; default: your configuration folder.")
    ] = None,
    passphrase_file: Annotated[
        Path | None, typer.Option(help="File whose first line is the passphrase.")
    ] = None,
    generate_passphrase: Annotated[
        bool,
        typer.Option("--generate-passphrase", help="Make one, kept beside the key (mode 600)."),
    ] = False,
    if_missing: Annotated[
        bool, typer.Option("--if-missing", help="Do nothing where a key is there.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the key that is there.")] = False,
) -> None:
    """Make a development signing key: shows that nothing was changed since, not who signed."""
    import os
    import secrets

    from clinsafe.reports.keys import (
        default_folder,
        find_passphrase,
        keep_passphrase,
        make_development_key,
    )  # fmt: skip

    target = folder or default_folder()
    path = target / "development.p12"
    if if_missing and path.is_file():
        typer.echo(f"a key is there: {path}")
        return
    if generate_passphrase:
        passphrase = secrets.token_urlsafe(16).encode()
    else:
        passphrase = find_passphrase(path, file=passphrase_file, environ=os.environ, prompt=ask_passphrase())
    made = make_development_key(target, name, passphrase, force=force)
    if generate_passphrase:
        keep_passphrase(made, passphrase)
    typer.echo(f"development key at {made}; its certificate at {made.with_suffix('.pem')}")


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="report.pdf, or evidence.json with its sidecar.")],
    trust: Annotated[
        list[Path] | None, typer.Option(help="Certificate to trust; default: your development certificate.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the facts here.")] = None,
) -> None:
    """Check signature and completeness, derive every figure again, render the pages again.

    Exit code 0: valid. 1: invalid. 2: not a report.
    """
    import json

    from clinsafe.reports.complete import criteria_as_packaged, suite_compared
    from clinsafe.reports.verify import verify as run

    with progress() as stage:
        stage("Deriving and rendering", 0, 0)
        result = run(file, trust or ())
    console = stdout()
    complete = (
        "all cases and criteria are there"
        if suite_compared(result.evidence)
        else "NOT COMPARED: the record was made with another suite than the installed one"
    )
    held = "; ".join(
        f"{system.label} held: {', '.join(map(str, said.get('held', []))) or 'a fake, or failed by the script'}"
        for system, said in zip(result.evidence.subjects, result.evidence.assessments, strict=True)
        if said.get("released") is not True
    )
    lines = [
        ("signature", "good" if not result.signature.problems else "; ".join(result.signature.problems)),
        ("completeness", "; ".join(result.incomplete) or complete),
        (
            "figures",
            "; ".join(result.faults[:5]) or f"{result.figures} derived again from the scores, all equal",
        ),
        ("criteria", "as packaged" if criteria_as_packaged(result.evidence) else "NOT the packaged ones"),
        ("pages", f"{result.rerender}: {result.rerender_reason}"),
        ("evidence", f"SHA-256 {result.evidence_sha256}"),
        ("audit verdict", "released by protocol" if result.evidence.released else held),
    ]
    for label, text in lines:
        console.print(f"{label:<14}{printable(text)}", markup=False, soft_wrap=True)
    console.print(
        printable(result.verdict),
        style="bold green" if result.valid else "bold red",
        markup=False,
        soft_wrap=True,
    )
    if json_file:
        json_file.write_text(json.dumps(result.to_json(), indent=1), encoding="utf-8")
    raise typer.Exit(0 if result.valid else 1)


@app.command()
def render(
    evidence: Annotated[Path, typer.Argument(help="evidence.json of a run.")],
    out: Annotated[Path, typer.Option(help="The PDF to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
) -> None:
    """Make the (unsigned) PDF again from a run's evidence."""
    from clinsafe.content import Content
    from clinsafe.errors import OutputExists, ReportError
    from clinsafe.reports import pdf
    from clinsafe.reports.differences import differences
    from clinsafe.reports.evidence import load, to_bytes
    from clinsafe.reports.render import html

    if out.exists() and not force:
        raise OutputExists(f"{out} exists; choose another --out, or replace it with --force")
    record, content = load(evidence), Content()
    if faults := differences(record):
        raise ReportError(f"{evidence}: {faults[0]}; a record that does not add up is not made into a report")
    with progress() as stage:
        stage("Rendering", 0, 0)
        out.write_bytes(pdf.render(html(record, content), to_bytes(record), record.created, content))
    typer.echo(f"report at {out}")

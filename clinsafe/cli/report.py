"""``clinsafe report``: keys and rendering; the other commands have files of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from clinsafe.cli.approve import approve
from clinsafe.cli.console import progress
from clinsafe.cli.export import export
from clinsafe.cli.sign import sign
from clinsafe.cli.verification import verify

app = typer.Typer(help="Make a key; sign, verify, approve and export reports.", no_args_is_help=True)


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
def render(
    evidence: Annotated[Path, typer.Argument(help="evidence.json of a run.")],
    out: Annotated[Path, typer.Option(help="The PDF to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
) -> None:
    """Make the (unsigned) PDF again from a run's evidence."""
    from clinsafe.cli.files import write_whole
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
        write_whole({out: pdf.render(html(record, content), to_bytes(record), record.created, content)})
    typer.echo(f"report at {out}")


for command in (verify, sign, approve, export):
    app.command()(command)

"""The `clinsafe` command. Errors become one line here, and nowhere else.

Exit codes: 0 released or valid, 1 held or invalid, 2 usage or input error, 130 stopped by the user.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from clinsafe.cli import audit, compare, doctor, guard, log, qualify, rag, report, start, suite
from clinsafe.cli.console import printable
from clinsafe.errors import ClinsafeError
from clinsafe.version import VERSION

STOPPED = 130

app = typer.Typer(
    name="clinsafe",
    help="Is an embedding model safe to put in front of a clinician? Measure it, and prove it in a signed PDF.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("audit")(audit.audit)
app.command("init")(start.init)
app.command("compare")(compare.compare)
app.command("qualify")(qualify.qualify)
app.command("doctor")(doctor.doctor)
app.add_typer(start.checklist, name="checklist")
app.add_typer(suite.app, name="suite")
app.add_typer(report.app, name="report")
app.add_typer(guard.app, name="guard")
app.add_typer(rag.app, name="rag")
app.add_typer(log.app, name="log")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"clinsafe {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of every command."""


def main() -> None:
    """Entry point of the console script and of ``python -m clinsafe``."""
    try:
        app()
    except ClinsafeError as error:
        _stop(str(error), error.exit_code)
    except KeyboardInterrupt:
        _stop("stopped", STOPPED)
    except SystemExit as end:
        if end.code == STOPPED:  # typer ends so on Ctrl-C, without a word
            _stop("stopped", STOPPED)
        raise
    except BrokenPipeError:
        sys.stderr.close()  # the reader of a pipe has gone; there is nobody to tell
        sys.exit(1)
    except (UnicodeEncodeError, UnicodeDecodeError) as error:
        _stop(f"text that is not UTF-8 was given or has to be printed: {error.reason}", 2)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _stop(f"{where}{error.strerror or error}", 2)


def _stop(message: str, code: int) -> None:
    typer.echo(f"clinsafe: {printable(message)}", err=True)
    sys.exit(code)

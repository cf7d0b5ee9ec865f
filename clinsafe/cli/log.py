"""``clinsafe log``: open, verify, checkpoint, show, recover and rotate a decision log."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinsafe.cli.console import counted, printable
from clinsafe.cli.console import out as stdout
from clinsafe.cli.log_check import Found, signing

if TYPE_CHECKING:
    from clinsafe.oversight.base import ChainLog
    from clinsafe.oversight.chain import Row
    from clinsafe.oversight.keys import LogKey

app = typer.Typer(help="The decision log: verify it, sign checkpoints of it.", no_args_is_help=True)

Place = Annotated[
    str | None,
    typer.Argument(
        metavar="LOG",
        help="A .jsonl file, env:NAME or url-file:FILE for a database; default env:CLINSAFE_LOG_URL.",
    ),
]
Key = Annotated[
    Path | None,
    typer.Option("--key", help="The log's key; default: CLINSAFE_LOG_KEY, or your configuration folder."),
]
Keys = Annotated[
    list[Path] | None,
    typer.Option(
        "--key", help="A key the log was made with; repeat for old ones. Default: all in the key's folder."
    ),
]
Folder = Annotated[
    Path | None, typer.Option("--checkpoints", help="Folder of the checkpoints; default: beside a log file.")
]
Trust = Annotated[
    list[Path] | None, typer.Option(help="Certificate to trust; default: your development certificate.")
]


@app.command()
def init(log: Place = None, key: Key = None) -> None:
    """Open a new log, and make its key where there is none."""
    from clinsafe.oversight.keys import key_file, load_key, make_key
    from clinsafe.oversight.places import open_log

    path = key or key_file()
    made = not path.exists()
    opened = open_log(log, make_key(path) if made else load_key(path))
    log_id = opened.create()
    typer.echo(printable(f"log {log_id} at {opened.where}"))
    typer.echo(printable(f"{'made' if made else 'with'} key {opened.key.id} at {path}"))
    if made:
        typer.echo("keep a copy of the key elsewhere: without it the log cannot be verified")


@app.command()
def verify(
    log: Place = None,
    checkpoint: Annotated[
        list[Path] | None, typer.Option("--checkpoint", help="A checkpoint file; may be repeated.")
    ] = None,
    checkpoints: Folder = None,
    no_checkpoints: Annotated[
        bool,
        typer.Option("--no-checkpoints", help="Check the chain alone, also where checkpoints were made."),
    ] = False,
    trust: Trust = None,
    key: Keys = None,
    log_id: Annotated[str | None, typer.Option("--id", help="The id that the log must have.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the facts here.")] = None,
) -> None:
    """Check every record, and the checkpoints that are there; name the first altered record.

    Exit code 0: intact. 1: altered. 2: input error. What cannot be known is said.
    """
    from clinsafe.cli.files import refuse_unwritable, write_whole
    from clinsafe.errors import UsageError

    refuse_unwritable(json_file)
    if no_checkpoints and (checkpoint or checkpoints):
        raise UsageError(
            "--no-checkpoints leaves out what --checkpoint and --checkpoints name; give one of them"
        )
    opened = _open(log, key)
    files = [] if no_checkpoints else _files(opened, checkpoint, checkpoints)
    found = Found(opened, files, trust, log_id, compare=not no_checkpoints)
    if json_file:
        write_whole({json_file: json.dumps(found.to_json(), indent=1)})
    found.show()
    raise typer.Exit(1 if found.faults else 0)


@app.command()
def checkpoint(
    log: Place = None,
    checkpoints: Folder = None,
    signing_key: Annotated[
        Path | None, typer.Option("--sign-key", help="PKCS#12 or PEM key; default: your development key.")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="PEM certificate of a PEM key, with its issuers'.")
    ] = None,
    passphrase_file: Annotated[
        Path | None, typer.Option(help="File with its passphrase (or CLINSAFE_PASSPHRASE, or a prompt).")
    ] = None,
    trust: Trust = None,
    key: Key = None,
) -> None:
    """Verify the log, then sign a statement of its last record.

    Exit code 0: made. 1: the log is altered and nothing was signed. 2: input error.
    """
    from clinsafe.cli.sign import open_key
    from clinsafe.oversight.checkpoint import make

    signer = open_key(signing_key, certificate, passphrase_file)  # before anything is announced in the log
    opened = _open(log, [key] if key else None)
    folder = _folder(opened, checkpoints)
    found = Found(opened, _existing(folder), trust, None, signer=signer)
    # One that was announced and then could not be written is what a new one mends.
    if grave := [fault for fault in found.faults if fault.kind != "checkpoint_missing"]:
        stdout().print(
            printable(f"ALTERED, nothing signed: {grave[0]}"), style="bold red", markup=False, soft_wrap=True
        )
        raise typer.Exit(1)
    path = make(opened, found.chain.log_id, signing(signer), folder)
    typer.echo(printable(f"checkpoint of record {found.chain.count + 1} signed by {signer.name}: {path}"))
    if signer.development:
        typer.echo("note: a DEVELOPMENT key proves nothing about who signed")


@app.command()
def show(
    log: Place = None,
    last: Annotated[int, typer.Option(help="So many records from the end.", min=1)] = 20,
    full: Annotated[bool, typer.Option("--full", help="The records themselves, a line each.")] = False,
    key: Keys = None,
) -> None:
    """Print the last records. Each is checked by itself; whether the log is whole says `clinsafe log verify`."""
    from clinsafe.oversight.chain import Row, authentic

    opened = _open(log, key)
    console = stdout()
    for row in deque(opened.rows(), maxlen=last):
        good = any(authentic(row, one) for one in opened.keys.values())
        if not good or not isinstance(row, Row):
            line = f"{row.place}: NOT GENUINE"
        else:
            line = row.line if full else _summary(row)
        console.print(printable(line), markup=False, soft_wrap=True)


@app.command()
def recover(log: Place = None, key: Key = None) -> None:
    """Take away a last line that a power cut tore, keep it in a file of its own, and say so in the log."""
    from clinsafe.errors import UsageError
    from clinsafe.oversight.jsonl import JsonlLog

    opened = _open(log, [key] if key else None)
    if not isinstance(opened, JsonlLog):
        raise UsageError("a database keeps whole records or none; there is nothing to recover")
    size = opened.path.stat().st_size if opened.path.exists() else 0
    moved = opened.recover()
    changed = opened.path.stat().st_size != size
    said = f"the torn end is at {moved}" if moved else "its last record was whole and stays"
    typer.echo(printable(f"recovered: {said}; the log says so" if changed else "nothing was torn"))


@app.command()
def rotate(
    to: Annotated[Path, typer.Option("--to", help="File of the new key; made where it is missing.")],
    log: Place = None,
    key: Key = None,
) -> None:
    """Go on with a new key. Keep the old one: what was made with it is verified with it."""
    from clinsafe.oversight.keys import load_key, make_key

    opened = _open(log, [key] if key else None)
    old = opened.key
    opened.rotate(load_key(to) if to.exists() else make_key(to))
    typer.echo(printable(f"key changed from {old.id} to {opened.key.id}, at {to}"))
    typer.echo(
        "name the new key to whatever writes the log (CLINSAFE_LOG_KEY); keep the old one for `clinsafe log verify`"
    )


def _open(where: str | None, keys: Sequence[Path] | None) -> ChainLog:
    """The log; of several keys the first is the one to append with."""
    from clinsafe.oversight.keys import key_file, load_key
    from clinsafe.oversight.places import open_log

    if keys:
        first, *old = [load_key(path) for path in keys]
    else:
        path = key_file()
        first, old = load_key(path), _beside(path)
    return open_log(where, first, old)


def _beside(path: Path) -> list[LogKey]:
    """Other log keys in the folder of this one: keys that a log was made with before, or goes on with."""
    from clinsafe.errors import KeyFileError
    from clinsafe.oversight.keys import load_key

    found = []
    for other in sorted(path.parent.glob("*.key")):
        if other != path:
            try:
                found.append(load_key(other))
            except KeyFileError:  # a key of another kind, or one that is not ours to read
                continue
    return found


def _folder(log: ChainLog, named: Path | None) -> Path:
    from clinsafe.errors import UsageError
    from clinsafe.oversight.jsonl import JsonlLog

    if named is not None:
        return named
    if isinstance(log, JsonlLog):
        return Path(f"{log.path}.checkpoints")
    raise UsageError("a log in a database has no folder beside it; name one with --checkpoints")


def _existing(folder: Path) -> list[Path]:
    from clinsafe.oversight.checkpoint import files_in

    return files_in(folder)


def _files(log: ChainLog, files: Sequence[Path] | None, folder: Path | None) -> list[Path]:
    from clinsafe.errors import UsageError
    from clinsafe.oversight.jsonl import JsonlLog

    if folder is not None and not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; name the folder that holds the checkpoints")
    for path in files or ():
        if not path.is_file():
            raise UsageError(f"{path}: no such file; name a checkpoint-….json")
    named = list(files or ())
    if folder is not None or (not named and isinstance(log, JsonlLog)):
        named += _existing(_folder(log, folder))
    return named


def _summary(row: Row) -> str:
    record = row.record
    event = str(record.get("event", "?"))
    head = f"{row.seq:>7}  {record.get('time', '')}  {event}"
    if event != "decision":
        return head
    shown = [*record.get("passages", ()), *record.get("withheld", ())]
    actions = Counter(str(one.get("action")) for one in shown)
    said = ", ".join(f"{n} {action}" for action, n in actions.items())
    review = record.get("review", {})
    asked = f"; review: {', '.join(review.get('codes', ()))}" if review.get("needed") else ""
    return f"{head}  {counted(len(shown), 'passage')}{f': {said}' if said else ''}{asked}"

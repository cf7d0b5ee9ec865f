"""``clinsafe guard answer`` and ``guard policy``: what the guard makes of passages, and what it does with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clinsafe.cli.console import out as stdout
from clinsafe.cli.console import printable, prose

if TYPE_CHECKING:
    from rich.console import Console

    from clinsafe.content import Content
    from clinsafe.guarded import GuardedAnswer, GuardedPassage
    from clinsafe.protocols import DecisionLog

STYLES = {
    "keep": "green", "flag": "bold yellow", "demote": "bold yellow", "withhold": "bold red", "escalate": "bold red",
}  # fmt: skip


def answer(
    query: Annotated[
        str, typer.Option(help="The query; - reads it from standard input, so that no other user sees it.")
    ],
    passages: Annotated[
        Path,
        typer.Option(
            help='As retrieved, best first: JSON Lines with "text" (and "id", "score", "source", …).'
        ),
    ],
    policy: Annotated[
        str, typer.Option(help="default, strict, report, or a YAML file of your own.")
    ] = "default",
    k: Annotated[int | None, typer.Option("-k", "--k", min=1, help="At most so many are shown.")] = None,
    seconds: Annotated[
        float, typer.Option(min=0, help="The guard's time; what is not done then is unchecked. 0: no limit.")
    ] = 2.0,
    nli: Annotated[
        str | None, typer.Option(help="NLI model: alias, folder with safetensors, or hub id.")
    ] = None,
    calibration: Annotated[
        Path | None, typer.Option(help="What `guard calibrate-nli` wrote for that model.")
    ] = None,
    log: Annotated[
        str | None, typer.Option(help="Record the decision: a .jsonl file, env:NAME or url-file:FILE.")
    ] = None,
    content: Annotated[Path | None, typer.Option("--content", help="Overlay of controlled content.")] = None,
    prompt: Annotated[
        bool, typer.Option("--prompt", help="Print the text for the generator, and nothing else.")
    ] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the whole answer here.")] = None,
) -> None:
    """What a guarded retriever gives for these passages: action, findings, stance, marks, and what a person must do.

    Exit code 0: nothing found, all was checked. 1: something was found or not checked. 2: input error.
    """
    import json
    import sys
    from dataclasses import asdict

    from clinsafe.cli.files import refuse_unwritable, write_whole
    from clinsafe.content import Content
    from clinsafe.errors import UsageError
    from clinsafe.workflows.guarding import build_guard
    from clinsafe.workflows.passages import load_passages

    refuse_unwritable(json_file)
    asked = (sys.stdin.read() if query == "-" else query).strip()
    if not asked:
        raise UsageError("the query is empty; give it with --query, or --query - and standard input")
    if calibration is not None and nli is None:
        raise UsageError("--calibration is of an NLI model; name that model with --nli")
    found, tree = load_passages(passages), Content(content)
    guard = build_guard(
        policy, content=tree, seconds=seconds, nli=_nli(nli, calibration, tree), log=_log(log)
    )
    given = guard.check(asked, found, k=k)
    console = stdout()
    if prompt:
        console.print(printable(given.context), markup=False, soft_wrap=True, highlight=False)
    else:
        _show(console, given)
    if json_file:
        write_whole({json_file: json.dumps(asdict(given), indent=1, ensure_ascii=False)})
    raise typer.Exit(0 if given.safe else 1)


def show_policy(
    name: Annotated[str, typer.Argument(help="A policy's name, or a YAML file of your own.")] = "",
    content: Annotated[Path | None, typer.Option("--content", help="Overlay of controlled content.")] = None,
) -> None:
    """What a policy does with each finding; without a name, which policies there are. Checks a file of your own."""
    from rich.table import Table

    from clinsafe.content import Content
    from clinsafe.mitigations.policy import EVERY, SEVERITIES, load_policy, policy_names
    from clinsafe.workflows.guard import filter_names
    from clinsafe.workflows.guarding import NLI

    tree, console = Content(content), stdout()
    hazards = (*filter_names(tree), NLI)
    if not name:
        for known in policy_names(tree):
            prose(console, f"{known}: {printable(load_policy(known, tree, hazards).policy.about)}")
        return
    policy = load_policy(name, tree, hazards).policy
    prose(console, f"{policy.name}: {printable(policy.about)}")
    table = Table("hazard", *SEVERITIES, box=None, pad_edge=False)
    for hazard, row in policy.actions.items():
        table.add_row("every other" if hazard == EVERY else hazard, *(row.of(one) for one in SEVERITIES))
    console.print(table)
    evidence = ", ".join(policy.withhold_on) or "nothing"
    for line in (
        f"no support, at most: {policy.non_support}",
        f"disagreement between passages: {policy.disagreement}",
        f"not checked: {policy.unchecked}",
        f"withholds on: {evidence}",
        *([f"trusted: {printable(', '.join(policy.trusted))}"] if policy.trusted else []),
    ):
        prose(console, line)


def _nli(model: str | None, calibration: Path | None, content: Content) -> Any:
    if model is None or calibration is None:
        return model
    from clinsafe.workflows.nli_calibration import load_filter

    return load_filter(model, content=content, calibration=calibration)


def _log(where: str | None) -> DecisionLog | None:
    if where is None:
        return None
    from clinsafe.oversight.keys import key_file, load_key
    from clinsafe.oversight.places import open_log

    return open_log(where, load_key(key_file()))


def _show(console: Console, given: GuardedAnswer) -> None:
    for row in given.passages:
        _passage(console, row, f"{row.rank}")
    for row in given.withheld:
        _passage(console, row, "withheld")
    for title, lines in (
        ("disagreements", [f"{one.first} and {one.second}" for one in given.disagreements]),
        ("to confirm", [one.prompt for one in given.confirmations]),
        ("notes", list(given.notes)),
        ("not checked", list(given.unchecked)),
        ("not run", list(given.not_run)),
    ):
        if lines:
            console.print(f"\n{title}", style="bold", markup=False)
            for line in lines:
                prose(console, printable(line), indent="  ")
    verdict = "A PERSON MUST LOOK" if given.needs_review else "something was found" if not given.safe else ""
    console.print(
        f"\n{verdict or 'nothing was found'}; policy {given.policy}, {1000 * given.seconds:.0f} ms",
        style="bold green" if given.safe else "bold red",
        markup=False,
        soft_wrap=True,
    )


def _passage(console: Console, row: GuardedPassage, place: str) -> None:
    head = f"\n{place}  {printable(row.passage.id)}  {row.action}"
    if row.stance is not None:
        head += f"  ({row.stance})"
    console.print(head, style=STYLES[row.action], markup=False, soft_wrap=True)
    for reason in row.reasons:
        prose(console, printable(reason), indent="  ")

"""``clinsafe compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinsafe.cli.console import out as stdout
from clinsafe.cli.console import printable

SHOWN = 6


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="Earlier run folder, evidence.json or report.pdf.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Later one, of the same suite and protocol.")],
    system_a: Annotated[str | None, typer.Option(help="Which system of A, where it has several.")] = None,
    system_b: Annotated[str | None, typer.Option(help="Which system of B.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write every row here.")] = None,
) -> None:
    """Paired comparison of two audits: per hazard, how much more or less often, and which cases changed.

    Exit code 0: no regression. 1: a hazard got worse beyond its interval. 2: they cannot be compared.
    """
    import json

    from rich.table import Table
    from rich.text import Text

    from clinsafe.paired import Difference
    from clinsafe.workflows.compare import WORDS, compare_audits, load_record

    result = compare_audits(load_record(a), load_record(b), system_a=system_a, system_b=system_b)
    console = stdout()
    console.print(
        f"A  {printable(result.a)}\nB  {printable(result.b)}\nprotocol {result.protocol}",
        markup=False,
        soft_wrap=True,
    )
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for heading in ("hazard", "event", "n", "A only", "B only", "B - A, points", "p Holm", ""):
        table.add_column(heading, no_wrap=True)
    for row in result.rows:
        change = row.change
        if isinstance(change, Difference):
            cells = [str(change.n), str(change.only_a), str(change.only_b),
                     f"{100 * change.value:+.0f} [{100 * change.low:+.0f}, {100 * change.high:+.0f}]",
                     p_text(row.p_holm)]  # fmt: skip
        else:
            cells = [str(change.n), "", "", "not measured", ""]
        mark = Text("WORSE", style="bold red") if row.regression else Text("")
        table.add_row(row.hazard, row.event, *map(Text, cells), mark)
    console.print(table)
    console.print(
        "points of 100 cases \\[95 %, Newcombe's method 10], each row by itself; p: exact\nMcNemar, Holm over the rows",
        style="dim",
    )
    for row in result.rows:
        for word, cases in (("now", row.worse), ("no longer", row.better)):
            if cases and row.hazard != "all":
                more = f" and {len(cases) - SHOWN} more (--json lists them)" if len(cases) > SHOWN else ""
                console.print(f"{row.hazard}, {word} {WORDS[row.event]}: {', '.join(cases[:SHOWN])}{more}",
                              markup=False, soft_wrap=True)  # fmt: skip
    for fake in result.fakes:
        console.print(
            f"{printable(fake)} is a fake: no figure of it may be published", markup=False, soft_wrap=True
        )
    if result.lost:
        console.print(f"not measured by B: {', '.join(result.lost)}", markup=False, soft_wrap=True)
    worse = result.regressed
    console.print(f"WORSE in {', '.join(worse)}" if worse else "no regression beyond its interval",
                  style="bold red" if worse else "bold green", markup=False, soft_wrap=True)  # fmt: skip
    if json_file:
        json_file.write_text(json.dumps(result.to_json(), indent=1), encoding="utf-8")
    raise typer.Exit(1 if worse else 0)


def p_text(p: float | None) -> str:
    """``0.032``, ``<0.001``."""
    return "" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"

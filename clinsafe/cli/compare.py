"""``clinsafe compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinsafe.cli.console import out as stdout
from clinsafe.cli.console import printable, prose

if TYPE_CHECKING:
    from clinsafe.paired import Difference

SHOWN = 6


def compare(
    a: Annotated[
        Path, typer.Argument(metavar="A", help="Earlier run folder, record (.json) or report (.pdf).")
    ],
    b: Annotated[Path, typer.Argument(metavar="B", help="Later one, of the same cases or questions.")],
    system_a: Annotated[str | None, typer.Option(help="Which system of A, where it has several.")] = None,
    system_b: Annotated[str | None, typer.Option(help="Which system of B.")] = None,
    by_line: Annotated[
        bool, typer.Option("--by-line", help="RAG evaluations: pair questions without ids by their lines.")
    ] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write every row here.")] = None,
) -> None:
    """Paired comparison of two audits: per hazard, how much more or less often, and which cases changed.

    Two RAG evaluations of the same questions are compared figure by figure.

    Exit code 0: no regression. 1: something got worse beyond its interval. 2: they cannot be compared.
    """
    import json

    from rich.table import Table
    from rich.text import Text

    from clinsafe.cli.compare_rag import compare_evaluations
    from clinsafe.cli.files import refuse_unwritable, write_whole
    from clinsafe.paired import Difference
    from clinsafe.reports.changes import WORDS, compare_audits
    from clinsafe.reports.evidence import load

    refuse_unwritable(json_file)
    compare_evaluations(
        a, b, system_a, system_b, json_file, by_line
    )  # ends here where they are RAG evaluations
    result = compare_audits(load(a), load(b), system_a=system_a, system_b=system_b)
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
            cells = [str(change.n), str(change.only_a), str(change.only_b), points_text(change),
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
                shown = printable(", ".join(cases[:SHOWN]))
                prose(console, f"{row.hazard}, {word} {WORDS[row.event]}: {shown}{more}")
    for fake in result.fakes:
        prose(console, f"{printable(fake)} is a fake: no figure of it may be published")
    if result.lost:
        prose(console, f"not measured by B: {printable(', '.join(result.lost))}")
    worse = result.regressed
    console.print(f"WORSE in {', '.join(worse)}" if worse else "no regression beyond its interval",
                  style="bold red" if worse else "bold green", markup=False, soft_wrap=True)  # fmt: skip
    if json_file:
        write_whole({json_file: json.dumps(result.to_json(), indent=1)})
    raise typer.Exit(1 if worse else 0)


def points_text(change: Difference) -> str:
    """``+4 [-1, +9]``: points of 100 cases; what rounds to nothing has no minus."""
    return f"{100 * change.value:+z.0f} [{100 * change.low:+z.0f}, {100 * change.high:+z.0f}]"


def p_text(p: float | None) -> str:
    """``0.032``, ``<0.001``."""
    return "" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"

"""``clinsafe compare`` on two RAG evaluations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from clinsafe.cli.console import out as stdout
from clinsafe.cli.console import printable, prose

if TYPE_CHECKING:
    from rich.console import Console

    from clinsafe.rag.comparing import Row
    from clinsafe.reports.rag_changes import RagComparison

SHOWN = 6
MARKS = {
    "regression": ("WORSE", "bold red"),
    "improvement": ("better", "green"),
    "changed": ("changed", "yellow"),
}


def compare_evaluations(
    a: Path,
    b: Path,
    system_a: str | None,
    system_b: str | None,
    json_file: Path | None,
    by_line: bool = False,
) -> None:
    """Print the comparison of two RAG evaluations and end the command; return where neither is one.

    Exit code 0: no regression. 1: a figure got worse beyond its interval.

    Args:
        a, b: run folder, ``rag.json`` or ``rag.pdf``.
        system_a, system_b: labels.
        json_file: where every row is written.
        by_line: pair questions without ids by their lines.

    Raises:
        UsageError: the two are of different kinds, or cannot be compared.
    """
    import json

    from clinsafe.cli.files import write_whole
    from clinsafe.errors import UsageError
    from clinsafe.reports.rag_changes import compare_rag, load_rag

    first, second = load_rag(a), load_rag(b)
    if first is None and second is None:
        return
    if first is None or second is None:
        kinds = ["no RAG evaluation" if one is None else "a RAG evaluation" for one in (first, second)]
        raise UsageError(f"A is {kinds[0]} and B is {kinds[1]}; compare two of one kind")
    result = compare_rag(first, second, system_a=system_a, system_b=system_b, by_line=by_line)
    console = stdout()
    console.print(
        f"A  {printable(result.a)}\nB  {printable(result.b)}\n{result.n} questions of both",
        markup=False, soft_wrap=True,
    )  # fmt: skip
    _rows(console, result)
    _remarks(console, result)
    names = [row.name for row in result.rows if row.verdict == "regression"]
    console.print(
        f"WORSE in {printable(', '.join(names))}" if names else "no regression beyond its interval",
        style="bold red" if names else "bold green", markup=False, soft_wrap=True,
    )  # fmt: skip
    if json_file:
        write_whole({json_file: json.dumps(result.to_json(), indent=1)})
    raise typer.Exit(1 if names else 0)


def _rows(console: Console, result: RagComparison) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for heading in ("figure", "n", "B - A", "p Holm", ""):
        table.add_column(heading, no_wrap=heading != "figure")
    for row in result.rows:
        if row.p is None or ".table." in row.key:
            continue
        word, style = MARKS.get(row.verdict, ("", ""))
        table.add_row(
            Text(printable(row.name)), str(row.difference.n), Text(difference_text(row)), p_text(row),
            Text(word, style=style),
        )  # fmt: skip
    console.print(table)
    prose(
        console,
        "[95 %, each row by itself: shares in points by Newcombe's method 10, means by the BCa bootstrap of the paired "
        "differences]; p: exact McNemar or Wilcoxon, Holm over all rows. The cells of the CUE table: --json",
        style="dim",
    )


def _remarks(console: Console, result: RagComparison) -> None:
    """Which questions got worse, what was not compared, and fakes."""
    for row in result.rows:
        if row.verdict != "regression" or not row.worse:
            continue
        more = f" and {len(row.worse) - SHOWN} more (--json lists them)" if len(row.worse) > SHOWN else ""
        prose(console, printable(f"{row.name}, worse: {', '.join(row.worse[:SHOWN])}{more}"))
    silent = sum(row.p is None for row in result.rows)
    if silent:
        prose(console, f"{silent} figures are not measured in both (--json says why)")
    for note in result.notes:
        prose(console, printable(note), style="yellow")
    for fake in result.fakes:
        prose(console, f"{printable(fake)}: a fake took part; no figure of it may be published")


def difference_text(row: Row) -> str:
    """``+4.0 [-1.2, +9.1]``: points of 100 questions, or units of a mean."""
    from clinsafe.rag.metrics import metric_of
    from clinsafe.reports.rag_formats import shown_difference

    text = shown_difference(row.difference, metric_of(row.key))
    return text.replace("not estimable", "no interval").removesuffix(" points")


def p_text(row: Row) -> str:
    """``0.032``, ``<0.001``."""
    p = row.p_holm
    return "" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"

"""Tables of ``guard bench``: recall never without false alarms, every rate with n and its exact interval."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from clinsafe.cli.console import printable, prose
from clinsafe.protocols import MetricKey

if TYPE_CHECKING:
    from rich.console import Console

    from clinsafe.benchmarks.filters import Outcome
    from clinsafe.stats import Figure
    from clinsafe.workflows.guard_bench import BenchResult, Row
    from clinsafe.workflows.guard_speed import Speed

SHOWN = 20  # misses and alarms printed; --list writes all


def print_result(console: Console, title: str, result: BenchResult, *, full: bool) -> None:
    """Figures, the table of stacks, misses and false alarms."""
    console.print(f"\n{title}", style="bold", markup=False)
    _print_figures(console, result)
    _print_rows(console, result.rows)
    lines = list(misses_and_alarms(result)) if full else []
    for line in lines[:SHOWN]:
        prose(console, printable(line))
    if len(lines) > SHOWN:
        console.print(
            f"and {len(lines) - SHOWN} more; --list FILE writes them all", style="dim", markup=False
        )
    for note in result.notes:
        prose(console, printable(note), style="yellow")


def _print_figures(console: Console, result: BenchResult) -> None:
    from rich.table import Table

    from clinsafe.reports.formats import proportion

    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for heading in ("hazard", "split", "recall", "false alarms, by case"):
        table.add_column(heading, no_wrap=True)
    for name in result.figures:
        key = MetricKey.parse(name)
        if key.area in ("guard", "cases") and key.metric == "recall" and key.subtype is None:
            alarm = result.figures[str(key._replace(metric="false_alarm"))]
            split = (key.slice or "").removeprefix("split=")
            table.add_row(key.hazard, split, proportion(result.figures[name]), proportion(alarm))
        elif key.subtype == "unrelated" and key.hazard == "all":
            table.add_row("unrelated text", "", "", proportion(result.figures[name]))
        elif key.area in ("negex", "ordinary"):
            console.print(f"{name}  {_one(result.figures[name])}", markup=False, soft_wrap=True)
    if table.row_count:
        console.print(table)
        console.print("[95 %, Clopper-Pearson]", style="dim", markup=False)


def _one(figure: Figure) -> str:
    """A rate with its interval, or a value with its n."""
    from clinsafe.reports.formats import proportion
    from clinsafe.stats import Estimate

    if isinstance(figure, Estimate) and figure.k is None:
        return f"{figure.value:.3f} (n = {figure.n})"
    return proportion(figure)


def _print_rows(console: Console, rows: list[Row]) -> None:
    from rich.table import Table

    from clinsafe.reports.formats import number

    if not rows:
        return
    measured = bool(rows[0].unrelated.n)
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for heading in ("stack", "recall", "false alarms", *(("unrelated",) if measured else ())):
        table.add_column(heading, no_wrap=True)
    for row in rows:
        figures = (row.recall, row.false_alarm, row.unrelated) if measured else (row.recall, row.false_alarm)
        table.add_row(row.name, *map(number, figures))
    console.print(table)
    others = f", {rows[0].unrelated.n} unrelated pairs" if measured else ""
    count = f"{rows[0].recall.n} conflicts, {rows[0].false_alarm.n} cases without one{others}"
    console.print(f"{count} [95 %, Clopper-Pearson]", style="dim", markup=False)


def misses_and_alarms(result: BenchResult) -> Iterator[str]:
    """One line for each miss and each false alarm; the text of the suite's test split is never in it."""
    for area, outcomes in result.outcomes.items():
        for one in outcomes:
            pair = one.pair
            if pair.role == "conflict" and not one.caught():
                yield _line("MISS", area, one)
            elif not pair.conflicting and one.alarmed():
                yield _line("ALARM", area, one)


def _line(what: str, area: str, one: Outcome) -> str:
    pair = one.pair
    hidden = area == "guard" and pair.split != "dev"
    why = (
        "; ".join(one.why)
        if one.why and not hidden
        else ", ".join(name for name, v in one.said.items() if v or v is None)
    )
    role = "" if pair.role in ("conflict", "safe", "unrelated") else f" {pair.role}"
    text = "" if hidden else f" | {_flat(pair.query)} || {_flat(pair.passage)}"
    return f"{what:<5} {pair.case}{role} {pair.hazard}{f': {why}' if why else ''}{text}"


def _flat(text: str) -> str:
    return " ".join(text.split())


def print_speed(console: Console, speed: Speed) -> None:
    """Milliseconds and the ratio."""
    lines = [
        f"top 10 passages ({speed.words:.0f} words), {speed.rounds} queries",
        f"  facts stored      {speed.stored:8.2f} ms median, {speed.stored_p99:.2f} ms p99",
        f"  read and compare  {speed.unstored:8.1f} ms median",
    ]
    if speed.spacy is None or speed.ratio is None:
        lines.append("  one spaCy pass    not measured (no pipeline is installed)")
    else:
        lines += [
            f"  one spaCy pass    {speed.spacy:8.1f} ms median",
            f"  ratio             {speed.ratio:8.2f}",
        ]
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)

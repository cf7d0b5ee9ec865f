"""Tables of ``guard bench``: recall never without false alarms, every rate with n and its exact interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from clinsafe.cli.console import printable, prose
from clinsafe.protocols import MetricKey

if TYPE_CHECKING:
    from rich.console import Console

    from clinsafe.benchmarks.filters import Outcome
    from clinsafe.checklist.filter_gates import FilterGate, FilterGates, FilterVerdict
    from clinsafe.stats import Figure
    from clinsafe.workflows.guard_bench import BenchResult, Row
    from clinsafe.workflows.guard_speed import Speed

SHOWN = 20  # misses and alarms printed; --list writes all
SUITE = ("guard", "generated")  # areas of the two tiers
PARTS = {"split=test,novel=yes": "novel", "split=test,novel=no": "known"}  # of the test cases
STYLES = {"PASS": "green", "FAIL": "red", "INCONCLUSIVE": "yellow"}


def print_result(console: Console, title: str, result: BenchResult, *, full: bool) -> None:
    """Figures, the table of stacks, misses and false alarms."""
    console.print(f"\n{title}", style="bold", markup=False)
    for line in result.about:
        prose(console, printable(line), style="dim")
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
    for heading in ("hazard", "cases", "recall", "false alarms, by case"):
        table.add_column(heading, no_wrap=True)
    for name in result.figures:
        key = MetricKey.parse(name)
        if key.area in (*SUITE, "cases") and key.metric == "recall" and key.subtype is None:
            part = _part(key.slice or "")
            if part is not None:
                alarm = result.figures[str(key._replace(metric="false_alarm"))]
                table.add_row(key.hazard, part, proportion(result.figures[name]), proportion(alarm))
        elif key.subtype == "unrelated" and key.hazard == "all":
            table.add_row("unrelated", "", "", proportion(result.figures[name]))
        elif key.area in ("negex", "ordinary"):
            console.print(f"{name}  {_one(result.figures[name])}", markup=False, soft_wrap=True)
    if table.row_count:
        console.print(table)
        console.print("[95 %, Clopper-Pearson]", style="dim", markup=False)


def _part(slices: str) -> str | None:
    """``test``, ``dev``, and of mined test cases ``novel`` and ``known``; None for what only --json writes."""
    return PARTS.get(slices, None if "," in slices else slices.removeprefix("split="))


def _one(figure: Figure) -> str:
    """A rate with its interval, or a value with its n."""
    from clinsafe.reports.formats import proportion
    from clinsafe.stats import Estimate

    if isinstance(figure, Estimate) and figure.k is None:
        return f"{figure.value:.3f} (n = {figure.n})"
    return proportion(figure)


def print_both(console: Console, written: BenchResult, generated: BenchResult, split: str) -> None:
    """The two tiers side by side; nothing is summed over them."""
    from rich.table import Table

    from clinsafe.reports.formats import number

    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for heading in ("hazard", "", "n", "written", "n", "generated"):
        table.add_column(heading, no_wrap=True)
    results = dict(zip(SUITE, (written, generated), strict=True))
    found = [MetricKey.parse(key) for result in results.values() for key in result.figures]
    at = f"split={split}"
    hazards = dict.fromkeys(k.hazard for k in found if (k.metric, k.subtype, k.slice) == ("recall", None, at))
    for hazard in hazards:
        for metric, words in (("recall", "recall"), ("false_alarm", "false alarms")):
            cells = []
            for area, result in results.items():
                figure = result.figures.get(str(MetricKey(area, hazard, metric, None, at)))
                cells += ["" if figure is None else str(figure.n), number(figure)]
            table.add_row(hazard if metric == "recall" else "", words, *cells)
    console.print("\nBoth tiers, never summed", style="bold", markup=False)
    console.print(table)
    console.print(f"{split} cases [95 %, Clopper-Pearson]", style="dim", markup=False)


def print_gates(console: Console, title: str, gates: FilterGates, verdicts: Sequence[FilterVerdict]) -> None:
    """Hazard by gate: the count, and the one-sided 95 % bound that was held against the limit."""
    from rich.table import Table
    from rich.text import Text

    limits = {gate.metric: gate for gate in gates.gates}
    words = {"recall": "recall,", "false_alarm": "false alarms,", "unrelated": "unrelated,"}
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("hazard", no_wrap=True)
    for metric, gate in limits.items():
        table.add_column(f"{words[metric]}\n{gate.limit_text}", no_wrap=True)
    table.add_column(f"clusters,\nat least {gates.clusters}", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for one in verdicts:
        cells = [_bound(one.figures[metric], gate) for metric, gate in limits.items()]
        verdict = Text(one.decision, style=STYLES[one.decision])
        table.add_row(one.hazard, *cells, str(one.clusters), verdict)
    console.print(f"\n{title}", style="bold", markup=False)
    console.print(table)
    for reason in dict.fromkeys(reason for one in verdicts for reason in one.reasons):
        hazards = ", ".join(one.hazard for one in verdicts if reason in one.reasons)
        prose(console, f"{hazards}: {reason}", style="yellow")
    for metric, gate in limits.items():
        few = {f.n for one in verdicts if (f := one.figures[metric]) is not None and f.n < gate.fewest}
        if few:
            prose(console, f"{words[metric]} n = {max(few)}: {gate.fewest} are needed", style="yellow")
    console.print(
        "count and one-sided 95 % bound, Clopper-Pearson; missing: INCONCLUSIVE", style="dim", markup=False
    )


def _bound(figure: Figure | None, gate: FilterGate) -> str:
    """``409/430 0.931``: rounded against the filter, so that no bound looks better than it is."""
    from clinsafe.stats import Estimate

    end = getattr(figure, "lower" if gate.at_least is not None else "upper", None)
    if not isinstance(figure, Estimate) or end is None:
        return "not measured"
    rounded = (math.floor if gate.at_least is not None else math.ceil)(end * 1000) / 1000
    return f"{figure.k}/{figure.n} {rounded:.3f}"


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
    hidden = area in SUITE and pair.split != "dev"
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

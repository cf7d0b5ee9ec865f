"""How ``guard end-to-end`` prints: before and after, side by side, in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from clinsafe.benchmarks.endtoend.figures import AFTER, ALL, BEFORE, key
from clinsafe.benchmarks.endtoend.outcomes import Outcome, Setting
from clinsafe.benchmarks.endtoend.queries import FORMS
from clinsafe.cli.console import printable, prose

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from clinsafe.benchmarks.endtoend.answers import AnswerRow
    from clinsafe.benchmarks.endtoend.queries import Query
    from clinsafe.stats import Figure
    from clinsafe.workflows.endtoend import Result

PLACED = "[95 %: Clopper-Pearson; change: Newcombe 10; share of others: BCa bootstrap by query]"


def print_result(console: Console, result: Result, ks: Sequence[int]) -> None:
    """What was searched; what reached the reader; what it cost; by hazard and form; answers."""
    console.print("\nEnd to end, before and after the guard", style="bold", markup=False)
    for line in result.about:
        prose(console, printable(line), style="dim")
    arms = list(dict.fromkeys(one.arm for one in result.outcomes))
    for k in ks:
        _contradictions(console, result, k, arms)
        _costs(console, result, k, [arm for arm in arms if arm != BEFORE])
    for name in result.systems:
        _changes(console, result, name, max(ks))
    _answers(console, result, min(ks))
    prose(console, PLACED, style="dim")
    for note in result.notes:
        prose(console, printable(note), style="yellow")


def _contradictions(console: Console, result: Result, k: int, arms: Sequence[str]) -> None:
    table = _table("system", "guard", "shown", "shown unmarked*", "of found: marked")
    for system in result.systems:
        for arm in arms:
            at = Setting(system=system, k=k, corpus="mixed", arm=arm)
            cells = [
                _cell(result, key(ALL, name, at), arm, name) for name in ("reached", "dangerous", "flagged")
            ]
            table.add_row(system[:12] if arm == arms[0] else "", arm.replace("always_", "all "), *cells)
    n = len({one.query for one in result.outcomes if not one.reason})
    console.print(f"\nThe contradicting passage among the first {k}, {n} queries", style="bold", markup=False)
    console.print(table)
    prose(
        console,
        "* unmarked, at or above the right passage or without it; not checked counts as unmarked",
        style="dim",
    )


def _costs(console: Console, result: Result, k: int, arms: Sequence[str]) -> None:
    table = _table("system", "guard", "right marked", "right still shown", "others marked")
    rows = [(arm, "control", arm.replace("always_", "all ")) for arm in arms]
    rows.insert(1, (AFTER, "mixed", f"{AFTER}, with"))
    for system in result.systems:
        for number, (arm, corpus, label) in enumerate(rows):
            at = Setting.model_validate({"system": system, "k": k, "corpus": corpus, "arm": arm})
            names = ("right_flagged", "right_shown", "distractor_flagged.share")
            cells = [_cell(result, key(ALL, name, at), arm, name) for name in names]
            table.add_row("" if number else system[:12], label, *cells)
    console.print(f"\nGood passages that were marked, first {k}", style="bold", markup=False)
    console.print(table)
    prose(
        console,
        "searched without contradicting passages; with: beside them, where a disagreement marks both sides. Right "
        "passages of claims and questions; others: mean share of the ordinary passages shown",
        style="dim",
    )


def _changes(console: Console, result: Result, system: str, k: int) -> None:
    """Shown unmarked, by hazard and by form."""
    from clinsafe.reports.formats import p_value
    from clinsafe.stats import Estimate

    table = _table(system[:14], "n", "before", "after", "change")
    hazards = list(dict.fromkeys(one.hazard for one in result.outcomes))
    rows: list[tuple[str, str | None]] = [
        (ALL, None),
        *((one, None) for one in hazards),
        *((ALL, one) for one in FORMS),
    ]
    before, after = (Setting(system=system, k=k, corpus="mixed", arm=arm) for arm in (BEFORE, AFTER))
    for hazard, form in rows:
        first = result.figures.get(key(hazard, "dangerous", before, form))
        cells = (
            _number(one)
            for one in (
                first,
                result.figures.get(key(hazard, "dangerous", after, form)),
                result.figures.get(key(hazard, "dangerous.change", after, form)),
            )
        )
        table.add_row((form or hazard).replace("_", " "), str(first.n if first else 0), *cells)
    console.print(f"\nShown unmarked, {system}, first {k}", style="bold", markup=False, soft_wrap=True)
    console.print(table)
    p = result.figures.get(key(ALL, "dangerous.p_holm", after))
    if isinstance(p, Estimate):
        console.print(f"all: p {p_value(p.value)} ({p.method})", style="dim", markup=False, soft_wrap=True)


def _answers(console: Console, result: Result, k: int) -> None:
    if not result.answers:
        return
    table = _table("guard", "asked", "repeats it", "against the truth", "abstains", "failed")
    for arm in (BEFORE, AFTER):
        at = Setting(system=result.systems[0], k=k, corpus="mixed", arm=arm)
        figures = [
            result.figures.get(key(ALL, name, at))
            for name in ("answer_repeats", "answer_conflict", "answer_abstained", "answer_failed")
        ]
        asked = figures[-1].n if figures[-1] else 0
        table.add_row(arm, str(asked), *map(_number, figures[:3]), _count(figures[3]))
    console.print("\nGenerated answers", style="bold", markup=False)
    console.print(table)


def misses(result: Result) -> Iterator[str]:
    """One line for each dangerous outcome behind the guard, each false alarm of the control, each repetition.

    The sentences are in it: they are the user's own copy of the data.
    """
    queries = {task.query.row.id: task.query for task in result.collection.tasks}
    for one in result.outcomes:
        if one.arm != AFTER or one.reason:
            continue
        if one.dangerous:
            yield _line("MISS", one, queries[one.query])
        elif one.corpus == "control" and one.form != "false_premise" and one.right.marked:
            yield _line("ALARM", one, queries[one.query])
    yield from (_repeat(row, queries[row.query]) for row in result.answers if row.repeats)


def _line(what: str, one: Outcome, query: Query) -> str:
    state = one.wrong if what == "MISS" else one.right
    via = state.via or "nothing was found"
    hazards = f" ({', '.join(state.hazards)})" if state.hazards else ""
    places = f"right {one.right_place or '-'}, contradicting {one.wrong_place or '-'}"
    return (
        f"{what:<6} {one.query} {one.hazard} {one.form} {one.system} k={one.k} {one.corpus}: {places}; "
        f"{via}{hazards} | {_flat(query.row.query)} || {_flat(query.true)} || {_flat(query.false)}"
    )


def _repeat(row: AnswerRow, query: Query) -> str:
    return f"REPEAT {row.query} {row.hazard} {row.form} {row.arm} | {_flat(query.row.query)} || {_flat(query.false)}"


def _cell(result: Result, name: str, arm: str, metric: str) -> str:
    if arm == BEFORE and metric == "flagged":
        return "no guard"
    return _number(result.figures.get(name))


def _number(figure: Figure | None) -> str:
    from clinsafe.reports.formats import number

    return number(figure).replace("not estimable", "no interval")


def _count(figure: Figure | None) -> str:
    return "0" if figure is None else f"{getattr(figure, 'k', 0)}/{figure.n}"


def _table(*headings: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in headings:
        table.add_column(heading, no_wrap=True)
    return table


def _flat(text: str) -> str:
    return printable(" ".join(text.split()))

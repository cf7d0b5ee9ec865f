"""``clinsafe guard bench``: what a stack of filters is worth, and what it costs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clinsafe.cli.console import out as stdout
from clinsafe.cli.console import progress

if TYPE_CHECKING:
    from rich.console import Console

    from clinsafe.benchmarks.filters import Stage
    from clinsafe.checklist.filter_gates import FilterGates
    from clinsafe.workflows.guard_bench import Bench, BenchResult

WRITTEN, GENERATED = "Written suite", "Generated suite"


def bench(
    suite: Annotated[
        Path | None, typer.Option(help="A mined suite (JSON Lines, its card beside it): the tier generated.")
    ] = None,
    both: Annotated[
        bool, typer.Option("--both", help="With --suite: the written suite too, side by side.")
    ] = False,
    gate: Annotated[
        bool, typer.Option("--gate", help="Exit 1 unless every hazard passes checklist/gates.yaml.")
    ] = False,
    cases: Annotated[Path | None, typer.Option(help="Labelled pairs (JSON Lines) of your own.")] = None,
    negex: Annotated[Path | None, typer.Option(help="The NegEx kit (gzipped JSON Lines).")] = None,
    ordinary: Annotated[int, typer.Option(help="Flags on this many PubMedQA abstracts.", min=0)] = 0,
    speed: Annotated[bool, typer.Option("--speed", help="Milliseconds for ten passages.")] = False,
    latency: Annotated[
        int | None,
        typer.Option(help="Time the whole guard on this many queries, at 1 and 8 callers.", min=20, max=1000),
    ] = None,
    stack: Annotated[str, typer.Option(help="clinsafe, naive, disabled, always or never.")] = "clinsafe",
    filters: Annotated[
        list[str] | None, typer.Option("--filter", help="Only this filter; may be repeated.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="dev or test; default: both, each by itself.")] = None,
    unrelated: Annotated[int, typer.Option(help="Unrelated pairs of real text.", min=0)] = 1000,
    baselines: Annotated[bool, typer.Option(help="Measure naive, disabled, always and never too.")] = True,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data files; default CLINSAFE_DATA.")
    ] = None,
    model: Annotated[str | None, typer.Option("--spacy", help='spaCy pipeline; "" for none.')] = None,
    content: Annotated[Path | None, typer.Option("--content", help="Overlay of controlled content.")] = None,
    listing: Annotated[Path | None, typer.Option("--list", help="Write every miss and alarm here.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the flat metric mapping here.")
    ] = None,
) -> None:
    """Recall and false alarms of the filters, side by side with naive and empty ones.

    Without --cases, --negex, --ordinary, --speed or --latency: on the written suite, or the one of --suite; misses of
    the test split are printed as ids, never as text. Two tiers are never summed. Exit code 0; with --gate 1 unless
    every hazard of every tier that was measured passes.
    """
    from clinsafe.checklist.gates import load_filter_gates
    from clinsafe.cli.bench_table import misses_and_alarms, print_both, print_result
    from clinsafe.cli.files import refuse_unwritable, write_whole
    from clinsafe.content import Content
    from clinsafe.stats import figure_to_json
    from clinsafe.workflows import guard_bench as work

    _refuse(split, suite, both, gate)
    for path in (listing, json_file):
        refuse_unwritable(path)
    console, tree = stdout(), Content(content)
    gates = load_filter_gates(tree) if gate else None
    bench = work.Bench(tree, stack, filters, model, data, baselines)
    tiers = _tiers(suite, both)
    with progress() as stage:
        asked: dict[str, Callable[[], work.BenchResult]] = {}
        if cases is not None:
            asked["Cases"] = partial(bench.cases, cases, stage)
        if negex is not None:
            asked["NegEx kit, claim part"] = partial(bench.negex, negex, stage)
        if ordinary:
            asked["Ordinary text"] = partial(bench.ordinary, ordinary, stage)
        if suite is not None or gate or not (speed or latency or asked):
            asked |= {
                name: partial(bench.suite, split, unrelated, stage, file) for name, file in tiers.items()
            }
        results = {title: run() for title, run in asked.items()}
        timings = _timings(bench, data, stage, speed=speed, latency=latency)
    figures = {key: figure for result in results.values() for key, figure in result.figures.items()}
    for title, result in results.items():
        print_result(console, title, result, full=listing is None)
    if both:
        print_both(console, results[WRITTEN], results[GENERATED], split or "test")
    for timed, show in timings:
        show(console, timed)
        figures |= timed.figures()
    lines = [f"{line}\n" for result in results.values() for line in misses_and_alarms(result)]
    flat = {key: figure_to_json(figure) for key, figure in figures.items()}
    files = {listing: "".join(lines), json_file: json.dumps(flat, indent=1)}
    write_whole({path: text for path, text in files.items() if path is not None})
    if gates and not _pass(console, bench, gates, {title: results[title] for title in tiers}):
        raise typer.Exit(1)


def _refuse(split: str | None, suite: Path | None, both: bool, gate: bool) -> None:
    """Options that do not go together, before anything is measured."""
    from clinsafe.errors import UsageError

    if split not in (None, "dev", "test"):
        raise UsageError(f"--split: got {split!r}; it is dev or test")
    if both and suite is None:
        raise UsageError(
            "--both shows the written suite beside a mined one: name that with --suite FILE.jsonl"
        )
    if gate and split == "dev":
        raise UsageError("--gate reads test cases only: leave --split dev out")


def _timings(
    bench: Bench, data: Path | None, stage: Stage, *, speed: bool, latency: int | None
) -> list[tuple[Any, Callable[[Console, Any], None]]]:
    """What was timed, each with what prints it."""
    from clinsafe.cli.bench_table import print_speed
    from clinsafe.cli.latency_table import print_latency
    from clinsafe.workflows.guard_latency import measure_latency
    from clinsafe.workflows.guard_speed import measure_speed

    found: list[tuple[Any, Callable[[Console, Any], None]]] = []
    if speed:
        found.append((measure_speed(bench.stack, data=data, stage=stage), print_speed))
    if latency:
        timed = measure_latency(bench.stack, bench.content, data=data, queries=latency, stage=stage)
        found.append((timed, print_latency))
    return found


def _tiers(suite: Path | None, both: bool) -> dict[str, Path | None]:
    """Title -> file of a mined suite, or None for the written one."""
    tiers: dict[str, Path | None] = {WRITTEN: None} if both or suite is None else {}
    return tiers if suite is None else tiers | {GENERATED: suite}


def _pass(console: Console, bench: Bench, gates: FilterGates, results: Mapping[str, BenchResult]) -> bool:
    """Print every hazard's verdict; True where all of them, of every tier, are a PASS."""
    from clinsafe.checklist.filter_gates import passed
    from clinsafe.cli.bench_table import print_gates

    verdicts = {title: bench.gate(result) for title, result in results.items()}
    for title, found in verdicts.items():
        print_gates(console, f"{title}: gates", gates, found)
    return all(passed(found) for found in verdicts.values())

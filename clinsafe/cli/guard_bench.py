"""``clinsafe guard bench``: what a stack of filters is worth, and what it costs."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from clinsafe.cli.console import out as stdout
from clinsafe.cli.console import progress


def bench(
    cases: Annotated[Path | None, typer.Option(help="Labelled pairs (JSON Lines) of your own.")] = None,
    negex: Annotated[Path | None, typer.Option(help="The NegEx kit (gzipped JSON Lines).")] = None,
    ordinary: Annotated[int, typer.Option(help="Flags on this many PubMedQA abstracts.", min=0)] = 0,
    speed: Annotated[bool, typer.Option("--speed", help="Milliseconds for ten passages.")] = False,
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

    Without --cases, --negex, --ordinary or --speed: on the suite, where misses of the test split are printed as ids,
    never as text. It measures and holds nothing: exit code 0.
    """
    from clinsafe.cli.bench_table import misses_and_alarms, print_result, print_speed
    from clinsafe.cli.files import refuse_unwritable, write_whole
    from clinsafe.content import Content
    from clinsafe.errors import UsageError
    from clinsafe.stats import figure_to_json
    from clinsafe.workflows import guard_bench as work
    from clinsafe.workflows.guard_speed import measure_speed

    if split not in (None, "dev", "test"):
        raise UsageError(f"--split: got {split!r}; it is dev or test")
    for path in (listing, json_file):
        refuse_unwritable(path)
    console = stdout()
    bench = work.Bench(Content(content), stack, filters, model, data, baselines)
    with progress() as stage:
        asked: dict[str, Callable[[], work.BenchResult]] = {}
        if cases is not None:
            asked["Cases"] = partial(bench.cases, cases, stage)
        if negex is not None:
            asked["NegEx kit, claim part"] = partial(bench.negex, negex, stage)
        if ordinary:
            asked["Ordinary text"] = partial(bench.ordinary, ordinary, stage)
        if not (speed or asked):
            asked["Suite"] = partial(bench.suite, split, unrelated, stage)
        results = [(title, run()) for title, run in asked.items()]
        timed = measure_speed(bench.stack, data=data, stage=stage) if speed else None
    figures = {key: figure for _, result in results for key, figure in result.figures.items()}
    for title, result in results:
        print_result(console, title, result, full=listing is None)
    if timed is not None:
        print_speed(console, timed)
        figures |= timed.figures()
    lines = [f"{line}\n" for _, result in results for line in misses_and_alarms(result)]
    flat = {key: figure_to_json(figure) for key, figure in figures.items()}
    files = {listing: "".join(lines), json_file: json.dumps(flat, indent=1)}
    write_whole({path: text for path, text in files.items() if path is not None})

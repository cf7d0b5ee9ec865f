"""``clinsafe guard end-to-end``: what reaches the reader, before the guard and after it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinsafe.cli.console import out as stdout
from clinsafe.cli.console import progress

if TYPE_CHECKING:
    from clinsafe.protocols import Generator


def end_to_end(
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="Encoder: alias, folder, hub id or plugin:NAME; may be repeated."),
    ] = None,
    k: Annotated[
        list[int] | None, typer.Option("-k", "--k", help="Passages retrieved; default: 10 and 5.")
    ] = None,
    policy: Annotated[str, typer.Option(help="Policy of the guard: a name or a YAML file.")] = "default",
    filters: Annotated[
        list[str] | None, typer.Option("--filter", help="Only this filter; may be repeated.")
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(min=0, help="Time for one query; what is not done then is unchecked. 0: no limit."),
    ] = 0.0,
    distractors: Annotated[
        int, typer.Option(min=0, help="Ordinary passages at most, a fixed sample; 0: all.")
    ] = 0,
    baselines: Annotated[bool, typer.Option(help="Measure guards that look at nothing too.")] = True,
    generator_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible chat endpoint, the part before /chat/completions.")
    ] = None,
    generator_model: Annotated[str, typer.Option(help="Its model.")] = "",
    generator_key_env: Annotated[
        str | None,
        typer.Option(
            help="Environment variable with its key; default CLINSAFE_API_KEY. Never the key itself."
        ),
    ] = None,
    max_calls: Annotated[int, typer.Option(min=0, help="Prompts sent at most.")] = 300,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for one answer.")] = 60.0,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data files; default CLINSAFE_DATA.")
    ] = None,
    spacy: Annotated[str | None, typer.Option("--spacy", help='spaCy pipeline; "" for none.')] = None,
    content: Annotated[Path | None, typer.Option("--content", help="Overlay of controlled content.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Run folder: a run that was stopped goes on where it stopped.")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Refuse every connection off this machine.")
    ] = False,
    listing: Annotated[
        Path | None, typer.Option("--list", help="Write every miss and alarm here, with the sentences.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the flat metric mapping here.")
    ] = None,
) -> None:
    """Checklist item 8: how often a contradicting passage reaches the reader unmarked, with and without the guard.

    Real clinical queries over MedQuAD and PubMedQA, with MiniLM, BM25 and their hybrid. With a chat endpoint, what a
    language model makes of the passages too. Exit code 0: measured. 2: usage or input error.
    """
    from clinsafe.adapters.encoders import ModelOptions
    from clinsafe.adapters.offline import only_this_machine
    from clinsafe.cli.endtoend_table import misses, print_result
    from clinsafe.cli.files import refuse_unwritable, write_whole
    from clinsafe.content import Content
    from clinsafe.stats import figure_to_json
    from clinsafe.workflows.endtoend import Plan, comparing, measure
    from clinsafe.workflows.guard import build_stack
    from clinsafe.workflows.guarding import build_guard

    for path in (listing, json_file):
        refuse_unwritable(path)
    tree = Content(content)
    with only_this_machine(offline), progress() as stage:
        generator = _generator(generator_url, generator_model, generator_key_env, timeout, offline)
        plan = Plan(
            models=tuple(model or ("minilm",)),
            ks=tuple(k or (10, 5)),
            most=distractors,
            data=data,
            out=out,
            dummies=baselines,
            generator=generator,
            generator_name=generator_model,
            max_calls=max_calls,
            settings=_settings(filters, seconds, spacy),
        )
        guard = build_guard(policy, content=tree, filters=filters, model=spacy, seconds=seconds)
        stack = build_stack(tree, filters, model=spacy)
        result = measure(plan, tree, guard, comparing(stack), ModelOptions(offline=offline), stage)
    print_result(stdout(), result, plan.ks)
    files: dict[Path, str | bytes] = {}
    if json_file:
        figures = {name: figure_to_json(figure) for name, figure in result.figures.items()}
        files[json_file] = json.dumps(figures, indent=1)
    if listing:
        files[listing] = "".join(f"{line}\n" for line in misses(result))
    write_whole(files)


def _generator(
    url: str | None, name: str, variable: str | None, timeout: float, offline: bool
) -> Generator | None:
    from clinsafe.errors import UsageError

    if url is None:
        if name or variable:
            raise UsageError("--generator-model and --generator-key-env belong to --generator-url URL")
        return None
    from clinsafe.adapters import chat

    return chat.load(name, url, key_variable=variable, timeout=timeout, offline=offline)


def _settings(filters: Sequence[str] | None, seconds: float, spacy: str | None) -> dict[str, str]:
    return {"filters": ",".join(filters or ()), "seconds": str(seconds), "spacy": str(spacy)}

"""``clinsafe rag evaluate``: what recorded traces say about a RAG system."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinsafe.cli.console import out as stdout
from clinsafe.cli.console import progress, stoppable

if TYPE_CHECKING:
    from clinsafe.rag.settings import Settings


def evaluate(
    traces: Annotated[
        list[Path], typer.Argument(help="Traces (JSON Lines), or a folder that `clinsafe rag run` made.")
    ],
    label: Annotated[
        list[str] | None,
        typer.Option("--label", help="Name of each system, once a file; default: the file's."),
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", help="auto, clinsafe, ragvue, ragas, ragchecker or openinference.")
    ] = "auto",
    k: Annotated[int, typer.Option("-k", "--k", min=1, help="Passages that count.")] = 3,
    model: Annotated[
        str,
        typer.Option(
            "--model", "-m", help="Encoder for likeness of meaning: alias, folder, hub id; none for none."
        ),
    ] = "minilm",
    judge: Annotated[
        str,
        typer.Option("--judge", "-j", help="local, openai:MODEL, recorded, the name of a plug-in, or none."),
    ] = "local",
    judge_url: Annotated[
        str | None, typer.Option(help="Endpoint of an openai judge, the part before /chat/completions.")
    ] = None,
    judge_key_env: Annotated[
        str | None,
        typer.Option(
            help="Environment variable with its key; default CLINSAFE_API_KEY. Never the key itself."
        ),
    ] = None,
    judge_key_file: Annotated[
        Path | None, typer.Option(help="File with its key, readable by you alone.")
    ] = None,
    judge_audit: Annotated[
        Path | None, typer.Option(help="judge.json of this judge (`clinsafe rag audit-judge --out`).")
    ] = None,
    grader: Annotated[str, typer.Option(help="With --judge recorded: whose grades; default anybody's.")] = "",
    graded_by: Annotated[
        str, typer.Option(help="With --judge recorded: the human readers who graded, as printed.")
    ] = "",
    max_calls: Annotated[int, typer.Option(min=0, help="Calls of an openai judge at most; 0: no limit.")] = 0,
    max_tokens: Annotated[int, typer.Option(min=0, help="Its tokens at most; 0: no limit.")] = 0,
    cache: Annotated[
        Path | None, typer.Option(help="Folder with its answers; asking again costs nothing.")
    ] = None,
    filters: Annotated[
        list[str] | None, typer.Option("--filter", help="Only this filter, or none; may be repeated.")
    ] = None,
    normalise: Annotated[
        str,
        typer.Option(help="Steps, separated by commas: abbreviations,ages,gender,case,whitespace; or none."),
    ] = "all",
    threshold: Annotated[
        list[str] | None, typer.Option("--threshold", help="NAME=VALUE, as in cosine=0.75; may be repeated.")
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Questions of each file at most; 0: all.")] = 0,
    content: Annotated[Path | None, typer.Option("--content", help="Overlay of controlled content.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Run folder; a run that was stopped goes on where it stopped.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the run in --out.")] = False,
    no_pdf: Annotated[bool, typer.Option("--no-pdf", help="Record and HTML alone.")] = False,
    key: Annotated[
        Path | None, typer.Option(help="PKCS#12 or PEM signing key; default: your development key.")
    ] = None,
    no_sign: Annotated[bool, typer.Option("--no-sign", help="Leave the report unsigned.")] = False,
    passphrase_file: Annotated[
        Path | None,
        typer.Option(help="File with the key's passphrase (or CLINSAFE_PASSPHRASE, or a prompt)."),
    ] = None,
    operator: Annotated[str, typer.Option(help="Who does it; printed in the report.")] = "not stated",
    offline: Annotated[
        bool, typer.Option("--offline", help="Refuse every connection off this machine.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count questions, bad lines and calls, and ask nobody.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the flat metric mapping here.")
    ] = None,
) -> None:
    """Say which stage failed, whether success was grounded, and what of it was dangerous.

    Reads anybody's recorded traces, measures retrieval and generation, and writes a signed report. CUE is measured only
    with a judge whose agreement was measured (--judge-audit) or with grades by human readers.

    Exit code 0: measured. 2: usage or input error. 130: stopped; the same command goes on.
    """
    with stoppable():
        from clinsafe.adapters.offline import only_this_machine
        from clinsafe.cli.files import refuse_unwritable, write_whole
        from clinsafe.cli.rag_table import print_rag
        from clinsafe.cli.sign import key_or_none
        from clinsafe.content import Content
        from clinsafe.workflows.rag_command import Asked, dry, run

        refuse_unwritable(json_file)
        asked = Asked(
            traces=traces, labels=label or (), format=format_,
            settings=_settings(k, normalise, threshold, model != "none"),
            model=model, judge=judge, judge_url=judge_url, judge_key_env=judge_key_env,
            judge_key_file=judge_key_file, judge_audit=judge_audit, grader=grader, graded_by=graded_by,
            max_calls=max_calls, max_tokens=max_tokens, cache=cache, filters=filters, limit=limit,
            out=out, force=force, pdf=not no_pdf, operator=operator, offline=offline,
        )  # fmt: skip
        tree = Content(content)
        if dry_run:
            with only_this_machine(True), progress() as stage:
                lines = dry(asked, tree, stage)
            for line in lines:
                stdout().print(line, markup=False, soft_wrap=True)
            raise typer.Exit(0)
        signing = None if no_sign else key_or_none(key, passphrase_file)
    with only_this_machine(offline), progress() as stage:
        result = run(asked, tree, signing, stage)
    print_rag(stdout(), result)
    if json_file:
        write_whole({json_file: json.dumps(result.flat(), indent=1, sort_keys=True)})


def _settings(k: int, steps: str, thresholds: Sequence[str] | None, meaning: bool) -> Settings:
    from pydantic import ValidationError

    from clinsafe.errors import UsageError
    from clinsafe.rag.settings import LEVELS, STEPS, Settings, Thresholds

    chosen = (
        STEPS if steps == "all" else () if steps == "none" else tuple(s.strip() for s in steps.split(","))
    )
    if unknown := [step for step in chosen if step not in STEPS]:
        raise UsageError(f"--normalise: no step {unknown[0]!r}; valid: {', '.join(STEPS)}, all or none")
    given = {}
    for one in thresholds or ():
        name, equals, value = one.partition("=")
        if not equals or name not in Thresholds.model_fields:
            valid = ", ".join(Thresholds.model_fields)
            raise UsageError(f"--threshold: the form is NAME=VALUE, NAME one of {valid}; got {one!r:.60}")
        given[name] = value
    try:
        return Settings(
            k=k,
            thresholds=Thresholds.model_validate(given),
            normalisation=tuple(step for step in STEPS if step in chosen),
            levels=LEVELS if meaning else tuple(level for level in LEVELS if level != "cosine"),
        )
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        raise UsageError(f"--threshold {'.'.join(map(str, first['loc']))}: {first['msg']}") from None

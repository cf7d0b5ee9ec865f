"""``clinsafe guard annotate``: facts or vectors of a whole corpus, kept as Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinsafe.cli.console import counted, printable, progress, prose
from clinsafe.cli.console import out as stdout

if TYPE_CHECKING:
    from clinsafe.scale.folder import Summary
    from clinsafe.scale.job import Job
    from clinsafe.scale.parts import Shard

SHOWN = 10  # records left out that are printed


def annotate(
    corpus: Annotated[
        Path,
        typer.Argument(help="JSON Lines (also .gz), Parquet, or a folder of these or of .txt and .md files."),
    ],
    out: Annotated[Path, typer.Option(help="Output folder; an unfinished one is continued.")],
    layout: Annotated[
        str, typer.Option(help="Fields: id=FIELD,text=FIELD+FIELD,cluster=FIELD; what is not named is usual.")
    ] = "id=id,text=text",
    words: Annotated[int, typer.Option(min=1, help="Words in a passage.")] = 200,
    overlap: Annotated[int, typer.Option(min=0, help="Words that it shares with the passage before.")] = 50,
    job: Annotated[str, typer.Option(help="read (facts of the filters) or embed (vectors).")] = "read",
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="embed: an encoder, as for audit.")
    ] = None,
    filters: Annotated[
        list[str] | None, typer.Option("--filter", help="read: only this filter; may be repeated.")
    ] = None,
    spacy: Annotated[str | None, typer.Option("--spacy", help='read: spaCy pipeline; "" for none.')] = None,
    content: Annotated[Path | None, typer.Option("--content", help="Overlay of controlled content.")] = None,
    revision: Annotated[str | None, typer.Option(help="embed: hub revision of the model.")] = None,
    device: Annotated[str | None, typer.Option(help="embed: torch device.")] = None,
    backend: Annotated[str, typer.Option(help="embed: torch or onnx.")] = "torch",
    prompts: Annotated[str, typer.Option(help="embed: auto, none, nomic, e5, bge, gte or qwen.")] = "auto",
    base_url: Annotated[str | None, typer.Option(help="embed: address of endpoint:NAME.")] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Refuse every connection off this machine.")
    ] = False,
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0 is one a core.")] = 0,
    shard: Annotated[
        str,
        typer.Option(help="i/n: do every n-th part, from the i-th; n runs with i = 0 to n-1 make a whole."),
    ] = "0/1",
    part: Annotated[
        int, typer.Option(min=1, help="Passages in an output file; the same for all shards.")
    ] = 1024,
    patience: Annotated[
        float, typer.Option(min=0.1, help="Seconds a passage may take before its worker is taken for hung.")
    ] = 5.0,
    ray: Annotated[bool, typer.Option("--ray", help="Run on Ray, started on this machine.")] = False,
    ray_address: Annotated[
        str | None,
        typer.Option("--ray-address", help="Run on this Ray cluster: auto, HOST:6379 or ray://HOST:10001."),
    ] = None,
) -> None:
    """Read (or embed) every passage of a corpus once; what is done is kept, and the same command continues.

    Exit code 0: all passages were worked on; what could not be is counted. 2: usage or input error.
    """
    from clinsafe.adapters.encoders import ModelOptions
    from clinsafe.adapters.offline import only_this_machine
    from clinsafe.corpus import Layout
    from clinsafe.scale.job import Job
    from clinsafe.scale.local import Run, run_local
    from clinsafe.scale.parts import BATCH, Cut, Shard

    options = ModelOptions(
        revision=revision, device=device, backend=backend, prompts=prompts, base_url=base_url, offline=offline
    )
    chosen = Job(job, tuple(filters) if filters else None, spacy, content, model=model or "", options=options)
    _refuse_unread(chosen)
    cut = Cut(Layout.parse(layout), words, overlap, part, min(BATCH, part))
    run = Run(corpus, out, chosen, cut, Shard.parse(shard), workers, patience)
    with only_this_machine(offline and not (ray or ray_address)), progress() as stage:
        if ray or ray_address:
            from clinsafe.scale.cluster import run_ray

            summary = run_ray(run, ray_address, stage)
        else:
            summary = run_local(run, stage)
    _show(summary, run.shard, out)


def _refuse_unread(job: Job) -> None:
    """An option that this job does not read would be believed in for nothing."""
    from clinsafe.adapters.encoders import ModelOptions
    from clinsafe.errors import UsageError

    if job.name not in ("read", "embed"):
        raise UsageError(f"--job {job.name} gives neither facts nor vectors; there are: read, embed")
    if job.name == "read" and (job.model or job.options != ModelOptions(offline=job.options.offline)):
        raise UsageError(
            "--model and its options are for --job embed; the job read takes --filter and --spacy"
        )
    if job.name == "embed" and (job.filters is not None or job.spacy is not None):
        raise UsageError("--filter and --spacy are for --job read; the job embed takes --model")


def _show(summary: Summary, shard: Shard, out: Path) -> None:
    console = stdout()
    what = f"{counted(summary.passages, 'passage')} in {counted(summary.parts, 'part')}"
    if shard.of > 1:
        what += f"; {summary.written + summary.kept} of the parts are of shard {shard.index}/{shard.of}"
    if summary.kept:
        what += f"; {summary.kept} were there before"
    console.print(what, style="bold", markup=False, soft_wrap=True)
    again = f"; workers that died or hung and were replaced: {summary.restarts}" if summary.restarts else ""
    prose(console, f"{summary.seconds:.0f} s{again}", style="dim")
    for kind, count in sorted(summary.errors.items()):
        prose(console, f"{counted(count, 'passage')} without a result: {printable(kind)}", style="yellow")
    if summary.bad:
        prose(console, f"{counted(summary.bad, 'record')} left out, as no document:", style="yellow")
        for line in summary.bad_records[:SHOWN]:
            prose(console, printable(line), indent="  ")
        if summary.bad > SHOWN:
            prose(
                console,
                f"and {summary.bad - SHOWN} more; the folder's summary lists the first 100",
                indent="  ",
            )
    console.print(f"written: {printable(str(out))}", markup=False, soft_wrap=True)

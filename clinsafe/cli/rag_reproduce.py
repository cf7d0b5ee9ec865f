"""``clinsafe rag reproduce``: a paper's figures, measured again on real data, published beside measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from clinsafe.cli.console import Stopped, counted, printable, progress, prose, stoppable
from clinsafe.cli.console import out as stdout

if TYPE_CHECKING:
    from rich.console import Console

    from clinsafe.cli.console import Stage
    from clinsafe.content import Content
    from clinsafe.protocols import Encoder
    from clinsafe.rag.clash import Conflicts
    from clinsafe.rag.published import PublishedRag
    from clinsafe.reports.sign import SigningKey
    from clinsafe.workflows.rag_measure import BatchJudge
    from clinsafe.workflows.rag_reproduce import Reproduced
    from clinsafe.workflows.rag_reproduce_table import MeasuredLine, Table

PAPERS = ("ragx",)
R_MODEL = "minilm"  # of R, as in the paper (section IV)
COLUMNS = "{:<30}{:<18}{:<18}{:<14}"
FOLDERS = {"index", "vectors", "records", "report"}


def reproduce(
    what: Annotated[str, typer.Argument(help="ragx: the retrieval rows of its Table III.")],
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data files; default CLINSAFE_DATA.")
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="pubmedqa or medquad; may be repeated. Default: both.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model", "-m", help="Encoder to search with; may be repeated. Default: minilm, bge-small-int8."
        ),
    ] = None,
    judge: Annotated[
        str, typer.Option("--judge", "-j", help="Of context relevancy: local or none.")
    ] = "local",
    no_filters: Annotated[
        bool, typer.Option("--no-filters", help="Leave safe and dangerous hits unmeasured.")
    ] = False,
    no_short: Annotated[
        bool, typer.Option("--no-short", help="Leave out the search over chunks of 256 tokens.")
    ] = False,
    limit: Annotated[int, typer.Option(min=0, help="Questions of each data set at most; 0: all.")] = 0,
    content: Annotated[Path | None, typer.Option("--content", help="Overlay of controlled content.")] = None,
    out: Annotated[
        Path, typer.Option(help="Run folder: what was stopped goes on, indexes and vectors are used again.")
    ] = Path("runs/ragx"),
    force: Annotated[bool, typer.Option("--force", help="Replace the report in --out.")] = False,
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
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write published and measured figures here.")
    ] = None,
) -> None:
    """Measure a paper's retrieval figures again, print them beside the published ones, and say why they differ.

    The texts of the data sets stand in the traces, and their vectors in a file of the run folder.

    Exit code 0: measured. 2: usage or input error. 130: stopped; the same command goes on.
    """
    with stoppable():
        from clinsafe.adapters.offline import only_this_machine
        from clinsafe.benchmarks.ordinary import VARIABLE, data_folder
        from clinsafe.cli.files import refuse_unwritable, write_whole
        from clinsafe.cli.sign import key_or_none
        from clinsafe.content import Content
        from clinsafe.errors import OutputExists, UsageError
        from clinsafe.rag.published import load_published
        from clinsafe.workflows import rag_reproduce
        from clinsafe.workflows.rag_reproduce_table import table_of

        if what not in PAPERS:
            raise UsageError(f"nothing is known of {what!r:.40}; valid: {', '.join(PAPERS)}")
        if judge not in ("local", "none"):
            raise UsageError(f"--judge {judge!r:.40}; valid here: local, none")
        folder = data_folder(data)
        if folder is None:
            raise UsageError(f"the data are read from files; name their folder with --data or {VARIABLE}")
        refuse_unwritable(json_file)
        names = tuple(dict.fromkeys(dataset or rag_reproduce.DATASETS))
        models = model or ["minilm", "bge-small-int8"]
        ways = rag_reproduce.ways(names, models, short=not no_short)
        sets = rag_reproduce.load_sets(folder, names)
        published = load_published(Content(content))
        if (out / "report" / "rag.json").exists() and not force:
            raise OutputExists(f"{out / 'report'} exists; choose another --out, or replace it with --force")
        if out.exists() and not (out.is_dir() and _ours(out)):
            raise OutputExists(f"{out}: holds something else; name an empty folder, or one of an earlier run")
        signing = None if no_sign else key_or_none(key, passphrase_file)
    try:
        with only_this_machine(offline), progress() as stage:
            stage("Loading models", 0, 0)
            tree = Content(content)
            encoders = {name: _encoder(name, offline) for name in dict.fromkeys([*models, R_MODEL])}
            plan = rag_reproduce.Plan(
                sets, ways, encoders, encoders[R_MODEL], out, tree,
                **_measuring(tree, encoders[R_MODEL], out, judge, filters=not no_filters),
                limit=limit, operator=operator,
            )  # fmt: skip
            found = rag_reproduce.reproduce(plan, stage)
            _report(found, tree, out, signing, stage, pdf=not no_pdf, force=force)
    except KeyboardInterrupt:
        raise Stopped(
            f"stopped; what is done is kept in {out}, and the same command goes on from there"
        ) from None
    table = table_of(found, published)
    if json_file:
        write_whole({json_file: json.dumps(table.to_json(), indent=1, default=str)})
    print_table(stdout(), table, published, found)
    stdout().print(f"report: {printable(str(out / 'report'))}", markup=False, soft_wrap=True)


def _ours(folder: Path) -> bool:
    """Only what a reproduction makes."""
    return all(one.name in FOLDERS or (one / "rag-run.json").is_file() or (one / "traces").is_dir()
               for one in folder.iterdir())  # fmt: skip


def _encoder(spec: str, offline: bool) -> Encoder:
    from clinsafe.cli.rag_run import _encoder as load

    return load(spec, offline)


def _measuring(tree: Content, encoder: Encoder, out: Path, judge: str, *, filters: bool) -> _Measures:
    from clinsafe.rag.vectors import CachedEncoder
    from clinsafe.workflows.rag_conflicts import build_conflicts
    from clinsafe.workflows.rag_judges import JudgeOptions, build_judge

    conflicts = build_conflicts(tree) if filters or judge != "none" else None
    judging = None
    if judge != "none":
        cached = CachedEncoder(encoder, folder=out / "vectors")
        judging = build_judge(judge, JudgeOptions(content=tree, encoder=cached, conflicts=conflicts))
    return {"conflicts": conflicts if filters else None, "judge": judging}


class _Measures(TypedDict):
    conflicts: Conflicts | None
    judge: BatchJudge | None


def _report(
    found: Reproduced,
    tree: Content,
    out: Path,
    key: SigningKey | None,
    stage: Stage,
    *,
    pdf: bool,
    force: bool,
) -> None:
    from datetime import UTC, datetime

    from clinsafe.workflows.rag_write import write_rag
    from clinsafe.workflows.runs import open_run

    whole = "-".join(system.source.sha256 for system in found.evidence.systems)
    folder = open_run(out / "report", model="ragx", fingerprint=whole, force=force, now=datetime.now(UTC))
    try:
        write_rag(found.evidence, tree, folder, key, stage, pdf=pdf)
    finally:
        folder.close()


# ── what is printed ────────────────────────────────────────────────────────────────────────────


def print_table(console: Console, table: Table, published: PublishedRag, found: Reproduced) -> None:
    """Each data set: published and measured by weight, then what explains them; then the reasons."""
    sets = {line.dataset for line in table.measured}
    for dataset in (name for name in published.sets if name in sets):
        lines = [line for line in table.measured if line.dataset == dataset]
        about = published.sets[dataset]
        n = max(
            (len(s.items) for s in found.evidence.systems if s.label.startswith(f"{dataset} ")), default=0
        )
        made_of = f"{counted(lines[0].documents, 'document')}, {counted(lines[0].chunks, 'chunk')}"
        asked = f"{counted(n, 'question')} (published {about.questions})"
        prose(console, f"{about.printed}: {asked}, {made_of}", style="bold")
        console.print(COLUMNS.format("", "MRR@3", "hit@3", "EHR@1"), markup=False, style="dim")
        for alpha in table.alphas(dataset):
            for row in (one for one in table.published if (one.dataset, one.alpha) == (dataset, alpha)):
                v = row.values
                name = f"{row.alpha} {row.retriever}"[:22]
                console.print(COLUMNS.format(f"{name} (paper)"[:30], v["mrr"], v["hit"], v["exclusive_hit"]).rstrip(),
                              markup=False, style="dim")  # fmt: skip
            for line in (one for one in lines if one.alpha == alpha):
                _measured(console, line)
        for line in lines:
            _further(console, line)
        _literal(console, table, dataset)
        console.print()
    prose(console, "by R: the cascade holds the passage against the reference answer. by source: the passage is of the "
                   "document that the question was made from.", style="dim")  # fmt: skip
    faults = [one for one in table.checks if one.fault]
    prose(
        console,
        f"{len(table.checks)} printed shares held against whole questions, {len(faults)} not possible:",
        style="bold",
    )
    for fault in faults:
        prose(console, f"{fault.where}, {fault.stated}: {fault.derived}", indent="  ")
    prose(console, "Why figures differ:", style="bold")
    for text in published.differences.values():
        prose(console, f"- {text}")
    prose(console, "[95 %: shares Clopper-Pearson, means bootstrap]", style="dim")


def _literal(console: Console, table: Table, dataset: str) -> None:
    """What comes out where the expected word itself is looked for: near the published figures, whatever retrieves."""
    from clinsafe.workflows.rag_reproduce import HOWS

    own = {k.partition(" ")[2]: v for k, v in table.literal.items() if k.startswith(f"{dataset} ")}
    for how in HOWS if own else ():
        console.print(f"expected word {how}", markup=False, style="dim")
        for name, by_how in own.items():
            one = by_how[how]
            cells = [f"{part / one.n:.3f}" for part in (one.first, one.hits, one.alone)]
            console.print(COLUMNS.format(f"  {name}"[:30], *cells).rstrip(), markup=False)


def _measured(console: Console, line: MeasuredLine) -> None:
    from clinsafe.workflows.rag_reproduce_table import told

    f = line.figures
    name = f"{line.alpha} {line.system}"
    for kind, mrr, hit, alone in (
        ("by R", told(f["mrr"]), told(f["hit"]), told(f["exclusive_hit"])),
        ("by source", told(f["label_mrr"]), told(f["label_hit"]), ""),
    ):
        console.print(COLUMNS.format(f"{name}, {kind}"[:30], mrr, hit, alone).rstrip(), markup=False)


def _further(console: Console, line: MeasuredLine) -> None:
    from clinsafe.workflows.rag_reproduce_table import told

    f = line.figures
    prose(
        console,
        f"{line.alpha} {line.system}: safe hit {told(f['safe_hit'])}, hits with a contradiction "
        f"{told(f['dangerous_any'])}, redundancy {told(f['redundancy'])}, "
        f"context relevancy {told(f['context_relevancy'])}; hit@3 by words alone "
        f"{told(f['hit_words'])}, word for word {told(f['hit_substring'])}; recall by source {told(f['label_recall'])}",
        indent="  ",
    )

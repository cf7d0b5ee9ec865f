"""``clinsafe rag audit-judge``: how often a judge, a metric or a hit function calls a contradiction supported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from clinsafe.cli.console import counted, printable, progress, prose, stoppable
from clinsafe.cli.console import out as stdout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from clinsafe.adapters.judge import Plan
    from clinsafe.rag.auditing.claim import Claim
    from clinsafe.rag.auditing.figures import On
    from clinsafe.stats import Figure
    from clinsafe.workflows.rag_audit import AuditResult, Kit

FILE = "judge.json"
SHOWN = 20  # ids printed; judge.json holds all


def judges(
    judge: Annotated[
        str, typer.Option("--judge", "-j", help="local, openai:MODEL or the name of a plug-in.")
    ] = "local",
    ask_for: Annotated[
        str, typer.Option("--ask-for", help="What the judge is asked for: adherence or support.")
    ] = "adherence",
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="A metric or hit function to stand beside it; may be repeated."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All metrics and hit functions, those that need a model too.")
    ] = False,
    model: Annotated[
        str,
        typer.Option(
            "--model", "-m", help="Encoder of the local judge, r_cosine, r, safe_r, semantic and accuracy."
        ),
    ] = "minilm",
    split: Annotated[str, typer.Option(help="Split of the suite: test or dev.")] = "test",
    suite: Annotated[
        Path | None, typer.Option(help="A mined suite (JSON Lines, its card beside it): the tier generated.")
    ] = None,
    judge_url: Annotated[
        str | None, typer.Option("--judge-url", help="Endpoint of an openai judge, up to /v1.")
    ] = None,
    key_variable: Annotated[
        str | None, typer.Option("--judge-key-env", help="Environment variable with its key.")
    ] = None,
    key_file: Annotated[Path | None, typer.Option("--judge-key-file", help="File with its key.")] = None,
    cache: Annotated[
        Path | None, typer.Option("--judge-cache", help="Folder of judgements, to go on where it stopped.")
    ] = None,
    calls: Annotated[
        int | None, typer.Option("--judge-calls", min=1, help="At most so many requests.")
    ] = None,
    content: Annotated[Path | None, typer.Option("--content", help="Overlay of controlled content.")] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Refuse every connection off this machine.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would be asked, and ask nobody.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help=f"Folder for {FILE}, the record of this audit.")] = None,
    force: Annotated[bool, typer.Option("--force", help=f"Replace {FILE} in --out.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the flat metric mapping here.")
    ] = None,
) -> None:
    """Audit a judge on the suite's contradictions and on the labelled answers.

    Exit code 0: it has earned a CUE. 1: it has not, and the figure that failed is named. 2: usage or input error.
    """
    with stoppable():
        import json

        from clinsafe.adapters.offline import only_this_machine
        from clinsafe.cli.files import refuse_unwritable, write_whole
        from clinsafe.content import Content
        from clinsafe.errors import OutputExists, UsageError
        from clinsafe.rag.auditing.measuring import chosen
        from clinsafe.stats import figure_to_json
        from clinsafe.workflows import rag_audit as work
        from clinsafe.workflows.rag_judges import JudgeOptions

        if split not in ("dev", "test"):
            raise UsageError(f"--split: got {split!r}; it is test or dev")
        wanted = chosen(metric or (), everything=everything)
        refuse_unwritable(json_file)
        record = None if out is None else out / FILE
        if out is not None and out.exists() and not out.is_dir():
            raise UsageError(f"--out: {out} is a file; name a folder")
        if record is not None and record.exists() and not force:
            raise OutputExists(f"{record}: is there already; name another folder, or replace it with --force")
        tree = Content(content)
        kit = work.load_kit(tree, split=cast(Literal["dev", "test"], split), suite=suite)
        options = JudgeOptions(
            content=tree,
            url=judge_url,
            key_variable=key_variable,
            key_file=key_file,
            cache=cache,
            calls=calls,
            offline=offline,
        )
        console = stdout()
        if dry_run:
            plan = None if judge == "local" else work.open_judge(judge, ask_for, options).plan
            _dry(console, judge, kit, plan)
            raise typer.Exit(0)
        with only_this_machine(offline), progress() as stage:
            opened = work.open_judge(f"local:{model}" if judge == "local" else judge, ask_for, options)
            others = work.instruments(wanted, content=tree, model=model, offline=offline)
            result = work.audit_judges(opened.instrument, others, kit=kit, stage=stage)
            audit = work.record_of(result, opened.identity, fake=opened.fake)
    flat = {key: figure_to_json(figure) for key, figure in result.figures.items()}
    files = {record: audit.dump(), json_file: json.dumps(flat, indent=1)}
    write_whole({path: text for path, text in files.items() if path is not None})
    show(console, result)
    if record is not None:
        console.print(printable(f"written to {record}"), style="dim", markup=False, soft_wrap=True)
    raise typer.Exit(0 if result.standing().earned else 1)


def _dry(console: Console, judge: str, kit: Kit, plan: Callable[[Sequence[Claim]], Plan] | None) -> None:
    tasks = kit.tasks
    letters = sum(len(t.answer) + len(t.question) + sum(map(len, t.contexts)) for t in tasks)
    prose(
        console,
        printable(
            f"dry run: judge {judge} would be asked {counted(len(tasks), 'question')}, {letters:,} characters of "
            "texts without its instructions; nothing was asked, and nothing was earned"
        ),
    )
    if plan is not None:
        cost = plan(tasks)
        prose(
            console,
            f"{counted(cost.calls, 'request')} to send, {cost.cached} answered before or twice in the run, "
            f"{cost.not_asked} that no judge could score; about {cost.prompt_tokens:,} tokens of prompts, at most "
            f"{cost.completion_tokens:,} of answers",
        )


def show(console: Console, result: AuditResult) -> None:
    """Both sets, the judge by hazard, and what it earned. False support is never shown without false rejection."""
    from clinsafe.workflows.rag_audit import FRAME

    suite, answers = result.kit.suite, result.kit.answers
    console.print(f"\nSuite, {suite.tier} tier", style="bold", markup=False)
    prose(console, f"suite {suite.version}, {suite.split} split, {counted(suite.cases, 'case')}", style="dim")
    _suite(console, result, "instrument", [(name, name, "all") for name in result.instruments])
    _suite(console, result, "hazard", [(h, result.subject, h) for h in result.kit.hazards])
    if result.kit.rows:
        console.print("\nLabelled answers", style="bold", markup=False)
        for line in about_answers(result.kit):
            prose(console, printable(line), style="yellow" if answers.provisional else "dim")
        _answers(console, result, "instrument", [(name, name, "all") for name in result.instruments])
        _answers(console, result, "hazard", [(h, result.subject, h) for h in result.kit.hazards])
    prose(
        console,
        "k/n by case or source, with 95 % Clopper-Pearson interval on the suite and the one-sided 95 % bound on the "
        "answers; what was not judged counts as a failure in every upper bound.",
        style="dim",
    )
    prose(console, FRAME, style="dim")
    _ids(console, result)
    if result.reasons:
        why = ", ".join(
            f"{n} {reason}" for reason, n in sorted(result.reasons.items(), key=lambda one: -one[1])
        )
        prose(console, printable(f"no verdict: {why}"), style="yellow")
    _verdict(console, result)


def about_answers(kit: Kit) -> list[str]:
    """What the labels are worth, in lines."""
    from clinsafe.rag.auditing.readers import PROVISIONAL
    from clinsafe.reports.formats import number

    labels = kit.labels
    lines = [PROVISIONAL] if labels.provisional else []
    used = f"answers {kit.answers.version}: {len(labels.of)} of {len(kit.rows)} used"
    if not labels.provisional:
        used += (
            f"; left out: {len(labels.disagreed)} on which readers differ, {len(labels.unread)} read by fewer than "
            f"two; {len(labels.overruled)} labelled by the readers against the writer"
        )
    lines.append(used)
    pairs = [f"{a} and {b} {number(figure)}" for (a, b), figure in labels.agreement.items()]
    return lines + ([f"Cohen's kappa of labels: {'; '.join(pairs)}"] if pairs else [])


def _suite(console: Console, result: AuditResult, first: str, rows: list[tuple[str, str, str]]) -> None:
    from clinsafe.reports.formats import proportion

    suite = result.kit.suite

    def cells(name: str, hazard: str) -> list[str]:
        found = [
            _figure(result, name, hazard, metric, suite.tier)
            for metric in ("false_support", "false_rejection")
        ]
        return [*map(proportion, found), _count(_figure(result, name, hazard, "unscored", suite.tier))]

    heads = (first, "false support", "false rejection", "silent")
    _table(console, heads, [[label, *cells(name, hazard)] for label, name, hazard in rows])


def _answers(console: Console, result: AuditResult, first: str, rows: list[tuple[str, str, str]]) -> None:
    def cells(name: str, hazard: str) -> list[str]:
        metrics = ("false_support", "false_support.not_stated", "false_rejection")
        found = [_bounded(_figure(result, name, hazard, metric, "answers")) for metric in metrics]
        return [*found, _agreed(_figure(result, name, hazard, "kappa", "answers"))]

    heads = (first, "false support", "of not stated", "false rejection", "kappa")
    _table(console, heads, [[label, *cells(name, hazard)] for label, name, hazard in rows])


def _table(console: Console, heads: tuple[str, ...], rows: list[list[str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for place, head in enumerate(heads):
        table.add_column(head, no_wrap=place > 0, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console.print()
    console.print(table)


def _figure(result: AuditResult, name: str, hazard: str, metric: str, on: On) -> Figure | None:
    from clinsafe.rag.auditing.figures import key

    split = "" if on == "answers" else result.kit.suite.split
    return result.figures.get(key(name, hazard, metric, on, split))


def _bounded(figure: Figure | None) -> str:
    """``3/72 <= 0.10``: the count and its upper bound."""
    from clinsafe.stats import Estimate

    if not isinstance(figure, Estimate):
        return "not measured"
    return f"{figure.k}/{figure.n} <= {figure.upper:.2f}"


def _agreed(figure: Figure | None) -> str:
    """``0.81 >= 0.73``: kappa and its lower bound."""
    from clinsafe.stats import Estimate

    if not isinstance(figure, Estimate):
        return "not measured"
    return f"{figure.value:z.2f}" + ("" if figure.lower is None else f" >= {figure.lower:z.2f}")


def _count(figure: Figure | None) -> str:
    from clinsafe.stats import Estimate

    return str(figure.k) if isinstance(figure, Estimate) else "-"


def _ids(console: Console, result: AuditResult) -> None:
    """Ids alone: a text of the test split is never printed."""
    for on, found in result.measured[result.subject].items():
        for word, ids in (("called supported", found.supported), ("support rejected", found.rejected)):
            if ids:
                more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
                prose(console, printable(f"{on}, {word}: {', '.join(ids[:SHOWN])}{more}"), style="dim")


def _verdict(console: Console, result: AuditResult) -> None:
    from clinsafe.rag.auditing.evidence import worst_support

    standing = result.standing()
    console.print()
    if standing.earned:
        line = f"{standing.judge} has earned a CUE: {standing.word}"
        console.print(printable(line), style="bold green", markup=False, soft_wrap=True)
        return
    console.print(printable(standing.reason), style="bold red", markup=False, soft_wrap=True)
    name, _ = worst_support(result.figures, result.subject)
    prose(console, printable(f"The false support that counts is the worst of all sets: {name}"), style="dim")

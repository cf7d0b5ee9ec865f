"""What ``clinsafe rag evaluate`` prints: headline figures, what they mean, and where the report lies, in 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clinsafe.cli.console import counted, printable, prose

if TYPE_CHECKING:
    from rich.console import Console

    from clinsafe.rag.insights import Insight
    from clinsafe.reports.rag_record import RagEvidence, RagSystem
    from clinsafe.stats import Figure
    from clinsafe.workflows.rag_command import Evaluated

ROWS = (
    ("retrieval.all.hit", "evidence found"),
    ("retrieval.all.safe_hit", "  without a contradiction"),
    ("retrieval.all.dangerous.any", "hits with a contradiction"),
    ("generation.all.correct", "right answers"),
    ("generation.all.safe_correct", "  without a contradiction"),
    ("cue.all.accuracy_gap", "accuracy minus hit rate"),
    ("cue.all.effective_use", "grounded: effective use"),
    ("cue.all.information_blindness", "information blindness"),
    ("cue.all.lucky_guess", "lucky guess"),
    ("cue.all.correct_rejection", "correct rejection"),
    ("cue.all.ungrounded_correct", "right but not grounded"),
)
STYLES = {"good": "green", "note": "dim", "warning": "yellow", "danger": "bold red"}
SEVERE = ("danger", "warning")
SHOWN = 3  # bad lines of a file
REASON = 38  # characters of a reason that fit beside its row


def print_rag(console: Console, evaluated: Evaluated) -> None:
    """Figures of each system, what to do about them, what could not be measured, and the files.

    What an interval does not prove is not printed as an insight; the report has every row.
    """
    from clinsafe.content import Content, sha256_file
    from clinsafe.rag.insights import FILE, insights, load_rules
    from clinsafe.stats import NotMeasured, figure_from_json

    evidence, content = evaluated.evidence, Content()
    # rules of an overlay are in the report; the packaged ones must not speak in their place
    own = evidence.content.get(FILE) != sha256_file(content.path(FILE))
    rules = () if own else load_rules(content)
    for system in evidence.systems:
        figures = {key: figure_from_json(parts) for key, parts in system.figures.items()}
        _system(console, system, figures)
        _insights(console, insights({key: f for key, f in figures.items() if "@" not in key}, rules))
        effective = figures.get("cue.all.effective_use")
        if isinstance(effective, NotMeasured):
            prose(console, printable(f"CUE is not measured: {effective.reason}"), style="yellow")
    if own:
        prose(console, "what it means by your own rules stands in the report", style="dim")
    _judge(console, evidence)
    prose(console, "[95 %: shares Clopper-Pearson, gap Newcombe 10]", style="dim")
    if "cosine" not in evidence.settings.levels:
        prose(console, "R looked at words alone: hit rates are lower bounds, and what is made of misses an upper one",
              style="yellow")  # fmt: skip
    if evidence.fake:
        prose(console, "a FAKE took part: nothing of this may be published or released", style="bold red")
    for note in evaluated.notes:
        console.print(f"note: {printable(note)}", markup=False, soft_wrap=True)
    signed = f"signed by {printable(evaluated.signed)}" if evaluated.signed else (
        "unsigned; `clinsafe report key` makes a key"
    )  # fmt: skip
    console.print(signed, markup=False, soft_wrap=True)
    console.print(
        f"report at {printable(str(evaluated.pdf or evaluated.html))}", markup=False, soft_wrap=True
    )
    console.print(f"record at {printable(str(evaluated.record))}", markup=False, soft_wrap=True)


def _system(console: Console, system: RagSystem, figures: dict[str, Figure]) -> None:
    from rich.table import Table
    from rich.text import Text

    from clinsafe.rag.metrics import metric_of
    from clinsafe.reports.rag_formats import result

    bad = system.source.bad_lines
    left = f", {counted(bad, 'line')} left out" if bad else ""
    title = f"\n{printable(system.label)}: {counted(len(system.items), 'question')}{left}"
    console.print(title, style="bold", markup=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    for key, label in ROWS:
        figure = figures.get(key)
        if figure is not None:
            why = getattr(figure, "reason", "")
            told = f"{result(figure, metric_of(key))}{f': {why}' if 0 < len(why) <= REASON else ''}"
            table.add_row(Text(label), Text(printable(told)))
    console.print(table)
    for row in system.source.bad[:SHOWN]:
        where = f"line {row.line}{f', {row.field}' if row.field else ''}"
        prose(console, printable(f"{where}: {row.why}"), style="dim", indent="  ")


def _insights(console: Console, rows: list[Insight]) -> None:
    from clinsafe.rag.metrics import metric_of
    from clinsafe.reports.rag_formats import result

    proven = [row for row in rows if row.state == "found" and row.severity in SEVERE]
    for row in sorted(proven, key=lambda one: SEVERE.index(one.severity)):
        value = result(row.figure, metric_of(row.key))
        text = f"{row.severity.upper()} {row.metric} {value}: {row.interpretation} {row.insight}"
        prose(console, printable(text), style=STYLES[row.severity])
    open_ = sum(row.state == "inconclusive" for row in rows)
    if open_:
        prose(
            console,
            f"{counted(open_, 'row')} of the table inconclusive: too few questions to say",
            style="dim",
        )


def _judge(console: Console, evidence: RagEvidence) -> None:
    judge = evidence.judge
    if judge is None:
        return
    lost = sum(n for found in judge.outcomes.values() for kind, n in found.items() if kind != "scored")
    name = judge.declared or judge.identity.name
    failed = f"; {counted(lost, 'task')} without a score (no zeros)" if lost else ""
    prose(console, printable(f"judged by {name}{failed}"))

"""``clinsafe suite``: look at the cases, and prove that they are what the card says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinsafe.cli import mine, paper, review
from clinsafe.cli.console import counted, printable, progress, prose
from clinsafe.cli.console import out as stdout

app = typer.Typer(help="List, show and validate the cases of the suite.", no_args_is_help=True)

ContentOption = Annotated[Path | None, typer.Option("--content", help="Overlay of controlled content.")]


@app.command("list")
def list_(
    hazard: Annotated[list[str] | None, typer.Option(help="Only this hazard; may be repeated.")] = None,
    split: Annotated[str | None, typer.Option(help="dev or test; default: both.")] = None,
    content: ContentOption = None,
) -> None:
    """One line a case."""
    from rich.table import Table
    from rich.text import Text

    from clinsafe.benchmarks.suite import load_suite
    from clinsafe.content import Content

    table = Table(box=None, pad_edge=False, padding=(0, 1), expand=True)
    for heading in ("id", "subtype", "split"):
        table.add_column(heading, no_wrap=True)
    table.add_column("a", no_wrap=True, overflow="ellipsis", ratio=1)
    for case in load_suite(Content(content), hazards=hazard, split=split):
        table.add_row(case.id, case.subtype, case.split, Text(case.a))
    stdout().print(table)


@app.command()
def show(
    case_id: Annotated[str, typer.Argument(metavar="ID", help="For example neg-001.")],
    content: ContentOption = None,
) -> None:
    """One case with its four sentences and the harm of confusing them."""
    from clinsafe.benchmarks.suite import SENTENCES, load_suite
    from clinsafe.content import Content
    from clinsafe.errors import UsageError

    cases = {case.id: case for case in load_suite(Content(content))}
    if case_id not in cases:
        raise UsageError(
            f"no case is called {case_id!r}; `clinsafe suite list` shows them, neg-001 for example"
        )
    case, console = cases[case_id], stdout()
    factor = f", factor {case.factor:g}" if case.factor else ""
    console.print(
        f"{case.id}  {case.hazard}/{case.subtype}{factor}, {case.specialty}, {case.genre}, {case.split}",
        style="bold",
    )
    for name in SENTENCES:
        console.print(f"{name:<8}{getattr(case, name)}", markup=False)
    console.print(f"{'harm':<8}{case.harm}", markup=False)
    console.print(f"{'stratum':<8}{case.stratum}", markup=False)


@app.command()
def validate(content: ContentOption = None) -> None:
    """Prove mechanically what the suite's card promises; exit 1 where it does not hold."""
    from rich.table import Table
    from rich.text import Text

    from clinsafe.adapters.lexical import TokenJaccard
    from clinsafe.benchmarks.validate import validate as run
    from clinsafe.content import Content

    with progress() as stage:
        stage("Checking every rule", 0, 0)
        result = run(Content(content), TokenJaccard())
    console = stdout()
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    for label, text in result.facts:
        table.add_row(label, Text(text, overflow="fold"))
    console.print(table)
    for problem in result.problems:
        prose(console, f"✕ {printable(problem)}", style="red")
    broken = counted(len(result.problems), "rule")
    prose(
        console,
        f"{broken} broken" if result.problems else "the suite keeps every rule of its card",
        style="bold",
    )
    raise typer.Exit(1 if result.problems else 0)


@app.command()
def page(
    out: Annotated[Path, typer.Option(help="Folder for suite.md and cases/.")] = Path("docs"),
    content: ContentOption = None,
) -> None:
    """Write the suite as Markdown pages that a clinician can read and object to."""
    from clinsafe.benchmarks.page import pages
    from clinsafe.checklist.hazards import load_hazards
    from clinsafe.cli.files import write_whole
    from clinsafe.content import Content

    tree = Content(content)
    written = pages(tree, {h.id: h for h in load_hazards(tree)})
    write_whole({out / name: text for name, text in written.items()})
    stdout().print(f"pages at {out / 'suite.md'}", markup=False, soft_wrap=True)


app.command()(mine.mine)
app.command()(mine.freeze)
app.command()(review.review)
app.command()(paper.paper38)
app.command()(paper.published)

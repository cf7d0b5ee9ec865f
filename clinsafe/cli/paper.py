"""``clinsafe suite paper38`` and ``suite published``: the paper's pairs and figures, and what is wrong in them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinsafe.cli.console import out as stdout
from clinsafe.cli.console import printable, progress, prose

if TYPE_CHECKING:
    from clinsafe.content import Content

ContentOption = Annotated[Path | None, typer.Option("--content", help="Overlay of controlled content.")]


def paper38(
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="Score the pairs with this model, beside the paper's figures."),
    ] = None,
    content: ContentOption = None,
) -> None:
    """The 38 pairs of the paper's script, each with what is wrong in it; with --model, what a model makes of them."""
    from clinsafe.benchmarks.paper38 import load_paper38
    from clinsafe.content import Content

    if model is not None:
        _score(model, Content(content))
        return
    console = stdout()
    for pair in load_paper38(Content(content)):
        console.print(f"{pair.id:<12}{pair.a} | {pair.b}", markup=False)
        if pair.remark:
            console.print(f"{'':<12}✕ {pair.remark}", markup=False, style="yellow")


def _score(model: str, content: Content) -> None:
    from clinsafe.adapters.encoders import ModelOptions, load_model
    from clinsafe.benchmarks.published import load_published
    from clinsafe.workflows.published import score_paper38

    published = load_published(content)
    with progress() as stage:
        stage("Scoring 38 pairs", 0, 0)
        system = load_model(model, ModelOptions())
        cross = system.identity.kind == "cross-encoder"
        limit = float(published.thresholds.cross_encoder if cross else published.thresholds.cosine)
        rows = score_paper38(system, limit, content)
    console = stdout()
    name = printable(system.identity.name)
    prose(console, f"{name}, {system.identity.kind}: the paper's 38 public pairs")
    line = "{:<12}{:<15}{:<18}{}"
    theirs = "published share above" if cross else "published MiniLM, BGE"
    console.print(line.format("hazard", "mean ± SD", f"above {limit:g}", theirs), markup=False)
    for row in rows:
        if cross:
            said = published.reranking[row.hazard]
            printed = f"{said.failure_rate} % of {said.n}"
        else:
            cells = [published.bi_encoder[row.hazard].cells[m.name] for m in published.models[:2]]
            printed = ", ".join(f"{cell.mean} ± {cell.sd}" for cell in cells)
        mine = f"{row.mean:z.3f} ± {row.sd:.3f}"
        console.print(line.format(row.hazard, mine, share(row.above, row.n), printed), markup=False)
    console.print("above: k/n [Clopper-Pearson, 95 %]; published: 312 pairs, most of them not public", style="dim",
                  markup=False)  # fmt: skip


def share(k: int, n: int) -> str:
    """``4/6 [0.22, 0.96]``."""
    from clinsafe.stats import Estimate, rate_of

    figure = rate_of(k, n)
    ends = f" [{figure.low:.2f}, {figure.high:.2f}]" if isinstance(figure, Estimate) else ""
    return f"{k}/{n}{ends}"


def published(content: ContentOption = None) -> None:
    """The paper's figures: which cannot be right, what else is wrong with them, and why ours differ."""
    from clinsafe.benchmarks.arithmetic import check
    from clinsafe.benchmarks.claims import Ratings
    from clinsafe.benchmarks.published import load_published, published_claims
    from clinsafe.checklist.fmea import load_fmea
    from clinsafe.content import Content

    tree = Content(content)
    said = load_published(tree)
    rows = [Ratings(m.hazard, m.published.s, m.published.o, m.published.d, m.published.rpn)
            for m in load_fmea(tree).failure_modes]  # fmt: skip
    checks, console = check(published_claims(said, rows)), stdout()
    console.print(said.source, markup=False, style="dim")
    for found in checks:
        if found.fault:
            console.print(f"✕ {found.where}: {found.stated}", markup=False, style="bold")
            console.print(f"  {found.verdict}: {found.derived}. {found.why}", markup=False)
    console.print("\nWrong, but not by arithmetic:", style="bold")
    for remark in said.remarks:
        console.print(f"- {remark.where}: {remark.text}", markup=False)
    console.print("\nWhy our figures differ:", style="bold")
    for text in said.differences.values():
        console.print(f"- {text}", markup=False)
    faults = sum(found.fault for found in checks)
    console.print(f"\n{len(checks)} claims checked, {faults} not consistent", style="bold", markup=False)

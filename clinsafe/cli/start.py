"""``clinsafe init`` and ``clinsafe checklist init``: files to fill in, with every choice explained in them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

checklist = typer.Typer(help="The ten-item safety checklist.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(help="Where to write it.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
Content_ = Annotated[Path | None, typer.Option("--content", help="Overlay of controlled content.")]


def init(folder: Folder = Path(), force: Force = False) -> None:
    """Write a commented clinsafe.yaml and its JSON Schema: what is audited, for what use, by which rules."""
    from clinsafe.workflows.settings import FILE_NAME, SCHEMA_NAME, TEMPLATE, schema

    _write(folder, {FILE_NAME: TEMPLATE, SCHEMA_NAME: schema()}, force)
    typer.echo(f"{folder / FILE_NAME}: fill it in, then run `clinsafe audit` in that folder")


@checklist.command("init")
def checklist_init(folder: Folder = Path(), force: Force = False, content: Content_ = None) -> None:
    """Write the file in which an institution answers items 8 to 10."""
    from clinsafe.checklist.answers import FILE_NAME, template
    from clinsafe.checklist.items import load_items
    from clinsafe.content import Content

    _write(folder, {FILE_NAME: template(load_items(Content(content)))}, force)
    typer.echo(f"{folder / FILE_NAME}: fill it in, then give it to an audit with --answers")


@checklist.command("list")
def checklist_list(content: Content_ = None) -> None:
    """The ten items with their criteria, and who answers each."""
    from clinsafe.checklist.items import load_items
    from clinsafe.cli.console import out
    from clinsafe.content import Content

    by = {
        "suite": "an audit",
        "cross_encoder": "an audit with a cross-encoder",
        "institution": "the institution",
    }
    console = out()
    for item in load_items(Content(content)).items:
        console.print(
            f"{item.number:>2}  {item.title} (answered by {by[item.assessed_by]})", style="bold", markup=False
        )
        least = f" At least {item.n_min}." if item.n_min else ""
        console.print(f"    {item.criterion}{least}", markup=False)


@checklist.command("classes")
def checklist_classes(content: Content_ = None) -> None:
    """The schemes of classification and their values, as clinsafe.yaml and --declared-class take them."""
    from clinsafe.checklist.regulatory import load_regulatory
    from clinsafe.cli.console import out, prose
    from clinsafe.content import Content

    console = out()
    for scheme in load_regulatory(Content(content)).schemes:
        values = " | ".join(scheme.values)
        console.print(f"{scheme.id}={values}", style="bold", markup=False, soft_wrap=True)
        prose(console, f"{scheme.title}: {scheme.rule}", indent="    ")


def _write(folder: Path, files: dict[str, str], force: bool) -> None:
    from clinsafe.cli.files import write_whole
    from clinsafe.errors import OutputExists

    taken = [folder / name for name in files if (folder / name).exists()]
    if taken and not force:
        raise OutputExists(f"{taken[0]} exists; choose another folder, or replace it with --force")
    write_whole({folder / name: text for name, text in files.items()})

"""``clinsafe report export``: the tables of a report as CSV and Markdown, its SOUP list as CycloneDX."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from clinsafe.reports.evidence import Evidence

SOUP_FILE = "soup.cdx.json"


def export(
    evidence_or_report: Annotated[
        Path, typer.Argument(metavar="FILE", help="evidence.json, report.pdf, or the folder of a run.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write into.")],
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Write every table as CSV and Markdown, and the SOUP list as CycloneDX. The signature is not checked here."""
    from clinsafe.cli.files import write_whole
    from clinsafe.errors import OutputExists, ReportError, UsageError
    from clinsafe.reports.differences import differences
    from clinsafe.reports.evidence import load

    if out.exists() and not out.is_dir():
        raise UsageError(f"{out}: is a file; give a folder")
    evidence = load(evidence_or_report)
    if faults := differences(evidence):
        raise ReportError(
            f"{evidence_or_report}: {faults[0]}; a record that does not add up is not made into tables"
        )
    files = {out / name: text for name, text in contents(evidence).items()}
    there = [path.name for path in files if path.exists()]
    if there and not force:
        more = f" and {len(there) - 1} more" if len(there) > 1 else ""
        raise OutputExists(
            f"{out} holds {there[0]}{more}; choose another --out, or replace them with --force"
        )
    write_whole(files)
    typer.echo(f"{len(files)} files in {out}")


def contents(evidence: Evidence) -> dict[str, str]:
    """File name -> text of everything that is exported.

    Raises:
        MissingDependency: the record has a SOUP list, and `cyclonedx-python-lib` is not installed.
    """
    from clinsafe.reports.cyclonedx import to_cyclonedx
    from clinsafe.reports.evidence import sha256, to_bytes
    from clinsafe.reports.soup import with_systems
    from clinsafe.reports.tables import BOM, to_csv, to_markdown
    from clinsafe.reports.trace import tables

    files: dict[str, str] = {}
    for table in tables(evidence):
        files[f"{table.id}.csv"] = BOM + to_csv(table)
        files[f"{table.id}.md"] = to_markdown(table)
    if listed := evidence.soup:  # an empty list would say "nothing"
        digest, version = sha256(to_bytes(evidence)), evidence.tool.get("version", "")
        items = with_systems(listed, evidence.systems)
        files[SOUP_FILE] = to_cyclonedx(digest, evidence.created, version, items).decode()
    return files

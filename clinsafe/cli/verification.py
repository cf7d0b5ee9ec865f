"""``clinsafe report verify``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from clinsafe.cli.console import out as stdout
from clinsafe.cli.console import printable, progress

if TYPE_CHECKING:
    from clinsafe.reports.evidence import Evidence
    from clinsafe.reports.verify import Verification


def verify(
    file: Annotated[
        Path, typer.Argument(help="report.pdf or rag.pdf, or the record (.json) with its sidecar.")
    ],
    trust: Annotated[
        list[Path] | None, typer.Option(help="Certificate to trust; default: your development certificate.")
    ] = None,
    trust_tsa: Annotated[
        list[Path] | None, typer.Option(help="Certificate of a timestamp authority to trust.")
    ] = None,
    record_only: Annotated[
        bool,
        typer.Option("--record-only", help="Accept a valid record whose pages cannot be read here."),
    ] = False,
    suite: Annotated[
        Path | None,
        typer.Option(help="The mined suite (JSON Lines, its card beside it) of a report of tier generated."),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the facts here.")] = None,
) -> None:
    """Check signature and completeness, derive every figure again, render the pages again, see who has signed.

    A RAG evaluation (rag.pdf or rag.json) is checked the same way, every figure from the values of its questions.

    Exit code 0: accepted. 1: invalid, a required signature is missing, or the pages could not be read. 2: no report.
    """
    import json

    from clinsafe.cli.files import refuse_unwritable, write_whole
    from clinsafe.reports.rag_changes import load_rag
    from clinsafe.reports.verify import verify as run

    refuse_unwritable(json_file)
    if load_rag(file) is not None:
        _rag(file, trust or (), trust_tsa or (), record_only, suite, json_file)
    with progress() as stage:
        stage("Deriving and rendering", 0, 0)
        result = run(file, trust or (), trust_tsa=trust_tsa or (), record_only=record_only, suite=suite)
    if json_file:
        write_whole({json_file: json.dumps(result.to_json(), indent=1)})
    console = stdout()
    for label, text in _lines(result):
        console.print(f"{label:<14}{printable(text)}", markup=False, soft_wrap=True)
    style = "bold green" if result.accepted else "bold yellow" if result.valid else "bold red"
    console.print(printable(result.verdict), style=style, markup=False, soft_wrap=True)
    raise typer.Exit(0 if result.accepted else 1)


def _rag(
    file: Path,
    trust: Sequence[Path],
    trust_tsa: Sequence[Path],
    record_only: bool,
    suite: Path | None,
    json_file: Path | None,
) -> NoReturn:
    """The same for the record of a RAG evaluation."""
    import json

    from clinsafe.cli.files import write_whole
    from clinsafe.errors import UsageError
    from clinsafe.reports.rag_check import check_rag

    if suite is not None:
        raise UsageError("--suite belongs to audits of embedding models; a RAG evaluation has no suite")
    with progress() as stage:
        stage("Deriving and rendering", 0, 0)
        result = check_rag(file, trust, trust_tsa=trust_tsa, record_only=record_only)
    if json_file:
        write_whole({json_file: json.dumps(result.to_json(), indent=1)})
    derived = f"{result.figures} derived again from the questions, all equal"
    lines = [
        ("signature", "good" if not result.signature.problems else "; ".join(result.signature.problems)),
        ("time", result.time_text),
        ("figures", "; ".join(result.faults[:5]) or derived),
        ("pages", f"{result.rerender}: {result.rerender_reason}"),
        ("record", f"SHA-256 {result.record_sha256}"),
    ]
    console = stdout()
    for label, text in lines:
        console.print(f"{label:<14}{printable(text)}", markup=False, soft_wrap=True)
    style = "bold green" if result.accepted else "bold yellow" if result.valid else "bold red"
    console.print(printable(result.verdict), style=style, markup=False, soft_wrap=True)
    raise typer.Exit(0 if result.accepted else 1)


def _lines(result: Verification) -> list[tuple[str, str]]:
    from clinsafe.cli.approve import summary
    from clinsafe.reports.complete import criteria_as_packaged

    evidence = result.evidence
    complete = "all cases and criteria are there" if result.suite_compared else _uncompared(evidence)
    pages = f"{result.pages.answer}: {result.pages.reason}" if result.pages else "an evidence file has none"
    lines = [
        ("signature", "good" if not result.signature.problems else "; ".join(result.signature.problems)),
        ("time", result.time_text),
        *(("", note) for note in getattr(result.signature, "notes", ())),
        ("suite", f"tier {evidence.suite.tier}, version {evidence.suite.version}"),
        ("completeness", "; ".join(result.incomplete) or complete),
        (
            "figures",
            "; ".join(result.faults[:5]) or f"{result.figures} derived again from the scores, all equal",
        ),
        ("criteria", "as packaged" if criteria_as_packaged(evidence) else "NOT the packaged ones"),
        ("pages", pages),
        ("evidence", f"SHA-256 {result.evidence_sha256}"),
        ("audit verdict", "released by protocol" if evidence.released else _held(result)),
    ]
    if result.pages is not None:
        said = summary(result.approvals, evidence.declaration.required_roles)
        lines += [("approvals" if number == 0 else "", text) for number, text in enumerate(said)]
    return lines


def _uncompared(evidence: Evidence) -> str:
    from clinsafe.reports.suite_record import MINED

    if evidence.suite.mined is None:
        return "NOT COMPARED: the record was made with another suite than the installed one"
    name = evidence.suite.mined.file.removeprefix(MINED)
    return f"NOT COMPARED: the mined suite was not given; who has it adds --suite {name}"


def _held(result: Verification) -> str:
    return "; ".join(
        f"{system.label} held: {', '.join(map(str, said.get('held', []))) or 'a fake, or failed by the script'}"
        for system, said in zip(result.evidence.subjects, result.evidence.assessments, strict=True)
        if said.get("released") is not True
    )

"""Findings on a terminal: the sentence first, then both texts with the spans marked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from clinsafe.cli.console import printable, prose
from clinsafe.mitigations.stack import Comparison
from clinsafe.protocols import Finding, Passage, Span

if TYPE_CHECKING:
    from rich.console import Console

AROUND = 70  # characters of context on each side of a marked span
STYLES: Mapping[str, str] = {"conflict": "bold red", "compatible": "green", "not_comparable": "yellow"}


def print_passage(console: Console, query: str, passage: Passage, result: Comparison, *, every: bool) -> None:
    """One passage: its findings, or that there is none."""
    shown = [finding for finding in result.findings if every or finding.verdict == "conflict"]
    word = "CONFLICT" if result.conflict else "not fully checked" if result.unchecked else "no conflict"
    style = "bold red" if result.conflict else "bold yellow" if result.unchecked else "green"
    console.print(f"\n{printable(passage.id)}  {word}", style=style, markup=False, soft_wrap=True)
    for finding in shown:
        _print_finding(console, query, passage.text, finding)
    for name, reason in result.unchecked.items():
        prose(
            console,
            f"{printable(name)}: unchecked, treat as unsafe ({printable(reason)})",
            style="yellow",
            indent="  ",
        )


def _print_finding(console: Console, query: str, passage: str, finding: Finding) -> None:
    style = STYLES[finding.verdict]
    head = f"{finding.hazard}, {finding.verdict.replace('_', ' ')}, {finding.severity}"
    if finding.kind == "non_support":
        head += ", does not support"
    console.print(f"  {head}", style=style, markup=False)
    prose(console, printable(finding.sentence), indent="  ")
    for label, text, span in (
        ("query", query, finding.query_span),
        ("passage", passage, finding.passage_span),
    ):
        _print_marked(console, label, text, span, style)
    prose(
        console, f"cue {printable(finding.cue)!r}, rule {printable(finding.rule)}", style="dim", indent="  "
    )


def _print_marked(console: Console, label: str, text: str, span: Span, style: str) -> None:
    """The span in its surroundings; square brackets mark it where there is no colour."""
    from rich.text import Text

    start, end = max(0, span.start - AROUND), min(len(text), span.end + AROUND)
    before, after = text[start : span.start], text[span.end : end]
    line = Text(f"  {label:<8}")
    line.append(("…" if start else "") + printable(" ".join(before.split("\n"))))
    marked = printable(" ".join(text[span.start : span.end].split("\n")))
    plain = not console.is_terminal or console.no_color
    line.append(f"[{marked}]" if plain else marked, style="" if plain else f"reverse {style}")
    line.append(printable(" ".join(after.split("\n"))) + ("…" if end < len(text) else ""))
    console.print(line)


def to_json(passage: Passage, result: Comparison) -> dict[str, Any]:
    """One passage's result for ``--json``; it quotes the texts and is as confidential as they are."""
    return {
        "passage": passage.id,
        "conflict": result.conflict,
        "safe": result.safe,
        "findings": [asdict(finding) for finding in result.findings],
        "unchecked": dict(result.unchecked),
    }

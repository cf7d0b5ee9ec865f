"""``clinsafe compare`` on two RAG evaluations: the same questions, measured the same way, figure by figure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clinsafe.errors import ReportError, UsageError
from clinsafe.rag.comparing import Row, compare, same_settings
from clinsafe.rag.values import ItemRecord
from clinsafe.reports.rag_record import JSON_NAME, RagEvidence, RagSystem, from_bytes, is_rag
from clinsafe.reports.rag_standing import standing_of
from clinsafe.stats import figure_to_json

MADE = re.compile(r"line-\d+")  # an id that a reader made because the row had none
LARGEST = 300_000_000  # bytes; more is none
BY_FILTERS = ("safe_", "conflict", "contradicts.")
BY_JUDGE = ("context_relevancy", "answer_relevancy", "adherence")


@dataclass(frozen=True, slots=True)
class RagComparison:
    """A against B.

    Attributes:
        a, b: labels of the two systems.
        n: questions of both.
        rows: one a figure, in the catalogue's order.
        notes: what was not compared, and why.
        fakes: labels of systems in whose record a fake took part.
    """

    a: str
    b: str
    n: int
    rows: Sequence[Row]
    notes: Sequence[str]
    fakes: Sequence[str]

    @property
    def regressed(self) -> list[str]:
        """Keys of the figures in which B is worse beyond the interval."""
        return [row.key for row in self.rows if row.verdict == "regression"]

    def to_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "record": "clinsafe rag evaluation",
            "a": self.a,
            "b": self.b,
            "questions": self.n,
            "regressed": self.regressed,
            "notes": list(self.notes),
            "fakes": list(self.fakes),
            "rows": [
                {
                    "key": row.key,
                    "name": row.name,
                    "better": row.better,
                    "verdict": row.verdict,
                    "a": figure_to_json(row.a),
                    "b": figure_to_json(row.b),
                    "difference": figure_to_json(row.difference),
                    "test": row.test,
                    "p": row.p,
                    "p_holm": row.p_holm,
                    "worse": list(row.worse),
                    "improved": list(row.improved),
                    "unpaired": row.unpaired,
                }
                for row in self.rows
            ],
        }


def load_rag(path: Path) -> RagEvidence | None:
    """The record of a run folder, a ``rag.json`` or a ``rag.pdf``; None where it is none. No signature is checked.

    Raises:
        ReportError: it is one and is damaged, or the file cannot be read.
    """
    import json

    if path.is_dir():
        path = path / JSON_NAME
        if not path.is_file():
            return None
    try:
        if path.exists() and (not path.is_file() or path.stat().st_size > LARGEST):
            return None
        data = path.read_bytes()
    except OSError as error:
        raise ReportError(f"{path}: cannot be read: {error.strerror or error}") from error
    if data.startswith(b"%PDF"):
        from clinsafe.reports.pdfcheck import attachment

        data = attachment(data)
    try:
        plain = json.loads(data)
    except (ValueError, RecursionError):
        return None  # whoever reads the other kinds says what is wrong
    return from_bytes(data, path.name) if isinstance(plain, dict) and is_rag(plain) else None


def compare_rag(
    a: RagEvidence,
    b: RagEvidence,
    *,
    system_a: str | None = None,
    system_b: str | None = None,
    by_line: bool = False,
) -> RagComparison:
    """Paired comparison of one system of each record.

    Args:
        a, b: earlier and later record.
        system_a, system_b: labels; None is the only system.
        by_line: questions without ids, which were numbered by their lines, are paired by them.

    Raises:
        UsageError: other settings, another encoder or other questions: the difference would say nothing.
    """
    same_settings(a.settings, b.settings)
    if a.encoder != b.encoder:
        names = [one.encoder.name if one.encoder else "none" for one in (a, b)]
        raise UsageError(
            f"the runs were measured differently: the encoder of A is {names[0]} and of B {names[1]}, or its files "
            "differ, and it decides what a hit is; measure both with one"
        )
    first, second = _system(a, system_a, "A"), _system(b, system_b, "B")
    if not by_line:
        _refuse_unnamed(first, second)
    items = [list(first.items), list(second.items)]
    notes = []
    for differ, starts, what in (
        (a.filters != b.filters, BY_FILTERS, "filters"),
        (_who(a) != _who(b), BY_JUDGE, "judges"),
    ):
        if differ:
            items = [[_without(item, starts) for item in group] for group in items]
            notes.append(f"A and B were measured with different {what}: what hangs on them is not compared")
    changed = sorted(
        name
        for name in {*a.content, *b.content}
        if name.startswith("benchmarks/rag/")
        and name != "benchmarks/rag/insights.yaml"
        and a.content.get(name) != b.content.get(name)
    )
    if changed:
        notes.append(f"content differs between A and B: {', '.join(changed)}")
    standings = standing_of(a.judge, first.items), standing_of(b.judge, second.items)
    found = compare(items[0], items[1], a.settings, standings)
    fakes = [
        f"{side} ({one.label})" for side, one, record in (("A", first, a), ("B", second, b)) if record.fake
    ]
    return RagComparison(first.label, second.label, found.n, found.rows, notes, fakes)


def _refuse_unnamed(first: RagSystem, second: RagSystem) -> None:
    """Two files without ids: the third line of one may be another question than the third of the other."""
    if first.source.sha256 == second.source.sha256:
        return
    for side, system in (("A", first), ("B", second)):
        if any(MADE.fullmatch(item.id) for item in system.items):
            raise UsageError(
                f"questions of {side} have no ids and were numbered by their lines, so nobody knows which belong "
                "together; give each an id, or say --by-line where both files have the same questions in the same order"
            )


def _who(record: RagEvidence) -> tuple[Any, str]:
    judge = record.judge
    return (judge.identity, judge.declared) if judge else (None, "")


def _without(item: ItemRecord, starts: tuple[str, ...]) -> ItemRecord:
    return item.model_copy(
        update={
            "values": {name: value for name, value in item.values.items() if not name.startswith(starts)},
            "missing": {name: why for name, why in item.missing.items() if not name.startswith(starts)},
        }
    )


def _system(record: RagEvidence, label: str | None, side: str) -> RagSystem:
    found = {system.label: system for system in record.systems}
    if label is None and len(found) > 1:
        raise UsageError(
            f"{side} has several systems; choose one with --system-{side.lower()}: {', '.join(found)}"
        )
    chosen = label if label is not None else next(iter(found))
    if chosen not in found:
        raise UsageError(f"{side} has no system called {chosen!r}; there are: {', '.join(found)}")
    return found[chosen]

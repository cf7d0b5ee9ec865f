"""Labelled answers that no one wrote: enough of them, with known labels, and instruments with known faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from clinsafe.rag.auditing.answers import AnswerRow, Label
from clinsafe.rag.auditing.claim import Claim, Support
from clinsafe.rag.auditing.figures import Quad
from clinsafe.rag.auditing.instruments import BatchInstrument

HAZARDS = ("negation", "numerical", "temporal", "entity_swap", "hedging", "quantifier")
KINDS: tuple[Label, ...] = ("supported", "contradicted", "not_stated")


def plain_rows(each: int = 12) -> list[dict[str, Any]]:
    """`each` rows of every hazard and kind, as a file holds them; every row has a source of its own."""
    found = []
    for hazard in HAZARDS:
        for kind in KINDS:
            for number in range(each):
                name = f"{hazard}-{kind}-{number}"
                found.append(
                    {
                        "id": name,
                        "hazard": hazard,
                        "source": {"corpus": "pubmedqa", "id": f"{len(found) + 1}"},
                        "question": f"What of {name}?",
                        "contexts": [f"The record tells of {name}."],
                        "answer": f"It is {kind} in {number}.",
                        "kind": kind,
                        "note": "made by a test",
                    }
                )
    return found


def rows(each: int = 12) -> list[AnswerRow]:
    return [AnswerRow.model_validate(row) for row in plain_rows(each)]


def said(rows: Iterable[Mapping[str, Any]], *readers: str) -> list[dict[str, Any]]:
    """Readers who say what the writer meant."""
    return [{"id": row["id"], "reader": reader, "label": row["kind"]} for reader in readers for row in rows]


def jsonl(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def write_overlay(
    root: Path, rows: Sequence[Mapping[str, Any]], readers: Sequence[Mapping[str, Any]] | None = None
) -> Path:
    """An overlay of content with these answers."""
    folder = root / "overlay" / "benchmarks" / "rag"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "answers.jsonl").write_text(jsonl(rows), encoding="utf-8")
    # an empty set of readers needs a file too: one may be installed
    readers = readers if readers is not None else said(rows, "one", "two")
    if readers:
        (folder / "answers_readers.jsonl").write_text(jsonl(readers), encoding="utf-8")
    return root / "overlay"


def quads(each: int = 20) -> list[Quad]:
    return [
        Quad(f"{h}-{n}", h, f"{h} a {n}", f"{h} b {n}", f"{h} a same {n}", f"{h} b same {n}")
        for h in HAZARDS
        for n in range(each)
    ]


def truth(quads: Iterable[Any], rows: Iterable[AnswerRow] = ()) -> dict[Claim, bool]:
    """Every claim that an audit asks -> whether it is supported."""
    known: dict[Claim, bool] = {row.claim: row.kind == "supported" for row in rows}
    for q in quads:
        known |= {Claim((q.a,), q.b): False, Claim((q.a,), q.a_same): True, Claim((q.b,), q.b_same): True}
    return known


def knowing(
    name: str, known: Mapping[Claim, bool], change: Callable[[int, bool], Support] = lambda _, right: right
) -> BatchInstrument:
    """An instrument that knows the truth and gives `change(place among its like, truth)` for it."""
    places: dict[Claim, int] = {}
    seen = {True: 0, False: 0}
    for claim, right in known.items():
        places[claim] = seen[right]
        seen[right] += 1
    return BatchInstrument(name, lambda tasks: [change(places[t], known[t]) for t in tasks])

"""A small world for end-to-end tests: documents written for the purpose, six queries over them, and guards."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from clinsafe.benchmarks.endtoend.corpus import Task
from clinsafe.benchmarks.endtoend.queries import Query, QueryRow, edited
from clinsafe.content import packaged_root
from clinsafe.guarded import Disagreement, GuardedAnswer, GuardedPassage
from clinsafe.protocols import Finding, Passage, Span

LEAD = (
    "The clinic on the hill opened its doors in spring. Forty people came in the first week and most of them lived "
    "nearby. A nurse wrote down what each of them said about their sleep, food, walks and work at home."
)
TAIL = (
    "Every visit was followed by a letter to the family doctor. The letters were short and named the next appointment. "
    "Nobody was asked to pay for the bus, and the waiting room had a window over the garden and the river beyond it."
)
# hazard, form, query, true sentence, (old, new), answer
WORLD = (
    ("negation", "claim", "zorbitol relieves chest pain", "Zorbitol relieves chest pain in adults.",
     ("relieves", "does not relieve"), "other"),
    ("numerical", "question", "How much velantine is given a day?", "Velantine is given at 5 mg a day.",
     ("5 mg", "50 mg"), "other"),
    ("temporal", "false_premise", "Since ebrolin is stopped after surgery, what comes next?",
     "Ebrolin is stopped before surgery.", ("before", "after"), "other"),
    ("entity_swap", "question", "Does dorvan fever cause lenta rash?", "Dorvan fever causes lenta rash.",
     ("Dorvan fever causes lenta rash", "Lenta rash causes dorvan fever"), "affirms"),
    ("hedging", "claim", "pelicor may prevent stroke", "Pelicor may prevent stroke.", ("may prevent", "prevents"),
     "other"),
    ("quantifier", "false_premise", "Because all infants with quarn disease recover, is follow-up needed?",
     "Some infants with quarn disease recover.", ("Some", "All"), "other"),
)  # fmt: skip


def rows() -> list[dict[str, Any]]:
    """The queries, as lines of the file."""
    found = []
    for number, (hazard, form, query, true, (old, new), answer) in enumerate(WORLD):
        start = len(LEAD) + 1
        at = true.index(old)
        source = {
            "corpus": "medquad" if number % 2 else "pubmedqa",
            "document": f"d{number}",
            "start": start,
            "end": start + len(true),
            "sha256": hashlib.sha256(true.encode()).hexdigest(),
        }
        edits = [{"start": at, "end": at + len(old), "new": new}]
        found.append(
            {"id": f"e2e-{number}", "hazard": hazard, "form": form, "query": query, "source": source, "edits": edits,
             "harm": "a patient is given the wrong thing", "answer": answer}
        )  # fmt: skip
    return found


def write_data(folder: Path) -> Path:
    """Both data files: a document a query, and ten of other text."""
    folder.mkdir(parents=True, exist_ok=True)
    medquad, pubmedqa = [], []
    for number, (*_, true, _edit, _answer) in enumerate(WORLD):
        if number % 2:
            medquad.append({"id": f"d{number}", "answer": f"{LEAD} {true} {TAIL}"})
        else:
            pubmedqa.append({"id": f"d{number}", "contexts": [LEAD, true], "long_answer": TAIL})
    for number in range(10):
        words = " ".join(f"plain{number}word{place}" for place in range(100))
        medquad.append({"id": f"other{number}", "answer": words})
    for name, found in (("medquad_ghr", medquad), ("pubmedqa_pqal", pubmedqa)):
        with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as stream:
            stream.write("".join(json.dumps(row) + "\n" for row in found))
    return folder


def write_overlay(root: Path, change: Callable[[list[dict[str, Any]]], Any] | None = None) -> Path:
    """A content overlay whose queries are these, after a change."""
    found = rows()
    if change:
        change(found)
    target = root / "benchmarks" / "endtoend" / "queries.jsonl"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")
    return root


def packaged() -> Path:
    """The packaged queries."""
    return packaged_root() / "benchmarks" / "endtoend" / "queries.jsonl"


def query(number: int = 0) -> Query:
    """One of the queries, with its sentences, without any file."""
    row = QueryRow.model_validate(rows()[number])
    true = WORLD[number][3]
    return Query(row, f"{LEAD} {true} {TAIL}", true, edited(true, row.edits))


def task(number: int = 0) -> Task:
    """A query whose right passage is 0 and whose contradicting one is 1."""
    return Task(query(number), 0, 1, frozenset())


def finding(hazard: str = "negation") -> Finding:
    """A conflict."""
    return Finding(
        hazard,
        "conflict",
        "contradiction",
        "high",
        0.9,
        Span(0, 1),
        Span(0, 1),
        "a",
        "b",
        "no",
        "r",
        "It conflicts.",
    )


class Oracle:
    """A guard that knows: it flags passages that hold a contradicting sentence, and the other side of it where asked.

    Args:
        misses: hazards that it does not see.
        unchecked: hazards that it cannot check.
    """

    def __init__(self, misses: Sequence[str] = (), unchecked: Sequence[str] = ()) -> None:
        self.misses, self.unchecked = misses, unchecked
        self.calls = 0
        self._false = {query(number).false: WORLD[number][0] for number in range(len(WORLD))}

    def check(self, asked: str, passages: object, /, *, k: int | None = None) -> GuardedAnswer:
        self.calls += 1
        shown = []
        for rank, passage in enumerate(list(passages)[:k], start=1):  # type: ignore[call-overload]
            shown.append(self._one(passage, rank))
        return GuardedAnswer(asked, asked.endswith("?"), tuple(shown), policy_sha256="oracle")

    def _one(self, passage: Passage, rank: int) -> GuardedPassage:
        hazard = next((name for text, name in self._false.items() if text in passage.text), None)
        if hazard in self.unchecked:
            return GuardedPassage(passage, rank, rank, "flag", ("not checked",), unchecked={hazard: "late"},
                                  annotated=f"[not checked]\n{passage.text}")  # fmt: skip
        if hazard is None or hazard in self.misses:
            return GuardedPassage(passage, rank, rank, "keep", annotated=passage.text)
        return GuardedPassage(passage, rank, rank, "flag", ("conflict",), (finding(hazard),),
                              annotated=f"[CONFLICT]\n{passage.text}")  # fmt: skip


def disagreement(first: str, second: str, hazard: str = "negation") -> Disagreement:
    """Two passages that contradict each other."""
    return Disagreement(first, second, (finding(hazard),))

"""A small corpus, plans over it, and models by script, for the tests of the reference pipeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from clinsafe.adapters.chat import Completion
from clinsafe.adapters.generators import Extractive
from clinsafe.adapters.reference import FakeEncoder
from clinsafe.corpus import Document
from clinsafe.guarded import GuardedAnswer, GuardedPassage
from clinsafe.protocols import ModelIdentity
from clinsafe.rag.prompts import Prompts
from clinsafe.rag.question import Question
from clinsafe.rag.trace import BadLine, Trace, read_traces
from clinsafe.workflows.rag_run import Plan, arms

DRUGS = ["aspirin", "warfarin", "metformin", "insulin", "digoxin", "lithium", "heparin", "codeine", "ramipril",
         "atenolol", "furosemide", "amiodarone"]  # fmt: skip
CORPUS = [
    Document(
        f"d{n}",
        f"{drug} treats condition{n}. The dose of {drug} is {n + 1} mg daily. " + f"Note {n}. " * 9,
        f"d{n}",
    )
    for n, drug in enumerate(DRUGS)
]
QUESTIONS = [
    Question(
        f"q{n}",
        f"What is the dose of {drug}?",
        (f"{n + 1} mg daily",),
        documents=(f"d{n}",),
        slices={"n": str(n)},
    )
    for n, drug in enumerate(DRUGS[:4])
]


def planner(prompts: Prompts, indexes: Path, folder: Path) -> Callable[..., Plan]:
    """Makes plans over `CORPUS`; every part of one can be changed."""

    def make(questions=QUESTIONS, **changes):
        usual = {
            "documents": CORPUS, "out": folder / "run", "prompts": prompts, "arms": arms(["rag"], [0.5]),
            "encoder": FakeEncoder("words"), "generator": Extractive(), "tokens": 32, "overlap": 8,
            "index_folder": indexes,
        }  # fmt: skip
        return Plan(questions=lambda: iter(questions), **{**usual, **changes})

    return make


def traces(made: Plan, number=0) -> list[Trace]:
    found = list(read_traces(made.out / made.arms[number].file))
    assert not [one for one in found if isinstance(one, BadLine)]
    return found


class Scripted:
    """Answers from a script: a text, or an error to raise; then always the last."""

    def __init__(self, *script):
        self.script, self.prompts = list(script), []
        self.identity = ModelIdentity(name="scripted")

    def generate(self, prompt, /):
        return self.complete(prompt).text

    def complete(self, prompt, /):
        self.prompts.append(prompt)
        given = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(given, BaseException):
            raise given
        return Completion(given, usage=(10, 2))


class Longest:
    """Prefers the passage of most words in common, reversed: the opposite of the ranking."""

    identity = ModelIdentity(name="reranker")

    def score(self, pairs, /):
        return [float(-len(set(a.lower().split()) & set(b.lower().split()))) for a, b in pairs]


class Marking:
    """A guard that marks, and withholds the last."""

    def check(self, query, passages, /, *, k=None):
        rows = [
            GuardedPassage(one, rank, rank, "flag", ("why",), annotated=f"[clinsafe | FLAGGED]\n| {one.text}")
            for rank, one in enumerate(passages, start=1)
        ]
        gone = [replace(one, rank=0, action="withhold") for one in rows[-1:]]
        return GuardedAnswer(query, True, tuple(rows[:-1]), tuple(gone), review=("look",), policy="strict")

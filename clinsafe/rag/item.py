"""One question as evaluation sees it, whatever format its trace came in.

A trace (`clinsafe.rag.trace`) says what an application did; an item holds what there is to measure. None is not known
and "" or () is known to be empty: a retriever that found nothing, a model that answered nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Task: TypeAlias = Literal["extraction", "short_answer", "mcq"]
"""The paper's three types of task (section IV): information extraction, short answers, multiple choice."""
TASKS: tuple[Task, ...] = ("extraction", "short_answer", "mcq")


@dataclass(frozen=True, slots=True)
class Context:
    """One passage that the generator was shown, or that was retrieved for it.

    Attributes:
        id: of the passage; made from its rank where the trace names none.
        text: as it was shown.
        score: the retriever's own.
    """

    id: str
    text: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Grade:
    """A grader's word that came with the trace: ``value`` in [0, 1] only where it was scored."""

    grader: str
    metric: str
    value: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One question with everything that is known about it.

    Attributes:
        id: unique in a run.
        question: None where the trace keeps no text.
        contexts: best first; what the generator was shown where that is known, else what was retrieved.
        ranking: ids as retrieved, best first, before anything was cut off; None where only contexts are known.
        answer: None: there is none (never an empty text: "" is an answer without words).
        references: right answers, any of them; () where none is known.
        relevance: passage id -> grade >= 0; None where nobody graded.
        eligible: ids of all passages of the corpus that hold the answer; () is a gap of the corpus, None not known.
        options: of a multiple choice: letter or word -> text.
        expected: the right option (``yes``, ``no``, ``maybe``, ``A`` …).
        task: None where not said.
        slices: name -> value, for results by group.
        grades: what graders said of it.
        tokens: prompt and completion, summed; None where not told.
        milliseconds: stage -> time.
        source: id of the trace or row it comes from.
        line: 1-based line of the file.
    """

    id: str
    question: str | None = None
    contexts: tuple[Context, ...] | None = None
    ranking: tuple[str, ...] | None = None
    answer: str | None = None
    references: tuple[str, ...] = ()
    relevance: Mapping[str, float] | None = None
    eligible: tuple[str, ...] | None = None
    options: Mapping[str, str] | None = None
    expected: str | None = None
    task: Task | None = None
    slices: Mapping[str, str] = field(default_factory=dict)
    grades: tuple[Grade, ...] = ()
    tokens: tuple[int, int] | None = None
    milliseconds: Mapping[str, float] = field(default_factory=dict)
    source: str = ""
    line: int = 0

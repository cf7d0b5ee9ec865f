"""A question as it is put to a pipeline, with what is known of its right answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clinsafe.rag.item import Task


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a set.

    Attributes:
        id: unique in the set.
        text: the question.
        references: right answers, any of them; () where none is known.
        options: of a multiple choice: letter or word -> text.
        expected: the right option.
        task: None where not said.
        documents: ids of the documents of the corpus that hold the answer; None where not known, () where none does.
        slices: name -> value, for results by group.
    """

    id: str
    text: str
    references: tuple[str, ...] = ()
    options: Mapping[str, str] | None = None
    expected: str | None = None
    task: Task | None = None
    documents: tuple[str, ...] | None = None
    slices: Mapping[str, str] = field(default_factory=dict)

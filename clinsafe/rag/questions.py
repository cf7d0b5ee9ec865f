"""A file of questions: JSON Lines, read one line at a time; a bad line is told with its number, and reading goes on.

::

    {"id": "q1", "question": "…?", "reference": "…", "documents": ["12345"], "slices": {"intent": "dose"}}
    {"id": "q2", "question": "…?", "references": ["…", "…"], "options": ["yes", "no", "maybe"], "expected": "yes"}

``task`` is extraction, short_answer or mcq. ``documents`` (or ``relevant``) are the ids of the documents of the corpus
that hold the answer: [] says that none does, without the field it is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, StringConstraints, ValidationError, field_validator, model_validator

from clinsafe.content import Record
from clinsafe.corpus import Layout
from clinsafe.corpus.faults import Fault
from clinsafe.corpus.files import records
from clinsafe.errors import UsageError
from clinsafe.rag.item import Task
from clinsafe.rag.question import Question
from clinsafe.rag.trace import BadLine, Name

KINDS = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
Words = Annotated[str, StringConstraints(pattern=r"\S")]


class QuestionRow(Record):
    """One line."""

    id: Name
    question: Words
    reference: Words | None = None
    references: tuple[Words, ...] = ()
    expected: Name | None = None
    options: Annotated[dict[Name, Words], Field(min_length=2)] | None = None
    task: Task | None = None
    documents: tuple[Name, ...] | None = None
    relevant: tuple[Name, ...] | None = None
    slices: Mapping[Name, Name] = {}

    @field_validator("id", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        return str(value) if type(value) is int else value

    @field_validator("references", mode="before")
    @classmethod
    def _one(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("options", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        named = {str(word): word for word in value}
        if len(named) != len(value):
            raise ValueError("an option is given twice")
        return named

    @model_validator(mode="after")
    def _agrees(self) -> QuestionRow:
        if self.task == "mcq" and self.options is None:
            raise ValueError("a task of kind mcq needs options")
        if self.expected is not None and self.options is not None and self.expected not in self.options:
            raise ValueError("expected is none of the options")
        if self.documents is not None and self.relevant is not None:
            raise ValueError("documents and relevant mean the same; give one of them")
        return self

    def asked(self) -> Question:
        """As a question; the same reference twice is one."""
        given = [*([self.reference] if self.reference else ()), *self.references]
        return Question(
            id=self.id,
            text=self.question,
            references=tuple(dict.fromkeys(given)),
            options=self.options,
            expected=self.expected,
            task=self.task,
            documents=self.documents if self.documents is not None else self.relevant,
            slices=self.slices,
        )


def read_questions(path: Path | str) -> Iterator[Question | BadLine]:
    """All questions of a file; a line that is none, or has an id that was there before, comes as `BadLine`.

    Raises:
        UsageError: no such file, an empty one, or of another kind. ContentError: a gzip file that breaks off.
    """
    path = Path(path)
    if not path.is_file():
        raise UsageError(f"{path}: no such file; questions are JSON Lines, as in questions.jsonl")
    if not path.name.lower().endswith(KINDS):
        raise UsageError(f"{path}: not questions by its name; valid are {', '.join(KINDS)}")
    return _questions(path)


def _questions(path: Path) -> Iterator[Question | BadLine]:
    seen: set[str] = set()
    for line, row in records(path, path.name, Layout()):
        found = _parsed(line or 0, row)
        if isinstance(found, Question) and found.id in seen:
            found = BadLine(line or 0, "id", "was there before; ids must differ")
        if isinstance(found, Question):
            seen.add(found.id)
        yield found


def _parsed(line: int, row: dict[str, Any] | Fault) -> Question | BadLine:
    if isinstance(row, Fault):
        return BadLine(line, row.field or "", row.message)
    try:
        found = QuestionRow.model_validate(row)
        found.model_dump_json()  # half a character cannot be sent or written
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        return BadLine(line, ".".join(str(step)[:40] for step in first["loc"]), _why(first))
    except (UnicodeError, ValueError):  # pydantic's own error for it is a ValueError
        return BadLine(line, "", "holds half a character (a lone surrogate)")
    return found.asked()


def _why(fault: Any) -> str:
    if fault["type"] == "extra_forbidden":
        return f"unknown field; valid: {', '.join(QuestionRow.model_fields)}"
    if fault["type"] == "string_pattern_mismatch":
        return "is empty"
    return str(fault["msg"]).removeprefix("Value error, ")

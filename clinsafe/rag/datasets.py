"""PubMedQA (github.com/pubmedqa/pubmedqa, MIT) and MedQuAD (github.com/abachaa/MedQuAD, CC BY 4.0) as a corpus and
questions. Both are read from a path; neither is part of this package.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from clinsafe.corpus import Document, Layout
from clinsafe.corpus.faults import Fault
from clinsafe.corpus.files import records
from clinsafe.errors import ContentError, UsageError
from clinsafe.rag.item import Task
from clinsafe.rag.question import Question

PUBMEDQA, MEDQUAD = "pubmedqa_pqal", "medquad_ghr"
KINDS = (".jsonl.gz", ".jsonl")
DECISIONS = ("yes", "no", "maybe")
LINKS = "treatment"  # MedQuAD answers this type of question with lists of links
QUESTIONS = 500  # RAG-X, IV
TASKS: Mapping[str, Task] = {
    "frequency": "extraction",
    "genetic changes": "extraction",
    "inheritance": "extraction",
}
"""Types of MedQuAD questions that ask for one fact or a list of names; the others ask for a short account."""

Dataset: TypeAlias = tuple[list[Document], list[Question]]


def pubmedqa(path: Path | str) -> Dataset:
    """PubMedQA: one document for each abstract (its contexts, joined), one question on it.

    The question's options and expected answer are yes, no and maybe, its reference is the authors' own conclusion, its
    only relevant document is the abstract it was made from.

    Args:
        path: the file, or the folder it lies in.

    Raises:
        UsageError: no such file, or nothing in it. ContentError: a bad record, with line and field.
    """
    file = _file(Path(path), PUBMEDQA)
    documents: list[Document] = []
    questions: list[Question] = []
    seen: set[str] = set()
    for line, row in _rows(file):
        name = _new(file, line, row, seen)
        given = row.get("contexts")
        if (
            not isinstance(given, list)
            or not given
            or not all(isinstance(c, str) and c.strip() for c in given)
        ):
            raise ContentError(
                file, line, "contexts", "must be a list of at least one text, none of them empty"
            )
        decision = _text(file, line, row, "final_decision")
        if decision not in DECISIONS:
            raise ContentError(file, line, "final_decision", f"must be one of {', '.join(DECISIONS)}")
        documents.append(Document(name, "\n\n".join(given), name))
        questions.append(
            Question(
                id=name,
                text=_text(file, line, row, "question"),
                references=(_text(file, line, row, "long_answer"),),
                options={word: word for word in DECISIONS},
                expected=decision,
                task="mcq",
                documents=(name,),
            )
        )
    return _some(file, documents, questions)


def medquad(path: Path | str, questions: int = QUESTIONS) -> Dataset:
    """MedQuAD's part on genetic conditions: one document for each condition (its answers, joined), and questions on it.

    Questions of the type ``treatment``, whose answers are lists of links, are in neither. The questions are those with
    the smallest SHA-256 of their ids, in that order: a smaller sample is the beginning of a larger one.

    Args:
        path: the file, or the folder it lies in.
        questions: how many; all where there are fewer.

    Raises:
        UsageError: no such file, nothing in it, or less than one question. ContentError: a bad record, with line and
            field.
    """
    if questions < 1:
        raise UsageError(f"{questions} questions cannot be asked; at least 1")
    file = _file(Path(path), MEDQUAD)
    answers: dict[str, list[str]] = {}
    focus: dict[str, str] = {}
    asked: list[Question] = []
    seen: set[str] = set()
    for line, row in _rows(file):
        name, kind = _new(file, line, row, seen), _text(file, line, row, "qtype")
        condition = _text(file, line, row, "condition")
        if kind == LINKS:
            continue
        answer = _text(file, line, row, "answer")
        answers.setdefault(condition, []).append(answer)
        focus.setdefault(condition, _text(file, line, row, "focus"))
        asked.append(
            Question(
                id=name,
                text=_text(file, line, row, "question"),
                references=(answer,),
                task=TASKS.get(kind, "short_answer"),
                documents=(condition,),
                slices={"qtype": kind.replace(" ", "_")},
            )
        )
    documents = [
        Document(name, "\n\n".join(parts), name, {"focus": focus[name]}) for name, parts in answers.items()
    ]
    asked.sort(key=lambda question: hashlib.sha256(question.id.encode()).digest())
    return _some(file, documents, asked[:questions])


def _file(path: Path, name: str) -> Path:
    valid = " or ".join(f"{name}{kind}" for kind in KINDS)
    if path.is_dir():
        for kind in KINDS:
            if (path / f"{name}{kind}").is_file():
                return path / f"{name}{kind}"
        raise UsageError(f"{path}: this folder holds no {valid}")
    if not path.is_file():
        raise UsageError(f"{path}: no such file or folder; give {valid}, or the folder it lies in")
    if not path.name.lower().endswith(KINDS):
        raise UsageError(f"{path}: not JSON Lines by its name; give {valid}")
    return path


def _rows(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, found in records(file, file.name, Layout()):
        if isinstance(found, Fault):
            raise ContentError(file, line, found.field, found.message)
        yield line or 0, found


def _new(file: Path, line: int, row: Mapping[str, Any], seen: set[str]) -> str:
    name = _text(file, line, row, "id")
    if name in seen:
        raise ContentError(file, line, "id", "was there before; ids must differ")
    seen.add(name)
    return name


def _text(file: Path, line: int, row: Mapping[str, Any], field: str) -> str:
    value = row.get(field)
    if not isinstance(value, str) or not value.strip():
        there = "is empty" if isinstance(value, str) else "must be text" if field in row else "is missing"
        raise ContentError(file, line, field, there)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ContentError(file, line, field, "holds half a character (a lone surrogate)") from None
    return value


def _some(file: Path, documents: list[Document], questions: list[Question]) -> Dataset:
    if not documents:
        raise UsageError(f"{file}: holds no record that can be used")
    return documents, questions

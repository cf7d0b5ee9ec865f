"""What only the institution can answer: items 8 to 10 of the checklist, in a file that people fill in.

``clinsafe checklist init`` writes the file with every question in it; nothing is in place until somebody says so and
says where the evidence is.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from clinsafe.checklist.items import Item, ItemAnswer, ItemsFile
from clinsafe.content import Content, Record, load_yaml, sha256_file
from clinsafe.errors import ContentError

FILE_NAME = "checklist-answers.yaml"


class Part(Record):
    """One part of an item. `evidence` says where a reader finds the proof: a document, a report, a ticket."""

    in_place: Literal["yes", "no", "not assessed"]
    evidence: str = ""

    @model_validator(mode="after")
    def _proof(self) -> Part:
        if self.in_place == "yes" and not self.evidence.strip():
            raise ValueError(
                "what is in place needs evidence: name the document, report or ticket that shows it"
            )
        return self


class Answer(Record):
    """The answer to one item; `n` is the number of queries tested, where the item asks for a minimum."""

    item: int
    n: Annotated[int, Field(ge=0, le=10**9)] = 0
    parts: dict[str, Part]


class Answers(Record):
    """``checklist-answers.yaml``."""

    responsible: str
    date: str
    answers: list[Answer]

    @field_validator("date")
    @classmethod
    def _is_a_date(cls, value: str) -> str:
        if value and date.fromisoformat(value) > datetime.now(UTC).date() + timedelta(days=1):
            raise ValueError("answers cannot be dated in the future")
        return value

    @model_validator(mode="after")
    def _signed_for(self) -> Answers:
        numbers = [a.item for a in self.answers]
        if len(set(numbers)) < len(numbers):
            raise ValueError("an item is answered twice")
        claims = any(part.in_place == "yes" for a in self.answers for part in a.parts.values())
        if claims and not (self.responsible.strip() and self.date):
            raise ValueError("answers need a responsible person and a date (YYYY-MM-DD)")
        return self


def load_answers(content: Content, path: Path, file: ItemsFile) -> Answers:
    """The institution's answers; raises ContentError where an item or a part is not one of the checklist's."""
    answers = load_yaml(path, Answers)
    asked = {item.number: item for item in file.items if item.assessed_by == "institution"}
    for given in answers.answers:
        item = asked.get(given.item)
        if item is None:
            valid = ", ".join(map(str, asked))
            raise ContentError(path, None, "item", f"{given.item} is not answered here; valid: {valid}")
        if set(given.parts) != set(item.parts):
            valid = ", ".join(item.parts)
            raise ContentError(path, None, f"item {given.item}", f"must answer exactly these parts: {valid}")
    content.hashes[path.name] = sha256_file(path)
    return answers


def answer_item(item: Item, answers: Answers | None) -> ItemAnswer:
    """*met* if every part is in place and the minimum is reached; *not met* if one is not; else *not assessed*."""
    given = next((a for a in answers.answers if a.item == item.number), None) if answers else None
    if answers is None or given is None:
        return ItemAnswer(
            item.number, "not assessed", "to be answered by the institution: clinsafe checklist init"
        )
    if set(given.parts) != set(item.parts):  # a record from elsewhere; `load_answers` refuses such a file
        return ItemAnswer(item.number, "not assessed", "the answer does not have the item's parts")
    said = "; ".join(
        f"{item.parts[name]}: {part.in_place}{f' ({part.evidence})' if part.evidence else ''}"
        for name, part in sorted(given.parts.items())  # a record keeps no order of keys
    )
    said = f"{said}. Answered by {answers.responsible or 'nobody named'}, {answers.date or 'no date'}"
    states = {part.in_place for part in given.parts.values()}
    if "no" in states:
        return ItemAnswer(item.number, "not met", said)
    if states != {"yes"}:
        return ItemAnswer(item.number, "not assessed", said)
    if given.n < item.n_min:
        return ItemAnswer(
            item.number, "not assessed", f"{given.n} queries; the item asks for {item.n_min}. {said}"
        )
    counted = f"{given.n} queries. " if item.n_min else ""
    return ItemAnswer(item.number, "met", f"{counted}{said}")


def template(file: ItemsFile) -> str:
    """The file to fill in, every part not assessed."""
    lines = [
        "# Items 8 to 10 of the safety checklist: answered by the institution that deploys the system.",
        "# in_place: yes | no | not assessed. A yes needs evidence: the document, report or ticket that shows it.",
        "# Give the file to an audit with --answers, or as `checklist_answers` in clinsafe.yaml.",
        'responsible: ""    # who answers for this file; a name and a role',
        'date: ""           # YYYY-MM-DD',
        "answers:",
    ]
    for item in file.items:
        if item.assessed_by != "institution":
            continue
        lines += [f"  # {item.title}. {item.criterion}", f"  - item: {item.number}"]
        if item.n_min:
            lines.append(f"    n: 0    # queries tested; the item asks for at least {item.n_min}")
        lines.append("    parts:")
        for name, text in item.parts.items():
            lines += [f"      # {text}", f'      {name}: {{in_place: not assessed, evidence: ""}}']
    return "\n".join(lines) + "\n"

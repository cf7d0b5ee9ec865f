"""The labelled answers that a judge has to agree with before its word counts (decision D10): format and loader.

``benchmarks/rag/answers.jsonl`` holds the rows, ``answers.yaml`` the card with its rules, ``answers_readers.jsonl``
what blind readers said (`clinsafe.rag.auditing.readers`). The words are our own; no text of the sources is in them.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, PositiveInt, model_validator

from clinsafe.content import Content, Record
from clinsafe.errors import ContentError
from clinsafe.rag.auditing.claim import Claim

FOLDER = "benchmarks/rag"
ANSWERS, CARD = f"{FOLDER}/answers.jsonl", f"{FOLDER}/answers.yaml"

Label: TypeAlias = Literal["supported", "contradicted", "not_stated"]
LABELS: tuple[Label, ...] = ("supported", "contradicted", "not_stated")


def _clean(text: str) -> str:
    if text != text.strip() or not all(letter.isprintable() for letter in text):
        raise ValueError("a text is one line without surrounding blanks and without control characters")
    if not any(letter.isalnum() for letter in text):
        raise ValueError("a text holds at least one word")
    return text


Text: TypeAlias = Annotated[str, Field(min_length=2, max_length=2000), AfterValidator(_clean)]
Name: TypeAlias = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_\-]*$", max_length=60)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class SourceRef(Record):
    """The row of a real corpus that the question comes from; its text stays there."""

    corpus: Literal["pubmedqa", "medquad_ghr"]
    id: Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[\w\-.]+$")]


class AnswerRow(Record):
    """One labelled answer.

    Attributes:
        hazard: the dimension in which it is contradicted, or would be.
        source: where the question comes from.
        contexts: the passages, in our own words.
        kind: what the writer meant it to be: the contexts say so, say the opposite, or do not tell.
        note: why, for who reads the row.
    """

    id: Name
    hazard: Name
    source: SourceRef
    question: Text
    contexts: Annotated[tuple[Text, ...], Field(min_length=1, max_length=20)]
    answer: Text
    kind: Label
    note: Annotated[str, Field(max_length=500)] = ""

    @property
    def claim(self) -> Claim:
        """What a judge is shown: neither the label nor the note."""
        return Claim(self.contexts, self.answer, self.question)


class AnswerRules(Record):
    """What the set has to hold."""

    total: PositiveInt
    per_hazard: PositiveInt
    least_share: Share
    most_share: Share

    @model_validator(mode="after")
    def _ordered(self) -> AnswerRules:
        if not self.least_share <= 1 / len(LABELS) <= self.most_share:
            raise ValueError("least_share and most_share must hold one third between them")
        return self


class AnswersCard(Record):
    """``answers.yaml``: what the set is, and who made and read it."""

    answers_version: str
    title: str
    language: str
    authorship: str
    readers: str
    clinician_review: str
    sources: str
    use: str
    not_covered: list[str]
    hazards: Annotated[list[Name], Field(min_length=1)]
    rules: AnswerRules


def load_answers_card(content: Content) -> AnswersCard:
    """The card alone."""
    return content.yaml(CARD, AnswersCard)


def load_answers(content: Content) -> list[AnswerRow]:
    """All rows in file order, checked one by one and as a set.

    Raises:
        ContentError: file, line and field of the first fault: a malformed row, an id or a text given twice, a hazard
            that the card does not name, too few rows, or kinds out of balance.
    """
    card, rows, path = load_answers_card(content), content.jsonl(ANSWERS, AnswerRow), content.path(ANSWERS)
    refuse_twice(path, [row.id for row in rows])
    lines = lines_of(path)
    seen: dict[Claim, str] = {}
    for number, row in zip(lines, rows, strict=True):
        if row.hazard not in card.hazards:
            valid = ", ".join(card.hazards)
            raise ContentError(path, number, "hazard", f"{row.hazard!r} is not one of: {valid}")
        if (other := seen.setdefault(row.claim, row.id)) != row.id:
            raise ContentError(path, number, "answer", f"the same task as {other!r}; one text has one label")
    if fault := unbalanced(rows, card):
        raise ContentError(path, None, fault[0], fault[1])
    return rows


def unbalanced(rows: Sequence[AnswerRow], card: AnswersCard) -> tuple[str, str] | None:
    """(field, what is wrong) where the set breaks a rule of its card, else None."""
    rules = card.rules
    if len(rows) < rules.total:
        return "id", f"{len(rows)} rows; the card asks for {rules.total} or more"
    for hazard in card.hazards:
        kinds = Counter(row.kind for row in rows if row.hazard == hazard)
        n = kinds.total()
        if n < rules.per_hazard:
            return "hazard", f"{n} rows of {hazard}; the card asks for {rules.per_hazard} or more"
        for label in LABELS:
            if not rules.least_share <= kinds[label] / n <= rules.most_share:
                return "kind", (
                    f"{kinds[label]} of {n} rows of {hazard} are {label}; the card asks for a share of "
                    f"{rules.least_share:g} to {rules.most_share:g}"
                )
    return None


def refuse_twice(path: Path, ids: Sequence[str]) -> None:
    """Refuse an id that is given twice, with the lines of both."""
    first: dict[str, int] = {}
    for number, one in zip(lines_of(path), ids, strict=True):
        if one in first:
            raise ContentError(path, number, "id", f"{one!r} is already used in line {first[one]}")
        first[one] = number


def lines_of(path: Path) -> list[int]:
    """The 1-based numbers of the lines that hold a record."""
    return [n for n, line in enumerate(path.read_text("utf-8").split("\n"), start=1) if line.strip()]


def set_sha256(rows: Sequence[AnswerRow], labels: dict[str, Label]) -> str:
    """SHA-256 over every text that a judge is shown and every label that it is held against, in id order."""
    lines = [
        json.dumps([r.id, r.hazard, r.question, *r.contexts, r.answer, labels[r.id]], ensure_ascii=False)
        for r in sorted(rows, key=lambda row: row.id)
        if r.id in labels
    ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def copied_run(text: str, source: str, words: int = 8) -> str | None:
    """The first run of so many words of `text` that also stands in `source`, or None: what must not happen here."""
    ours, theirs = _words(text), " ".join(_words(source))
    for start in range(len(ours) - words + 1):
        run = " ".join(ours[start : start + words])
        if f" {run} " in f" {theirs} ":
            return run
    return None


def _words(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in text.lower()).split()

"""Which clause of which rule a report's sections give evidence for, and what stays with people (decision D12).

``checklist/regulatory.yaml`` holds references with their edition, date and status, one clause a row, and the schemes
that a declared class may come from. Nothing is computed here: a class is declared by the manufacturer, with
rationale and date, and no wording may say that a rule is met. Every text of the file is refused if it does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import (
    AfterValidator,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from clinsafe.content import Content, Record
from clinsafe.errors import UsageError

FILE = "checklist/regulatory.yaml"

SectionId: TypeAlias = Literal["R0", "R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "R10", "R11", "R12", "R13",
                               "R14", "R15", "R16", "R17"]  # fmt: skip
SECTIONS: Mapping[SectionId, str] = {
    "R0": "Document control",
    "R1": "Intended use, users, misuse and declared classes",
    "R2": "System under test and software of unknown provenance",
    "R3": "Test data",
    "R4": "Protocol and acceptance criteria, fixed before the run",
    "R5": "Results by hazard and system",
    "R6": "End-to-end results",
    "R7": "Anomalies and their disposition",
    "R8": "Risk table",
    "R9": "Risk controls and their effectiveness",
    "R10": "Failure modes and effects, before and after controls",
    "R11": "Ten-item checklist",
    "R12": "Change since the last audit",
    "R13": "Monitoring plan",
    "R14": "Limits, and hazards not covered",
    "R15": "Trace matrix",
    "R16": "Integrity",
    "R17": "Signatures",
}
"""Section id -> what the section of a report holds, in order."""

Status: TypeAlias = Literal["draft", "final", "in force", "superseded"]
Checked: TypeAlias = Literal["text", "secondary", "not checked"]
"""Read in the text itself, in pages about it, or known only from memory of the standard."""
Share: TypeAlias = Literal["evidence", "partial", "none"]
"""How much of what a clause asks for a report can give evidence for."""

BANNED = re.compile(r"complian|certif(?:ied)|conforms", re.IGNORECASE)
_PARTIAL_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")


def plain(text: str) -> str:
    """The text, if it claims nothing that an audit cannot show (decision D12).

    Raises:
        ValueError: naming the word, so that pydantic reports file, line and field.
    """
    if found := BANNED.search(text):
        word = re.findall(rf"\w*{re.escape(found.group())}\w*", text)[0]
        raise ValueError(f"{word!r} claims more than evidence can; say what it provides evidence for")
    return text


def _partial_date(text: str) -> str:
    if not _PARTIAL_DATE.fullmatch(text):
        raise ValueError("a date is YYYY, YYYY-MM or YYYY-MM-DD")
    date.fromisoformat(f"{text}-01-01"[:10] if len(text) == 4 else f"{text}-01"[:10])
    return text


Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$"), AfterValidator(plain)]
Cell = Annotated[str, StringConstraints(min_length=1, max_length=220), AfterValidator(plain)]
"""A text that fits a table cell: 1 to 220 characters."""
Note = Annotated[str, StringConstraints(max_length=400), AfterValidator(plain)]
Paragraph = Annotated[str, StringConstraints(min_length=1, max_length=900), AfterValidator(plain)]


class Reference(Record):
    """A rule, standard or guidance in one edition; `checked` says how we know its status and date."""

    id: Slug
    title: Cell
    publisher: Cell
    edition: Note = ""
    dated: Annotated[str, AfterValidator(_partial_date)]
    status: Status
    superseded_by: Annotated[str, StringConstraints(pattern=r"^([a-z0-9]+(-[a-z0-9]+)*)?$")] = ""
    checked: Checked
    note: Note = ""

    @model_validator(mode="after")
    def _successor(self) -> Reference:
        if (self.status == "superseded") != bool(self.superseded_by):
            raise ValueError("superseded_by names what replaced a superseded reference, and only then")
        if self.checked == "not checked" and not self.note:
            raise ValueError("a reference that was not checked needs a note that says what is unknown")
        return self


class Clause(Record):
    """What one clause asks for, the sections that give evidence for it, and what remains for people."""

    reference: Slug
    clause: Cell
    asks: Cell
    sections: list[SectionId]
    share: Share
    remains: Note = ""
    checked: Checked

    @model_validator(mode="after")
    def _honest(self) -> Clause:
        if (self.share == "none") != (not self.sections):
            raise ValueError("share is none exactly where no section is named")
        if self.share != "evidence" and not self.remains:
            raise ValueError("remains must say what stays with the manufacturer or institution")
        if len(set(self.sections)) < len(self.sections):
            raise ValueError("a section is named twice")
        return self


class Scheme(Record):
    """The classes that may be declared under one rule, and what decides between them; people decide."""

    id: Slug
    title: Cell
    reference: Slug
    values: Annotated[list[Cell], Field(min_length=2)]
    rule: Paragraph

    @field_validator("values")
    @classmethod
    def _differ(cls, values: list[str]) -> list[str]:
        _once_each(values, "value")
        return values


class Regulatory(Record):
    """``checklist/regulatory.yaml``: true as far as known on `as_of`, which a reader must hold against today."""

    as_of: date
    statement: Paragraph
    references: Annotated[list[Reference], Field(min_length=1)]
    clauses: Annotated[list[Clause], Field(min_length=1)]
    schemes: Annotated[list[Scheme], Field(min_length=1)]

    @field_validator("statement")
    @classmethod
    def _says_what_it_is(cls, text: str) -> str:
        if "evidence for" not in text or "certification" not in text:
            raise ValueError("must say that a report provides evidence for, and is no certification")
        return text

    @field_validator("references")
    @classmethod
    def _linked(cls, references: list[Reference], info: ValidationInfo) -> list[Reference]:
        _once_each([r.id for r in references], "reference")
        in_use = {r.id for r in references if r.status != "superseded"}
        for reference in references:
            if reference.superseded_by and reference.superseded_by not in in_use:
                raise ValueError(f"{reference.id} is superseded by {reference.superseded_by!r}, which is no "
                                 f"reference in use; valid: {', '.join(sorted(in_use))}")  # fmt: skip
            as_of = info.data.get("as_of")
            if as_of is not None and reference.dated > as_of.isoformat():
                raise ValueError(f"{reference.id} is dated {reference.dated}, after as_of ({as_of})")
        return references

    @field_validator("clauses")
    @classmethod
    def _clauses_known(cls, clauses: list[Clause], info: ValidationInfo) -> list[Clause]:
        _once_each([f"{c.reference} {c.clause}" for c in clauses], "clause")
        _known([c.reference for c in clauses], info)
        return clauses

    @field_validator("schemes")
    @classmethod
    def _schemes_known(cls, schemes: list[Scheme], info: ValidationInfo) -> list[Scheme]:
        _once_each([s.id for s in schemes], "scheme")
        _known([s.reference for s in schemes], info)
        return schemes

    def clauses_of(self, section: SectionId) -> list[Clause]:
        """The clauses that this section gives evidence for, in the order of the file.

        Raises:
            UsageError: no section has this id.
        """
        if section not in get_args(SectionId):
            raise UsageError(f"no section is called {section!r}; there are R0 to R17")
        return [clause for clause in self.clauses if section in clause.sections]

    def reference(self, name: str) -> Reference:
        """The reference of this id; raises UsageError naming those there are."""
        found = next((r for r in self.references if r.id == name), None)
        if found is None:
            raise UsageError(
                f"no reference is called {name!r}; valid: {', '.join(r.id for r in self.references)}"
            )
        return found


def load_regulatory(content: Content) -> Regulatory:
    """The file; raises ContentError with file, line and field."""
    return content.yaml(FILE, Regulatory)


def label(reference: Reference) -> str:
    """How a table names a reference: ``FDA AI-enabled device software functions (draft, 2025-01-07)``."""
    return f"{reference.publisher} {reference.title} ({reference.status}, {reference.dated})"


def _once_each(names: Sequence[str], kind: str) -> None:
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise ValueError(f"the {kind} {', '.join(twice)} is given twice")


def _known(names: Sequence[str], info: ValidationInfo) -> None:
    """Every name is a reference that is in use; silent where the references themselves are at fault."""
    references: list[Reference] | None = info.data.get("references")
    if references is None:
        return
    valid = [r.id for r in references if r.status != "superseded"]
    if unknown := sorted(set(names) - set(valid)):
        raise ValueError(f"{', '.join(unknown)} is no reference in use; valid: {', '.join(valid)}")

"""The queries: each names a sentence of a real document by its place, and the edits that make it say the contrary.

No text of the corpora stands in the file. What the sentence says is read from the user's own copy, and its hash tells
whether that is the copy the query was written on.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field, field_validator, model_validator

from clinsafe.benchmarks.endtoend.documents import FILES, Corpus, Texts
from clinsafe.benchmarks.suite import Slug, load_card
from clinsafe.content import Content, Record
from clinsafe.errors import ContentError, UsageError

NAME = "benchmarks/endtoend/queries.jsonl"
FEWEST, FEWEST_FORM = 120, 40  # queries in all, and of questions and of false premises
SHOWN = 3  # ids named in a line

Form: TypeAlias = Literal["claim", "question", "false_premise"]
FORMS: tuple[Form, ...] = get_args(Form)
Answer: TypeAlias = Literal["affirms", "denies", "other"]
Offset = Annotated[int, Field(ge=0)]


class Source(Record):
    """One sentence of one document: ``text[start:end]``, and its SHA-256."""

    corpus: Corpus
    document: Annotated[str, Field(min_length=1)]
    start: Offset
    end: Offset
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

    @model_validator(mode="after")
    def _somewhere(self) -> Source:
        if self.end <= self.start:
            raise ValueError("start must lie before end")
        return self


class Edit(Record):
    """``sentence[start:end]`` becomes `new`."""

    start: Offset
    end: Offset
    new: str

    @model_validator(mode="after")
    def _forward(self) -> Edit:
        if self.end < self.start or (self.end == self.start and not self.new):
            raise ValueError("an edit replaces start to end, in this order, by something else")
        return self


class QueryRow(Record):
    """One line of the file.

    Attributes:
        form: a ``claim`` agrees with the true sentence, a ``question`` is answered by it, a ``false_premise`` takes the
            edited one for granted.
        harm: what could go wrong for a patient.
        answer: of a yes/no question, what the true sentence says to it.
    """

    id: Slug
    hazard: Slug
    form: Form
    query: Annotated[str, Field(min_length=3, max_length=1000)]
    source: Source
    edits: Annotated[list[Edit], Field(min_length=1)]
    harm: Annotated[str, Field(min_length=10, max_length=300)]
    answer: Answer

    @field_validator("edits")
    @classmethod
    def _in_order(cls, edits: list[Edit]) -> list[Edit]:
        if any(later.start < earlier.end for earlier, later in pairwise(edits)):
            raise ValueError("edits must not overlap and stand in the order of the sentence")
        return edits


@dataclass(frozen=True, slots=True)
class Query:
    """A query with its texts.

    Attributes:
        row: the line of the file.
        document: whole text of the source document.
        true: the sentence as it stands there.
        false: the same after the edits.
    """

    row: QueryRow
    document: str
    true: str
    false: str


def load_rows(content: Content) -> list[QueryRow]:
    """The lines of the file, each valid by itself.

    Raises:
        ContentError: file, line and field of the first fault; an id that is there twice, an unknown hazard.
    """
    found = content.jsonl(NAME, QueryRow)
    hazards, seen = load_card(content).hazards, set[str]()
    for number, row in enumerate(found, start=1):
        if row.hazard not in hazards:
            raise ContentError(
                content.path(NAME), number, "hazard", f"{row.hazard!r} is not one of: {', '.join(hazards)}"
            )
        if row.id in seen:
            raise ContentError(content.path(NAME), number, "id", f"{row.id!r} is there twice")
        seen.add(row.id)
    return found


def resolve(rows: Sequence[QueryRow], texts: Texts) -> list[Query]:
    """The rows with their sentences.

    Raises:
        UsageError: the documents are another edition of the data than the queries were written on; edits that do not
            fit their sentence, or change nothing.
    """
    strange = [row for row in rows if _sentence(row.source, texts) is None]
    if strange:
        names = ", ".join(row.id for row in strange[:SHOWN]) + (", …" if len(strange) > SHOWN else "")
        files = ", ".join(sorted({FILES[row.source.corpus] for row in strange}))
        raise UsageError(
            f"{files}: {len(strange)} of {len(rows)} sentences are not those that the queries were written on "
            f"({names}); the file is another edition of the data; docs/endtoend.md names the right one"
        )
    return [_resolved(row, texts) for row in rows]


def shortfalls(rows: Sequence[QueryRow], hazards: Sequence[str]) -> list[str]:
    """What the set lacks for checklist item 8, one line each: enough queries, of each form, of each hazard."""
    forms, found_of = Counter(row.form for row in rows), Counter(row.hazard for row in rows)
    asked: tuple[Form, ...] = ("question", "false_premise")
    found = [] if len(rows) >= FEWEST else [f"{len(rows)} queries: item 8 asks for at least {FEWEST}"]
    found += [
        f"{forms[form]} queries of form {form}: item 8 asks for at least {FEWEST_FORM}"
        for form in asked
        if forms[form] < FEWEST_FORM
    ]
    share = len(rows) / len(hazards) / 2  # half of what an even share would be
    return found + [f"only {found_of[one]} queries of {one}" for one in hazards if found_of[one] < share]


def edited(sentence: str, edits: Sequence[Edit]) -> str:
    """The sentence after its edits, whose offsets all count in the sentence as it was."""
    for edit in reversed(edits):
        sentence = sentence[: edit.start] + edit.new + sentence[edit.end :]
    return sentence


def _sentence(source: Source, texts: Texts) -> str | None:
    """The sentence, or None where this copy of the data has another one there."""
    text = texts.get((source.corpus, source.document), "")[source.start : source.end]
    return text if hashlib.sha256(text.encode()).hexdigest() == source.sha256 else None


def _resolved(row: QueryRow, texts: Texts) -> Query:
    source = row.source
    document = texts[source.corpus, source.document]
    true = document[source.start : source.end]
    if row.edits[-1].end > len(true):
        raise UsageError(
            f"{NAME}: {row.id}: an edit ends at {row.edits[-1].end}, the sentence has {len(true)} characters"
        )
    false = edited(true, row.edits)
    if " ".join(false.split()) == " ".join(true.split()):
        raise UsageError(f"{NAME}: {row.id}: the edits leave the sentence as it was")
    return Query(row, document, true, false)

"""The figures that the RAG-X paper prints (``benchmarks/rag/published.yaml``): published, never truth.

What a whole number of questions cannot give is found by `clinsafe.benchmarks.arithmetic`; `shares` hands it over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, TypeAlias

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from clinsafe.content import Content, Record

FILE = "benchmarks/rag/published.yaml"
Share: TypeAlias = Annotated[Decimal, Field(ge=0, le=1, allow_inf_nan=False)]
Percent: TypeAlias = Annotated[Decimal, Field(ge=0, le=100, allow_inf_nan=False)]
Text: TypeAlias = Annotated[str, Field(min_length=3)]


class PaperSet(Record):
    """A data set as the paper has it. `reproduced`: measured again here."""

    printed: Text
    questions: PositiveInt
    documents: PositiveInt | None = None
    reproduced: bool


class GenerationRow(Record):
    """Table II, one row."""

    model: Text
    setting: Text
    f1: Share
    semantic: Share
    accuracy: Share


class RetrievalCell(Record):
    """Table III, one data set. `recall` is a hit rate (see the remarks); `exclusive_hit` of the first passage."""

    mrr: Share
    recall: Share
    context_relevancy: Share
    exclusive_hit: Share


class RetrievalRow(Record):
    """Table III, one row."""

    retriever: Text
    alpha: Share
    cells: Mapping[str, RetrievalCell]


class DiagnosisRow(Record):
    """Table IV, one share, and the count it stands for."""

    metric: Text
    printed: Text
    percent: Percent
    count: NonNegativeInt


class Remark(Record):
    """What is wrong or unstated, and where."""

    where: Text
    text: Text


class PublishedRag(Record):
    """The whole file. `adherence` and `map` belong to Table IV."""

    source: Text
    status: Text
    sets: Mapping[str, PaperSet]
    generation: tuple[GenerationRow, ...]
    retrieval: tuple[RetrievalRow, ...]
    diagnosis: tuple[DiagnosisRow, ...]
    adherence: Share
    map: Share
    remarks: tuple[Remark, ...]
    differences: Mapping[str, Text]

    @model_validator(mode="after")
    def _whole(self) -> PublishedRag:
        for row in self.retrieval:
            if set(row.cells) != set(self.sets):
                raise ValueError(
                    f"{row.retriever}, alpha {row.alpha}: cells must be of {', '.join(self.sets)}"
                )
        rows = [(row.retriever, row.alpha) for row in self.retrieval]
        if len(set(rows)) != len(rows):
            raise ValueError("retrieval holds a row twice")
        if GUIDELINE not in self.sets:
            raise ValueError(f"sets must hold {GUIDELINE}, which Tables II and IV are of")
        return self


GUIDELINE = "guidelineqa"


@dataclass(frozen=True, slots=True)
class PrintedShare:
    """A printed share of whole questions: `value` of `whole`, of n questions, k where it is said or derived."""

    where: str
    about: str
    value: Decimal
    n: int
    k: int | None
    whole: int


def load_published(content: Content | None = None) -> PublishedRag:
    """The file.

    Raises:
        ContentError: it does not fit, with line and field.
    """
    return (content or Content()).yaml(FILE, PublishedRag)


def shares(published: PublishedRag) -> Iterator[PrintedShare]:
    """Every printed figure that is a share of whole questions; means and MRR are none."""
    n = published.sets[GUIDELINE].questions
    for row in published.generation:
        yield PrintedShare("Table II", f"accuracy, {row.model}, {row.setting}", row.accuracy, n, None, 1)
    for line in published.retrieval:
        for name, cell in line.cells.items():
            of, where = published.sets[name], f"{line.retriever}, alpha {line.alpha}"
            yield PrintedShare(
                "Table III", f"{of.printed} recall, {where}", cell.recall, of.questions, None, 1
            )
            yield PrintedShare(
                "Table III", f"{of.printed} EHR@1, {where}", cell.exclusive_hit, of.questions, None, 1
            )
    for one in published.diagnosis:
        yield PrintedShare("Table IV", one.printed, one.percent, n, one.count, 100)

"""The paper's printed figures as data (decision D7): published, never truth.

``benchmarks/published.yaml`` holds the tables, the claims that `clinsafe.benchmarks.arithmetic` can recompute, the
remarks on what is wrong but is not arithmetic, and the reasons why our measurement can differ from a printed figure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field, model_validator

from clinsafe.benchmarks.claims import (
    Cases,
    Cell,
    Claim,
    Count,
    Distance,
    Number,
    Ratings,
    Text,
    rating_claims,
)
from clinsafe.content import Content, Record

FILE = "benchmarks/published.yaml"
Slug = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]


class Model(Record):
    """A model. `printed` is the id as the paper prints it, `hub_id` the full one."""

    name: str
    printed: str
    hub_id: str


class EffectSize(Record):
    """Cohen's d as printed, the SD that gives it, and what that SD is elsewhere in the paper."""

    d: Number
    sd: Distance
    sd_is: Text


class BiEncoderRow(Record):
    """Table 1 and section 5, one hazard. `failure_rate`: percentage of cosines above the threshold, over all models."""

    n: Cases
    cells: dict[str, Cell]
    overall: Number
    failure_rate: Number
    effect: EffectSize | None = None
    differs: list[Slug]


class CrossEncoderRow(Record):
    """Table 2, one hazard, in percent; `low` to `high` is the printed interval, `detection` stands in section 8.1."""

    n: Cases
    failure_rate: Number
    mean: Number
    sd: Distance
    low: Number
    high: Number
    detection: Number | None = None
    differs: list[Slug]


class Total(Record):
    """The paper's figures over everything; `failure_rate` is a percentage."""

    pairs: Cases
    mean: Number
    sd: Distance
    evaluations: Cases
    failures: Count
    failure_rate: Number


class Thresholds(Record):
    """Above which a contradicting pair counts as a failure."""

    cosine: Number
    cross_encoder: Number


class Remark(Record):
    """What is wrong with the paper but is not arithmetic, in one sentence."""

    topic: Slug
    where: Text
    text: Annotated[str, Field(min_length=20)]


class Published(Record):
    """``benchmarks/published.yaml``. Rows are by hazard id, in the order of the paper's table.

    `differences` are by topic; a row's `differs` names the topics that concern it.
    """

    source: Text
    status: Text
    models: list[Model]
    cross_encoder: Model
    thresholds: Thresholds
    bi_encoder: dict[Slug, BiEncoderRow]
    total: Total
    orderings: list[Text]
    reranking: dict[Slug, CrossEncoderRow]
    differences: dict[Slug, Text]
    claims: list[Claim]
    remarks: list[Remark]

    @model_validator(mode="after")
    def _hangs_together(self) -> Published:
        names = [model.name for model in self.models]
        for hazard, row in self.bi_encoder.items():
            if set(row.cells) != set(names):
                raise ValueError(f"bi_encoder.{hazard}: the cells must be those of {', '.join(names)}")
        if set(self.reranking) != set(self.bi_encoder):
            raise ValueError("reranking must have the hazards of bi_encoder")
        used = {t for row in self.bi_encoder.values() for t in row.differs}
        used |= {t for row in self.reranking.values() for t in row.differs}
        if wrong := sorted(used ^ set(self.differences)):
            raise ValueError(
                f"differences: {wrong[0]} is used by a row and not explained, or the other way round"
            )
        topics = [remark.topic for remark in self.remarks]
        if twice := sorted({t for t in topics if topics.count(t) > 1}):
            raise ValueError(f"remarks: {twice[0]} is given twice")
        return self


def load_published(content: Content) -> Published:
    """The file."""
    return content.yaml(FILE, Published)


def published_claims(published: Published, fmea_rows: Iterable[Ratings]) -> list[Claim]:
    """Every claim of the paper.

    Args:
        published: the file.
        fmea_rows: the paper's Table 3, which stands in ``checklist/fmea.yaml`` as `published`.
    """
    return [*published.claims, *rating_claims("section 7.2, Table 3", fmea_rows)]

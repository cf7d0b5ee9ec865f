"""Rubrics: what a language model is told when it judges, as versioned content in ``benchmarks/rubrics/``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat, model_validator

from clinsafe.content import Content, Record
from clinsafe.errors import UsageError
from clinsafe.rag.judging.needs import METRICS, Metric, Part

FOLDER = "benchmarks/rubrics"
ANCHORS = ("0", "0.25", "0.5", "0.75", "1")
FIELDS = ("rationale", "quotes", "verdict", "score")
Share = Annotated[FiniteFloat, Field(ge=0, le=1)]
Line = Annotated[str, Field(min_length=1, max_length=2000)]


class Rubric(Record):
    """One metric's rubric.

    Attributes:
        id: the metric.
        version: raised by hand with every change that matters; the hash changes by itself.
        about: what is judged, in one sentence.
        shows: the parts of the task that are shown, in this order.
        task: what to do.
        rules: what must never be overlooked.
        anchors: what the scores 0, 0.25, 0.5, 0.75 and 1 mean.
        verdicts: word -> range of scores that it may come with, bounds included.
        quotes: ``required``: a score above 0 must quote the contexts, and every quote is looked up there.
        answer: JSON schema of the answer, as JSON.
    """

    id: Metric
    version: Line
    about: Line
    shows: Annotated[tuple[Part, ...], Field(min_length=1)]
    task: Line
    rules: Annotated[tuple[Line, ...], Field(min_length=1)]
    anchors: Mapping[str, Line]
    verdicts: Annotated[Mapping[str, tuple[Share, Share]], Field(min_length=2)]
    quotes: Literal["required", "optional"]
    answer: str

    @model_validator(mode="after")
    def _consistent(self) -> Rubric:
        if tuple(self.anchors) != ANCHORS:
            raise ValueError(f"anchors are those of {', '.join(ANCHORS)}, in this order")
        if any(low > high for low, high in self.verdicts.values()):
            raise ValueError("a verdict's range goes from its lower to its upper bound")
        try:
            schema = json.loads(self.answer)
            named, verdicts = set(schema["properties"]), schema["properties"]["verdict"]["enum"]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise ValueError(
                "answer is not a JSON schema of an object with a verdict of fixed words"
            ) from None
        if named != set(FIELDS):
            raise ValueError(f"the answer's fields are {', '.join(FIELDS)}")
        if verdicts != list(self.verdicts):
            raise ValueError("the answer's verdicts are not those of the rubric")
        return self

    @property
    def schema_of_answer(self) -> dict[str, Any]:
        """The JSON schema, parsed."""
        schema: dict[str, Any] = json.loads(self.answer)
        return schema

    @property
    def digest(self) -> str:
        """Hex SHA-256 of everything that the rubric says; comments in its file do not count."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


def load_rubric(metric: str, content: Content | None = None) -> Rubric:
    """The rubric of one metric, an overlay's first.

    Raises:
        UsageError: no metric of that name. ContentError: file, line and field of the fault.
    """
    if metric not in METRICS:
        raise UsageError(f"no judge is asked for {metric!r}; there are: {', '.join(METRICS)}")
    rubric = (content or Content()).yaml(f"{FOLDER}/{metric}.yaml", Rubric)
    if rubric.id != metric:
        raise UsageError(f"{FOLDER}/{metric}.yaml: its id is {rubric.id!r}; valid is {metric!r}")
    return rubric


def load_rubrics(content: Content | None = None) -> dict[str, Rubric]:
    """All rubrics by metric."""
    content = content or Content()
    return {metric: load_rubric(metric, content) for metric in METRICS}

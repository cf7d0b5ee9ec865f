"""``checklist/qualification.yaml``: what a qualification of the tool asks, and the answers known beforehand.

Nothing here measures: the instruments of `clinsafe.workflows.qualify` are held against these values.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from clinsafe.checklist.gates import Decision, Gate, Share
from clinsafe.content import Content, Record

FILE = "checklist/qualification.yaml"

Level: TypeAlias = Literal["always", "where possible", "reported"]
Count = Annotated[int, Field(ge=0)]
Plane = Annotated[list[float], Field(min_length=2, max_length=2)]


class CheckSpec(Record):
    """One check: its id, what it asks in one sentence, and what a pass looks like.

    `level`: ``always`` must pass; ``where possible`` may be not run, and must not fail; ``reported`` decides nothing.
    """

    id: Annotated[str, Field(pattern=r"^(IQ|OQ)-\d\d$")]
    title: Annotated[str, Field(max_length=30)]
    level: Level
    requirement: str
    expected: str


class Interval(Record):
    """k of n with its two-sided ends; one-sided bounds and Wilson's ends where a source gives them."""

    k: Count
    n: Annotated[int, Field(ge=1)]
    low: Share
    high: Share
    lower: Share | None = None
    upper: Share | None = None
    wilson_low: Share | None = None
    wilson_high: Share | None = None


class Newcombe(Record):
    """A paired table and the 95 % interval of its difference, in [-1, 1]."""

    both: Count
    first: Count
    second: Count
    neither: Count
    low: float
    high: float


class McNemar(Record):
    """Discordant counts and the exact two-sided p."""

    only_a: Count
    only_b: Count
    p: Share


class Holm(Record):
    """p values and their adjusted ones, in the order given."""

    p: list[Share]
    adjusted: list[Share]


class Friedman(Record):
    """Values by system and case, with the statistic, its p and Kendall's W."""

    systems: list[list[float]]
    chi2: float
    p: Share
    w: Share


class Quad(Record):
    """One case as four directions in a plane."""

    a: Plane
    b: Plane
    a_same: Plane
    b_same: Plane


class Recorded(Record):
    """Figures by metric key: the count behind a rate, or the area under the curve."""

    counts: dict[str, Count]
    auroc: dict[str, Share] = Field(default_factory=dict)


class Hand(Recorded):
    """Cases worked out by hand, and their figures at one limit."""

    limit: float
    cases: Annotated[list[Quad], Field(min_length=1)]


class Edge(Record):
    """A gate, what it reads, and what it must decide."""

    metric: Literal["failure", "same_missed", "inversion", "pairwise"]
    at_most: Share | None = None
    at_least: Share | None = None
    k: Count
    n: Annotated[int, Field(ge=1)]
    decision: Decision

    @property
    def gate(self) -> Gate:
        """The gate itself."""
        return Gate(metric=self.metric, at_most=self.at_most, at_least=self.at_least, why="known answer")


class Lexical(Recorded):
    """The recorded figures of one baseline."""

    system: str


class Cosine(Record):
    """The similarity of one pair of one case."""

    case: str
    pair: str
    cosine: Annotated[float, Field(ge=-1, le=1)]


class ReferenceModel(Recorded):
    """The recorded figures and similarities of one model, by its alias."""

    alias: str
    cosines: Annotated[list[Cosine], Field(min_length=1)]


class Known(Record):
    """Every answer that is known beforehand; no list may be empty, or its check would pass without a test."""

    intervals: Annotated[list[Interval], Field(min_length=1)]
    newcombe: Annotated[list[Newcombe], Field(min_length=1)]
    mcnemar: Annotated[list[McNemar], Field(min_length=1)]
    holm: Annotated[list[Holm], Field(min_length=1)]
    friedman: Annotated[list[Friedman], Field(min_length=1)]
    hand: Hand
    gates: Annotated[list[Edge], Field(min_length=1)]
    lexical: Annotated[list[Lexical], Field(min_length=1)]
    model: ReferenceModel


class Question(Record):
    """What only the user can answer; printed with room to write."""

    title: str
    ask: str


class QualificationFile(Record):
    """The file; `pins` are the tested versions by distribution name."""

    checks: Annotated[list[CheckSpec], Field(min_length=1)]
    yours: list[Question]
    pins: dict[str, str]
    known: Known

    @model_validator(mode="after")
    def _each_once(self) -> QualificationFile:
        ids = [check.id for check in self.checks]
        if ids != sorted(set(ids)):
            raise ValueError("the ids of the checks must rise, and none may stand twice")
        return self


def load_qualification(content: Content) -> QualificationFile:
    """The file; raises ContentError with file, line and field."""
    return content.yaml(FILE, QualificationFile)

"""Statements that arithmetic can test, as records: the paper's and our own.

A number is a `Decimal` of the text as printed, so that 0.990 keeps its three decimals: what rounding allows depends
on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from clinsafe.content import Record

MOST = 10_000_000


def _writable(value: Decimal) -> Decimal:
    """A record may come from a stranger: a number that would take for ever to write out is no printed figure."""
    if abs(value.adjusted()) > 400 or len(value.as_tuple().digits) > 400:
        raise ValueError("a printed number has at most 400 digits")
    return value


Number = Annotated[Decimal, Field(allow_inf_nan=False), AfterValidator(_writable)]
Positive = Annotated[Number, Field(gt=0)]
Distance = Annotated[Number, Field(ge=0)]
Count = Annotated[int, Field(ge=0, le=MOST)]
Cases = Annotated[int, Field(ge=1, le=MOST)]
Text = Annotated[str, Field(min_length=3)]
Method = Literal["Wald", "Wald clipped", "Clopper-Pearson", "Wilson"]

# ── quantities ─────────────────────────────────────────────────────────────────────────────────


class Cell(Record):
    """Mean and standard deviation as printed. Where one value is wanted, it is the mean."""

    mean: Number
    sd: Distance


class Standardised(Record):
    """(mean - centre) / sd, of which only the parts are printed."""

    mean: Number
    centre: Number
    sd: Distance


class Share(Record):
    """A percentage of `of` evaluations; stands for the whole numbers that round to it."""

    percent: Number
    of: Cases


class Group(Record):
    """The columns of one table row, each over the same `n` cases."""

    n: Cases
    cells: Annotated[dict[str, Cell], Field(min_length=1)]


Quantity: TypeAlias = Number | Cell | Standardised
Quantities = Annotated[dict[str, Quantity], Field(min_length=1)]

# ── claims ─────────────────────────────────────────────────────────────────────────────────────


class ClaimBase(Record):
    """One statement.

    Attributes:
        where: section or table of the paper, or the metric key in a report of ours.
        about: what the numbers are, in a few words.
        within: how far the true value may lie from the number as written. None is half a unit of its last decimal;
            0 is for counts.
    """

    where: Text
    about: Text
    within: Distance | None = None


class Rate(ClaimBase):
    """A share of n that must be k of n for a whole k. `whole` is 100 for percentages, 1 for shares."""

    kind: Literal["rate"] = "rate"
    value: Number
    n: Cases
    k: int | None = None
    whole: Positive = Decimal(100)


class Interval(ClaimBase):
    """A two-sided confidence interval of a rate. With k the rate is exactly k / n, without it whatever `value` allows.

    `method` is the one that the text names, None where it names none.
    """

    kind: Literal["interval"] = "interval"
    value: Number
    n: Cases
    k: Count | None = None
    low: Number
    high: Number
    whole: Positive = Decimal(100)
    level: Annotated[float, Field(gt=0, lt=1)] = 0.95
    method: Method | None = None

    @model_validator(mode="after")
    def _is_a_share(self) -> Interval:
        if self.k is not None and self.k > self.n:
            raise ValueError(f"a count must lie in 0..n, got k={self.k}, n={self.n}")
        if not 0 <= self.value <= self.whole:
            raise ValueError(f"a rate must lie in 0..{self.whole}, got {self.value}")
        return self


class Sum(ClaimBase):
    """Parts add up to a total."""

    kind: Literal["sum"] = "sum"
    total: Number
    parts: list[Number | Share]


class Mean(ClaimBase):
    """A mean of parts. Where `weighting` is None, either will do."""

    kind: Literal["mean"] = "mean"
    value: Number
    parts: Quantities
    weights: dict[str, Cases] | None = None
    weighting: Literal["weighted", "unweighted"] | None = None

    @model_validator(mode="after")
    def _weights_fit(self) -> Mean:
        if self.weights is not None and set(self.weights) != set(self.parts):
            raise ValueError("weights must have the names of the parts")
        if self.weights is None and self.weighting == "weighted":
            raise ValueError("a weighted mean needs weights")
        return self


class Product(ClaimBase):
    """A product of whole numbers, such as a risk priority number; exact unless `within` says otherwise."""

    kind: Literal["product"] = "product"
    within: Distance | None = Decimal(0)
    value: Number
    factors: Annotated[list[Number], Field(min_length=1)]


class Complement(ClaimBase):
    """`value` is what `other` leaves of the whole."""

    kind: Literal["complement"] = "complement"
    value: Number
    other: Number
    whole: Positive = Decimal(100)


class EffectRow(Record):
    """A standardised mean difference d as printed, and the columns of its row: any of their SDs may be behind it."""

    d: Number
    mean: Number
    cells: dict[str, Cell] = Field(default_factory=dict)


class Effect(ClaimBase):
    """Rows of d = (mean - centre) / sd, the SD not named. `others`: SDs that stand elsewhere in the text, by name."""

    kind: Literal["effect"] = "effect"
    centre: Number
    rows: Annotated[dict[str, EffectRow], Field(min_length=1)]
    others: dict[str, Distance] = Field(default_factory=dict)


class Spread(ClaimBase):
    """A standard deviation over groups of columns, its definition not named."""

    kind: Literal["spread"] = "spread"
    value: Distance
    groups: Annotated[dict[str, Group], Field(min_length=1)]


class Extreme(ClaimBase):
    """The smallest or largest of the rows (and which row that is), or a bound that every row lies above."""

    kind: Literal["extreme"] = "extreme"
    rows: Quantities
    minimum: Number | None = None
    lowest: str | None = None
    maximum: Number | None = None
    highest: str | None = None
    above: Number | None = None

    @model_validator(mode="after")
    def _names_rows(self) -> Extreme:
        if unknown := sorted(name for name in (self.lowest, self.highest) if name and name not in self.rows):
            raise ValueError(f"no row is called {unknown[0]}")
        if self.minimum is None and self.maximum is None and self.above is None:
            raise ValueError("needs minimum, maximum or above")
        return self


class Order(ClaimBase):
    """A stated ordering, ``x < y <= z`` or ``others < x``, and in how many rows it is said to hold (None: in all)."""

    kind: Literal["order"] = "order"
    order: Text
    rows: Annotated[dict[str, Quantities], Field(min_length=1)]
    in_rows: Count | None = None

    @property
    def steps(self) -> list[tuple[str, str, str]]:
        """(smaller, sign, larger), from left to right."""
        words = self.order.split()
        return [(x, sign, y) for (x, y), sign in zip(pairwise(words[::2]), words[1::2], strict=True)]

    @model_validator(mode="after")
    def _reads(self) -> Order:
        words = self.order.split()
        if len(words) < 3 or len(words) % 2 == 0 or not set(words[1::2]) <= {"<", "<="}:
            raise ValueError(f"an order reads: a < b <= c; got {self.order!r}")
        for row, columns in self.rows.items():
            if unknown := sorted(set(words[::2]) - set(columns) - {"others"}):
                raise ValueError(f"row {row} has no column {unknown[0]}")
        return self


Claim: TypeAlias = Annotated[
    Rate | Interval | Sum | Mean | Product | Complement | Effect | Spread | Extreme | Order,
    Field(discriminator="kind"),
]


class Ratings(NamedTuple):
    """One FMEA row as plain values. Occurrence and RPN are None where nothing was measured."""

    hazard: str
    severity: int
    occurrence: int | None
    detection: int
    rpn: int | None


def rating_claims(where: str, rows: Iterable[Ratings]) -> list[Claim]:
    """RPN = S x O x D, for every row that has both an occurrence and an RPN."""
    return [
        Product(
            where=f"{where}, {row.hazard}",
            about="RPN = S x O x D",
            value=Decimal(row.rpn),
            factors=[Decimal(row.severity), Decimal(row.occurrence), Decimal(row.detection)],
        )
        for row in rows
        if row.occurrence is not None and row.rpn is not None
    ]

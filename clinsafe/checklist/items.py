"""The ten-item safety checklist: each item *met*, *met by mitigation*, *not met* or *not assessed*."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from clinsafe.checklist.gates import Gate, Threshold
from clinsafe.content import Content, Record
from clinsafe.protocols import Figures, SystemKind
from clinsafe.stats import Estimate, Figure

Answer: TypeAlias = Literal["met", "met by mitigation", "not met", "not assessed"]


class Item(Record):
    """One item; `n_min` is the minimum of test pairs or queries the paper asks for.

    `limit` is the cosine of its criterion, which it is answered by whatever the protocol; `at_most` is the share of
    pairs that may lie above it (for item 7: above the cross-encoder's limit); `parts` are what an institution has to
    have in place.
    """

    number: int
    title: str
    hazard: str | None = None
    n_min: Annotated[int, Field(ge=0, le=1_000_000)]
    assessed_by: Literal["suite", "cross_encoder", "institution"]
    criterion: str
    at_most: Annotated[float, Field(ge=0, le=1)] | None = None
    limit: Threshold | None = None
    parts: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _answerable(self) -> Item:
        if (self.assessed_by == "institution") != bool(self.parts):
            raise ValueError("an item that the institution answers has parts, and no other item has")
        if (self.assessed_by != "institution") != (self.at_most is not None):
            raise ValueError(
                "an item that is measured has a limit on the rate (at_most), and no other item has"
            )
        if (self.assessed_by == "suite") != (self.limit is not None and self.hazard is not None):
            raise ValueError(
                "an item that the suite answers has a hazard and a limit on the cosine, and no other"
            )
        return self


class ItemsFile(Record):
    """``checklist/items.yaml``."""

    source: str
    items: Annotated[list[Item], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class ItemAnswer:
    """The verdict on one item and what it rests on."""

    number: int
    answer: Answer
    evidence: str


def load_items(content: Content) -> ItemsFile:
    """The file."""
    return content.yaml("checklist/items.yaml", ItemsFile)


def answer_by_suite(item: Item, figures: Figures, kind: SystemKind) -> ItemAnswer:
    """Items 1 to 6, by the item's own limit; they speak of the cosine of an embedding model."""
    if kind != "bi-encoder" or item.limit is None or item.at_most is None:
        return ItemAnswer(item.number, "not assessed", f"asks for an embedding model; this is a {kind}")
    figure = figures.get(f"suite.{item.hazard}.failure@protocol=items")
    if not isinstance(figure, Estimate):
        return ItemAnswer(item.number, "not assessed", "the figure was not measured")
    tenfold = f" ({item.limit.tenfold:g} from 10x)" if item.limit.tenfold is not None else ""
    measured = f"{figure.k} of {figure.n} pairs above {item.limit.cosine:g}{tenfold}"
    if figure.n < item.n_min:
        return ItemAnswer(item.number, "not assessed", f"{measured}; the item asks for {item.n_min} pairs")
    gate = Gate(metric="failure", at_most=item.at_most, why=item.criterion)
    decision = gate.decide(figure)
    if decision == "INCONCLUSIVE":
        return ItemAnswer(item.number, "not assessed", f"{measured}; too few to decide at {gate.limit_text}")
    verdict: Answer = "met" if decision == "PASS" else "not met"
    return ItemAnswer(item.number, verdict, f"{measured}; limit on the rate: {gate.limit_text}")


def answer_by_cross_encoder(
    item: Item, failures: Mapping[str, Figure], name: str, inversions: Mapping[str, Figure] | None = None
) -> ItemAnswer:
    """Item 7: validated in every hazard, and in none does it fail more often than the limit.

    Args:
        failures: hazard -> its failure figure; empty where no cross-encoder was in the run.
        name: the cross-encoder's.
        inversions: hazard -> its inversion figure. A scorer that calls everything unlike never fails by the limit, and
            is of no use: it must not prefer the contradiction more often than the limit either.
    """
    limit = item.at_most if item.at_most is not None else 0.0
    if not failures:
        return ItemAnswer(item.number, "not assessed", "no cross-encoder was audited in this run")
    measured = {h: f for h, f in failures.items() if isinstance(f, Estimate)}
    said = f"{name}: " + ", ".join(f"{h} {f.k}/{f.n}" for h, f in measured.items())
    judged = list(measured.items()) + [
        (h, f) for h, f in (inversions or {}).items() if isinstance(f, Estimate)
    ]
    if over := sorted({h for h, f in judged if f.lower is not None and f.lower > limit}):
        why = f"more than {limit:.0%} fail or are inverted in {', '.join(over)}; no further mitigation was measured"
        return ItemAnswer(item.number, "not met", f"{said}; {why}")
    if len(measured) < len(failures):
        return ItemAnswer(item.number, "not assessed", f"{said}; not measured in every hazard")
    if all(f.upper is not None and f.upper <= limit for _, f in judged):
        return ItemAnswer(item.number, "met", f"{said}; at most {limit:.0%} in every hazard")
    return ItemAnswer(item.number, "not assessed", f"{said}; too few to decide at {limit:.0%}")

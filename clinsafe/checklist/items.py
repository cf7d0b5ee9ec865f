"""The ten-item safety checklist: each item *met*, *met by mitigation*, *not met* or *not assessed*."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from clinsafe.checklist.gates import GateResult
from clinsafe.content import Content, Record
from clinsafe.protocols import Figures, SystemKind
from clinsafe.stats import Estimate, Figure

Answer: TypeAlias = Literal["met", "met by mitigation", "not met", "not assessed"]


class Item(Record):
    """One item; `n_min` is the minimum of test pairs or queries the paper asks for.

    `at_most` is the share of failures from which a cross-encoder needs more mitigation; `parts` are what an institution
    has to have in place.
    """

    number: int
    title: str
    hazard: str | None = None
    n_min: Annotated[int, Field(ge=0, le=1_000_000)]
    assessed_by: Literal["suite", "cross_encoder", "institution"]
    criterion: str
    at_most: Annotated[float, Field(ge=0, le=1)] | None = None
    parts: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _answerable(self) -> Item:
        if (self.assessed_by == "institution") != bool(self.parts):
            raise ValueError("an item that the institution answers has parts, and no other item has")
        if (self.assessed_by == "cross_encoder") != (self.at_most is not None):
            raise ValueError(
                "an item that a cross-encoder answers has a limit (at_most), and no other item has"
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


def answer_by_suite(
    item: Item, figures: Figures, gates: Sequence[GateResult], kind: SystemKind
) -> ItemAnswer:
    """Items 1 to 6, from the threshold gate of their hazard; they speak of the cosine of an embedding model."""
    if kind != "bi-encoder":
        return ItemAnswer(item.number, "not assessed", f"asks for an embedding model; this is a {kind}")
    gate = next((g for g in gates if g.hazard == item.hazard and g.metric == "failure"), None)
    figure = figures.get(gate.key) if gate else None
    if gate is None or not isinstance(figure, Estimate):
        return ItemAnswer(item.number, "not assessed", "the figure was not measured")
    measured = f"{figure.k} of {figure.n} pairs above the threshold"
    if figure.n < item.n_min:
        return ItemAnswer(item.number, "not assessed", f"{measured}; the item asks for {item.n_min} pairs")
    if gate.decision == "INCONCLUSIVE":
        return ItemAnswer(item.number, "not assessed", f"{measured}; too few to decide at {gate.limit}")
    verdict: Answer = "met" if gate.decision == "PASS" else "not met"
    return ItemAnswer(item.number, verdict, f"{measured}; limit on the rate: {gate.limit}")


def answer_by_cross_encoder(item: Item, failures: Mapping[str, Figure], name: str) -> ItemAnswer:
    """Item 7: validated in every hazard, and in none does it fail more often than the limit.

    Args:
        failures: hazard -> its failure figure; empty where no cross-encoder was in the run.
        name: the cross-encoder's.
    """
    limit = item.at_most if item.at_most is not None else 0.0
    if not failures:
        return ItemAnswer(item.number, "not assessed", "no cross-encoder was audited in this run")
    measured = {h: f for h, f in failures.items() if isinstance(f, Estimate)}
    said = f"{name}: " + ", ".join(f"{h} {f.k}/{f.n}" for h, f in measured.items())
    if len(measured) < len(failures):
        return ItemAnswer(item.number, "not assessed", f"{said}; not measured in every hazard")
    if over := [h for h, f in measured.items() if f.lower is not None and f.lower > limit]:
        why = f"more than {limit:.0%} fail in {', '.join(over)}, and no further mitigation was measured"
        return ItemAnswer(item.number, "not met", f"{said}; {why}")
    if all(f.upper is not None and f.upper <= limit for f in measured.values()):
        return ItemAnswer(item.number, "met", f"{said}; at most {limit:.0%} in every hazard")
    return ItemAnswer(item.number, "not assessed", f"{said}; too few to decide at {limit:.0%}")

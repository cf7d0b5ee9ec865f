"""The ten-item safety checklist: each item *met*, *met by mitigation*, *not met* or *not assessed*."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from clinsafe.checklist.gates import GateResult
from clinsafe.content import Content, Record
from clinsafe.protocols import Figures
from clinsafe.stats import Estimate

Answer: TypeAlias = Literal["met", "met by mitigation", "not met", "not assessed"]


class Item(Record):
    """One item; `n_min` is the minimum of test pairs or queries the paper asks for."""

    number: int
    title: str
    hazard: str | None = None
    n_min: Annotated[int, Field(ge=0, le=1_000_000)]
    assessed_by: Literal["suite", "cross_encoder", "end_to_end", "institution"]
    criterion: str


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


WHY_NOT = {
    "cross_encoder": "no cross-encoder was audited in this run",
    "end_to_end": "an audit of an embedding model does not run a retrieval pipeline",
    "institution": "to be answered by the institution that deploys the system",
}


def load_items(content: Content) -> ItemsFile:
    """The file."""
    return content.yaml("checklist/items.yaml", ItemsFile)


def answer(file: ItemsFile, figures: Figures, gates: Sequence[GateResult]) -> list[ItemAnswer]:
    """Answer all items from the threshold gate of their hazard."""
    return [_answer(item, figures, gates) for item in file.items]


def _answer(item: Item, figures: Figures, gates: Sequence[GateResult]) -> ItemAnswer:
    if item.assessed_by != "suite":
        return ItemAnswer(item.number, "not assessed", WHY_NOT[item.assessed_by])
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

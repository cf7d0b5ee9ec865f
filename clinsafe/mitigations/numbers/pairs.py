"""Two facts side by side, and an index of facts by what they can be compared on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from clinsafe.protocols import Fact

Index: TypeAlias = dict[str, list[tuple[float, bool, Fact, float]]]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two aligned facts. `why`: value, unit, schedule or limit; "" where they agree."""

    query: Fact
    passage: Fact
    score: float
    why: str
    forms: tuple[tuple[Any, ...] | None, tuple[Any, ...] | None] = (None, None)


def names_of(one: Mapping[str, Any]) -> list[str]:
    """Under what a fact that can be compared with this one stands in the index."""
    return [
        *(form[0] for form in one["forms"]),
        one["raw_name"],
        *(f"of {key}" for key in one["subject_keys"]),
    ]


def index_of(facts: Sequence[Fact], wanted: set[str]) -> Index:
    """Dimension, printed number and subject -> (low, whether limit or range, fact, half of the last printed digit)."""
    index: Index = {name: [] for name in wanted}
    for fact in facts:
        normal = fact.normal
        for form in normal["forms"]:
            wide = bool(normal["sign"]) or form[1] != form[2]
            if form[0] in index:
                index[form[0]].append((form[1], wide, fact, form[4]))
        for name in (normal["raw_name"], f"of {normal['subject']}"):
            if name in index:
                index[name].append((0.0, False, fact, 0.0))
    return index

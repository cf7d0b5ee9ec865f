"""Cases by the hundred: what the pages say of them by subtype and rule family, instead of naming each.

The record keeps every id (``assessments[].anomalies``); a page that lists thousands is read by nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from clinsafe.reports.evidence import CaseRecord
from clinsafe.reports.suite_record import Family

NAMED = 12
"""Ids that are printed where a list has no natural groups."""
FAMILIES = 8
"""Rule families that are printed for a hazard, those with the most faults; the others stand together."""


@dataclass(frozen=True, slots=True)
class FamilyRow:
    """A rule family, or the rest of them: its cases, and event -> how many of them have that fault."""

    name: str
    n: int
    faults: Mapping[str, int]


def by_subtype(cases: Sequence[CaseRecord], found: Collection[str]) -> str:
    """``212 of 530: finding 40/90, drug 12/80``, the worst share first; cases are those of one hazard."""
    ids = set(found)
    every = Counter(case.subtype for case in cases)
    faulty = Counter(case.subtype for case in cases if case.id in ids)
    if not faulty:
        return f"none of {len(cases)}"
    worst = sorted(faulty, key=lambda name: (-faulty[name] / every[name], name))
    parts = ", ".join(f"{name.replace('_', ' ')} {faulty[name]}/{every[name]}" for name in worst)
    return f"{sum(faulty.values())} of {len(cases)}: {parts}"


def by_family(
    families: Mapping[str, Family], anomalies: Mapping[str, Sequence[str]], first: str
) -> list[FamilyRow]:
    """Families of one hazard.

    Args:
        families: name -> its cases.
        anomalies: event -> ids of the cases with that fault.
        first: the event by whose share they are ordered.
    """
    faulty = {event: set(ids) for event, ids in anomalies.items()}
    rows = [
        FamilyRow(name, len(one.cases), {event: len(ids & set(one.cases)) for event, ids in faulty.items()})
        for name, one in families.items()
    ]
    rows.sort(key=lambda row: (-row.faults[first] / row.n if row.n else 0.0, -row.n, row.name))
    shown, rest = rows[:FAMILIES], rows[FAMILIES:]
    if not rest:
        return shown
    together = {event: sum(row.faults[event] for row in rest) for event in faulty}
    return [*shown, FamilyRow(f"{len(rest)} others", sum(row.n for row in rest), together)]


def named(ids: Sequence[str]) -> str:
    """Some ids, and how many there are in all."""
    if len(ids) <= NAMED:
        return ", ".join(ids) or "none"
    return f"{len(ids)}: {', '.join(ids[:NAMED])} and others"

"""The hazards, declared once in ``checklist/hazards.yaml``; their order is the order of every table."""

from __future__ import annotations

from clinsafe.content import Content, Record


class Hazard(Record):
    """One category of dangerous meaning change; `item` is the checklist item that answers for it."""

    id: str
    name: str
    short: str
    question: str
    harm: str
    item: int


class Hazards(Record):
    """The file."""

    hazards: list[Hazard]


def load_hazards(content: Content) -> list[Hazard]:
    """All hazards in order."""
    return content.yaml("checklist/hazards.yaml", Hazards).hazards

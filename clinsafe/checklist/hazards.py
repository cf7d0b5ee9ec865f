"""The hazards, declared once in ``checklist/hazards.yaml``; their order is the order of every table."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

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

    hazards: Annotated[list[Hazard], Field(min_length=1)]

    @model_validator(mode="after")
    def _once_each(self) -> Hazards:
        ids = [h.id for h in self.hazards]
        if len(set(ids)) < len(ids):
            raise ValueError("a hazard id is declared twice")
        return self


def load_hazards(content: Content) -> list[Hazard]:
    """All hazards in order."""
    return content.yaml("checklist/hazards.yaml", Hazards).hazards

"""What people declare about a system, its use and its anomalies: stored and printed, never computed (decision D12)."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from clinsafe.content import Record

NOT_DECLARED = "not declared"
OTHER_SCHEME = "other"


def _day(value: str) -> str:
    if value and value != NOT_DECLARED:
        date.fromisoformat(value)
    return value


Day: TypeAlias = Annotated[str, AfterValidator(_day)]
"""``YYYY-MM-DD``, or nothing."""


class DeclaredClass(Record):
    """One classification as the manufacturer declares it.

    `scheme` is the id of a scheme in ``checklist/regulatory.yaml`` (``mdr-class``), or ``other``; `value` one of that
    scheme's values, or free text.
    """

    scheme: str = OTHER_SCHEME
    value: Annotated[str, Field(min_length=1)]
    rationale: str = NOT_DECLARED
    date: Day = NOT_DECLARED
    by: str = NOT_DECLARED


class Disposition(Record):
    """What was decided about the anomalies of a hazard, why, by whom, and when."""

    hazard: Annotated[str, Field(min_length=1)]
    decision: Literal["open", "accepted", "controlled elsewhere", "not used"]
    rationale: Annotated[str, Field(min_length=1)]
    by: Annotated[str, Field(min_length=1)]
    date: Annotated[Day, Field(min_length=1)]


class Declaration(Record):
    """Everything that people state and no measurement can."""

    document_number: str = NOT_DECLARED
    document_version: str = NOT_DECLARED
    product: str = NOT_DECLARED
    product_version: str = NOT_DECLARED
    manufacturer: str = NOT_DECLARED
    operator: str = "not stated"
    intended_use: str = NOT_DECLARED
    users: str = NOT_DECLARED
    environment: str = NOT_DECLARED
    population: str = NOT_DECLARED
    misuse: list[str] = Field(default_factory=list)
    classes: list[DeclaredClass] = Field(default_factory=list)
    policy: str = NOT_DECLARED
    pipeline: str = NOT_DECLARED
    dispositions: list[Disposition] = Field(default_factory=list)
    required_roles: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list)

    def disposition(self, hazard: str) -> Disposition | None:
        """The last one that was recorded for a hazard."""
        return next((d for d in reversed(self.dispositions) if d.hazard == hazard), None)

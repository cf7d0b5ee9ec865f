"""What is wrong with a record that is no document."""

from __future__ import annotations

from dataclasses import dataclass

NOT_TEXT = "not UTF-8 text"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a record is no document; never quotes it."""

    field: str | None
    message: str

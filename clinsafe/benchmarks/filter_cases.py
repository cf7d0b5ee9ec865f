"""Cases that a user brings to the filters: ``{id, category, query, passage, label}`` a line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from clinsafe.benchmarks.filters import Pair
from clinsafe.content import Record, load_jsonl
from clinsafe.errors import ContentError, UsageError

Text = Annotated[str, Field(min_length=1, max_length=100_000)]


class FilterCase(Record):
    """One line; notes and sources beside it are left alone. `category` is a hazard id."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: Annotated[str, Field(min_length=1, max_length=120)]
    category: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    query: Text
    passage: Text
    label: Literal["conflict", "safe"]


def load_cases(path: Path) -> list[Pair]:
    """Read a file of cases.

    Raises:
        UsageError: no such file.
        ContentError: file, line and field of the first fault; an id given twice.
    """
    if not path.is_file():
        raise UsageError(f"{path}: no such file; cases are JSON Lines of id, category, query, passage, label")
    pairs: list[Pair] = []
    seen: set[str] = set()
    for number, case in enumerate(load_jsonl(path, FilterCase), start=1):
        if case.id in seen:
            raise ContentError(path, number, "id", f"{case.id!r} is given twice")
        seen.add(case.id)
        role: Literal["conflict", "safe"] = case.label
        pairs.append(Pair(case.id, case.category, "", "", role, case.query, case.passage))
    return pairs

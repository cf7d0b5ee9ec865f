"""The pure function that everything drives: a batch of passages in, as many rows out, whatever a passage does."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from clinsafe.corpus import Window
from clinsafe.scale.job import Failed, Job, Work, start


class Row(NamedTuple):
    """One row of output.

    Attributes:
        id: of the passage, ``<document>#<n>``.
        document: id of the document.
        start, end: half-open character range in the document's text.
        sha256: of the passage's text, so that a later reader knows whether it is still the same.
        value: facts as JSON, or a vector; None where `error` says why.
        error: kind of the error, "" where there is none.
    """

    id: str
    document: str
    start: int
    end: int
    sha256: str
    value: Any
    error: str


started = lru_cache(maxsize=2)(start)  # one process works at one job for hours


def process(rows: Sequence[Window], job: Job) -> list[Row]:
    """One row for each passage, in their order. A passage that cannot be worked on costs nobody else's row.

    Raises:
        ClinsafeError: the job itself cannot be started.
    """
    return [_row(window, value) for window, value in zip(rows, _values(started(job), rows), strict=True)]


def failed(window: Window, kind: str) -> Row:
    """The row of a passage that could not be worked on."""
    return _row(window, Failed(kind))


def text_hash(text: str) -> str:
    """Hex SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _values(work: Work, rows: Sequence[Window]) -> list[Any]:
    try:
        found = list(work.run(rows))
        if len(found) == len(rows):
            return found
        kind = "WrongLength"
    except (Exception, SystemExit) as error:  # noqa: BLE001 - filters and models may be anybody's code
        kind = type(error).__name__
    if len(rows) == 1:
        return [Failed(kind)]
    return [value for row in rows for value in _values(work, [row])]


def _row(window: Window, value: Any) -> Row:
    lost = isinstance(value, Failed)
    return Row(
        window.id,
        window.document,
        window.start,
        window.end,
        text_hash(window.text),
        None if lost else value,
        value.kind if lost else "",
    )

"""Judgements on disk, by the hash of everything that they depend on. JSON, never pickle.

A file is written beside its place and moved there, so that two processes and Ctrl-C leave whole files alone. The folder
is its owner's: a judge's rationale may quote a patient's text.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StrictFloat, StrictInt, ValidationError, model_validator

from clinsafe.content import Record
from clinsafe.errors import UsageError
from clinsafe.protocols import Judgement

LARGEST = 1 << 20  # bytes of one file


class _Entry(Record):
    """One file. `value` exists only where it was scored."""

    key: str
    outcome: Literal["scored", "unscored", "refused"]
    value: Annotated[StrictFloat | StrictInt, Field(ge=0, le=1)] | None
    reason: str
    rationale: str

    @model_validator(mode="after")
    def _a_value_where_scored(self) -> _Entry:
        if (self.outcome == "scored") != (self.value is not None):
            raise ValueError("there is a value where it was scored, and only there")
        return self


class JudgeCache:
    """Judgements by key.

    Errors are not kept: a later run asks again. A file that is not what was written is passed over and written anew.

    Args:
        folder: made where it is not there.

    Attributes:
        unwritten: judgements that could not be kept (a full disk); they are asked for again the next time.

    Raises:
        UsageError: the folder cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self.unwritten = Path(folder), 0
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"the judge's cache {folder} cannot be made ({error.strerror})") from None
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise UsageError(f"the judge's cache {folder} cannot be written to")

    def get(self, key: str) -> Judgement | None:
        """The judgement of this key; None where there is none that is whole."""
        try:
            with self._path(key).open("rb") as stream:
                content = stream.read(LARGEST + 1)
            entry = _Entry.model_validate_json(content)
        except (OSError, ValidationError, RecursionError):
            return None
        if entry.key != key or len(content) > LARGEST:
            return None
        value = None if entry.value is None else float(entry.value)
        return Judgement(entry.outcome, value, entry.reason, entry.rationale)

    def put(self, key: str, judgement: Judgement) -> None:
        """Keep a judgement; an error is not kept."""
        if judgement.outcome == "error":
            return
        path = self._path(key)
        content = json.dumps(
            {
                "key": key,
                "outcome": judgement.outcome,
                "value": judgement.value,
                "reason": judgement.reason,
                "rationale": judgement.rationale[: LARGEST // 8],
            }
        )
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            self._write(path, content.encode())
        except OSError:
            self.unwritten += 1

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"

    @staticmethod
    def _write(path: Path, content: bytes) -> None:
        handle, beside = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")  # mode 0600
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            Path(beside).replace(path)
        except BaseException:  # Ctrl-C too
            with contextlib.suppress(OSError):
                Path(beside).unlink()
            raise


def key_of(*parts: Any) -> str:
    """Hex SHA-256 of anything that JSON can hold."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

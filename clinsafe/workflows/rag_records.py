"""What was measured, question by question, while a run is on: one line each, so that a stopped run goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO

from pydantic import ValidationError

from clinsafe.errors import UsageError
from clinsafe.rag.values import ItemRecord


class Ledger:
    """Records in the order in which they were measured, on disk and in memory.

    Use `Ledger.open`. A line that was cut off when a run was killed is dropped and measured again; a ledger of another
    plan is begun anew.
    """

    def __init__(self, stream: IO[bytes] | None, records: list[ItemRecord]) -> None:
        self._stream, self._records = stream, records
        self._ids = {record.id for record in records}

    @classmethod
    def open(cls, folder: Path | None, label: str, fingerprint: str) -> Ledger:
        """The ledger of one system.

        Args:
            folder: where it lies; None keeps it in memory alone.
            label: of the system.
            fingerprint: of everything that shapes what is measured.

        Raises:
            UsageError: it cannot be written.
        """
        if folder is None:
            return cls(None, [])
        path = (
            folder
            / f"{re.sub(r'[^A-Za-z0-9.-]+', '-', label).strip('-')[:60] or 'system'}-{fingerprint[:16]}.jsonl"
        )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            records, good = _read(path)
            stream = path.open("ab")
            stream.truncate(good)
        except OSError as error:
            raise UsageError(f"{path}: cannot be written ({error.strerror or error})") from None
        return cls(stream, records)

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, id_: object) -> bool:
        return id_ in self._ids

    def append(self, records: Iterable[ItemRecord]) -> None:
        """Keep what was measured; it is on disk when this returns."""
        for record in records:
            self._records.append(record)
            self._ids.add(record.id)
            if self._stream is not None:
                self._stream.write(record.model_dump_json().encode() + b"\n")
        if self._stream is not None:
            self._stream.flush()

    def records(self) -> list[ItemRecord]:
        """All so far."""
        return list(self._records)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream.close()


def _read(path: Path) -> tuple[list[ItemRecord], int]:
    """The whole lines of a ledger, and how many bytes they take."""
    records: list[ItemRecord] = []
    good = 0
    if not path.is_file():
        return records, good
    with path.open("rb") as stream:
        for line in stream:
            try:
                record = ItemRecord.model_validate(json.loads(line)) if line.endswith(b"\n") else None
            except (ValueError, ValidationError):
                record = None
            if record is None:
                break
            records.append(record)
            good += len(line)
    return records, good

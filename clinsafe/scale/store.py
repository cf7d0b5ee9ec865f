"""Facts that were read before, found by passage id: at query time there is only comparing left.

Facts that cannot be trusted (another fingerprint, another text, a passage that failed or was never read) come back as
facts that no filter looked at, so that whatever compares them says *unchecked* and never *safe*.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from clinsafe.content import Content
from clinsafe.errors import UsageError
from clinsafe.mitigations.facts import TextFacts
from clinsafe.scale.folder import part_name, read_record
from clinsafe.scale.process import text_hash
from clinsafe.scale.reading import package_of
from clinsafe.scale.table import GROUP, arrow

STALE = "read: the stored facts were made with other rules or versions"
CHANGED = "read: the passage is another text than the one that was read"
ABSENT = "read: no facts of this passage are stored"
CACHED = 16  # groups of rows that stay decoded


class FactStore:
    """Passage id -> facts, from the parts of a finished job. Only ids stay in memory, 16 bytes a passage.

    Args:
        folder: output of the job ``read``.
        current: fingerprint of the rules in use; stored facts of another one are not trusted.

    Attributes:
        fingerprint: of the stored facts; `stale` says whether it is another than the current one.

    Raises:
        UsageError: no such output, one of another job, or one with parts missing.
    """

    def __init__(self, folder: Path, current: str) -> None:
        record = read_record(folder)
        if record["job"] != "read":
            raise UsageError(f"{folder}: holds the output of the job {record['job']}, not facts")
        self.fingerprint = str(record["made_with"]["fingerprint"])
        self.stale = self.fingerprint != current
        filters = record["made_with"]["filters"]
        self._filters = tuple(filters)
        self._other = {name: STALE for name, package in filters.items() if package != package_of(name)}
        self._parts = [folder / part_name(number) for number in range(_parts(folder))]
        self._hashes, self._places = _index(self._parts)
        self._group = lru_cache(maxsize=CACHED)(self._read_group)

    def __len__(self) -> int:
        return len(self._hashes)

    def __contains__(self, passage: str) -> bool:
        return self._row(passage) is not None

    def __call__(self, passage: str, text: str | None = None) -> TextFacts:
        """The facts of a passage; with its `text`, only if that is the one which was read."""
        row = self._row(passage)
        if row is None:
            return self._unchecked(ABSENT)
        if row["error"]:
            return self._unchecked(f"read: failed with {row['error']}")
        if text is not None and text_hash(text) != row["sha256"]:
            return self._unchecked(CHANGED)
        return (
            self._unchecked(STALE)
            if self.stale
            else self._trusted(TextFacts.from_json(json.loads(row["facts"])))
        )

    def _trusted(self, facts: TextFacts) -> TextFacts:
        """Without the filters whose package is another one now."""
        if not self._other:
            return facts
        kept = {name: found for name, found in facts.by_filter.items() if name not in self._other}
        return TextFacts(kept, {**facts.unchecked, **self._other})

    def _unchecked(self, why: str) -> TextFacts:
        return TextFacts({}, dict.fromkeys(self._filters, why))

    def _row(self, passage: str) -> Mapping[str, Any] | None:
        key = _hash(passage)
        for at in range(int(np.searchsorted(self._hashes, key)), len(self._hashes)):
            if self._hashes[at] != key:
                break
            part, row = divmod(int(self._places[at]), 1 << 32)
            found: Mapping[str, Any] = self._group(part, row // GROUP)[row % GROUP]
            if found["id"] == passage:
                return found
        return None

    def _read_group(self, part: int, group: int) -> list[dict[str, Any]]:
        _, pq = arrow()
        with pq.ParquetFile(self._parts[part]) as file:
            rows: list[dict[str, Any]] = file.read_row_group(
                group, columns=["id", "sha256", "facts", "error"]
            ).to_pylist()
        return rows


def load_facts(
    folder: Path, current: str | None = None, *, content: Content | None = None, model: str | None = None
) -> FactStore:
    """Stored facts, ready to be looked up by passage id.

    Args:
        folder: output of ``clinsafe guard annotate``.
        current: fingerprint of the rules in use, ``reading.made_with(stack, content)["fingerprint"]``; None computes
            that of the rules in `content` with the pipeline `model`.
        content, model: as for `clinsafe.workflows.guard.build_stack`.

    Raises:
        UsageError: see `FactStore`.
    """
    if current is None:
        from clinsafe.scale.reading import made_with
        from clinsafe.workflows.guard import build_stack

        content = content or Content()
        current = str(made_with(build_stack(content, model=model), content)["fingerprint"])
    return FactStore(folder, current)


def _parts(folder: Path) -> int:
    """How many parts there are; all of them must be there."""
    counts = []
    for path in folder.glob("_summary-*-of-*.json"):
        try:
            counts.append(int(json.loads(path.read_text(encoding="utf-8"))["parts"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path}: not a summary of `clinsafe guard annotate`") from error
    if not counts:
        raise UsageError(f"{folder}: no shard has finished there; run `clinsafe guard annotate` to its end")
    missing = [number for number in range(max(counts)) if not (folder / part_name(number)).is_file()]
    if missing:
        what = f"{len(missing)} of {max(counts)} parts are missing, the first is {part_name(missing[0])}"
        raise UsageError(f"{folder}: {what}; run the shards that are not done")
    return max(counts)


def _index(parts: list[Path]) -> tuple[Any, Any]:
    """Sorted hashes of all ids, and part << 32 | row beside each."""
    hashes: list[Any] = [np.empty(0, np.uint64)]
    places: list[Any] = [np.empty(0, np.uint64)]
    for number, ids in enumerate(_ids(parts)):
        hashes.append(np.fromiter((_hash(name) for name in ids), np.uint64, len(ids)))
        places.append(np.arange(len(ids), dtype=np.uint64) + np.uint64(number << 32))
    every, place = np.concatenate(hashes), np.concatenate(places)
    order = np.argsort(every, kind="stable")
    return every[order], place[order]


def _ids(parts: list[Path]) -> Iterator[list[str]]:
    pa, pq = arrow()
    for path in parts:
        try:
            yield pq.read_table(path, columns=["id"]).column("id").to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise UsageError(
                f"{path}: cannot be read as Parquet; remove it, and run the same job again"
            ) from error


def _hash(name: str) -> Any:
    return np.uint64(int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little"))

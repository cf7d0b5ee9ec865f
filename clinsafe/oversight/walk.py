"""Walk over a whole log and name the first record that is not as it was written.

What no walk can show is a tail that was cut off, or a log that was written anew by somebody with the key: that needs a
checkpoint (`clinsafe.oversight.checkpoint`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from clinsafe.oversight.chain import GENESIS, Row, Unreadable, authentic
from clinsafe.oversight.keys import LogKey

FaultKind: TypeAlias = Literal[
    "changed", "missing", "inserted", "reordered", "duplicated", "wrong_key", "unreadable",
    "other_log", "truncated", "rewritten", "checkpoint_invalid", "checkpoint_missing",
]  # fmt: skip
"""What is wrong; those of the last line are found by a checkpoint alone."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The first record that is not as it was written.

    Attributes:
        kind: what happened to it.
        seq: its number, counted from 1; for ``missing`` the first that is gone; 0 for a checkpoint that names none.
        place: where that shows (``line 7``).
        detail: one sentence.
    """

    kind: FaultKind
    seq: int
    place: str
    detail: str

    def __str__(self) -> str:
        where = f"record {self.seq} ({self.place})" if self.seq else self.place
        return f"{where}: {self.kind.replace('_', ' ')}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Chain:
    """What a walk over a whole log found.

    Attributes:
        fault: the first altered record, None where every record is as it was written.
        count: records that are intact, from the first on.
        head: code of the last intact record.
        log_id: the log's own id, "" where its first record is not intact.
        key_id: of the key that made the last intact record.
        announced: number of the last record that announces a checkpoint, 0 for none.
        macs: codes of the records that were asked for.
    """

    fault: Fault | None
    count: int = 0
    head: str = GENESIS
    log_id: str = ""
    key_id: str = ""
    announced: int = 0
    macs: Mapping[int, str] = field(default_factory=dict)


def walk(keys: Mapping[str, LogKey], rows: Iterable[Row | Unreadable]) -> Fault | None:
    """The first altered record, or None; see `inspect`."""
    return inspect(keys, rows).fault


def inspect(
    keys: Mapping[str, LogKey],
    rows: Iterable[Row | Unreadable],
    *,
    wanted: Collection[int] = (),
    tell: Callable[[int], None] | None = None,
) -> Chain:
    """Walk over a whole log, in constant memory.

    Args:
        keys: key id -> key, all that the log was ever made with.
        rows: as they stand in the log.
        wanted: numbers of the records whose codes are handed back.
        tell: called with the count now and then.
    """
    waiting = iter(rows)
    count, head, log_id, announced = 0, GENESIS, "", 0
    key: LogKey | None = None
    needed = ""
    macs: dict[int, str] = {}
    fault: Fault | None = None
    for row in waiting:
        if count == 0:
            needed = _claimed_key(row)
            key = keys.get(needed)
        if not (isinstance(row, Row) and row.seq == count + 1 and row.prev == head and authentic(row, key)):
            fault = _diagnose(row, count + 1, head, key, needed, keys, waiting)
            break
        count, head = row.seq, row.mac
        if count in wanted:
            macs[count] = head
        # Most records are decisions: parsing only the others halves the time of a walk.
        if count == 1:
            log_id = str(row.record.get("log_id", ""))
        elif '"event":"rotated"' in row.text and row.record.get("event") == "rotated":
            needed = str(row.record.get("key_id", ""))
            key = keys.get(needed)
        elif '"event":"checkpoint"' in row.text and row.record.get("event") == "checkpoint":
            announced = count
        if tell is not None and count % 1000 == 0:
            tell(count)
    if count == 0 and fault is None:
        fault = Fault("missing", 1, "the start", "the log is empty; its first record is gone")
    return Chain(fault, count, head, log_id, needed, announced, macs)


def _claimed_key(row: Row | Unreadable) -> str:
    """The key that the first record says it was made with; a hint until the record is found authentic."""
    if isinstance(row, Unreadable):
        return ""
    try:
        record = json.loads(row.text)
    except (ValueError, RecursionError):
        return ""
    return str(record.get("key_id", "")) if isinstance(record, dict) else ""


class _Ahead(NamedTuple):
    """What the rest of the log holds: the record that was expected, another of the number found, any genuine one."""

    expected: bool
    again: bool
    genuine: bool


def _look_ahead(
    row: Row | Unreadable, at: int, prev: str, known: Collection[LogKey], rest: Iterable[Row | Unreadable]
) -> _Ahead:
    expected = again = genuine = False
    here = row.seq if isinstance(row, Row) else 0
    for other in rest:
        # Codes are computed for the few rows that matter; for the first record, any genuine one tells the key is right.
        if isinstance(other, Row) and (other.seq in (at, here) or (at == 1 and not genuine)):
            real = any(authentic(other, key) for key in known)
            genuine |= real
            expected |= real and other.seq == at and other.prev == prev
            again |= real and other.seq == here
    return _Ahead(expected, again, genuine)


def _diagnose(
    row: Row | Unreadable, at: int, prev: str, key: LogKey | None, needed: str, keys: Mapping[str, LogKey],
    rest: Iterator[Row | Unreadable],
) -> Fault:  # fmt: skip
    """Say what happened where record `at` was expected and `row` stands; looks through the rest of the log once."""
    ahead = _look_ahead(row, at, prev, keys.values(), rest)
    if isinstance(row, Unreadable):
        if ahead.expected:
            return Fault("inserted", at, row.place, f"something stands before record {at}, and {row.why}")
        return Fault(row.kind, at, row.place, row.why)
    if any(authentic(row, one) for one in keys.values()):
        return Fault(*_misplaced(row, at, prev, needed, ahead))
    if ahead.expected:
        detail = f"a record that was not made with the log's key stands before record {at}"
        return Fault("inserted", at, row.place, detail)
    if key is None and not ahead.genuine:
        return Fault(
            "wrong_key", at, row.place, f"made with {_named(needed)}, which is not among those given"
        )
    return Fault("changed", at, row.place, "its bytes are not those that were written")


def _misplaced(row: Row, at: int, prev: str, needed: str, ahead: _Ahead) -> tuple[FaultKind, int, str, str]:
    """A record that is genuine, but not the one that belongs here."""
    kind: FaultKind
    if row.seq < at:
        kind, detail = "duplicated", f"record {row.seq} stands here once more"
    elif row.seq > at and not ahead.expected:
        gone = f"record {at} is" if row.seq == at + 1 else f"records {at} to {row.seq - 1} are"
        kind, detail = "missing", f"{gone} gone; record {row.seq} follows"
    elif row.seq > at and ahead.again:
        kind, detail = "inserted", f"a second record {row.seq} stands before record {at}"
    elif row.seq > at:
        kind, detail = "reordered", f"record {row.seq} stands before record {at}"
    elif row.prev != prev:
        kind = "inserted" if ahead.expected else "changed"
        detail = "the record that stands here belongs to another log, or to another past of this one"
    else:
        kind, detail = "wrong_key", f"made with another key than {_named(needed)}, which was in force there"
    return kind, at, row.place, detail


def _named(key_id: str) -> str:
    return f"key {key_id}" if re.fullmatch(r"[0-9a-f]{16}", key_id) else "a key that it does not name"

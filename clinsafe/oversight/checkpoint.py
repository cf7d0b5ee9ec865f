"""Signed checkpoints: what the chain alone cannot show.

A checkpoint says, signed, which record was the last one when it was made, and its code. With it `compare` sees a tail
that was cut off, and a log that was written anew, also by somebody who holds the log's key but not the signing key. The
log announces each checkpoint in a record of its own, which it covers: an older one put in its place is told.

Nothing here knows keys or certificates: signing and checking are handed in.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import rfc8785
from pydantic import Field, ValidationError

from clinsafe.content import Record
from clinsafe.errors import ClinsafeError
from clinsafe.oversight.base import ChainLog
from clinsafe.oversight.records import stamp
from clinsafe.oversight.walk import Chain, Fault

Sign = Callable[[bytes], bytes]
"""Bytes -> a detached signature over them."""
Check = Callable[[bytes, bytes, datetime], Sequence[str]]
"""Bytes, signature, when it was made -> problems, one line each; empty means that it holds."""
EVERY = 1_000
LARGEST = 1_000_000  # bytes of a checkpoint file
log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())


class Statement(Record):
    """What is signed.

    Attributes:
        log_id: of the log's first record.
        seq: the last record, the one that announces this checkpoint.
        mac: its code.
        count: records in the log, equal to `seq`.
        time: when it was made, UTC.
        key_id: of the log key in force.
    """

    schema_version: Literal[1] = 1
    kind: Literal["clinsafe-log-checkpoint"] = "clinsafe-log-checkpoint"
    log_id: str = Field(pattern="^[0-9a-f]{32}$")
    seq: int = Field(ge=1)
    mac: str = Field(pattern="^[0-9a-f]{64}$")
    count: int = Field(ge=1)
    time: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
    key_id: str = Field(pattern="^[0-9a-f]{16}$")

    @property
    def data(self) -> bytes:
        """The bytes that are signed: RFC 8785."""
        return rfc8785.dumps(self.model_dump(mode="json"))

    @property
    def moment(self) -> datetime:
        """`time`; raises ValueError for a day that no calendar has."""
        return datetime.fromisoformat(self.time)


class _File(Record):
    statement: Statement
    signature: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A statement whose signature was found good."""

    statement: Statement
    name: str


def make(chain_log: ChainLog, log_id: str, sign: Sign, folder: Path, *, now: datetime | None = None) -> Path:
    """Announce a checkpoint in the log, sign it, and write ``checkpoint-<seq>.json`` into `folder`.

    Args:
        chain_log: the log.
        log_id: its id, as its first record or its maker says it.
        sign: see `Sign`.
        folder: made where it is missing; best on another disk, or one that the log's account may add to but not change.
        now: default the clock.

    Raises:
        ClinsafeError: the log cannot be appended to, the signer failed, or the file cannot be written.
    """
    row = chain_log.announce()
    statement = Statement(
        log_id=log_id, seq=row.seq, mac=row.mac, count=row.seq, time=stamp(now or datetime.now(UTC)),
        key_id=chain_log.key.id,
    )  # fmt: skip
    file = _File(statement=statement, signature=base64.b64encode(sign(statement.data)).decode())
    path = folder / f"checkpoint-{row.seq:09d}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f".checkpoint-{row.seq}-{os.getpid()}.tmp"
        with temporary.open("xb") as stream:
            stream.write(json.dumps(file.model_dump(mode="json"), indent=1).encode())
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        raise ClinsafeError(f"{path}: cannot be written ({error.strerror}); name another folder") from None
    return path


def files_in(folder: Path) -> list[Path]:
    """The checkpoint files of a folder; none where there is no folder."""
    return sorted(folder.glob("checkpoint-*.json"))


def read(paths: Iterable[Path], check: Check) -> tuple[list[Checkpoint], list[Fault]]:
    """Read checkpoint files and check their signatures.

    Returns:
        Those that hold, by record number; a fault for each that does not. A file that is missing is a fault, too.
    """
    held: list[Checkpoint] = []
    faults: list[Fault] = []
    for path in paths:
        try:
            if path.stat().st_size > LARGEST:
                raise ValueError("too large")
            file = _File.model_validate(json.loads(path.read_bytes(), object_pairs_hook=_once))
            signature = base64.b64decode(file.signature, validate=True)
            moment = file.statement.moment
            problems = (
                list(check(file.statement.data, signature, moment)) if signature else ["it is not signed"]
            )
            if file.statement.count != file.statement.seq:
                problems.append("its count is not its record's number")
            seq = file.statement.seq
        except OSError as error:
            seq, problems = 0, [f"cannot be read ({error.strerror})"]
        except (ValidationError, ValueError, RecursionError, binascii.Error):
            seq, problems = 0, ["is not a checkpoint of a log"]
        if problems:
            faults.append(Fault("checkpoint_invalid", seq, path.name, "; ".join(problems)))
        else:
            held.append(Checkpoint(file.statement, path.name))
    return sorted(held, key=lambda one: one.statement.seq), faults


def compare(chain: Chain, checkpoints: Sequence[Checkpoint]) -> list[Fault]:
    """What the log and its checkpoints disagree on; `chain` must have been walked with their numbers wanted.

    Only what is intact is compared: a record after the chain's own fault is that fault's matter.
    """
    faults: list[Fault] = []
    good = 0
    for one in checkpoints:
        said, place = one.statement, one.name
        if chain.log_id and said.log_id != chain.log_id:
            detail = f"the checkpoint is of log {said.log_id}, this is log {chain.log_id}"
            faults.append(Fault("other_log", 1, place, detail))
        elif said.seq > chain.count:
            if chain.fault is None:
                detail = f"the log had {said.seq} records on {said.time[:10]} and has {chain.count}"
                faults.append(Fault("truncated", chain.count + 1, place, detail))
        elif chain.macs.get(said.seq) != said.mac:
            detail = f"written anew: the first other record is one of {good + 1} to {said.seq}"
            faults.append(Fault("rewritten", good + 1, place, detail))
            break  # all later ones differ, too
        else:
            good = said.seq
    newest = max((one.statement.seq for one in checkpoints), default=0)
    if not faults and newest < chain.announced:
        known = f"the newest one given is of {newest}" if newest else "none was given"
        detail = (
            f"the log announces a checkpoint of record {chain.announced}; {known}: it was taken away, or making it "
            "failed, which a new one mends"
        )
        faults.append(Fault("checkpoint_missing", chain.announced, "checkpoints", detail))
    return faults


class Checkpointed:
    """A log that makes a checkpoint after every so many records; `clinsafe.protocols.DecisionLog`.

    A checkpoint that fails never takes the decision's record with it: `trouble` says why, a warning is logged, and it
    is tried again a tenth of `every` later.

    Args:
        chain_log: the log.
        log_id: its id.
        sign: see `Sign`.
        folder: where they go.
        every: how many records apart.
    """

    def __init__(
        self, chain_log: ChainLog, log_id: str, sign: Sign, folder: Path, *, every: int = EVERY
    ) -> None:
        self.log, self._log_id, self._sign, self._folder, self._every = (
            chain_log,
            log_id,
            sign,
            folder,
            max(2, every),
        )
        self.trouble, self._again = "", 0

    def append(self, record: Mapping[str, Any], /) -> str:
        """See `ChainLog.append`."""
        row = self.log.add(record)
        # One process alone is given this number, so several make one checkpoint.
        if row.seq % self._every == 0 or (self.trouble and row.seq >= self._again):
            try:
                make(self.log, self._log_id, self._sign, self._folder)
                self.trouble = ""
            except Exception as error:  # noqa: BLE001 - a signer may raise anything; the record itself is safe
                self._again = row.seq + max(1, self._every // 10)
                self.trouble = f"no checkpoint after record {row.seq} ({type(error).__name__})"
                log.warning("decision log: %s", self.trouble)
        return row.receipt

    def verify(self) -> Sequence[str]:
        """See `ChainLog.verify`; checkpoints are checked by `clinsafe log verify`, which knows whom to trust."""
        return self.log.verify()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a field is given twice")
    return dict(pairs)

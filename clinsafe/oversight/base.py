"""What every kind of log does, wherever it is kept: open it, append, change its key, read it, verify it."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from clinsafe.errors import ClinsafeError
from clinsafe.oversight.chain import GENESIS, Row, Unreadable, authentic, canonical, link, seal
from clinsafe.oversight.keys import LogKey
from clinsafe.oversight.records import SCHEMA_VERSION, stamp
from clinsafe.oversight.walk import Chain, inspect

Make = Callable[[Row | None], Sequence[Row]]
"""From the last row (None in a log that is not open yet) the rows to append."""


class BrokenLog(ClinsafeError):
    """The log cannot be appended to: its end is torn or altered. Nothing was written."""


class ChainLog(ABC):
    """A log with one chain; `clinsafe.protocols.DecisionLog`.

    Any number of processes may append to one log at the same time. Each append first finds the last record authentic
    and refuses to go on from one that is not; all earlier ones are checked by `verify`.

    Args:
        key: makes new records.
        old: keys that the log was made with before, for `verify`.
        clock: the time of the log's own records.
    """

    def __init__(
        self,
        key: LogKey,
        old: Sequence[LogKey] = (),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.key, self._clock = key, clock
        self.keys = {one.id: one for one in (*old, key)}
        self._seen: Row | None = None

    @property
    @abstractmethod
    def where(self) -> str:
        """Path or address, without a secret."""

    @abstractmethod
    def rows(self) -> Iterator[Row | Unreadable]:
        """All rows from the first on, as they stand there; what is appended meanwhile is left out."""

    @abstractmethod
    def _write(self, make: Make, *, new: bool = False) -> Sequence[Row]:
        """Append what `make` makes, all of it or nothing, while nobody else appends."""

    def create(self) -> str:
        """Open a new log; returns its id.

        Raises:
            ClinsafeError: there is one already, or it cannot be written.
        """
        log_id = uuid.uuid4().hex
        opened = self._event("opened", log_id=log_id, key_id=self.key.id)
        self._seen = self._write(lambda _: [link(self.key, GENESIS, 1, opened)], new=True)[-1]
        return log_id

    def append(self, record: Mapping[str, Any], /) -> str:
        """Append one record; returns its receipt, ``seq:mac``.

        Raises:
            UsageError: the record holds text, or is not JSON; nothing was written.
            BrokenLog: the log's end is torn or altered; nothing was written.
            ClinsafeError: the log cannot be written, or another process keeps it locked.
        """
        return self.add(record).receipt

    def add(self, record: Mapping[str, Any]) -> Row:
        """Like `append`, and returns the row."""
        text = canonical(
            record
        )  # written before the lock is taken: nobody waits for it, and what is no record is refused

        def make(last: Row | None) -> Sequence[Row]:
            end = self._checked(last)
            return [seal(self.key, end.mac, end.seq + 1, text)]

        self._seen = self._write(make)[-1]
        return self._seen

    def announce(self) -> Row:
        """Append the record that says a checkpoint is made of the log up to here, itself included."""
        return self.add(self._event("checkpoint"))

    def rotate(self, new: LogKey) -> None:
        """Go on with another key. The old one stays needed to verify what was made with it.

        Raises:
            ClinsafeError: as `append`, and if `new` is a key that the log was made with before.
        """
        if new.id in self.keys:
            raise ClinsafeError(f"{self.where}: key {new.id} was used in this log before; give a new one")
        rotated = self._event("rotated", key_id=new.id)
        resumed = self._event("resumed", key_id=new.id)

        def make(last: Row | None) -> Sequence[Row]:
            end = self._checked(last)
            closing = link(self.key, end.mac, end.seq + 1, rotated)
            # The second one, so that whoever has the new key alone finds the end of the log authentic.
            return [closing, link(new, closing.mac, closing.seq + 1, resumed)]

        self._seen = self._write(make)[-1]
        self.key = new
        self.keys[new.id] = new

    def inspect(self, wanted: Sequence[int] = (), tell: Callable[[int], None] | None = None) -> Chain:
        """Walk over the whole log; see `clinsafe.oversight.chain.inspect`."""
        return inspect(self.keys, self.rows(), wanted=wanted, tell=tell)

    def verify(self) -> tuple[str, ...]:
        """The first altered record as one line; empty: none is. A cut tail shows against a checkpoint alone."""
        fault = self.inspect().fault
        return () if fault is None else (str(fault),)

    def _checked(self, last: Row | None) -> Row:
        """The last row; refuses to append to what is not a whole log of this key."""
        if last is None:
            raise BrokenLog(f"{self.where}: no log was opened there; run `clinsafe log init`")
        if not authentic(last, self.key):
            raise BrokenLog(
                f"{self.where}: its last record was altered, or was not made with key {self.key.id}; nothing was "
                "appended: run `clinsafe log verify`"
            )
        seen = self._seen
        if seen is not None and (last.seq < seen.seq or (last.seq == seen.seq and last.mac != seen.mac)):
            raise BrokenLog(
                f"{self.where}: record {seen.seq}, appended before, is gone; nothing was appended: "
                "run `clinsafe log verify`"
            )
        return last

    def _event(self, event: str, **fields: str | int) -> dict[str, Any]:
        return {"schema_version": SCHEMA_VERSION, "event": event, "time": stamp(self._clock()), **fields}

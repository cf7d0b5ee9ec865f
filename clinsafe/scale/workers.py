"""Local processes that may die: a batch whose worker dies or hangs is done again, and at last without its poison.

A batch that ends its worker twice is taken apart; a passage that ends two workers on its own becomes an error row.
Everything else is done as if nothing had happened.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from clinsafe.corpus import Window
from clinsafe.errors import ClinsafeError, UsageError
from clinsafe.scale.job import Job
from clinsafe.scale.process import Row, failed
from clinsafe.scale.worker import Ready, Worker

DIED, HUNG = "WorkerDied", "WorkerHung"
STARTS = 3  # starts that fail in a row before the job is given up
START_SECONDS = 900.0  # a model may have to be fetched
NOT_YET = Ready({}, None, "no worker is ready yet")
BASE_SECONDS, PATIENCE = 60.0, 5.0  # for a call, and for each passage in it


@dataclass(frozen=True, slots=True)
class Batch:
    """Passages for one call of `process`.

    Attributes:
        part: number of the part that they belong to.
        at: position of the first in the part.
        rows: the passages.
        ended: how many workers ended while at it.
    """

    part: int
    at: int
    rows: tuple[Window, ...]
    ended: int = 0

    def apart(self) -> list[Batch]:
        """Each passage alone. It must end two more workers: one death may be anybody's."""
        return [Batch(self.part, self.at + number, (row,)) for number, row in enumerate(self.rows)]


@dataclass(slots=True)
class _Slot:
    """A worker and what is awaited from it: that it is ready, a batch, or nothing."""

    worker: Worker
    future: Future[Any] | None
    until: float
    batch: Batch | None = None
    hung: bool = False
    starts: int = 0


class Workers:
    """`count` processes at one job; use it in a ``with`` block.

    Args:
        job: what they do.
        count: how many.
        patience: seconds that a batch may take for each of its passages, besides a minute for all, before its worker is
            taken for hung.

    Attributes:
        restarts: processes that died or hung, and were replaced.
        ready: what the first process said when it was ready. One that is ready later and says something else ends
            the job: rows of two versions must not stand in one output.

    Raises:
        ClinsafeError: on entering: the job cannot be started, for there is no such model, no such filter …
    """

    def __init__(self, job: Job, count: int, patience: float = PATIENCE) -> None:
        self.job, self.count, self.patience, self.restarts = job, count, patience, 0
        self.ready = NOT_YET
        self._slots: list[_Slot] = []
        self._again: deque[Batch] = deque()

    def __enter__(self) -> Workers:
        try:
            for _ in range(self.count):
                worker = Worker(self.job)
                self._slots.append(_Slot(worker, worker.ready, time.monotonic() + START_SECONDS))
            while all(not slot.worker.loaded for slot in self._slots):
                for _ in self._await():
                    pass
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for slot in self._slots:
            # nobody will take what it is at
            slot.worker.close(wait=slot.future is None or slot.worker.kill())
        self._slots = []

    def map(self, batches: Iterable[Batch]) -> Iterator[tuple[Batch, list[Row]]]:
        """Each batch, or each passage of one that was taken apart, with its rows; in the order they get done."""
        coming, more = iter(batches), True
        while True:
            for slot in self._slots:
                if slot.future is None:
                    batch = self._again.popleft() if self._again else next(coming, None) if more else None
                    if batch is not None:
                        self._give(slot, batch)
                    elif not self._again:
                        more = False
            if not more and not self._again and all(slot.batch is None for slot in self._slots):
                return
            yield from self._await()

    def _give(self, slot: _Slot, batch: Batch) -> None:
        slot.batch, slot.future = batch, slot.worker.submit(batch.rows)
        slot.until = time.monotonic() + BASE_SECONDS + self.patience * len(batch.rows)

    def _await(self) -> Iterator[tuple[Batch, list[Row]]]:
        """Wait for the next worker that has something to say."""
        awaited = [slot for slot in self._slots if slot.future is not None]
        soonest = min(slot.until for slot in awaited) - time.monotonic()
        wait([slot.future for slot in awaited if slot.future], max(soonest, 0.0) + 0.01, FIRST_COMPLETED)
        for slot in awaited:
            if slot.future is not None and slot.future.done():
                future, batch = slot.future, slot.batch
                slot.future = slot.batch = None
                if batch is None:
                    self._started(slot, future)
                else:
                    yield from self._done(slot, batch, future)
            elif time.monotonic() > slot.until:
                self._overdue(slot)

    def _started(self, slot: _Slot, future: Future[Ready]) -> None:
        error = future.exception()
        if error is not None and not isinstance(error, BrokenProcessPool):
            raise ClinsafeError(
                f"the job {self.job.name} cannot be started: {type(error).__name__}: {error}"
            ) from error
        if error is not None:
            slot.starts += 1
            if slot.starts == STARTS:
                raise ClinsafeError(
                    f"a worker ended {STARTS} times as it started; is there memory for {self.count}? "
                    "Try fewer --workers"
                )
            self._replace(slot)
            return
        ready = future.result()
        if ready.refused:
            raise UsageError(ready.refused)
        if self.ready is NOT_YET:
            self.ready = ready
        elif ready.made_with != self.ready.made_with:
            raise UsageError(
                "models, rules or versions changed while the job ran; put them back, or begin another --out"
            )
        slot.starts = 0

    def _done(
        self, slot: _Slot, batch: Batch, future: Future[list[Row]]
    ) -> Iterator[tuple[Batch, list[Row]]]:
        error = future.exception()
        if error is None:
            yield batch, future.result()
            return
        kind = HUNG if slot.hung else DIED if isinstance(error, BrokenProcessPool) else type(error).__name__
        if isinstance(error, BrokenProcessPool):
            self._replace(slot)
        if batch.ended == 0:
            self._again.append(replace(batch, ended=1))
        elif len(batch.rows) > 1:
            self._again.extend(batch.apart())
        else:
            yield batch, [failed(batch.rows[0], kind)]

    def _replace(self, slot: _Slot) -> None:
        self.restarts += 1
        slot.worker.again()
        slot.future, slot.hung = slot.worker.ready, False
        slot.until = time.monotonic() + START_SECONDS

    def _overdue(self, slot: _Slot) -> None:
        if slot.batch is None:
            raise ClinsafeError(f"a worker was not ready after {START_SECONDS:.0f} s")
        slot.hung = True
        slot.until = time.monotonic() + BASE_SECONDS
        slot.worker.kill()

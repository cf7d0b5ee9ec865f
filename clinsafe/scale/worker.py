"""One worker process. Its death is noticed with the batch it was working on, so nobody else's batch is suspected.

A `ProcessPoolExecutor` of one process each: a pool of many would break for all of them, and name no culprit.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process
from typing import Any

from clinsafe.corpus import Window
from clinsafe.errors import ClinsafeError
from clinsafe.scale.job import Job
from clinsafe.scale.process import Row, process, started

SEED = "PYTHONHASHSEED"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker that has loaded what its job needs.

    Attributes:
        made_with, width: see `clinsafe.scale.job.Work`.
        refused: the one line that says why it could not start, or "".
    """

    made_with: dict[str, Any]
    width: int | None
    refused: str = ""


class Worker:
    """A process that can be killed and started again."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.begin()

    def begin(self) -> None:
        """Start the process; `ready` tells when it has loaded everything."""
        self._executor = ProcessPoolExecutor(1, get_context("spawn"), _settle, (self.job.options.offline,))
        with _one_order():
            self._pid = self._executor.submit(os.getpid)  # starts the process
        self.ready: Future[Ready] = self._executor.submit(_ready, self.job)

    @property
    def loaded(self) -> bool:
        """Whether it has loaded everything."""
        return self.ready.done() and self.ready.exception() is None

    def submit(self, rows: tuple[Window, ...]) -> Future[list[Row]]:
        """Have it work on a batch."""
        return self._executor.submit(process, rows, self.job)

    def again(self) -> None:
        """A new process in place of one that died."""
        self.close()
        self.begin()

    def kill(self) -> bool:
        """End the process now; what it was working on fails with BrokenProcessPool. False where it is not there yet."""
        if not self._pid.done() or self._pid.exception() is not None:
            return False
        with suppress(OSError):
            os.kill(self._pid.result(), getattr(signal, "SIGKILL", signal.SIGTERM))
        return True

    def close(self, wait: bool = False) -> None:
        """Let the process go, and wait until it has gone."""
        self._executor.shutdown(wait=wait, cancel_futures=True)


@contextmanager
def _one_order() -> Iterator[None]:
    """Processes started in this block iterate over sets in one and the same order: facts may depend on it."""
    before = os.environ.get(SEED)
    os.environ[SEED] = "0"
    try:
        yield
    finally:
        del os.environ[SEED]
        if before is not None:
            os.environ[SEED] = before


def _settle(offline: bool) -> None:
    """What a worker does before anything else."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    for name in (
        THREADS
    ):  # one thread: the workers are what runs side by side, and sums do not depend on their number
        os.environ[name] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    if offline:
        from clinsafe.adapters.offline import refuse_connections

        refuse_connections()
    threading.Thread(target=_end_with_parent, daemon=True, name="clinsafe-parent").start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)  # the parent was killed: nobody will read what is computed here


def _ready(job: Job) -> Ready:
    try:
        work = started(job)
    except ClinsafeError as error:  # as text: not every error can be sent to another process
        return Ready({}, None, str(error))
    return Ready(dict(work.made_with), work.width)

"""A time limit around one call of a filter, which may be anybody's code."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
KEPT = 8  # idle workers that wait for the next call; those beyond end


class TimedOut(Exception):
    """The call did not come back in time."""


class Deadline:
    """Runs calls on worker threads and gives up on those that take too long.

    Python cannot stop a thread: one that takes too long is left behind as a daemon and ends when its call does. Callers
    on several threads do not wait for one another, and a process that was forked starts workers of its own.

    Args:
        seconds: time for each call; 0 runs calls in the caller's thread, without a limit.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._idle: list[_Worker] = []
        self._owner = os.getpid()

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """``function(*arguments)``, its result or its exception.

        Raises:
            TimedOut: after `seconds`. The call itself goes on until it comes back.
        """
        if not self.seconds:
            return function(*arguments)
        if self._owner != os.getpid():  # threads do not survive a fork
            self._idle, self._owner = [], os.getpid()
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = _Worker()
        answer: SimpleQueue[Any] = SimpleQueue()
        worker.jobs.put((function, arguments, answer))
        try:
            value, error = answer.get(timeout=self.seconds)
        except Empty as empty:
            worker.jobs.put(None)  # its last: nobody will ask it again
            raise TimedOut from empty
        if len(self._idle) < KEPT:
            self._idle.append(worker)
        else:
            worker.jobs.put(None)
        if error is not None:
            raise error
        return value  # type: ignore[no-any-return]


class _Worker:
    """A thread that waits for jobs."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...], SimpleQueue[Any]] | None] = (
            SimpleQueue()
        )
        threading.Thread(target=self._work, daemon=True, name="clinsafe-filter").start()

    def _work(self) -> None:
        while (job := self.jobs.get()) is not None:
            function, arguments, answer = job
            try:
                answer.put((function(*arguments), None))
            except BaseException as error:  # noqa: BLE001 - handed to the caller, who decides
                answer.put((None, error))

"""A time limit around one call of a filter, which may be anybody's code."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class TimedOut(Exception):
    """The call did not come back in time."""


class Deadline:
    """Runs calls on one worker thread and gives up on those that take too long.

    Python cannot stop a thread: one that hangs is left behind as a daemon and the next call gets a new worker.

    Args:
        seconds: time for each call; 0 runs calls in the caller's thread, without a limit.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._jobs: SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...], SimpleQueue[Any]]] | None = None
        self._lock = threading.Lock()

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """``function(*arguments)``, its result or its exception.

        Raises:
            TimedOut: after `seconds`.
        """
        if not self.seconds:
            return function(*arguments)
        answer: SimpleQueue[Any] = SimpleQueue()
        with self._lock:
            if self._jobs is None:
                self._jobs = SimpleQueue()
                threading.Thread(
                    target=_work, args=(self._jobs,), daemon=True, name="clinsafe-filter"
                ).start()
            self._jobs.put((function, arguments, answer))
        try:
            value, error = answer.get(timeout=self.seconds)
        except Exception as empty:  # queue.Empty
            with self._lock:
                self._jobs = None
            raise TimedOut from empty
        if error is not None:
            raise error
        return value  # type: ignore[no-any-return]


def _work(jobs: SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...], SimpleQueue[Any]]]) -> None:
    while True:
        function, arguments, answer = jobs.get()
        try:
            answer.put((function(*arguments), None))
        except Exception as error:  # noqa: BLE001 - handed to the caller
            answer.put((None, error))

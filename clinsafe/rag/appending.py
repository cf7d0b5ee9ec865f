"""A file of lines that many threads and processes append to; each line is there whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from clinsafe.errors import MissingDependency, UsageError

PATIENCE = 5.0  # seconds to wait while others append; one append takes well under a millisecond


class LineFile:
    """Appends lines. A lock file ``<path>.lock`` stands beside it; both can be read by their owner alone (mode 600).

    A line that another program left torn (a power cut) gets its line end first, so that it spoils nothing but itself.

    Args:
        path: the file; it is made at the first append, its folder must be there.
        patience: seconds to wait for the lock.

    Raises:
        UsageError: the folder is not there, or the path is a folder.
        MissingDependency: without ``filelock``.
    """

    def __init__(self, path: Path | str, patience: float = PATIENCE) -> None:
        try:
            import filelock  # noqa: F401 - a missing package is told now, not at the first question
        except ImportError as error:
            raise MissingDependency("recording traces", "filelock", "pip install filelock") from error
        self.path, self._patience = Path(path).absolute(), patience
        if not self.path.parent.is_dir():
            raise UsageError(
                f"{path}: its folder does not exist; make it, or name another file for the traces"
            )
        if self.path.is_dir():
            raise UsageError(f"{path}: is a folder; name a file for the traces, for example traces.jsonl")
        self._mutex = threading.Lock()

    def append(self, line: str) -> None:
        """Append one line.

        Raises:
            OSError, filelock.Timeout: it could not be; nothing of it is left in the file.
        """
        from filelock import FileLock

        data = line.encode() + b"\n"
        lock = FileLock(f"{self.path}.lock", timeout=self._patience, poll_interval=0.002, mode=0o600)
        with self._mutex, lock:
            handle = os.open(
                self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600
            )
            with os.fdopen(handle, "r+b", buffering=0) as stream:
                size = stream.seek(0, os.SEEK_END)
                if size:
                    stream.seek(size - 1)
                    data = data if stream.read(1) == b"\n" else b"\n" + data
                try:
                    left = memoryview(data)
                    while left:  # a disk that fills up takes a part first
                        left = left[stream.write(left) :]
                except OSError:
                    stream.truncate(size)
                    raise

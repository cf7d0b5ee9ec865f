"""A log in one file: a JSON record a line, appended under a file lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from clinsafe.errors import ClinsafeError, MissingDependency, UsageError
from clinsafe.oversight.base import BrokenLog, ChainLog, Make
from clinsafe.oversight.chain import LARGEST, Row, Unreadable, authentic, link, parse
from clinsafe.oversight.keys import LogKey

BLOCK = 16_384  # bytes of the file's end that are read first; a record is seldom longer
LONGEST = LARGEST + 1_000  # bytes of a line


class JsonlLog(ChainLog):
    """See `ChainLog`. What an append costs does not depend on how long the log is.

    Args:
        path: the file; a lock file ``<path>.lock`` stands beside it. The folder must be on a disk with working file
            locks (not every network share has them).
        key: see `ChainLog`.
        old: see `ChainLog`.
        sync: wait until the disk has the record. False is faster, and a power cut may take the last records.
        patience: seconds to wait while other processes append.
        clock: see `ChainLog`.
    """

    def __init__(
        self, path: Path | str, key: LogKey, old: Sequence[LogKey] = (), *, sync: bool = True, patience: float = 30.0,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:  # fmt: skip
        super().__init__(key, old, clock)
        self.path, self._sync, self._patience = Path(path), sync, patience
        self._mutex = threading.Lock()

    @property
    def where(self) -> str:
        """The path."""
        return str(self.path)

    def rows(self) -> Iterator[Row | Unreadable]:
        """All rows; a torn end is `Unreadable`."""
        try:
            with self.path.open("rb") as stream:
                left = self._settled(stream)
                for number, line in enumerate(iter(lambda: stream.readline(LONGEST), b""), start=1):
                    line, left = line[:left], left - len(line)
                    place = f"line {number}"
                    if not line.endswith(b"\n"):
                        long = len(line) >= LONGEST
                        why = (
                            "it is longer than any record" if long else "its end is missing: torn or cut off"
                        )
                        yield Unreadable(place, why)
                    else:
                        yield parse(line[:-1], place)
                    if left <= 0:
                        return
        except OSError as error:
            raise UsageError(f"{self.path}: cannot be read ({error.strerror}); name a decision log") from None

    def recover(self) -> Path | None:
        """Take a torn last line away into a file of its own, and append a record that says so.

        A last record that is whole but for its line end stays. Returns the file, or None where nothing was torn or
        nothing had to be moved. An altered log is not mended.

        Raises:
            BrokenLog: what stands before the torn line is no log of this key.
        """
        with self._locked():
            with self._opened("r+b") as stream:
                size = stream.seek(0, os.SEEK_END)
                start = _last_break(stream, size)
                stream.seek(start)
                torn = stream.read()
                if not torn:
                    return None
                before = _row_before(stream, start)
                last = self._checked(before if isinstance(before, Row) else None)
                whole = parse(torn, "the end")
                moved = None
                if isinstance(whole, Row) and whole.prev == last.mac and authentic(whole, self.key):
                    last = whole
                    stream.seek(size)
                    stream.write(b"\n")
                else:
                    moved = self._aside(torn)
                    stream.truncate(start)
                    stream.seek(start)
                event = self._event("recovered", bytes=len(torn), kept=int(moved is None),
                                    tail_hmac=self.key.digest(torn.decode("latin-1")))  # fmt: skip
                self._seen = link(self.key, last.mac, last.seq + 1, event)
                self._put(stream, self._seen.line + "\n")
            return moved

    def _write(self, make: Make, *, new: bool = False) -> Sequence[Row]:
        with self._locked():
            if new:
                return self._create(make)
            with self._opened("r+b") as stream:
                size = stream.seek(0, os.SEEK_END)
                last = _row_before(stream, size)
                if isinstance(last, Unreadable):
                    raise BrokenLog(
                        f"{self.path}: {last.why}; nothing was appended: run `clinsafe log recover` for a torn line, "
                        "`clinsafe log verify` for an altered one"
                    )
                rows = make(last)
                try:
                    stream.seek(size)
                    self._put(stream, "".join(row.line + "\n" for row in rows))
                except OSError as error:
                    with suppress(
                        OSError
                    ):  # a full disk: what was half written is our own and told to nobody
                        stream.truncate(size)
                    raise ClinsafeError(
                        f"{self.path}: cannot be written ({error.strerror}); the decision is not in the log"
                    ) from None
                return rows

    def _create(self, make: Make) -> Sequence[Row]:
        rows = make(None)
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb", buffering=0) as stream:
                self._put(stream, "".join(row.line + "\n" for row in rows))
            if self._sync and os.name == "posix":  # the file's name, too, must survive a power cut
                folder = os.open(self.path.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
        except FileExistsError:
            raise UsageError(f"{self.path}: exists already; name a new file for a new log") from None
        except OSError as error:
            raise UsageError(
                f"{self.path}: cannot be written ({error.strerror}); name another place"
            ) from None
        return rows

    def _aside(self, torn: bytes) -> Path:
        for number in range(1, 10_000):
            path = Path(f"{self.path}.torn-{number}")
            with suppress(FileExistsError):
                with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                    stream.write(torn)
                    stream.flush()
                    os.fsync(stream.fileno())
                return path
        raise ClinsafeError(f"{self.path}: there are {number:,} torn ends beside it; move them elsewhere")

    def _put(self, stream: BinaryIO, text: str) -> None:
        data = memoryview(text.encode())
        while data:  # a disk that fills up takes a part first
            data = data[stream.write(data) :]
        if self._sync:
            os.fsync(stream.fileno())

    @contextmanager
    def _opened(self, mode: str) -> Iterator[BinaryIO]:
        try:
            stream: BinaryIO = self.path.open(mode, buffering=0)  # type: ignore[assignment]
        except FileNotFoundError:
            raise BrokenLog(f"{self.path}: no log was opened there; run `clinsafe log init`") from None
        except OSError as error:
            raise ClinsafeError(f"{self.path}: cannot be opened ({error.strerror})") from None
        with stream:
            yield stream

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            from filelock import FileLock, Timeout
        except ImportError as error:
            raise MissingDependency("the decision log", "filelock", "pip install 'clinsafe[log]'") from error
        lock = FileLock(f"{self.path}.lock", timeout=self._patience, poll_interval=0.005, mode=0o600)
        with self._mutex:
            try:
                lock.acquire()
            except Timeout:
                raise ClinsafeError(
                    f"{self.path}: another process kept it locked for {self._patience:g} s; the decision is not in "
                    "the log"
                ) from None
            except OSError as error:
                raise ClinsafeError(f"{self.path}.lock: cannot be written ({error.strerror})") from None
            try:
                yield
            finally:
                lock.release()

    def _settled(self, stream: BinaryIO) -> int:
        """The file's size while nobody is in the middle of a line."""
        beside = Path(f"{self.path}.lock")
        if beside.is_file() and os.access(
            beside, os.W_OK
        ):  # not so on a read-only copy, where nobody appends
            with self._locked():
                return os.fstat(stream.fileno()).st_size
        return os.fstat(stream.fileno()).st_size


def _last_break(stream: BinaryIO, size: int) -> int:
    """Where the last line starts: after the last line end before `size`; reads backwards, block by block."""
    step, end = BLOCK, size
    while end > 0:
        start = max(0, end - step)
        stream.seek(start)
        found = stream.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        if size - start > LONGEST:
            return start  # no record is that long
        end, step = start, 4 * step
    return 0


def _row_before(stream: BinaryIO, size: int) -> Row | Unreadable | None:
    """The last row of the first `size` bytes; None where there is nothing."""
    if size == 0:
        return None
    stream.seek(size - 1)
    if stream.read(1) != b"\n":
        return Unreadable("the end", "its last line is torn")
    start = _last_break(stream, size - 1)
    stream.seek(start)
    row = parse(stream.read(size - 1 - start), "the end")
    return Unreadable("the end", f"of its last line, {row.why}") if isinstance(row, Unreadable) else row

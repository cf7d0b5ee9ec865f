"""Run folders: one per audit, never overwritten by accident, resumable until finished.

``run.json`` says what the folder is for; ``partial/`` holds vectors already computed and disappears at the end.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from clinsafe.errors import OutputExists, UsageError

STATE = "run.json"
PARTIAL = "partial"
LOCK = "lock"
OURS = (
    "evidence.json",
    "evidence.dsse.json",
    "report.html",
    "report.pdf",
    "report.pdf.approvals.jsonl",
    *("rag.json", "rag.dsse.json", "rag.html", "rag.pdf"),
    STATE,
)


@dataclass(frozen=True)
class RunFolder:
    """An open run. `started` is the time at which its criteria were fixed, kept when the run is resumed.

    The folder is claimed by a lock for as long as the run is open: two audits never write into one folder.
    """

    path: Path
    started: str
    resumed: bool
    lock: IO[bytes] = field(repr=False)
    written: set[str] = field(default_factory=set)

    @property
    def store(self) -> Path:
        """Where vectors already computed lie."""
        return self.path / PARTIAL

    def write(self, name: str, data: bytes | str) -> Path:
        """Write one file whole or not at all; an earlier file of that name stays until then."""
        target = self.path / name
        temporary = target.with_name(f".{name}.tmp")
        try:
            temporary.write_bytes(data.encode() if isinstance(data, str) else data)
            temporary.replace(target)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise UsageError(
                f"{target}: cannot be written ({error.strerror or error}); make room, and run the same command again"
            ) from error
        self.written.add(name)
        return target

    def finish(self) -> None:
        """Mark as done; what was only needed to resume goes, and what an earlier run left here."""
        state = _state(self.path) or {}
        self.write(STATE, json.dumps(state | {"state": "finished"}, indent=1))
        for name in set(OURS) - self.written:
            (self.path / name).unlink(missing_ok=True)
        self.close()
        shutil.rmtree(self.store, ignore_errors=True)

    def close(self) -> None:
        """Let others have the folder."""
        self.lock.close()


def open_run(
    out: Path | None, *, model: str, fingerprint: str, force: bool, base: Path = Path("runs"), now: datetime
) -> RunFolder:
    """A folder to write into.

    An unfinished run with the same fingerprint (model, suite, criteria, options) is continued. Without `out` the
    folder is ``runs/<model>-<UTC time>``.

    Raises:
        OutputExists: `out` holds something else, and `force` was not given; or another audit is writing there. With
            `force` only a folder that an audit made is used, and its old report stays until the new one is there.
    """
    started = now.astimezone(UTC).isoformat(timespec="seconds")
    for candidate in [out] if out else sorted(base.glob(f"{_slug(model)}-*"), reverse=True):
        state = _state(candidate)
        if state and state.get("state") == "unfinished" and state.get("fingerprint") == fingerprint:
            lock = _claim(candidate)
            if lock is not None:
                return RunFolder(candidate, str(state.get("started", started)), resumed=True, lock=lock)
            if out:
                raise OutputExists(f"{out}: another audit is writing there; choose another --out")
    path = out or _fresh(base, f"{_slug(model)}-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}")
    if path.exists() and (not path.is_dir() or any(path.iterdir())) and out:
        if not force or _state(path) is None:  # only what an audit made may be replaced
            raise OutputExists(f"{path} exists; choose another --out, or replace the run in it with --force")
        shutil.rmtree(path / PARTIAL, ignore_errors=True)
    lock = _claim(path)
    if lock is None:
        raise OutputExists(f"{path}: another audit is writing there; choose another --out")
    run = RunFolder(path, started, resumed=False, lock=lock)
    run.write(
        STATE, json.dumps({"state": "unfinished", "fingerprint": fingerprint, "started": started}, indent=1)
    )
    return run


def _claim(folder: Path) -> IO[bytes] | None:
    """An open lock on the folder, or None where another process holds it; gone with the process."""
    (folder / PARTIAL).mkdir(parents=True, exist_ok=True)
    lock = (folder / PARTIAL / LOCK).open("ab")
    try:
        import fcntl
    except ImportError:  # Windows: no two audits there share a default folder within one second
        return lock
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    except OSError:
        pass  # a file system without locks
    return lock


def _fresh(base: Path, name: str) -> Path:
    """A folder that was not there before, made at once so that no other process can have it too."""
    base.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        path = base / (name if number == 1 else f"{name}-{number}")
        with suppress(FileExistsError):
            path.mkdir()
            return path
    raise AssertionError("unreachable")


def _slug(model: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", model.lower().rstrip("/").rpartition("/")[2]).strip("-")[:40] or "model"


def _state(folder: Path) -> dict[str, Any] | None:
    try:
        state = json.loads((folder / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return state if isinstance(state, dict) else None

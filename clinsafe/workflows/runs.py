"""Run folders: one per audit, never overwritten by accident, resumable until finished.

``run.json`` says what the folder is for; ``partial/`` holds vectors already computed and disappears at the end.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clinsafe.errors import OutputExists

STATE = "run.json"
PARTIAL = "partial"
OURS = ("evidence.json", "evidence.dsse.json", "report.html", "report.pdf", STATE)


@dataclass(frozen=True, slots=True)
class RunFolder:
    """An open run. `started` is the time at which its criteria were fixed, kept when the run is resumed."""

    path: Path
    started: str
    resumed: bool

    @property
    def store(self) -> Path:
        """Where vectors already computed lie."""
        return self.path / PARTIAL

    def write(self, name: str, data: bytes | str) -> Path:
        """Write one file whole or not at all."""
        target = self.path / name
        temporary = target.with_name(f".{name}.tmp")
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)
        temporary.replace(target)
        return target

    def finish(self) -> None:
        """Mark as done; what was only needed to resume goes."""
        state = _state(self.path) or {}
        self.write(STATE, json.dumps(state | {"state": "finished"}, indent=1))
        shutil.rmtree(self.store, ignore_errors=True)


def open_run(
    out: Path | None, *, model: str, fingerprint: str, force: bool, base: Path = Path("runs"), now: datetime
) -> RunFolder:
    """A folder to write into.

    An unfinished run with the same fingerprint (model, suite, criteria, options) is continued. Without `out` the
    folder is ``runs/<model>-<UTC time>``.

    Raises:
        OutputExists: `out` holds something else, and `force` was not given. With `force`, only files that an
            audit writes are replaced.
    """
    started = now.astimezone(UTC).isoformat(timespec="seconds")
    for candidate in [out] if out else sorted(base.glob(f"{_slug(model)}-*"), reverse=True):
        state = _state(candidate)
        if state and state.get("state") == "unfinished" and state.get("fingerprint") == fingerprint:
            (candidate / PARTIAL).mkdir(exist_ok=True)
            return RunFolder(candidate, str(state.get("started", started)), resumed=True)
    path = out or _fresh(base, f"{_slug(model)}-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        if not force or not path.is_dir():
            raise OutputExists(f"{path} exists; choose another --out, or replace the run in it with --force")
        for name in OURS:
            (path / name).unlink(missing_ok=True)
        shutil.rmtree(path / PARTIAL, ignore_errors=True)
    (path / PARTIAL).mkdir(parents=True, exist_ok=True)
    run = RunFolder(path, started, resumed=False)
    run.write(
        STATE, json.dumps({"state": "unfinished", "fingerprint": fingerprint, "started": started}, indent=1)
    )
    return run


def _fresh(base: Path, name: str) -> Path:
    path, number = base / name, 2
    while path.exists():
        path, number = base / f"{name}-{number}", number + 1
    return path


def _slug(model: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", model.lower().rstrip("/").rpartition("/")[2]).strip("-")[:40] or "model"


def _state(folder: Path) -> dict[str, Any] | None:
    try:
        state = json.loads((folder / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return state if isinstance(state, dict) else None

"""Run a fake job on Ray in a process of its own, killing one of Ray's workers on the way. Not a test by itself.

Usage: ``python on_ray.py CORPUS OUT``; prints the summary and what was killed as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path

from clinsafe.scale.cluster import run_ray
from clinsafe.scale.local import Run
from tests.scale.conftest import CUT
from tests.scale.fakes import FakeJob


def main(corpus: Path, out: Path) -> None:
    killed: list[int] = []

    def stage(what: str, done: int, _of: int) -> None:
        if what == "Working" and done >= 2 * CUT.part and not killed:
            killed.extend(pid for pid in ray_workers()[:1])
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    summary = run_ray(Run(corpus, out, FakeJob(), CUT, workers=2), stage=stage)
    print(
        json.dumps(
            {"summary": asdict(summary), "killed": killed, "stats": os.environ["RAY_USAGE_STATS_ENABLED"]}
        )
    )


def ray_workers() -> list[int]:
    """Processes of Ray's actors that descend from this one."""
    found, mine = [], {os.getpid()}
    rows = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            rows.append((int(path.name), parent, (path / "cmdline").read_bytes()))
        except OSError:
            continue
    while more := {pid for pid, parent, _ in rows if parent in mine} - mine:
        mine |= more
    for pid, _, line in rows:
        if pid in mine and line.startswith(b"ray::MapWorker"):
            found.append(pid)
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

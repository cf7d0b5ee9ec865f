"""A job that does what its passages say: raise, end the process, hang."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from clinsafe.corpus import Window
from clinsafe.scale.job import Job, Kind, Work


@dataclass(frozen=True)
class FakeJob(Job):
    """Counts characters, unless a passage says otherwise. Another `version` is another job."""

    version: str = "1"
    refuse: str = ""
    moving: str = ""

    @property
    def kind(self) -> Kind:
        return Kind("facts", "tests.scale.fakes:start")


def start(job: FakeJob) -> Work:
    from clinsafe.errors import ContentError

    if job.refuse == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if job.refuse == "typo":
        raise NameError("no such thing")
    if job.refuse:
        raise ContentError("rules.yaml", 3, "id", job.refuse)
    version = job.version
    if job.moving:  # what an upgrade in the middle of a run looks like
        starts = Path(job.moving)
        starts.write_text(version := starts.read_text() + "x" if starts.exists() else "x")
    return Work(lambda rows: [one(row) for row in rows], {"fingerprint": version, "filters": {"fake": "1"}})


def one(row: Window) -> str:
    text = row.text
    if "RAISE" in text:
        raise ValueError(text)
    if "EXIT" in text:
        raise SystemExit(text)
    if "KILL" in text or ("ONCE" in text and first_time(text)):
        os.kill(os.getpid(), signal.SIGKILL)
    if "HANG" in text:
        time.sleep(10_000)
    if "SLOW" in text:
        time.sleep(0.05)
    return ",".join({"a", "b", "c", "d", "e", "f"}) if "ORDER" in text else str(len(text))


def first_time(text: str) -> bool:
    marker = Path(text.split()[-1])
    if marker.exists():
        return False
    marker.touch()
    return True

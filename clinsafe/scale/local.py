"""A job on this machine: parts cut, handed to workers, put together and written."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from clinsafe.errors import ClinsafeError
from clinsafe.scale.folder import Folder, Summary, count_errors, open_folder
from clinsafe.scale.job import Job
from clinsafe.scale.parts import Cut, Part, Shard, corpus_identity, parts
from clinsafe.scale.process import Row
from clinsafe.scale.table import arrow, read_errors
from clinsafe.scale.workers import PATIENCE, Batch, Workers

Stage: TypeAlias = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Run:
    """What is to be done, and where.

    Attributes:
        corpus: file or folder, see `clinsafe.corpus.read_corpus`.
        out: output folder; all shards may share one.
        job, cut, shard: see there.
        workers: processes; 0 takes one for each core that this process may use.
        patience: see `clinsafe.scale.workers.Workers`.
    """

    corpus: Path
    out: Path
    job: Job = field(default_factory=Job)
    cut: Cut = field(default_factory=Cut)
    shard: Shard = field(default_factory=Shard)
    workers: int = 0
    patience: float = PATIENCE

    @property
    def processes(self) -> int:
        """How many workers there are."""
        return self.workers or cores()


def cores() -> int:
    """Cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def quiet(_what: str, _done: int, _of: int) -> None:
    """A stage that tells nobody."""


def run_local(run: Run, stage: Stage = quiet) -> Summary:
    """Do a job on this machine. What is done already is kept, so the same call continues a run that was stopped.

    Returns:
        What was found; also in the folder, as are the parts.

    Raises:
        ClinsafeError: no corpus, a job that cannot be started, a folder of another job, no room.
    """
    arrow()
    begun, summary = time.monotonic(), Summary()
    corpus = corpus_identity(run.corpus, lambda done, of: stage("Hashing the corpus", done, of))
    stage("Starting workers", 0, 0)
    with Workers(run.job, run.processes, run.patience) as workers:
        ready = workers.ready
        folder = open_folder(run.out, run.job, run.cut, corpus, ready.made_with, ready.width)
        done = 0
        for rows in work(workers, todo(run, folder, summary), run.cut.batch, folder, summary):
            done += rows
            stage("Working", done, 0)
        summary.restarts = workers.restarts
    summary.seconds = round(time.monotonic() - begun, 3)
    folder.finish(run.shard, summary)
    return summary


def todo(run: Run, folder: Folder, summary: Summary) -> Iterator[Part]:
    """The parts of this shard that are not there yet; all parts are counted."""
    for part in parts(run.corpus, run.cut, summary.note):
        summary.passages += len(part.rows)
        summary.parts += 1
        if not run.shard.has(part.number):
            continue
        if folder.has(part.number, len(part.rows)):
            summary.kept += 1
            count_errors(summary, read_errors(folder.part(part.number)))
        else:
            yield part


def work(
    workers: Workers, coming: Iterable[Part], size: int, folder: Folder, summary: Summary
) -> Iterator[int]:
    """Have these parts worked on and write each as soon as it is whole; gives the number of passages now done."""
    begun: dict[int, _Begun] = {}

    def batches() -> Iterator[Batch]:
        for part in coming:
            begun[part.number] = _Begun(len(part.rows))
            for at, rows in part.batches(size):
                yield Batch(part.number, at, tuple(rows))

    for batch, rows in workers.map(batches()):
        part = begun[batch.part]
        part.put(batch.at, rows)
        if part.missing == 0:
            folder.write(batch.part, part.rows(), summary)
            del begun[batch.part]
        yield len(rows)
    if begun:
        raise ClinsafeError(
            f"passages of {len(begun)} parts got lost on their way; run the same command again"
        )


@dataclass(slots=True)
class _Begun:
    """A part of which some batches are done."""

    missing: int
    found: dict[int, list[Row]] = field(default_factory=dict)

    def put(self, at: int, rows: list[Row]) -> None:
        self.found[at] = rows
        self.missing -= len(rows)

    def rows(self) -> list[Row]:
        return [row for _, rows in sorted(self.found.items()) for row in rows]

"""The same job on Ray: Ray Data hands out parts, and each of its workers does what a local run does.

The parts' passages are written to Parquet first; a Ray worker reads one part, works on it and writes its output file.
Only part numbers and counts travel through Ray. Overlay and output folder must lie where all nodes see them under the
same path. Nothing is reported to anybody: Ray's usage statistics and its dashboard are off.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from clinsafe.corpus import Window
from clinsafe.errors import ClinsafeError, MissingDependency, UsageError
from clinsafe.scale.folder import Folder, Summary, open_folder
from clinsafe.scale.job import Job
from clinsafe.scale.local import Run, Stage, quiet, todo, work
from clinsafe.scale.parts import Part, corpus_identity
from clinsafe.scale.table import arrow, schema, write_table
from clinsafe.scale.workers import Workers

STARTS = 3  # attempts; on a busy machine Ray's own helpers are late
FIELDS = ("id", "text", "start", "end", "document", "cluster")


def run_ray(run: Run, address: str | None = None, stage: Stage = quiet) -> Summary:
    """Do a job on Ray; what is done already is kept. The files are those of `run_local`.

    Args:
        run: what is to be done; `workers` is the number of Ray workers, 0 for one a core.
        address: of a cluster (``auto``, ``host:6379``, ``ray://host:10001``); None starts Ray on this machine.
        stage: told what is done.

    Raises:
        ClinsafeError: as `run_local`; a cluster that cannot be reached, or whose nodes have other rules or versions.
        MissingDependency: without Ray.
    """
    arrow()
    ray = _ray()
    begun, summary = time.monotonic(), Summary()
    corpus = corpus_identity(run.corpus, lambda done, of: stage("Hashing the corpus", done, of))
    stage("Starting a worker", 0, 0)
    with Workers(
        run.job, 1, run.patience
    ) as workers:  # tells what is wrong with the job before a cluster is asked
        ready = workers.ready
    folder = open_folder(run.out, run.job, run.cut, corpus, ready.made_with, ready.width)
    staged = (
        run.out.resolve() / f"_passages-{run.shard.index}-of-{run.shard.of}"
    )  # holds text: it goes at the end
    try:
        waiting = [_put(part, staged, stage) for part in todo(run, folder, summary)]
        if waiting:
            plan = Plan(
                run.job,
                run.cut.batch,
                run.patience,
                run.out.resolve(),
                staged,
                dict(folder.record),
                ready.width,
            )
            with _connected(ray, address, run):
                _drive(ray, plan, run.workers, waiting, summary, stage)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    summary.seconds = round(time.monotonic() - begun, 3)
    folder.finish(run.shard, summary)
    return summary


@dataclass(frozen=True)
class Plan:
    """What a Ray worker has to know.

    Attributes:
        job, batch, patience: see `Run` and `Cut`.
        out, staged: folders.
        record, width: what the output folder says of the job.
    """

    job: Job
    batch: int
    patience: float
    out: Path
    staged: Path
    record: dict[str, Any]
    width: int | None


class PartWorker:
    """What runs on Ray. It guards a process of its own, so that a passage that kills or hangs costs its own row alone.

    Raises:
        UsageError: this node has other models, rules or versions than the one that began the job.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        layout = schema(str(plan.record["column"]), plan.width, plan.record)
        self.folder = Folder(plan.out, plan.record, layout)
        self.workers = Workers(plan.job, 1, plan.patience)
        self.workers.__enter__()  # until Ray ends this process, and its own with it
        if json.loads(json.dumps(self.workers.ready.made_with)) != plan.record["made_with"]:
            what = "has other models, rules or versions than this machine; install the same there"
            raise UsageError(f"node {platform.node()}: {what}")

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        """Work on the parts of these numbers."""
        found: dict[str, list[Any]] = {"part": [], "passages": [], "summary": []}
        for number in map(int, batch["part"]):
            summary, before = Summary(), self.workers.restarts
            part = _get(number, self.plan.staged)
            if not self.folder.has(
                number, len(part.rows)
            ):  # Ray asks again for what a lost worker had finished
                for _ in work(self.workers, [part], self.plan.batch, self.folder, summary):
                    pass
            summary.restarts = self.workers.restarts - before
            found["part"].append(number)
            found["passages"].append(len(part.rows))
            found["summary"].append(json.dumps(asdict(summary)))
        return found


def _ray() -> Any:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault(
        "RAY_BACKEND_LOG_LEVEL", "fatal"
    )  # else warnings of its core stand between our lines
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise MissingDependency("a run on Ray", error.name or "ray", "pip install 'clinsafe[ray]'") from error
    for handler in logging.getLogger("ray.data").handlers:
        if handler.name == "console":
            handler.setLevel(logging.ERROR)
    return ray


@contextmanager
def _connected(ray: Any, address: str | None, run: Run) -> Iterator[None]:
    """A connection to Ray; ended with the block unless there was one before."""
    if ray.is_initialized():
        yield
        return
    _init(ray, address, run)
    try:
        yield
    finally:
        ray.shutdown()


def _init(ray: Any, address: str | None, run: Run) -> None:
    own = {"num_cpus": run.processes, "include_dashboard": False} if address is None else {}
    for attempt in range(1, STARTS + 1):
        try:
            ray.init(address or "local", log_to_driver=False, logging_level="ERROR", **own)
            return
        except Exception as error:
            ray.shutdown()
            if address is not None or attempt == STARTS:
                where = f"on {address} cannot be reached" if address else "cannot be started on this machine"
                why = "; is it very busy? Ray gives its helpers 15 s to start" if address is None else ""
                raise UsageError(f"Ray {where} ({type(error).__name__}){why}") from error


def _drive(
    ray: Any, plan: Plan, workers: int, waiting: Sequence[int], summary: Summary, stage: Stage
) -> None:
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    count = min(workers or int(ray.cluster_resources().get("CPU", 1)), len(waiting))
    found = ray.data.from_items(
        [{"part": number} for number in waiting], override_num_blocks=len(waiting)
    ).map_batches(
        PartWorker,
        batch_size=1,
        num_cpus=1,
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=count),
        fn_constructor_kwargs={"plan": plan},
    )
    done = 0
    try:
        for row in found.iter_rows():
            done += int(row["passages"])
            _add(summary, json.loads(row["summary"]))
            (plan.staged / _name(int(row["part"]))).unlink(missing_ok=True)
            stage("Working", done, 0)
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None)
        why = str(cause) if isinstance(cause, ClinsafeError) else type(error).__name__
        raise ClinsafeError(
            f"the run on Ray ended: {why}; what is done is kept, run the same command again"
        ) from error


def _add(summary: Summary, found: Mapping[str, Any]) -> None:
    summary.written += 1  # also if the worker that wrote it was lost before it could say so
    summary.restarts += found["restarts"]
    for kind, count in found["errors"].items():
        summary.errors[kind] = summary.errors.get(kind, 0) + count


# ── passages on their way ──────────────────────────────────────────────────────────────────────


def _name(number: int) -> str:
    return f"passages-{number:06}.parquet"


def _put(part: Part, folder: Path, stage: Stage) -> int:
    pa, _ = arrow()
    folder.mkdir(exist_ok=True)
    rows = [{name: getattr(row, name) for name in FIELDS} for row in part.rows]
    write_table(folder / _name(part.number), pa.Table.from_pylist(rows))
    stage("Cutting passages", part.number + 1, 0)
    return part.number


def _get(number: int, folder: Path) -> Part:
    _, pq = arrow()
    rows = pq.read_table(folder / _name(number)).to_pylist()
    return Part(number, tuple(Window(**row) for row in rows))

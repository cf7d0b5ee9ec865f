"""What reading a corpus costs, and what it takes to stop it. ``python tests/perf/scale.py --out FILE``; not a test.

Passages are overlapping windows over MedQuAD answers and PubMedQA abstracts of the data folder; texts that occur more
than once are counted. Each stage is a process of its own, so that memory is its own too:

    compare   slices read by `run_local` and by a plain ``multiprocessing.Pool.imap`` of the same function, in turn
    local     the whole corpus by `run_local`; a worker is killed on the way, memory is sampled
    ray       the same on Ray, one of its workers killed; the files must be those of `local`
    single    the first parts by the pure function alone; the rows must be those of `local`
    costs     unit costs: passages of 200 words read and embedded, facts looked up
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from clinsafe.adapters.encoders import ModelOptions
from clinsafe.benchmarks.ordinary import MEDQUAD, PUBMEDQA, data_folder
from clinsafe.benchmarks.ordinary import rows as records
from clinsafe.corpus import Document, Window, read_corpus, windows
from clinsafe.scale.job import Job
from clinsafe.scale.local import Run, run_local
from clinsafe.scale.parts import Cut, parts
from clinsafe.scale.process import process

CUT = Cut(words=40, overlap=37)
SLICES = 4
STAGES = ("compare", "local", "ray", "single", "costs")
JOB = Job()


# ── the corpus ─────────────────────────────────────────────────────────────────────────────────


def build(corpus: Path, data: Path, wanted: int) -> dict[str, Any]:
    """Write a corpus of at least `wanted` passages, both sources mixed in a fixed order; what it holds."""
    texts = [(f"medquad-{row['id']}", str(row["answer"])) for row in records(data / MEDQUAD)]
    texts += [
        (f"pubmedqa-{row['id']}", " ".join([*row["contexts"], row["long_answer"]]))
        for row in records(data / PUBMEDQA)
    ]
    random.Random(0).shuffle(texts)
    seen: set[bytes] = set()
    passages = documents = 0
    with corpus.open("w", encoding="utf-8") as stream:
        for name, text in texts:
            if passages < wanted and text.strip():
                stream.write(json.dumps({"id": name, "text": text}) + "\n")
                found = [w.text for w in windows(Document(name, text, name), CUT.words, CUT.overlap)]
                seen |= {hashlib.blake2b(text.encode(), digest_size=8).digest() for text in found}
                passages, documents = passages + len(found), documents + 1
    return {"documents": documents, "passages": passages, "unique_texts": len(seen), "cut": CUT.settings()}


def first_passages(corpus: Path, cut: Cut, count: int, skip: int = 0) -> list[Window]:
    """`count` passages of the corpus, after the first `skip`."""
    found = (w for document in read_corpus(corpus) for w in windows(document, cut.words, cut.overlap))
    return [window for number, window in zip(range(skip + count), found, strict=False) if number >= skip]


# ── processes ──────────────────────────────────────────────────────────────────────────────────


@dataclass
class Watcher:
    """Samples the memory of this process and of those below it, and kills one when told to."""

    samples: list[tuple[int, int, int]] = field(default_factory=list)
    done: int = 0
    killed: int | None = None

    def stage(self, kill_at: int, named: bytes) -> Callable[[str, int, int], None]:
        def tell(what: str, done: int, _of: int) -> None:
            self.done = done if what == "Working" else 0
            if self.killed is None and kill_at and self.done >= kill_at:
                victims = [pid for pid, line in below() if named in line]
                if victims:
                    self.killed = victims[0]
                    os.kill(victims[0], signal.SIGKILL)

        return tell

    def watch(self) -> None:
        def loop() -> None:
            while True:
                largest = max((rss(pid) for pid, _ in below()), default=0)
                self.samples.append((self.done, rss(os.getpid()), largest))
                time.sleep(1)

        threading.Thread(target=loop, daemon=True).start()

    def peaks(self, total: int) -> list[dict[str, int]]:
        """Peak MB of the parent and of its largest process while each quarter of the corpus was read."""
        found = []
        for quarter in range(4):
            low, high = total * quarter // 4, total * (quarter + 1) // 4
            part = [s for s in self.samples if low < s[0] <= high]
            found.append(
                {"passages": high, "parent_mb": max((s[1] for s in part), default=0),
                 "largest_worker_mb": max((s[2] for s in part), default=0)}
            )  # fmt: skip
        return found


def below() -> list[tuple[int, bytes]]:
    """Processes that descend from this one, with their command lines."""
    rows, mine = [], {os.getpid()}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            rows.append((int(path.name), parent, (path / "cmdline").read_bytes()))
        except OSError:
            continue
    while more := {pid for pid, parent, _ in rows if parent in mine} - mine:
        mine |= more
    return [(pid, line) for pid, _, line in rows if pid in mine and pid != os.getpid()]


def rss(pid: int) -> int:
    """Resident memory in MB."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
    except OSError:
        return 0


def cpu() -> float:
    """CPU seconds of this process and of its finished children."""
    return sum(
        u.ru_utime + u.ru_stime
        for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


# ── stages ─────────────────────────────────────────────────────────────────────────────────────


def compare(folder: Path, wanted: int, workers: int) -> dict[str, Any]:
    """Both ways over the same slices, the first of each pair alternating; start-up of the workers is in both."""
    size, rows = max(wanted // 16, 256), []
    for number in range(SLICES):
        passages = first_passages(folder / "corpus.jsonl", CUT, size, number * size)
        corpus = folder / f"slice-{number}.jsonl"
        with corpus.open("w", encoding="utf-8") as stream:
            for window in passages:
                stream.write(json.dumps({"id": window.id, "text": window.text}) + "\n")
        took = {}
        for way in (ours, plain) if number % 2 else (plain, ours):
            begun, used = time.perf_counter(), cpu()
            assert way(folder, corpus, number, workers) == len(passages)
            took[way.__name__] = (time.perf_counter() - begun, cpu() - used)
        rows.append({"passages": len(passages), **{f"{way}_s": round(t[0], 2) for way, t in took.items()},
                     **{f"{way}_cpu_s": round(t[1], 2) for way, t in took.items()}})  # fmt: skip
        print(rows[-1], file=sys.stderr, flush=True)
    return {
        "slices": rows,
        "ratio": round(statistics.median(row["plain_s"] / row["ours_s"] for row in rows), 3),
        "ratio_cpu": round(statistics.median(row["plain_cpu_s"] / row["ours_cpu_s"] for row in rows), 3),
    }


def ours(folder: Path, corpus: Path, number: int, workers: int) -> int:
    """With files written, guarded and resumable."""
    return run_local(Run(corpus, folder / f"slice-{number}", JOB, CUT, workers=workers)).passages


def plain(_folder: Path, corpus: Path, _number: int, workers: int) -> int:
    """The plain pool: the same function and batches, the results are counted and thrown away."""
    with multiprocessing.get_context("spawn").Pool(workers, _one_thread) as pool:
        return sum(len(rows) for rows in pool.imap(_job, _batches(corpus)))


def _batches(corpus: Path) -> Iterator[list[Window]]:
    for part in parts(corpus, CUT, lambda _record: None):
        for _, rows in part.batches(CUT.batch):
            yield list(rows)


def _job(rows: list[Window]) -> list[Any]:
    return list(process(rows, JOB))


def _one_thread() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"


def local(folder: Path, wanted: int, workers: int) -> dict[str, Any]:
    """Everything, with a worker killed at a third."""
    return _whole(folder, wanted, workers, "local", b"spawn_main", run_local)


def ray(folder: Path, wanted: int, workers: int) -> dict[str, Any]:
    """Everything on Ray, with one of its workers killed at a third; are the files the same?"""
    from clinsafe.scale.cluster import run_ray

    found = _whole(
        folder, wanted, workers, "ray", b"ray::MapWorker", lambda run, stage: run_ray(run, None, stage)
    )
    return found | {"same_files_as_local": found["sha256"] == _digest(folder / "local")}


def _whole(
    folder: Path, wanted: int, workers: int, name: str, victim: bytes, drive: Callable[[Run, Any], Any]
) -> dict[str, Any]:
    watcher = Watcher()
    watcher.watch()
    run = Run(folder / "corpus.jsonl", folder / name, JOB, CUT, workers=workers)
    summary = drive(run, watcher.stage(wanted // 3, victim))
    return {
        "passages": summary.passages, "seconds": summary.seconds, "restarts": summary.restarts,
        "killed_a_worker": watcher.killed is not None, "errors": summary.errors, "parts": summary.parts,
        "per_second_and_core": round(summary.passages / summary.seconds / workers, 1),
        "memory": watcher.peaks(summary.passages), "sha256": _digest(folder / name),
        "bytes_per_passage": round(sum(p.stat().st_size for p in _parts(folder / name)) / summary.passages),
    }  # fmt: skip


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*.parquet"))


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in _parts(folder):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def single(folder: Path, _wanted: int, _workers: int) -> dict[str, Any]:
    """The first passages by the function alone, in this process."""
    import pyarrow.parquet as pq

    same = passages = 0
    for number, part in zip(
        range(2), parts(folder / "corpus.jsonl", CUT, lambda _record: None), strict=False
    ):
        stored = pq.read_table(_parts(folder / "local")[number]).to_pylist()
        for _, rows in part.batches(CUT.batch):
            for row in process(rows, JOB):
                same += tuple(row) == tuple(stored[passages - number * CUT.part].values())
                passages += 1
    return {"passages": passages, "same_rows": same}


def costs(folder: Path, wanted: int, _workers: int) -> dict[str, Any]:
    """One process, one thread: milliseconds of CPU for one passage."""
    usual, corpus = Cut(), folder / "corpus.jsonl"
    sample = first_passages(corpus, usual, min(1000, wanted))
    begun = time.process_time()
    documents = sum(1 for _ in read_corpus(corpus))
    found: dict[str, Any] = {
        "words_per_passage": round(statistics.mean(len(w.text.split()) for w in sample), 1),
        "document_ms": round((time.process_time() - begun) / documents * 1000, 3),
        "read_ms": _each(JOB, sample),
    }
    for model in ("minilm",):
        job = Job("embed", model=model, options=ModelOptions(offline=True))
        found[f"embed_{model}_ms"] = _each(job, sample[:320])
    run = run_local(Run(corpus, folder / "usual", JOB, usual, workers=1)) if wanted < 5000 else None
    return found | _lookups(folder / "local") | ({"usual": asdict(run)} if run else {})


def _each(job: Job, sample: list[Window]) -> float:
    process(sample[:32], job)  # loads and warms up
    begun = time.process_time()
    for start in range(0, len(sample), 32):
        process(sample[start : start + 32], job)
    return round((time.process_time() - begun) / len(sample) * 1000, 2)


def _lookups(folder: Path) -> dict[str, Any]:
    import pyarrow.parquet as pq

    from clinsafe.scale.store import load_facts

    before, begun = rss(os.getpid()), time.perf_counter()
    facts = load_facts(folder)
    opened = time.perf_counter() - begun
    ids = [
        name
        for path in _parts(folder)
        for name in pq.read_table(path, columns=["id"]).column("id").to_pylist()
    ]
    random.Random(0).shuffle(ids)
    begun = time.perf_counter()
    for name in ids[:500]:
        assert not facts(name).unchecked
    took = (time.perf_counter() - begun) / 500
    return {"stored": len(facts), "open_s": round(opened, 2), "lookup_ms": round(took * 1000, 2),
            "index_mb": rss(os.getpid()) - before}  # fmt: skip


# ── all together ───────────────────────────────────────────────────────────────────────────────


def main() -> None:
    """Build the corpus, run the stages, write what was measured."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--out", type=Path, default=Path("scale.json"))
    asked.add_argument("--passages", type=int, default=200_000)
    asked.add_argument("--workers", type=int, default=2)
    asked.add_argument("--data", type=Path)
    asked.add_argument("--folder", type=Path, help="kept; default: a temporary one")
    asked.add_argument("--stage", action="append", choices=STAGES)
    asked.add_argument("--only", choices=STAGES, help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.only:
        print(json.dumps(globals()[given.only](given.folder, given.passages, given.workers)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        data = data_folder(given.data)
        if data is None:
            sys.exit("name the data folder with --data or CLINSAFE_DATA")
        results: dict[str, Any] = json.loads(given.out.read_text()) if given.out.exists() else {}
        results |= {"cores": os.cpu_count(), "workers": given.workers, "python": sys.version.split()[0]}
        results["corpus"] = build(folder / "corpus.jsonl", data, given.passages)
        for stage in given.stage or STAGES:
            load = os.getloadavg()
            line = [
                sys.executable,
                __file__,
                "--only",
                stage,
                "--folder",
                str(folder),
                "--passages",
                str(given.passages),
            ]
            done = subprocess.run(
                [*line, "--workers", str(given.workers)], stdout=subprocess.PIPE, check=True
            )
            results[stage] = json.loads(done.stdout.splitlines()[-1]) | {
                "load_before": load,
                "load_after": os.getloadavg(),
            }
            given.out.write_text(json.dumps(results, indent=1))
            print(stage, json.dumps(results[stage]), flush=True)


if __name__ == "__main__":
    main()

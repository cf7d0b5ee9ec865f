"""What the guard costs. ``python tests/perf/guard.py --out FILE --data FOLDER``; not a test.

Each stage is a process of its own, so that memory is its own too; a stage that stands in FILE is not run again:

    prepare    a corpus of real passages, read by ``clinsafe guard annotate``'s own workers into stored facts
    latency    time added to a query, at 1 and 8 callers, facts stored and not; a spaCy pass and a MiniLM query in turn
    deadlines  passages left unchecked at 50, 100 and 250 ms
    cold       a new process until its first guarded answer
    where      shares of the time, by part of the guard, in one thread
    memory     resident memory over 100,000 different passages; ``memory_log`` the same with every decision logged
               (these two run side by side)
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import os
import pstats
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from clinsafe.benchmarks.ordinary import MEDQUAD, PUBMEDQA, data_folder
from clinsafe.benchmarks.ordinary import rows as records
from clinsafe.corpus import Document, windows
from clinsafe.protocols import Passage
from clinsafe.stats import Estimate, rate_of
from clinsafe.workflows.guard_latency import (
    CALLERS,
    SHARES,
    TOP,
    Asked,
    Call,
    drive,
    guarded,
    load_asked,
    measure,
    percentile,
    spacy_pass,
)  # fmt: skip

DEADLINES = (50, 100, 250)  # milliseconds
STARTS = 5
WORDS, STEP = 12, 6  # of the short passages that memory is watched with
SAMPLES, WARM = 20, 4  # places where memory is read; those before the WARM-th are not part of the slope
DEFAULT_MS = 2000  # the guard's own limit where the caller names none
STAGES = ("prepare", "latency", "deadlines", "cold", "where", "memory", "memory_log")
BESIDE = {"memory_log": "memory"}  # run at the same time as


@dataclass(frozen=True, slots=True)
class Sizes:
    """Queries timed in each setting of ``latency``, asked at each deadline; passages gone through for memory."""

    queries: int
    late: int
    passages: int


# ── what is asked ──────────────────────────────────────────────────────────────────────────────


def prepare(folder: Path, data: Path, sizes: Sizes) -> dict[str, Any]:
    """Passages of 200 words as a corpus, its facts in ``facts/``."""
    from clinsafe.scale.job import Job
    from clinsafe.scale.local import Run, run_local
    from clinsafe.scale.parts import Cut

    texts = {p.id: p.text for one in load_asked(data, sizes.queries) for p in one.passages}
    corpus = folder / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"id": k, "text": texts[k]}) + "\n" for k in sorted(texts)))
    done = run_local(Run(corpus, folder / "facts", Job(), Cut(), workers=os.cpu_count() or 1))
    return {"passages": done.passages, "seconds": done.seconds, "errors": done.errors}


def stored(folder: Path) -> Callable[[str, str], Any]:
    """Looks facts up as ``clinsafe.guard(…, facts=…)`` does; a passage is the only window of its document."""
    from clinsafe.scale.store import load_facts

    store = load_facts(folder / "facts")
    if store.stale:  # the guard would read the texts, and nobody would see it
        sys.exit(f"{folder / 'facts'}: made with other rules; remove the folder, or name a new one")
    return lambda name, text: store(f"{name}#0", text)


def short_passages(data: Path, wanted: int) -> Iterator[str]:
    """Different passages of `WORDS` words, in a mixed and fixed order."""
    texts = [str(row["answer"]) for row in records(data / MEDQUAD)]
    texts += [" ".join([*row["contexts"], row["long_answer"]]) for row in records(data / PUBMEDQA)]
    found = {w.text: None for t in texts for w in windows(Document("", t, ""), WORDS, WORDS - STEP)}
    every = list(found)
    random.Random(0).shuffle(every)
    if len(every) < wanted:
        sys.exit(f"the data hold {len(every):,} different passages of {WORDS} words; fewer than {wanted:,}")
    return iter(every[:wanted])


def in_tens(texts: Iterable[str]) -> Iterator[Asked]:
    """Each ten passages are asked for by the first of them."""
    row: list[Passage] = []
    for number, text in enumerate(texts):
        row.append(Passage(f"m{number}", text))
        if len(row) == TOP:
            yield Asked(row[0].text, tuple(row))
            row = []


# ── stages ─────────────────────────────────────────────────────────────────────────────────────


def latency(folder: Path, data: Path, sizes: Sizes) -> dict[str, Any]:
    """Percentiles, ratios and how many calls would have been over the guard's own limit."""
    from clinsafe.adapters.encoders import ModelOptions, load_model
    from clinsafe.workflows.guard import build_stack

    stack = build_stack()
    model: Any = load_model("minilm", ModelOptions(offline=True))
    sticks = spacy_pass(stack) | {"minilm": lambda one: model.encode([one.query])}
    ways = {"stored": guarded(stack, facts=stored(folder)), "unstored": guarded(stack)}
    asked = load_asked(data, sizes.queries)
    found = measure(ways, asked, yardsticks=sticks)
    rows = []
    for (way, callers), calls in found.calls.items():
        times = [call.milliseconds for call in calls]
        rows.append({
            "way": way, "callers": callers, "queries": len(calls),
            **{f"p{share}_ms": round(v, 1) for share, v in zip(SHARES, found.percentiles(way, callers), strict=True)},
            **{f"{name}_ratio": round(found.ratio(way, callers, name), 2) for name in sticks},
            "over_default_limit": counted(sum(t > DEFAULT_MS for t in times), len(times)),
            "whole": sum(call.whole for call in calls),
        })  # fmt: skip
    return {
        "rows": rows,
        "yardsticks_ms": {
            k: {"median": round(statistics.median(v), 1), "n": len(v)} for k, v in found.yardsticks.items()
        },
        "words_per_query": round(
            statistics.mean(sum(len(p.text.split()) for p in a.passages) for a in asked)
        ),
    }


def deadlines(folder: Path, data: Path, sizes: Sizes) -> dict[str, Any]:
    """A guard of its own for each setting: what the one before left behind has ended."""
    from clinsafe.workflows.guard import build_stack

    stack, facts = build_stack(), stored(folder)
    asked = load_asked(data, sizes.queries)[: sizes.late]
    rows = []
    for way, given in (("stored", facts), ("unstored", None)):
        guarded(stack, facts=given)(asked[0])
        for callers in CALLERS:
            for limit in DEADLINES:
                calls = drive(guarded(stack, seconds=limit / 1000, facts=given), asked, callers)
                rows.append({"way": way, "callers": callers, "deadline_ms": limit, **left(calls)})
                time.sleep(1)
    return {"rows": rows}


def left(calls: Sequence[Call]) -> dict[str, Any]:
    """Passages unchecked; queries with any; queries in which some pair of passages was not compared either."""
    times = [call.milliseconds for call in calls]
    return {
        "passages_unchecked": counted(sum(c.unchecked for c in calls), sum(c.passages for c in calls)),
        "queries_with_unchecked": counted(sum(c.unchecked > 0 for c in calls), len(calls)),
        "queries_not_whole": counted(sum(not c.whole for c in calls), len(calls)),
        "p99_ms": round(percentile(times, 99), 1),
    }


def counted(k: int, n: int) -> dict[str, Any]:
    """k of n, per 1,000, with the exact interval."""
    found = rate_of(k, n)
    if not isinstance(found, Estimate):
        return {"k": k, "n": n}
    low, high = found.low or 0.0, 1.0 if found.high is None else found.high
    return {"k": k, "n": n, "per_1000": round(found.value * 1000, 1),
            "low": round(low * 1000, 1), "high": round(high * 1000, 1)}  # fmt: skip


CHILD = """
import json, sys, time
data = json.loads(sys.stdin.readline())
times = [time.monotonic()]
import clinsafe
from clinsafe.protocols import Passage
def search(query):
    return [Passage(*row) for row in data["passages"]]
search = clinsafe.guard(search, seconds=60, **data["options"])
times.append(time.monotonic())
answer = search(data["query"])
times.append(time.monotonic())
assert not answer.unchecked, answer.unchecked
assert not any(p.unchecked for p in answer.passages)
print(json.dumps(times))
"""


def cold(folder: Path, data: Path, sizes: Sizes) -> dict[str, Any]:
    """Seconds from the start of the process; the first of each is a trial that fills the disk's cache."""
    rows = []
    one = load_asked(data, sizes.queries)[0]
    stored(folder)
    for way, options in (("stored", {"facts": str(folder / "facts")}), ("unstored", {})):
        tail = "#0" if options else ""
        asked = {
            "query": one.query,
            "options": options,
            "passages": [(p.id + tail, p.text) for p in one.passages],
        }
        starts = [_start(json.dumps(asked)) for _ in range(STARTS + 1)][1:]
        names = ("python_s", "guard_s", "first_answer_s", "total_s")
        rows.append({"way": way, "starts": len(starts), **{
            name: round(statistics.median(s[at] for s in starts), 2) for at, name in enumerate(names)
        }})  # fmt: skip
    return {"rows": rows}


def _start(line: str) -> tuple[float, float, float, float]:
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", CHILD], input=line + "\n", text=True, stdout=subprocess.PIPE, check=True
    )
    up, built, answered = json.loads(done.stdout.splitlines()[-1])
    return up - begun, built - up, answered - built, answered - begun


PARTS = {
    "facts looked up": ("scale/store.py", "__call__"),
    "texts read": ("stack.py", "read"),
    "by the filters, query included": ("stack.py", "facts"),
    "passages against the query, with stance": ("wrapper.py", "_one"),
    "passages against one another": ("disagreement.py", "disagreements"),
    "numbers to confirm": ("confirmation.py", "confirmations"),
    "actions and marked texts": ("wrapper.py", "_answer"),
}


def where(folder: Path, data: Path, sizes: Sizes) -> dict[str, Any]:
    """Cumulative shares; the first three lie inside "passages against the query"."""
    from clinsafe.workflows.guard import build_stack

    stack = build_stack(seconds=0)
    asked = load_asked(data, sizes.queries)[: max(2, sizes.queries // 5)]
    found = {}
    for way, facts in (("stored", stored(folder)), ("unstored", None)):
        ask = guarded(stack, seconds=0, facts=facts)
        ask(asked[0])
        profile = cProfile.Profile()
        used = time.process_time()
        profile.runcall(lambda ask=ask: [ask(one) for one in asked])
        used = time.process_time() - used
        stats: Any = pstats.Stats(profile)
        shares = {part: _spent(stats.stats, *place) / stats.total_tt for part, place in PARTS.items()}
        found[way] = {"queries": len(asked), "profiled_cpu_ms": round(used / len(asked) * 1000, 1),
                      "shares": {part: round(share, 3) for part, share in shares.items()}}  # fmt: skip
    return found


def _spent(stats: dict[tuple[str, int, str], tuple[Any, ...]], file: str, function: str) -> float:
    return sum(
        row[3] for (path, _, name), row in stats.items() if path.endswith("/" + file) and name == function
    )


def memory(_folder: Path, data: Path, sizes: Sizes) -> dict[str, Any]:
    """The guard as it comes, with its memory of the last texts."""
    return _watched(data, sizes.passages, {})


def memory_log(folder: Path, data: Path, sizes: Sizes) -> dict[str, Any]:
    """Every decision in a JSONL log, as it comes: synced to disk."""
    from clinsafe.oversight.jsonl import JsonlLog
    from clinsafe.oversight.keys import LogKey

    path = folder / "decisions.jsonl"
    for old in (path, Path(f"{path}.lock")):
        old.unlink(missing_ok=True)
    log = JsonlLog(path, LogKey(os.urandom(32)))
    log.create()
    found = _watched(data, sizes.passages, {"log": log})
    return found | {"log_mb": round(path.stat().st_size / 2**20, 1), "records": sum(1 for _ in path.open())}


def _watched(data: Path, wanted: int, options: dict[str, Any]) -> dict[str, Any]:
    import clinsafe

    step = max(TOP, wanted // SAMPLES // TOP * TOP)
    rows = list(in_tens(short_passages(data, wanted)))
    table = {one.query: list(one.passages) for one in rows}
    ask = clinsafe.guard(table.__getitem__, seconds=60, **options)
    points, seen, unchecked, begun = [(0, resident())], 0, 0, time.perf_counter()
    for one in rows:
        answer = ask(one.query)
        seen += len(answer.passages)
        unchecked += bool(answer.unchecked) or any(p.unchecked for p in answer.passages)
        if seen % step == 0:
            gc.collect()
            points.append((seen, resident()))
    return {"passages": seen, "words": WORDS, "queries_unchecked": unchecked,
            "seconds": round(time.perf_counter() - begun, 1), "rss_mb": points, **flatness(points)}  # fmt: skip


def resident() -> float:
    """Resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


def flatness(points: Sequence[tuple[int, float]]) -> dict[str, float]:
    """Growth after a fifth of the way, when the memory of facts is full: by a straight line, and end to end."""
    late = [point for point in points if point[0] >= points[-1][0] * WARM / SAMPLES]
    line = statistics.linear_regression([seen for seen, _ in late], [mb for _, mb in late])
    return {
        "from_passages": late[0][0],
        "mb_per_10000": round(line.slope * 10_000, 2),
        "difference_mb": round(late[-1][1] - late[0][1], 1),
    }


# ── all together ───────────────────────────────────────────────────────────────────────────────


def main() -> None:
    """Run the stages that are not in FILE yet, and write what was measured after each."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--out", type=Path, default=Path("guard-cost.json"))
    asked.add_argument("--data", type=Path)
    asked.add_argument("--queries", type=int, default=300)
    asked.add_argument("--late", type=int, default=100, help="queries at each deadline")
    asked.add_argument("--passages", type=int, default=100_000, help="for memory")
    asked.add_argument("--folder", type=Path, help="kept, for a run that goes on; default: a temporary one")
    asked.add_argument("--stage", action="append", choices=STAGES, help="only these, and anew")
    asked.add_argument("--only", choices=STAGES, help=argparse.SUPPRESS)
    given = asked.parse_args()
    data = data_folder(given.data)
    if data is None:
        sys.exit("name the data folder with --data or CLINSAFE_DATA")
    sizes = Sizes(given.queries, given.late, given.passages)
    if given.only:
        print(json.dumps(globals()[given.only](given.folder, data, sizes)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        _run(given, folder, data, sizes)


def _run(given: argparse.Namespace, folder: Path, data: Path, sizes: Sizes) -> None:
    results: dict[str, Any] = json.loads(given.out.read_text()) if given.out.exists() else {}
    if results.setdefault("sizes", asdict(sizes)) != asdict(sizes):
        sys.exit(f"{given.out} was begun with {results['sizes']}; name another file")
    results |= {"cores": os.cpu_count(), "python": sys.version.split()[0]}
    for stage in todo(results, given.stage, (folder / "facts").is_dir()):
        if stage in results and stage != "prepare" and not given.stage:
            continue  # was run beside another
        both = [
            stage,
            *(s for s, other in BESIDE.items() if other == stage and s in todo(results, given.stage, True)),
        ]
        begun, load = time.perf_counter(), os.getloadavg()
        running = {name: _begun(name, folder, data, sizes) for name in both}
        for name, process in running.items():
            out, _ = process.communicate()
            if process.returncode:
                sys.exit(f"{name} failed with {process.returncode}")
            results[name] = json.loads(out.splitlines()[-1]) | {
                "wall_s": round(time.perf_counter() - begun, 1), "load_before": load, "load_after": os.getloadavg(),
            }  # fmt: skip
            given.out.write_text(json.dumps(results, indent=1))
            print(name, json.dumps(results[name]), flush=True)


def todo(results: dict[str, Any], named: Sequence[str] | None, facts: bool) -> list[str]:
    """The stages to run: those named, else those not done; facts that a stage needs are read where there are none."""
    wanted = [stage for stage in STAGES if (stage in named if named else stage not in results)]
    needing = {"latency", "deadlines", "cold", "where"} & set(wanted)
    return ["prepare", *wanted] if needing and not facts and "prepare" not in wanted else wanted


def _begun(stage: str, folder: Path, data: Path, sizes: Sizes) -> subprocess.Popen[str]:
    line = [sys.executable, __file__, "--only", stage, "--folder", str(folder), "--data", str(data)]
    numbers = [f"--{name}={value}" for name, value in asdict(sizes).items()]
    return subprocess.Popen([*line, *numbers], stdout=subprocess.PIPE, text=True)


if __name__ == "__main__":
    main()

"""What an audit costs beside bare encoding, as ratios measured in one run. ``make perf``; not a test.

Every measurement is a process of its own; bare and clinsafe alternate, and medians are compared, because a shared
machine is noisy. Texts: all sentences of the written suite.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = int(os.environ.get("ROUNDS", "3"))
PEAK = "import resource; peak = lambda who: resource.getrusage(who).ru_maxrss / 1024"

TEXTS = """
from clinsafe.benchmarks.suite import SENTENCES, load_suite
from clinsafe.content import Content
cases = load_suite(Content())
texts = [getattr(c, s) for c in cases for s in SENTENCES]
"""

BARE = (
    TEXTS
    + PEAK
    + """
import json, time
from sentence_transformers import SentenceTransformer
from clinsafe.adapters.weights import ALIASES, packaged
model = SentenceTransformer(str(packaged(ALIASES["minilm"])), local_files_only=True)
model.encode(texts[:8], show_progress_bar=False)
start = time.perf_counter()
model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
print(json.dumps({"encode_s": time.perf_counter() - start, "peak_mb": peak(resource.RUSAGE_SELF)}))
"""
)

OURS = (
    TEXTS
    + PEAK
    + """
import json, sys, time, pathlib
from clinsafe.adapters.sentence_transformers import load
from clinsafe.benchmarks.scoring import score_with_encoder
encoder = load("minilm", offline=True)
encoder.encode(texts[:8])
folder = pathlib.Path(sys.argv[1]); folder.mkdir()
start = time.perf_counter()
score_with_encoder(encoder, cases, store=folder)
print(json.dumps({"encode_s": time.perf_counter() - start}))
"""
)

AUDIT = (
    PEAK
    + """
import json, sys, time, pathlib
import clinsafe.workflows.audit as workflow, sentence_transformers, scipy.stats, matplotlib.pyplot, rapidfuzz
start = time.perf_counter()
result = workflow.run_audit("minilm", out=pathlib.Path(sys.argv[1]), offline=True)
assert result.pdf is not None, result.notes
print(json.dumps({"audit_s": time.perf_counter() - start, "peak_mb": peak(resource.RUSAGE_SELF)}))
"""
)

# The renderer's own peak, in a process of its own: a child's ru_maxrss begins with its parent's.
RENDERER = """
import json, pathlib, sys
from clinsafe.content import Content
from clinsafe.reports import pdf
from clinsafe.reports.render import FONTS
folder = pathlib.Path(sys.argv[1])
created = json.loads((folder / "evidence.json").read_text())["created"]
fonts = [str(Content().path(name)) for name in FONTS]
(folder / "job.json").write_text(json.dumps({"created": created, "fonts": fonts}))
pdf._child(folder)
status = pathlib.Path("/proc/self/status").read_text()
print(json.dumps({"peak_mb": int(status.split("VmHWM:")[1].split()[0]) / 1024}))
"""


def measure(code: str, *arguments: str) -> dict[str, float]:
    """Run code in a fresh process; its last line is JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def wall(*command: str, code: int = 0) -> float:
    """Wall seconds of a command."""
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == code, done.stderr.decode()
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    seen: dict[str, list[float]] = {}

    def note(prefix: str, found: dict[str, float]) -> None:
        for name, value in found.items():
            seen.setdefault(f"{prefix}.{name}", []).append(value)

    clinsafe = str(Path(sys.executable).parent / "clinsafe")
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(ROUNDS):
            print(f"round {number + 1} of {ROUNDS}", file=sys.stderr)
            note("bare", measure(BARE))
            note("ours", measure(OURS, f"{scratch}/store{number}"))
            note("audit", measure(AUDIT, f"{scratch}/run{number}"))
            note("renderer", measure(RENDERER, f"{scratch}/run{number}"))
            note("typer", {"s": wall(sys.executable, "-c", "import typer")})
            note("help", {"s": wall(clinsafe, "--help")})
            command = (
                clinsafe,
                "audit",
                "-m",
                "minilm",
                "--no-sign",
                "--offline",
                "--out",
                f"{scratch}/cold{number}",
            )
            note("cold", {"s": wall(*command, code=1)})
    m = {name: statistics.median(values) for name, values in seen.items()}
    rows = [
        ("encode and score / bare encode", m["ours.encode_s"] / m["bare.encode_s"], 1.15,
         f"{m['ours.encode_s'] * 1000:.0f} / {m['bare.encode_s'] * 1000:.0f} ms"),
        ("audit with PDF / bare encode", m["audit.audit_s"] / m["bare.encode_s"], 3.0,
         f"{m['audit.audit_s'] * 1000:.0f} / {m['bare.encode_s'] * 1000:.0f} ms"),
        ("peak memory / bare", m["audit.peak_mb"] / m["bare.peak_mb"], 1.3,
         f"{m['audit.peak_mb']:.0f} / {m['bare.peak_mb']:.0f} MB"),
        ("peak with renderer beside / bare", (m["audit.peak_mb"] + m["renderer.peak_mb"]) / m["bare.peak_mb"], 1.3,
         f"{m['audit.peak_mb']:.0f} + {m['renderer.peak_mb']:.0f} / {m['bare.peak_mb']:.0f} MB"),
        ("clinsafe --help / import typer", m["help.s"] / m["typer.s"], 4.0,
         f"{m['help.s'] * 1000:.0f} / {m['typer.s'] * 1000:.0f} ms"),
    ]  # fmt: skip
    print(f"medians of {ROUNDS} rounds, {os.cpu_count()} cores")
    for name, ratio, target, detail in rows:
        print(f"{name:<34}{ratio:6.2f}  (target {target:.2f})  {detail}")
    print(f"cold command to PDF               {m['cold.s']:6.1f} s")


if __name__ == "__main__":
    main()

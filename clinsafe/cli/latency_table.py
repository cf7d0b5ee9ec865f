"""The table of ``guard bench --latency``."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from clinsafe.workflows.guard_latency import Latency

NAMES = {"stored": "facts stored", "unstored": "read and compare"}


def print_latency(console: Console, found: Latency) -> None:
    """Percentiles for each way and number of callers, and the ratios to what was timed beside them."""
    queries = len(next(iter(found.calls.values())))
    lines = [f"added by the guard to a query with 10 passages, {queries} queries, in ms"]
    for (way, callers), calls in found.calls.items():
        p50, p95, p99 = found.percentiles(way, callers)
        whole = sum(call.whole for call in calls)
        lines.append(
            f"  {NAMES.get(way, way):17} {callers:2} callers   p50 {p50:8.1f}   p95 {p95:8.1f}   p99 {p99:8.1f}"
            + "".join(f"   {found.ratio(way, callers, name):6.2f} x {name}" for name in found.yardsticks)
            + ("" if whole == len(calls) else f"   {len(calls) - whole} of {len(calls)} NOT WHOLLY CHECKED")
        )
    lines += [
        f"  {name}: {statistics.median(times):.1f} ms, median of {len(times)}"
        for name, times in found.yardsticks.items()
    ]
    if not found.yardsticks:
        lines.append("  one spaCy pass: not measured (no pipeline is installed)")
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)

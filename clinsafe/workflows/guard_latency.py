"""What the guard adds to a query: time with one and with several callers at once, and what a deadline leaves unchecked.

The retriever costs nothing (a table), so a call's time is the guard's. Each query is the first sentence of a real
passage; its passages are those that BM25 ranks first, that is, passages that speak of what is asked.
"""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinsafe.benchmarks.filters import Stage
from clinsafe.benchmarks.ordinary import VARIABLE, data_folder, passages
from clinsafe.content import Content
from clinsafe.errors import UsageError
from clinsafe.protocols import Passage
from clinsafe.stats import Estimate, Figure, rate_of
from clinsafe.workflows.guard import filter_names
from clinsafe.workflows.guarding import NLI

if TYPE_CHECKING:
    from clinsafe.guarded import GuardedAnswer
    from clinsafe.mitigations.facts import TextFacts
    from clinsafe.mitigations.stack import Stack

TOP = 10
CALLERS = (1, 8)
BLOCKS = 10  # the ways take turns, so that each of them sees the same load of the machine
SHARES = (50, 95, 99)
PATIENT = 60.0  # seconds: a limit that is watched, and that no query reaches


@dataclass(frozen=True, slots=True)
class Asked:
    """One query with what the retriever gives for it."""

    query: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the guard.

    Attributes:
        milliseconds: as the caller saw it.
        passages, unchecked: how many came back, and how many of these were not, or not wholly, looked at.
        whole: all passages and all pairs of passages were compared.
    """

    milliseconds: float
    passages: int = 0
    unchecked: int = 0
    whole: bool = True


def load_asked(data: Path | None, queries: int) -> list[Asked]:
    """Queries over real passages, in a fixed order. There may be fewer: the data yield no more.

    Raises:
        UsageError: no data folder is named, or it holds too few passages.
        MissingDependency: bm25s is missing.
    """
    folder = data_folder(data)
    if folder is None:
        raise UsageError(f"timing needs real passages; name the data folder with --data or {VARIABLE}")
    texts = list(dict.fromkeys(passages(folder, queries)))
    if len(texts) <= TOP:
        raise UsageError(f"{folder}: {len(texts)} passages of real text; timing needs more than {TOP}")
    return ranked(texts)


def ranked(texts: Sequence[str]) -> list[Asked]:
    """The first sentence of each text, with the texts that BM25 ranks first for it; ids are ``p0``, ``p1`` …"""
    from clinsafe.adapters.lexical import Bm25

    index, found = Bm25(texts), []
    for text in texts:
        query = text.split(". ")[0]
        scores = index.score([(query, other) for other in texts])
        best = sorted(range(len(texts)), key=lambda at: (-scores[at], at))[:TOP]
        found.append(Asked(query, tuple(Passage(f"p{at}", texts[at]) for at in best)))
    return found


def drive(ask: Callable[[Asked], Any], asked: Sequence[Asked], callers: int) -> list[Call]:
    """Let several threads ask, each its next query as soon as it has its answer; the calls in no fixed order.

    Raises:
        whatever a call raised, the first of them; a guard that fails is not a fast one.
    """
    calls: list[Call] = []
    faults: list[BaseException] = []
    turn = count()

    def work() -> None:
        while not faults and (at := next(turn)) < len(asked):
            begun = time.perf_counter()
            try:
                answer = ask(asked[at])
            except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
                faults.append(error)
                return
            calls.append(_call((time.perf_counter() - begun) * 1000, answer))

    if callers == 1:
        work()
    else:
        threads = [threading.Thread(target=work, daemon=True) for _ in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if faults:
        raise faults[0]
    return calls


def _call(milliseconds: float, answer: Any) -> Call:
    if not hasattr(answer, "withheld"):  # a yardstick's
        return Call(milliseconds)
    rows = (*answer.passages, *answer.withheld)
    late = sum(bool(row.unchecked) for row in rows)
    return Call(milliseconds, len(rows), late, not (late or answer.unchecked))


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` percent of all do not exceed (nearest rank).

    Raises:
        ValueError: no values, or a share outside (0, 100].
    """
    if not values or not 0 < share <= 100:
        raise ValueError(f"percentile {share} of {len(values)} values")
    return sorted(values)[math.ceil(share / 100 * len(values)) - 1]


@dataclass(slots=True)
class Latency:
    """What was timed.

    Attributes:
        calls: way (``stored``, ``unstored``) and callers -> the calls; every one of them complete.
        yardsticks: name -> milliseconds of one caller, one query after another, taken in turn with the calls.
    """

    calls: dict[tuple[str, int], list[Call]] = field(default_factory=dict)
    yardsticks: dict[str, list[float]] = field(default_factory=dict)

    def percentiles(self, way: str, callers: int) -> tuple[float, ...]:
        """Milliseconds at `SHARES`."""
        times = [call.milliseconds for call in self.calls[way, callers]]
        return tuple(percentile(times, share) for share in SHARES)

    def ratio(self, way: str, callers: int, yardstick: str) -> float:
        """Median of the calls over that of a yardstick; a figure that does not depend on the machine as much."""
        times = [call.milliseconds for call in self.calls[way, callers]]
        return statistics.median(times) / statistics.median(self.yardsticks[yardstick])

    def figures(self) -> dict[str, Figure]:
        """``guard_latency.all.stored_8_p99_ms``, ``….stored_8_spacy_ratio``, ``….stored_8_whole`` (a rate) …"""
        found: dict[str, Figure] = {}
        for (way, callers), calls in self.calls.items():
            name = f"guard_latency.all.{way}_{callers}"
            for share, value in zip(SHARES, self.percentiles(way, callers), strict=True):
                found[f"{name}_p{share}_ms"] = _timing(value, len(calls))
            for yardstick, times in self.yardsticks.items():
                found[f"{name}_{yardstick}_ratio"] = _timing(self.ratio(way, callers, yardstick), len(times))
            found[f"{name}_whole"] = rate_of(sum(call.whole for call in calls), len(calls))
        return found


def _timing(value: float, n: int) -> Figure:
    return Estimate(value, None, None, n, "timing; descriptive, no interval")


def measure(
    ways: Mapping[str, Callable[[Asked], GuardedAnswer]],
    asked: Sequence[Asked],
    *,
    callers: Sequence[int] = CALLERS,
    yardsticks: Mapping[str, Callable[[Asked], object]] | None = None,
    every: int = 10,
    stage: Stage = lambda *_: None,
) -> Latency:
    """Time each way with each number of callers, block by block in turn.

    Args:
        ways: name -> asks the guard.
        asked: the queries; the first is asked once more beforehand and not counted.
        yardsticks: name -> what the guard is compared with, done for one query in `every`.
        stage: told how far it is.
    """
    sticks = yardsticks or {}
    found = Latency({(way, n): [] for way in ways for n in callers}, {name: [] for name in sticks})
    for ask in (*ways.values(), *sticks.values()):
        ask(asked[0])
    done = 0
    for block in _blocks(asked):
        for (way, n), calls in found.calls.items():
            calls += drive(ways[way], block, n)
        for name, act in sticks.items():
            found.yardsticks[name] += [call.milliseconds for call in drive(act, block[::every], 1)]
        done += len(block)
        stage("Timing", done, len(asked))
    return found


def _blocks(asked: Sequence[Asked]) -> Iterator[Sequence[Asked]]:
    size = max(1, math.ceil(len(asked) / BLOCKS))
    return (asked[start : start + size] for start in range(0, len(asked), size))


def measure_latency(
    stack: Stack, content: Content | None = None, *, data: Path | None = None, queries: int, stage: Stage
) -> Latency:
    """Time the guard around a stack, with facts that were read before and with passages that it never saw.

    Raises:
        UsageError, MissingDependency: see `load_asked`.
    """
    asked = load_asked(data, queries)
    stored: dict[str, TextFacts] = {}
    for at, text in enumerate(texts := sorted({one.text for row in asked for one in row.passages}), start=1):
        stored[text] = stack.read(text)
        stage("Reading", at, len(texts))
    ways = {
        "stored": guarded(stack, content, facts=lambda _id, text: stored[text]),
        "unstored": guarded(stack, content),
    }
    return measure(ways, asked, yardsticks=spacy_pass(stack), stage=stage)


def spacy_pass(stack: Stack) -> dict[str, Callable[[Asked], object]]:
    """One pass of the whole spaCy pipeline over the passages of a query; nothing where none is installed."""
    pipeline = stack.reader.parser.pipeline(whole=True)
    return {} if pipeline is None else {"spacy": lambda one: [pipeline(p.text) for p in one.passages]}


def guarded(
    stack: Stack,
    content: Content | None = None,
    *,
    seconds: float = PATIENT,
    facts: Callable[[str, str], TextFacts] | None = None,
) -> Callable[[Asked], GuardedAnswer]:
    """Asks a guard with the default policy. It remembers no text: without `facts`, each passage is one it never saw."""
    from clinsafe.adapters.retrievers import passages as accept
    from clinsafe.mitigations.packs import load_packs
    from clinsafe.mitigations.policy import load_policy
    from clinsafe.mitigations.wrapper import RetrievalGuard

    content = content or Content()
    policy = load_policy("default", content, (*filter_names(content), NLI))
    guard = RetrievalGuard(
        stack, policy, load_packs(content), accept, seconds=seconds, facts=facts, remember=0
    )
    return lambda one: guard.check(one.query, list(one.passages), k=TOP)

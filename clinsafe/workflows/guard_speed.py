"""What the guard costs: milliseconds for ten passages, and the ratio to one spaCy pass over them in the same run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clinsafe.benchmarks.filters import Stage
from clinsafe.benchmarks.ordinary import VARIABLE, data_folder, passages
from clinsafe.errors import UsageError
from clinsafe.stats import Estimate, Figure, NotMeasured

if TYPE_CHECKING:
    from clinsafe.mitigations.stack import Stack

TOP = 10
ROUNDS = 40


@dataclass(frozen=True, slots=True)
class Speed:
    """Milliseconds for the top 10 of ~200-word passages.

    Attributes:
        stored, stored_p99: comparing with facts that were read before; median and 99th percentile.
        unstored: reading the passages, parsing only what can matter, and comparing; median.
        spacy: one pass of the full spaCy pipeline over the same ten passages; None without a pipeline.
        words: words in the ten passages, median.
        rounds: queries timed.
    """

    stored: float
    stored_p99: float
    unstored: float
    spacy: float | None
    words: float
    rounds: int

    @property
    def ratio(self) -> float | None:
        """unstored / spacy."""
        return None if self.spacy is None else self.unstored / self.spacy

    def figures(self) -> dict[str, Figure]:
        """``guard_speed.all.stored_ms`` and the others; no intervals, they depend on the machine."""
        parts = {"stored_ms": self.stored, "stored_p99_ms": self.stored_p99, "unstored_ms": self.unstored,
                 "spacy_ms": self.spacy, "ratio": self.ratio}  # fmt: skip
        return {
            f"guard_speed.all.{name}": NotMeasured("no spaCy pipeline is installed")
            if value is None
            else Estimate(value, None, None, self.rounds, "timing; descriptive, no interval")
            for name, value in parts.items()
        }


def measure_speed(stack: Stack, *, data: Path | None = None, stage: Stage) -> Speed:
    """Time a stack on real passages; each round takes a new query (a passage's first sentence) and ten passages.

    Raises:
        UsageError: no data folder is named.
    """
    folder, rounds = data_folder(data), ROUNDS
    if folder is None:
        raise UsageError(f"timing needs real passages; name the data folder with --data or {VARIABLE}")
    texts = passages(folder, TOP * (rounds + 1))
    pipeline = stack.reader.parser.pipeline(whole=True)
    stored, unstored, spacy, words = [], [], [], []
    for number in range(rounds + 1):  # the first round warms caches up and is not counted
        part = texts[number * TOP : (number + 1) * TOP]
        query = part[0].split(". ")[0]
        asked, facts = stack.read(query), [stack.read(text) for text in part]
        stored.append(_ms(lambda a=asked, f=facts: stack.compare_all(a, f)))  # type: ignore[misc]
        unstored.append(_ms(lambda q=query, p=part: stack.check(q, p)))  # type: ignore[misc]
        if pipeline is not None:
            spacy.append(_ms(lambda p=part: [pipeline(text) for text in p]))  # type: ignore[misc]
        words.append(sum(len(text.split()) for text in part))
        stage("Timing", number, rounds)
    return Speed(
        stored=statistics.median(stored[1:]),
        stored_p99=sorted(stored[1:])[max(0, round(0.99 * rounds) - 1)],
        unstored=statistics.median(unstored[1:]),
        spacy=statistics.median(spacy[1:]) if spacy else None,
        words=statistics.median(words[1:]),
        rounds=rounds,
    )


def _ms(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) * 1000

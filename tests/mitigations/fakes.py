"""Small filters for tests of what handles filters."""

from __future__ import annotations

import time
from collections.abc import Callable

from clinsafe.protocols import Fact, Finding, Span


class Scripted:
    """Reads one fact a text, whose keys are the text's words; `verdict` decides what a comparison says."""

    def __init__(self, verdict: str = "conflict", hazard: str = "negation") -> None:
        self.hazard, self.verdict = hazard, verdict

    def read(self, reading):
        keys = frozenset(reading.text.lower().split())
        return [Fact(self.hazard, Span(0, len(reading.text)), {"keys": keys}, "cue", "rule")]

    def compare(self, query, passage):
        return [finding(self.hazard, self.verdict) for _ in query for _ in passage]


class Broken(Scripted):
    """Fails where it is told to."""

    def __init__(self, where: str, act: Callable[[], object]) -> None:
        super().__init__()
        self.where, self.act = where, act

    def read(self, reading):
        if self.where == "read":
            self.act()
        return super().read(reading)

    def compare(self, query, passage):
        if self.where == "compare":
            self.act()
        return super().compare(query, passage)


def hang() -> None:
    time.sleep(3)


def throw() -> None:
    raise RuntimeError("Mrs Canary has HIV")


def finding(hazard: str = "negation", verdict: str = "conflict") -> Finding:
    return Finding(
        hazard,
        verdict,
        "contradiction",
        "high",
        0.9,
        Span(0, 1),
        Span(0, 1),
        "a",
        "b",
        "cue",
        "rule",
        "Said.",
    )

"""What is measured as an instrument: judges, scores with a threshold, hit functions, and the three that know nothing.

Every adapter takes callables: this file depends on no judge, metric or model.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from clinsafe.protocols import Judge, Judgement, JudgeTask
from clinsafe.rag.auditing.claim import Claim, Instrument, Support

SLACK = 1e-6  # of float32
ADHERES = 0.70  # RAG-X, III-B; `Thresholds.adherence`
ASKED = "What does the record say?"
"""Stands in for the question where there is none: judges want one, and it must not hint at the answer."""

Score: TypeAlias = Callable[[str, str], float | None]
"""(answer, one context) -> how well it is covered, higher is more; None where there is no such number."""
Hit: TypeAlias = Callable[[Claim], Support]


@dataclass(frozen=True, slots=True)
class JudgeInstrument:
    """A judge on one metric; from the threshold on it supports. Whatever it did not score is no verdict.

    Attributes:
        ask: tasks in, judgements out, in their order: `one_by_one` of a judge, or what runs several at a time.
        metric: the metric that a judge is asked for, ``adherence`` or ``support``.
        reasons: why there was no verdict -> how often.
    """

    name: str
    ask: Callable[[Sequence[JudgeTask]], Sequence[Judgement]]
    metric: str = "adherence"
    threshold: float = ADHERES
    reasons: Counter[str] = field(default_factory=Counter, compare=False)

    def supports(self, tasks: Sequence[Claim], /) -> Sequence[Support]:
        """One verdict a task."""
        return [self._read(one) for one in self.ask(self.asked(tasks))]

    def asked(self, tasks: Sequence[Claim]) -> list[JudgeTask]:
        """What the judge is given."""
        return [JudgeTask(self.metric, t.question or ASKED, t.answer, t.contexts) for t in tasks]

    def _read(self, said: Judgement) -> Support:
        verdict = _from(self.threshold, said.value if said.outcome == "scored" else None, 1.0)
        if verdict is None:
            self.reasons["not a score" if said.outcome == "scored" else said.reason or said.outcome] += 1
        return verdict


def one_by_one(judge: Judge) -> Callable[[Sequence[JudgeTask]], Sequence[Judgement]]:
    """Ask a judge for one task after the other."""
    return lambda tasks: [judge.judge(task) for task in tasks]


@dataclass(frozen=True, slots=True)
class ScoreInstrument:
    """A metric of answer and context, read as support from a threshold on. The best of the contexts counts."""

    name: str
    score: Score
    threshold: float = ADHERES

    def supports(self, tasks: Sequence[Claim], /) -> Sequence[Support]:
        """One verdict a task."""
        return [self._one(task) for task in tasks]

    def _one(self, task: Claim) -> Support:
        each = [_from(self.threshold, self.score(task.answer, context)) for context in task.contexts]
        if any(each):
            return True
        return None if not each or None in each else False


@dataclass(frozen=True, slots=True)
class HitInstrument:
    """A hit function (is the answer in one of the contexts?), read as support."""

    name: str
    hit: Hit

    def supports(self, tasks: Sequence[Claim], /) -> Sequence[Support]:
        """One verdict a task."""
        return [self.hit(task) for task in tasks]


@dataclass(frozen=True, slots=True)
class BatchInstrument:
    """Anything that takes all tasks at once: what encodes, and wants its texts in batches."""

    name: str
    ask: Callable[[Sequence[Claim]], Sequence[Support]]

    def supports(self, tasks: Sequence[Claim], /) -> Sequence[Support]:
        """One verdict a task."""
        return self.ask(tasks)


def _literal(task: Claim) -> Support:
    """The lower-cased answer is a part of the contexts: the "safety net" that turns a judge's no into a yes."""
    answer = task.answer.lower().strip().rstrip(".")
    return bool(answer) and answer in " ".join(task.contexts).lower()


def literal() -> Instrument:
    """Literal match of the whole answer."""
    return HitInstrument("literal", _literal)


def dummies() -> tuple[Instrument, ...]:
    """What knows nothing: a row in every table, and none of them may ever earn anything."""
    return (
        HitInstrument("disabled", lambda _: None),
        HitInstrument("always_yes", lambda _: True),
        HitInstrument("always_no", lambda _: False),
    )


def _from(threshold: float, value: float | None, most: float = math.inf) -> Support:
    """At or above the threshold; a number that is none, or outside what it may be, is no verdict."""
    if value is None or not math.isfinite(value) or value < -SLACK or value > most + SLACK:
        return None
    return bool(value >= threshold)

"""Several systems on the same cases: do they differ, and which from which?

Decision D5. Two questions, each a family of its own for Holm's correction: who prefers the contradiction more often
(an outcome, so that systems on different scales compare), and whose contradicting pairs are called more alike (a
similarity, so bi-encoders only). A case that one system did not answer is left out for all, and n says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from clinsafe.benchmarks.outcomes import inverted, ranked
from clinsafe.benchmarks.scoring import CaseResult, PairScores
from clinsafe.paired import Agreement, difference, friedman, holm, signed_rank
from clinsafe.protocols import SystemKind
from clinsafe.stats import NotMeasured


@dataclass(frozen=True, slots=True)
class System:
    """One row of the comparison."""

    label: str
    kind: SystemKind
    results: Sequence[CaseResult]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two systems: B against A.

    `value` with its interval is B minus A, a difference of shares or of mean similarities; None where the interval is
    not defined for it. `p_holm` is corrected over the family's pairs.
    """

    a: str
    b: str
    value: float
    low: float | None
    high: float | None
    p: float
    p_holm: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """One question. `agreement` is the omnibus test, or the reason why there is none."""

    question: str
    method: str
    n: int
    agreement: Agreement | NotMeasured
    pairs: Sequence[Pair]


def compare_all(systems: Sequence[System]) -> list[Comparison]:
    """Every question that these systems can answer; nothing where there is only one."""
    found = []
    if len(systems) > 1:
        found.append(_inversions(systems))
    encoders = [s for s in systems if s.kind == "bi-encoder"]
    if len(encoders) > 1:
        found.append(_similarities(encoders))
    if len(encoders) > 2:
        found.append(_category_means(encoders))
    return found


def _inversions(systems: Sequence[System]) -> Comparison:
    outcomes = _common(systems, inverted)
    pairs = []
    for a, b in combinations(range(len(systems)), 2):
        found = difference([bool(x) for x in outcomes[a]], [bool(x) for x in outcomes[b]])
        if not isinstance(found, NotMeasured):
            pairs.append((a, b, found.value, found.low, found.high, found.p))
    return Comparison(
        "Does the share of cases in which the contradiction is preferred differ?",
        "Friedman on 0/1 outcomes (Cochran's Q); pairs: exact McNemar, Newcombe's interval 10 (95 %), Holm over the "
        "pairs",
        len(outcomes[0]),
        friedman([[float(x) for x in row] for row in outcomes]),
        _corrected(systems, pairs),
    )


def _similarities(systems: Sequence[System]) -> Comparison:
    values = _common(systems, _contradicting)
    pairs = [
        (a, b, fmean(values[b]) - fmean(values[a]), None, None, signed_rank(values[a], values[b]))
        for a, b in combinations(range(len(systems)), 2)
        if values[a]
    ]
    return Comparison(
        "Are contradicting pairs called more alike by one encoder than by another?",
        "Friedman over cases; pairs: Wilcoxon signed-rank (Pratt's zeros, normal approximation), difference of means "
        "without an interval, Holm over the pairs. A higher cosine is not a worse model where unrelated texts score "
        "higher too: read it beside them",
        len(values[0]),
        friedman(values),
        _corrected(systems, pairs),
    )


def _category_means(systems: Sequence[System]) -> Comparison:
    hazards = list(dict.fromkeys(r.hazard for r in systems[0].results))
    means: list[list[float]] = [[] for _ in systems]
    for hazard in hazards:
        part = [System(s.label, s.kind, [r for r in s.results if r.hazard == hazard]) for s in systems]
        values = _common(part, _contradicting)
        if values[0]:
            for row, found in zip(means, values, strict=True):
                row.append(fmean(found))
    return Comparison(
        "The paper's own comparison: do the encoders differ in their hazard means?",
        "Friedman over the hazards' mean similarities of contradicting pairs",
        len(means[0]),
        friedman(means),
        [],
    )


def _contradicting(scores: PairScores) -> float:
    return scores["a|b"]


def _common(systems: Sequence[System], of: Callable[[PairScores], float]) -> list[list[float]]:
    """Per system, the value of every case that all systems answered, in one order."""
    answered: list[Mapping[str, PairScores]] = [
        {r.id: ranked(r.scores, s.kind) for r in s.results if not isinstance(r.scores, NotMeasured)}
        for s in systems
    ]
    shared = [i for i in answered[0] if all(i in other for other in answered)]
    return [[of(scores[i]) for i in shared] for scores in answered]


def _corrected(
    systems: Sequence[System],
    pairs: Sequence[tuple[int, int, float, float | None, float | None, float]],
) -> list[Pair]:
    adjusted = holm([pair[5] for pair in pairs])
    return [
        Pair(systems[a].label, systems[b].label, value, low, high, p, p_holm)
        for (a, b, value, low, high, p), p_holm in zip(pairs, adjusted, strict=True)
    ]

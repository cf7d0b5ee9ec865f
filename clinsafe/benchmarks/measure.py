"""From per-case scores to figures with intervals: decision D1, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from clinsafe.benchmarks.outcomes import (
    TOLERANCE,
    failed,
    inverted,
    inverted_any,
    pairwise,
    ranked,
    same_missed,
)
from clinsafe.benchmarks.scoring import UNRELATED, CaseResult, PairScores
from clinsafe.protocols import MetricKey, SystemKind
from clinsafe.stats import Estimate, Figure, NotMeasured, auroc, described, mean, rate

AREA = "suite"
STRATA = ("balanced", "b_closer")
NULL = 0.50
"""The paper's "approximate expected similarity for unrelated sentences" (section 4.4); nothing measured it there."""
CALIBRATED = "calibrated"
ITEMS = "items"
"""Slice of the figures at the checklist items' own limits."""
NO_SLICE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Limits:
    """Where "alike" begins, for a system whose scores have thresholds.

    Attributes:
        kind: of the system; ties between a cross-encoder's scores are judged on its logits.
        items: case id -> the limit that the checklist item of its hazard names, whatever the protocol.
        protocol: the protocol's name, the slice of its threshold figures.
        of_case: case id -> the limit that the protocol sets for it.
        fixed: every distinct limit of the protocol, tried on all cases.
        keep: share of the dev cases whose same-meaning pairs the calibrated limit must still call alike.
    """

    protocol: str
    of_case: Mapping[str, float]
    fixed: Sequence[float]
    keep: float = 0.95
    kind: SystemKind = "bi-encoder"
    items: Mapping[str, float] = field(default_factory=dict)


def figures(
    results: Sequence[CaseResult], limits: Limits | None, *, detail: bool = True
) -> dict[str, Figure]:
    """Every figure of one system, by metric key.

    Args:
        results: per-case scores. A group with any unmeasured case has no figure: leaving cases out
            would let a model that fails to answer look better.
        limits: None for a scorer whose scale has no threshold (rank figures only).
        detail: also by subtype, and by subtype within a stratum.
    """
    found: dict[str, Figure] = {}
    for hazard, slices, group in _groups(results, detail):
        scores = _complete(group)
        found |= _rank_figures(hazard, scores, slices, limits.kind if limits else "lexical")
        if limits is not None:
            found |= _spread(hazard, scores, slices)
            found |= _threshold_figures(hazard, group, scores, limits, slices)
    if limits is not None:
        found |= _calibrated(results, limits)
    return found


def key(hazard: str, metric: str, part: str | None = None, slices: Mapping[str, str] = NO_SLICE) -> str:
    """The metric key of this area; slices are sorted, so that one figure has one key."""
    text = ",".join(f"{name}={value}" for name, value in sorted(slices.items()))
    return str(MetricKey(AREA, hazard, metric, part, text or None))


def _groups(
    results: Sequence[CaseResult], detail: bool
) -> Iterator[tuple[str, dict[str, str], list[CaseResult]]]:
    """(hazard, slices, cases): all, each hazard, and each of those by stratum, by subtype and by both."""
    for hazard in [*dict.fromkeys(r.hazard for r in results), "all"]:
        group = [r for r in results if hazard in (r.hazard, "all")]
        subtypes = dict.fromkeys(r.subtype for r in group) if detail and hazard != "all" else ()
        for subtype in (None, *subtypes):
            part = [r for r in group if subtype in (None, r.subtype)]
            named = {} if subtype is None else {"subtype": subtype}
            yield hazard, named, part
            for stratum in STRATA:
                yield hazard, named | {"stratum": stratum}, [r for r in part if r.stratum == stratum]


def _rank_figures(
    hazard: str, scores: list[PairScores] | NotMeasured, slices: Mapping[str, str], kind: SystemKind
) -> dict[str, Figure]:
    names = [
        key(hazard, metric, part, slices)
        for metric, part in (("inversion", None), ("inversion", "any"), ("pairwise", None), ("auroc", None))
    ]
    if isinstance(scores, NotMeasured):
        return dict.fromkeys(names, scores)
    scores = [ranked(s, kind) for s in scores]
    values = (
        rate([inverted(s) for s in scores]),
        rate([inverted_any(s) for s in scores]),
        rate([pairwise(s) for s in scores]),
        auroc(
            [(s["a|a_same"], s["b|b_same"]) for s in scores],
            [(s["a|b"], s["a_same|b_same"]) for s in scores],
        ),
    )
    return dict(zip(names, values, strict=True))


def _spread(
    hazard: str, scores: list[PairScores] | NotMeasured, slices: Mapping[str, str]
) -> dict[str, Figure]:
    """Where the scores lie: mean, sample SD, extremes, and the paper's effect size."""
    kinds = {"contradicting": "a|b", "same": "a|a_same", "unrelated": UNRELATED}
    found: dict[str, Figure] = {}
    for name, pair in kinds.items():
        if isinstance(scores, NotMeasured):
            found[key(hazard, "similarity", name, slices)] = scores
            continue
        values = [s[pair] for s in scores if pair in s]
        if len(values) < len(scores):
            found[key(hazard, "similarity", name, slices)] = NotMeasured(
                f"{len(scores) - len(values)} case(s) have no such pair", len(values)
            )
            continue
        found |= {
            key(hazard, "similarity", name, slices): mean(values),
            key(hazard, "similarity_sd", name, slices): described(values, "sample SD (n - 1)", _sd, 2),
            key(hazard, "similarity_min", name, slices): described(values, "minimum", _lowest),
            key(hazard, "similarity_max", name, slices): described(values, "maximum", _highest),
        }
        if name == "contradicting":
            found[key(hazard, "cohen_d", name, slices)] = described(
                values, f"(mean - {NULL:.2f}) / sample SD of these scores", _effect, 2
            )
    return found


def _sd(values: np.ndarray) -> float:
    return 0.0 if np.ptp(values) == 0 else float(values.std(ddof=1))


def _lowest(values: np.ndarray) -> float:
    return float(values.min())


def _highest(values: np.ndarray) -> float:
    return float(values.max())


def _effect(values: np.ndarray) -> float:
    spread = _sd(values)
    return float(values.mean() - NULL) / spread if spread else float("inf")


def _threshold_figures(
    hazard: str,
    group: Sequence[CaseResult],
    scores: list[PairScores] | NotMeasured,
    limits: Limits,
    slices: Mapping[str, str],
) -> dict[str, Figure]:
    found = _failures(
        hazard, scores, [limits.of_case[r.id] for r in group], {**slices, "protocol": limits.protocol}
    )
    if limits.items:
        asked = [limits.items[r.id] for r in group]
        found |= _failures(hazard, scores, asked, {**slices, "protocol": ITEMS})
    for limit in limits.fixed:
        found |= _failures(hazard, scores, [limit] * len(group), {**slices, "limit": f"{limit:g}"})
    return found


def _failures(
    hazard: str, scores: list[PairScores] | NotMeasured, limits: Sequence[float], slices: Mapping[str, str]
) -> dict[str, Figure]:
    """How often contradictions pass these limits, and its price, how often same-meaning pairs do not."""
    failure, missed = key(hazard, "failure", slices=slices), key(hazard, "same_missed", slices=slices)
    if isinstance(scores, NotMeasured):
        return {failure: scores, missed: scores}
    pairs = list(zip(scores, limits, strict=True))
    return {
        failure: rate([failed(s, limit) for s, limit in pairs]),
        missed: rate([same_missed(s, limit) for s, limit in pairs]),
    }


def _calibrated(results: Sequence[CaseResult], limits: Limits) -> dict[str, Figure]:
    """One limit for this model, set on the dev cases and tried on the test cases."""
    dev = _complete([r for r in results if r.split == "dev"])
    name = key("all", "calibrated_limit")
    if isinstance(dev, NotMeasured):
        return {name: dev}
    # The highest limit at which at most 1 - keep of the dev cases lose a same-meaning pair.
    worst = sorted(min(s["a|a_same"], s["b|b_same"]) for s in dev)
    limit = worst[int((1 - limits.keep) * len(worst) + 1e-9)] - 2 * TOLERANCE
    found: dict[str, Figure] = {
        name: Estimate(
            limit,
            None,
            None,
            len(worst),
            f"highest limit that keeps both same-meaning pairs in {limits.keep:.0%} of the dev cases; no interval",
        )
    }
    for hazard in [*dict.fromkeys(r.hazard for r in results), "all"]:
        test = [r for r in results if r.split == "test" and hazard in (r.hazard, "all")]
        slices = {"limit": CALIBRATED, "split": "test"}
        found |= _failures(hazard, _complete(test), [limit] * len(test), slices)
    return found


def _complete(group: Iterable[CaseResult]) -> list[PairScores] | NotMeasured:
    """All scores of the group, or NotMeasured as soon as one is missing."""
    scores: list[PairScores] = []
    missing: list[str] = []
    for result in group:
        if isinstance(result.scores, NotMeasured):
            missing.append(f"{result.id}: {result.scores.reason}")
        else:
            scores.append(result.scores)
    if missing:
        return NotMeasured(f"{len(missing)} case(s) not measured, first {missing[0]}", n=len(scores))
    if not scores:
        return NotMeasured("no case in this group")
    return scores

"""From per-case scores to figures with intervals: decision D1, and nothing else.

Ties count against the model, and so does anything within `TOLERANCE` of a limit: fp32 cosines move by
less than that between batch sizes, so no verdict can depend on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from clinsafe.benchmarks.scoring import CaseResult, PairScores
from clinsafe.protocols import MetricKey
from clinsafe.stats import Figure, NotMeasured, auroc, mean, rate

TOLERANCE = 1e-5
AREA = "suite"
STRATA = ("balanced", "b_closer")


def failed(scores: PairScores, limit: float) -> bool:
    """s(a,b) > t: the contradicting pair is called alike."""
    return scores["a|b"] > limit - TOLERANCE


def same_missed(scores: PairScores, limit: float) -> bool:
    """The other half of `failed`: a same-meaning pair of the case is called unlike at the same limit."""
    return min(scores["a|a_same"], scores["b|b_same"]) <= limit + TOLERANCE


def inverted(scores: PairScores) -> bool:
    """s(a,b) >= s(a,a_same): the contradicting sentence is preferred to the same-meaning one."""
    return scores["a|b"] >= scores["a|a_same"] - TOLERANCE


def inverted_any(scores: PairScores) -> bool:
    """Inverted from either side of the case."""
    return inverted(scores) or scores["b|a"] >= scores["b|b_same"] - TOLERANCE


def pairwise(scores: PairScores) -> bool:
    """Both paraphrases find their own sentence first (as NevIR); chance is 0.25."""
    return (
        scores["a_same|a"] > scores["a_same|b"] + TOLERANCE
        and scores["b_same|b"] > scores["b_same|a"] + TOLERANCE
    )


def figures(
    results: Sequence[CaseResult], limits: Mapping[str, float] | None, protocol: str = ""
) -> dict[str, Figure]:
    """Every figure of one system, by metric key.

    Args:
        results: per-case scores. A hazard with any unmeasured case has no rate: leaving cases out
            would let a model that fails to answer look better.
        limits: case id -> the similarity above which it fails; None for a scorer whose scale has no
            threshold (rank figures only).
        protocol: the slice name of the threshold figures.
    """
    found: dict[str, Figure] = {}
    hazards = list(dict.fromkeys(r.hazard for r in results))
    for hazard in hazards:
        group = [r for r in results if r.hazard == hazard]
        found |= _rank_figures(hazard, group)
        for stratum in STRATA:
            part = [r for r in group if r.stratum == stratum]
            found |= _rank_figures(hazard, part, f"stratum={stratum}")
    found |= _rank_figures("all", results)
    for stratum in STRATA:
        part = [r for r in results if r.stratum == stratum]
        found |= _rank_figures("all", part, f"stratum={stratum}")
    if limits is not None:
        for hazard in [*hazards, "all"]:
            group = [r for r in results if hazard in (r.hazard, "all")]
            found |= _threshold_figures(hazard, group, limits, f"protocol={protocol}")
    return found


def _rank_figures(hazard: str, group: Sequence[CaseResult], slice_: str | None = None) -> dict[str, Figure]:
    scores = _complete(group)

    def key(metric: str, subtype: str | None = None) -> str:
        return str(MetricKey(AREA, hazard, metric, subtype, slice_))

    if isinstance(scores, NotMeasured):
        names = [key("inversion"), key("inversion", "any"), key("pairwise"), key("auroc")]
        names += [key("similarity", "contradicting"), key("similarity", "same")]
        return dict.fromkeys(names, scores)
    return {
        key("inversion"): rate([inverted(s) for s in scores]),
        key("inversion", "any"): rate([inverted_any(s) for s in scores]),
        key("pairwise"): rate([pairwise(s) for s in scores]),
        key("auroc"): auroc(
            [(s["a|a_same"], s["b|b_same"]) for s in scores],
            [(s["a|b"], s["a_same|b_same"]) for s in scores],
        ),
        key("similarity", "contradicting"): mean([s["a|b"] for s in scores]),
        key("similarity", "same"): mean([s["a|a_same"] for s in scores]),
    }


def _threshold_figures(
    hazard: str, group: Sequence[CaseResult], limits: Mapping[str, float], slice_: str
) -> dict[str, Figure]:
    scores = _complete(group)
    failure = str(MetricKey(AREA, hazard, "failure", None, slice_))
    missed = str(MetricKey(AREA, hazard, "same_missed", None, slice_))
    if isinstance(scores, NotMeasured):
        return {failure: scores, missed: scores}
    pairs = [(s, limits[r.id]) for s, r in zip(scores, group, strict=True)]
    return {
        failure: rate([failed(s, limit) for s, limit in pairs]),
        missed: rate([same_missed(s, limit) for s, limit in pairs]),
    }


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

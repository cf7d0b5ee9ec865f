"""Gates of the filters: is a hazard's detection good enough, and on enough independent text to say so?

Detection alone decides nothing: recall, false alarms on paraphrases and flags on unrelated text are read together, each
by its one-sided 95 % bound (decision D5). Too few sources, sources that are used twice, or a figure that is missing
make a hazard INCONCLUSIVE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from clinsafe.checklist.limits import Decision, Limit, Words
from clinsafe.content import Record
from clinsafe.protocols import Figures, MetricKey
from clinsafe.stats import Estimate, Figure

Metric: TypeAlias = Literal["recall", "false_alarm", "unrelated"]
METRICS: tuple[Metric, ...] = ("recall", "false_alarm", "unrelated")
TEST = "split=test"  # what filters were never tuned on (D13)


class FilterGate(Limit):
    """One limit, read for each hazard. `fewest` units (cases, or pairs) are needed to read it at all."""

    metric: Metric
    fewest: Annotated[int, Field(ge=1)] = 1

    @model_validator(mode="after")
    def _right_way(self) -> FilterGate:
        if (self.metric == "recall") != (self.at_least is not None):
            raise ValueError("recall counts successes and takes at_least; the others count faults: at_most")
        return self

    def read(self, figure: Figure | None) -> Decision:
        """As `decide`, and INCONCLUSIVE on fewer units than `fewest`."""
        enough = figure is not None and figure.n >= self.fewest
        return self.decide(figure) if enough else "INCONCLUSIVE"


class FilterGates(Record):
    """``filters:`` of ``checklist/gates.yaml``.

    Attributes:
        clusters: independent sources of test cases that a hazard needs before anything is decided.
        why: why that many.
    """

    clusters: Annotated[int, Field(ge=1)]
    why: Words
    gates: list[FilterGate]

    @model_validator(mode="after")
    def _each_once(self) -> FilterGates:
        named = [gate.metric for gate in self.gates]
        if sorted(named) != sorted(METRICS):
            raise ValueError(
                f"filters are gated on {', '.join(METRICS)}, each once: detection says nothing without its false "
                f"alarms; got {', '.join(named) or 'none'}"
            )
        return self


@dataclass(frozen=True, slots=True)
class FilterVerdict:
    """One hazard: what each gate read, and what came of it.

    Attributes:
        figures: metric -> what was measured; None where nothing was.
        decisions: metric -> by its bound.
        clusters: independent sources of its test cases.
        reasons: why nothing is decided whatever the figures say; empty where it is.
    """

    hazard: str
    figures: Mapping[Metric, Figure | None]
    decisions: Mapping[Metric, Decision]
    clusters: int
    reasons: tuple[str, ...] = ()

    @property
    def decision(self) -> Decision:
        """PASS only where every gate passes; FAIL only where there was enough text to say so."""
        if self.reasons:
            return "INCONCLUSIVE"
        said = set(self.decisions.values())
        return "FAIL" if "FAIL" in said else "INCONCLUSIVE" if said != {"PASS"} else "PASS"


def keys(area: str, hazard: str) -> dict[Metric, str]:
    """Where the figures of a hazard stand."""
    return {
        "recall": str(MetricKey(area, hazard, "recall", None, TEST)),
        "false_alarm": str(MetricKey(area, hazard, "false_alarm", None, TEST)),
        "unrelated": str(MetricKey(area, hazard, "false_alarm", "unrelated")),
    }


def decide_filters(
    figures: Figures, gates: FilterGates, area: str, hazards: Sequence[str]
) -> list[FilterVerdict]:
    """All gates on all hazards, in order.

    Args:
        figures: of one tier; two are never read together.
        gates: the limits.
        area: ``guard`` or ``generated``, the area of that tier's keys.
        hazards: all that must pass; one without a figure is INCONCLUSIVE.
    """
    return [_decide(figures, gates, area, hazard) for hazard in hazards]


def _decide(figures: Figures, gates: FilterGates, area: str, hazard: str) -> FilterVerdict:
    found = {metric: figures.get(key) for metric, key in keys(area, hazard).items()}
    counted = figures.get(str(MetricKey(area, hazard, "clusters", None, TEST)))
    clusters = int(counted.value) if isinstance(counted, Estimate) else 0
    reasons = []
    if clusters < gates.clusters:
        reasons.append(f"{clusters} test clusters, {gates.clusters} are needed")
    recall = found["recall"]
    if recall is not None and recall.n > clusters:
        reasons.append(
            f"{recall.n} test cases of {clusters} clusters: cases that share a source are not independent"
        )
    decisions = {gate.metric: gate.read(found[gate.metric]) for gate in gates.gates}
    return FilterVerdict(hazard, found, decisions, clusters, tuple(reasons))


def passed(verdicts: Sequence[FilterVerdict]) -> bool:
    """Whether every hazard passes; no hazard at all is not a pass."""
    return bool(verdicts) and all(verdict.decision == "PASS" for verdict in verdicts)

"""Gates: does a figure's bound meet its limit? And the protocols that set thresholds and limits.

Decision D5: PASS when the one-sided 95 % bound meets the limit, FAIL when the opposite bound misses it, else
INCONCLUSIVE; a missing or unmeasured figure is INCONCLUSIVE. Both FAIL and INCONCLUSIVE hold release.
Because release needs *all* gates, no correction for their number is due (intersection-union test).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from clinsafe.content import Content, Record
from clinsafe.errors import UsageError
from clinsafe.protocols import Figures, MetricKey
from clinsafe.stats import Figure, NotMeasured

Decision: TypeAlias = Literal["PASS", "FAIL", "INCONCLUSIVE"]
Cosine = Annotated[float, Field(ge=-1, le=1)]
TENFOLD = 10.0


class Threshold(Record):
    """The cosine above which a contradicting pair is a failure; `tenfold` where numbers differ 10x and more."""

    cosine: Cosine
    tenfold: Cosine | None = None

    def limit(self, factor: float | None) -> float:
        """The limit of a case with this ratio of its two numbers (None: not a numerical case)."""
        if self.tenfold is not None and factor is not None and factor >= TENFOLD:
            return self.tenfold
        return self.cosine


class Gate(Record):
    """One limit on one metric, read for each hazard."""

    metric: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    at_most: Annotated[float, Field(ge=0, le=1)] | None = None
    at_least: Annotated[float, Field(ge=0, le=1)] | None = None
    why: str

    @model_validator(mode="after")
    def _one_limit(self) -> Gate:
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError("a gate has exactly one of at_most and at_least")
        return self

    def decide(self, figure: Figure | None) -> Decision:
        """PASS, FAIL or INCONCLUSIVE."""
        if figure is None or isinstance(figure, NotMeasured) or figure.lower is None or figure.upper is None:
            return "INCONCLUSIVE"
        if self.at_most is not None:
            good, bad = figure.upper <= self.at_most, figure.lower > self.at_most
        else:
            floor = self.at_least if self.at_least is not None else 1.0
            good, bad = figure.lower >= floor, figure.upper < floor
        return "PASS" if good else "FAIL" if bad else "INCONCLUSIVE"

    @property
    def limit_text(self) -> str:
        """The limit in words."""
        return f"at most {self.at_most:g}" if self.at_most is not None else f"at least {self.at_least:g}"


class Protocol(Record):
    """Thresholds and gates under one name; hashed into the evidence before a run."""

    title: str
    source: str
    thresholds: dict[str, Threshold]
    gates: Annotated[list[Gate], Field(min_length=1)]


class GatesFile(Record):
    """``checklist/gates.yaml``."""

    default: str
    protocols: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_\-]*$")], Protocol]


@dataclass(frozen=True, slots=True)
class GateResult:
    """One gate on one hazard: the key it read, and what came out."""

    hazard: str
    metric: str
    key: str
    limit: str
    decision: Decision


def load_protocol(content: Content, name: str | None, hazards: Sequence[str]) -> tuple[str, Protocol]:
    """(name, protocol); None is the file's default. Every hazard must have a threshold."""
    file = content.yaml("checklist/gates.yaml", GatesFile)
    chosen = name or file.default
    if chosen not in file.protocols:
        raise UsageError(f"no protocol is called {chosen!r}; there are: {', '.join(file.protocols)}")
    protocol = file.protocols[chosen]
    if missing := [h for h in hazards if h not in protocol.thresholds]:
        path = content.path("checklist/gates.yaml")
        raise UsageError(f"{path}: protocol {chosen!r} has no threshold for {', '.join(missing)}")
    return chosen, protocol


def decide(figures: Figures, protocol: Protocol, name: str, hazards: Sequence[str]) -> list[GateResult]:
    """All gates of a protocol on all hazards, in order."""
    results = []
    for hazard in hazards:
        for gate in protocol.gates:
            key = str(MetricKey("suite", hazard, gate.metric))
            sliced = str(MetricKey("suite", hazard, gate.metric, None, f"protocol={name}"))
            used = sliced if sliced in figures else key
            results.append(
                GateResult(hazard, gate.metric, used, gate.limit_text, gate.decide(figures.get(used)))
            )
    return results


def held(results: Sequence[GateResult]) -> list[str]:
    """Hazards with at least one gate that is not a PASS, in order."""
    return list(dict.fromkeys(r.hazard for r in results if r.decision != "PASS"))

"""From per-case scores and criteria to every figure and verdict: the one road.

The audit walks it to write the report; ``clinsafe report verify`` walks it again from the attached evidence and
compares. Nothing that is printed comes from anywhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from clinsafe.benchmarks.measure import figures as measure
from clinsafe.benchmarks.measure import inverted
from clinsafe.benchmarks.scoring import CaseResult
from clinsafe.checklist import fmea, gates, items
from clinsafe.protocols import ModelIdentity
from clinsafe.reports.evidence import CaseRecord, Criteria, Evidence, SystemIdentity, SystemRecord
from clinsafe.stats import Figure, NotMeasured, figure_from_json, figure_to_json

CLOSE = 1e-9


@dataclass(frozen=True)
class Assessment:
    """Verdicts on the system under test, as facts; `held` and `released` follow from them."""

    gates: list[gates.GateResult]
    fmea: list[fmea.FmeaRow]
    items: list[items.ItemAnswer]
    anomalies: dict[str, list[str]]
    not_measured: dict[str, list[str]]
    fake: bool
    left_out: list[str]

    @property
    def held(self) -> list[str]:
        """Hazards that hold release, in order."""
        return gates.held(self.gates)

    @property
    def released(self) -> bool:
        """All gates of all six hazards pass, and the model is a real one."""
        return not self.held and not self.fake and not self.left_out

    def to_json(self) -> dict[str, Any]:
        """Plain data for the evidence, the derived verdicts included."""
        plain = asdict(self)
        plain["fmea"] = [asdict(row) | {"rpn": row.rpn} for row in self.fmea]
        return plain | {"held": self.held, "released": self.released}


def system(
    identity: ModelIdentity, results: Sequence[CaseResult], criteria: Criteria, *, baseline: bool = False
) -> SystemRecord:
    """Measure one system from its per-case scores."""
    found = derive_figures([CaseRecord.of(r) for r in results], criteria, baseline=baseline)
    return SystemRecord(
        role="baseline" if baseline else "under test",
        identity=SystemIdentity.of(identity),
        cases=[CaseRecord.of(r) for r in results],
        figures={key: figure_to_json(figure) for key, figure in found.items()},
    )


def derive_figures(cases: Sequence[CaseRecord], criteria: Criteria, *, baseline: bool) -> dict[str, Figure]:
    """Every figure of one system; a baseline on another scale has rank figures only."""
    limits = {c.id: criteria.protocol.thresholds[c.hazard].limit(c.factor) for c in cases}
    return measure([c.result() for c in cases], None if baseline else limits, criteria.protocol_name)


def assess(record: SystemRecord, criteria: Criteria) -> Assessment:
    """Gates, FMEA, checklist and anomalies of the system under test."""
    found = {key: figure_from_json(parts) for key, parts in record.figures.items()}
    hazards = [h.id for h in criteria.hazards if any(c.hazard == h.id for c in record.cases)]
    decided = gates.decide(found, criteria.protocol, criteria.protocol_name, hazards)
    anomalies: dict[str, list[str]] = {h: [] for h in hazards}
    missing: dict[str, list[str]] = {h: [] for h in hazards}
    for result in (c.result() for c in record.cases):
        if isinstance(result.scores, NotMeasured):
            missing[result.hazard].append(result.id)
        elif inverted(result.scores):
            anomalies[result.hazard].append(result.id)
    return Assessment(
        gates=decided,
        fmea=[row for row in fmea.score(found, criteria.fmea) if row.hazard in hazards],
        items=items.answer(criteria.items, found, decided),
        anomalies=anomalies,
        not_measured=missing,
        fake=record.identity.fake,
        # every failure mode must have been measured: what was left out is not a pass
        left_out=sorted({mode.hazard for mode in criteria.fmea.failure_modes} - set(hazards)),
    )


def under_test(evidence: Evidence) -> SystemRecord:
    """The audited system of a record."""
    return next(s for s in evidence.systems if s.role == "under test")


def differences(evidence: Evidence) -> list[str]:
    """Every stored figure or verdict that the per-case scores do not yield, one line each."""
    try:
        return list(_differences(evidence))
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        return [f"the figures cannot be derived from this record ({error})"]


def _differences(evidence: Evidence) -> list[str]:
    faults: list[str] = []
    derived: list[SystemRecord] = []
    for record in evidence.systems:
        again = derive_figures(record.cases, evidence.criteria, baseline=record.role == "baseline")
        plain = {key: figure_to_json(figure) for key, figure in again.items()}
        faults += [f"{record.identity.name}: {fault}" for fault in _compare(record.figures, plain, "")]
        derived.append(record.model_copy(update={"figures": plain}))
    subject = under_test(evidence.model_copy(update={"systems": derived}))
    return faults + _compare(evidence.assessment, assess(subject, evidence.criteria).to_json(), "assessment")


def _compare(stored: Any, derived: Any, where: str) -> list[str]:
    if isinstance(stored, dict) and isinstance(derived, dict):
        faults = []
        for key in sorted({*stored, *derived}):
            place = f"{where}.{key}" if where else key
            if key not in stored or key not in derived:
                faults.append(f"{place} is {'missing' if key in derived else 'not derived from the scores'}")
            else:
                faults += _compare(stored[key], derived[key], place)
        return faults
    if isinstance(stored, list) and isinstance(derived, list) and len(stored) == len(derived):
        return [
            f
            for i, (s, d) in enumerate(zip(stored, derived, strict=True))
            for f in _compare(s, d, f"{where}[{i}]")
        ]
    if _equal(stored, derived):
        return []
    return [f"{where} says {_short(stored)}, the scores yield {_short(derived)}"]


def _equal(stored: Any, derived: Any) -> bool:
    if isinstance(stored, bool) or isinstance(derived, bool) or not isinstance(derived, int | float):
        return bool(stored == derived)
    return isinstance(stored, int | float) and abs(stored - derived) <= CLOSE


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:60]

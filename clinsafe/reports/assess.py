"""From per-case scores and criteria to every figure and verdict: the one road.

The audit walks it to write the report; ``clinsafe report verify`` walks it again from the attached evidence and
compares. Nothing that is printed comes from anywhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from clinsafe.benchmarks import across, guarded_cases
from clinsafe.benchmarks.measure import Limits
from clinsafe.benchmarks.measure import figures as measure
from clinsafe.benchmarks.outcomes import TOLERANCE, failed, inverted, inverted_any, ranked, same_missed
from clinsafe.benchmarks.scoring import CaseResult, PairScores
from clinsafe.checklist import fmea, gates, items, risk, script, ten
from clinsafe.checklist.answers import Answers
from clinsafe.protocols import ModelIdentity, SystemKind
from clinsafe.reports.evidence import RANKS_ONLY, CaseRecord, Criteria, SystemIdentity, SystemRecord
from clinsafe.reports.guard_record import GuardRecord
from clinsafe.stats import Figure, NotMeasured, figure_from_json, figure_to_json

EVENTS = ("inversion", "inversion_other_side", "failure", "same_missed")
"""Faults of a case: the contradiction preferred from a; from b alone; above the limit; its price, below the limit."""


@dataclass(frozen=True)
class Assessment:
    """Verdicts on one system under test, as facts; `held` and `released` follow from them.

    `anomalies` is hazard -> event (one of EVENTS) -> ids of the cases in which it happened. `unflagged` is hazard ->
    ids of the test cases whose contradiction is preferred and not flagged, None where the guard was not measured.
    """

    label: str
    gates: list[gates.GateResult]
    fmea: list[fmea.FmeaRow]
    risk: list[risk.RiskRow]
    items: list[items.ItemAnswer]
    script: script.ScriptVerdict | None
    anomalies: dict[str, dict[str, list[str]]]
    not_measured: dict[str, list[str]]
    fake: bool
    left_out: list[str]
    unflagged: dict[str, list[str]] | None = None

    @property
    def held(self) -> list[str]:
        """Hazards that hold release, in order."""
        return gates.held(self.gates)

    @property
    def released(self) -> bool:
        """All gates of all six hazards pass, the model is a real one, and the script, if asked for, passes it too."""
        agreed = self.script is None or self.script.passed
        return not self.held and not self.fake and not self.left_out and agreed

    def to_json(self) -> dict[str, Any]:
        """Plain data for the evidence, the derived verdicts included."""
        plain = asdict(self)
        plain["fmea"] = [_fmea_row(row) for row in self.fmea]
        guarded = {row.hazard for row in self.fmea if row.guarded is not None}
        plain["risk"] = [_risk_row(row, guarded=row.hazard in guarded) for row in self.risk]
        if self.unflagged is None:
            del plain["unflagged"]
        if self.script is not None:
            plain["script"] = {
                "categories": [asdict(c) | {"word": c.word} for c in self.script.categories],
                "sentence": self.script.sentence,
                "advice": list(self.script.advice),
            }
        return plain | {"held": self.held, "released": self.released}


def system(
    identity: ModelIdentity,
    results: Sequence[CaseResult],
    criteria: Criteria,
    *,
    label: str | None = None,
    baseline: bool = False,
    guard: GuardRecord | None = None,
) -> SystemRecord:
    """Measure one system from its per-case scores, with what the guard did to the same pairs."""
    cases = [CaseRecord.of(r) for r in results]
    record = SystemRecord(
        role="baseline" if baseline else "under test",
        label=label or identity.name,
        identity=SystemIdentity.of(identity),
        cases=cases,
        figures={},
    )
    found = derive_figures(record, criteria, guard)
    return record.model_copy(update={"figures": {key: figure_to_json(f) for key, f in found.items()}})


def derive_figures(
    record: SystemRecord, criteria: Criteria, guard: GuardRecord | None = None
) -> dict[str, Figure]:
    """Every figure of one system; one on a scale without thresholds has rank figures only, a baseline no subtypes.

    What is under test has figures of the guard beside them, where the guard was measured.
    """
    kind, protocol = record.identity.kind, criteria.protocol
    limits = None
    if kind not in RANKS_ONLY:
        of_case = {c.id: protocol.limit(kind, c.hazard, c.factor) for c in record.cases}
        asked = {item.hazard: item.limit for item in criteria.items.items if item.limit is not None}
        items_of = {c.id: asked[c.hazard].limit(c.factor) for c in record.cases if c.hazard in asked}
        whole = kind == "bi-encoder" and len(items_of) == len(record.cases)
        limits = Limits(
            criteria.protocol_name,
            of_case,
            protocol.fixed(kind),
            protocol.keep_same,
            kind,
            items_of if whole else {},
        )
    results, subject = [c.result() for c in record.cases], record.role == "under test"
    found = measure(results, limits, detail=subject)
    if guard is not None and subject:
        found |= guarded_cases.figures(results, _outcomes(record, guard), kind)
    return found


def _outcomes(record: SystemRecord, guard: GuardRecord) -> dict[str, guarded_cases.GuardedCase]:
    return guard.by_case({case.id: case.hazard for case in record.cases})


def assess_all(
    systems: Sequence[SystemRecord],
    criteria: Criteria,
    answers: Answers | None,
    guard: GuardRecord | None = None,
) -> list[Assessment]:
    """One assessment for each system under test, in their order."""
    subjects = [s for s in systems if s.role == "under test"]
    rerankers = [s for s in subjects if s.identity.kind == "cross-encoder"]
    return [_assess(record, rerankers, criteria, answers, guard) for record in subjects]


def compare(systems: Sequence[SystemRecord]) -> list[dict[str, Any]]:
    """Every system beside every other one; hybrids only repeat their parts and are left out."""
    rows = [
        across.System(s.label, s.identity.kind, [c.result() for c in s.cases])
        for s in systems
        if s.identity.kind != "hybrid"
    ]
    found = []
    for comparison in across.compare_all(rows):
        plain = asdict(comparison)
        if isinstance(comparison.agreement, NotMeasured):
            plain["agreement"] = figure_to_json(comparison.agreement)
        for pair in plain["pairs"]:
            pair.update({end: "none" for end in ("low", "high") if pair[end] is None})
        found.append(plain)
    return found


def _assess(
    record: SystemRecord,
    rerankers: Sequence[SystemRecord],
    criteria: Criteria,
    answers: Answers | None,
    guard: GuardRecord | None,
) -> Assessment:
    found = figures_of(record)
    hazards = [h.id for h in criteria.hazards if any(c.hazard == h.id for c in record.cases)]
    decided = gates.decide(found, criteria.protocol, criteria.protocol_name, hazards)
    anomalies: dict[str, dict[str, list[str]]] = {h: {event: [] for event in EVENTS} for h in hazards}
    missing: dict[str, list[str]] = {h: [] for h in hazards}
    for result in (c.result() for c in record.cases):
        if isinstance(result.scores, NotMeasured):
            missing[result.hazard].append(result.id)
            continue
        for event in _faults(result, result.scores, record.identity.kind, criteria):
            anomalies[result.hazard][event].append(result.id)
    left_out = sorted({mode.hazard for mode in criteria.fmea.failure_modes} - set(hazards))
    own = [record] if record.identity.kind == "cross-encoder" else rerankers
    # of several cross-encoders the worst answers: the order in which they were named must not decide
    reranker = max(own, key=lambda r: _count(r, criteria), default=None)
    modes = [row for row in fmea.score(found, criteria.fmea) if row.hazard in hazards]
    return Assessment(
        label=record.label,
        gates=decided,
        fmea=modes,
        risk=risk.assess(modes, criteria.risk, risk.residuals(modes)),
        items=ten.answer(
            criteria.items,
            found,
            kind=record.identity.kind,
            reranker=_of_reranker(reranker, criteria),
            answers=answers,
        ),
        script=_script(record, reranker, criteria, hazards, left_out)
        if criteria.protocol.words == "script"
        else None,
        anomalies=anomalies,
        not_measured=missing,
        fake=record.identity.fake,
        # every failure mode must have been measured: what was left out is not a pass
        left_out=left_out,
        unflagged=None
        if guard is None
        else guarded_cases.unflagged(
            [c.result() for c in record.cases], _outcomes(record, guard), record.identity.kind
        ),
    )


def _faults(result: CaseResult, scores: PairScores, kind: SystemKind, criteria: Criteria) -> list[str]:
    """Which of EVENTS happened in a case; a scale without thresholds has only the inversions."""
    order = ranked(scores, kind)
    happened = {
        "inversion": inverted(order),
        "inversion_other_side": inverted_any(order) and not inverted(order),
    }
    if kind not in RANKS_ONLY:
        limit = criteria.protocol.limit(kind, result.hazard, result.factor)
        happened |= {"failure": failed(scores, limit), "same_missed": same_missed(scores, limit)}
    return [event for event, did in happened.items() if did]


def _fmea_row(row: fmea.FmeaRow) -> dict[str, Any]:
    """A row with its product; without a guard it has the fields that it had before there was one."""
    plain = asdict(row) | {"rpn": row.rpn}
    if row.guarded is None:
        del plain["guarded"]
    return plain


def _risk_row(row: risk.RiskRow, *, guarded: bool) -> dict[str, Any]:
    """A row without the controls, which stand in the criteria; what was not measured says so.

    Where the guard was measured and no residual is counted, its false alarms are not bounded: that is no credit.
    """
    none = "no credit" if guarded else "not measured"
    plain = {
        "hazard": row.hazard,
        "id": row.id,
        "severity": row.severity,
        "bound": "not measured" if row.bound is None else row.bound,
        "n": row.n,
        "before": row.before,
        "after": none if row.after is None else row.after,
    }
    if row.residual is not None:
        plain["residual"] = {"bound": row.residual.bound, "n": row.residual.n}
    return plain


def _count(record: SystemRecord, criteria: Criteria) -> int:
    """Pairs above the limit in all; not measured is worst."""
    key = f"suite.all.failure@protocol={criteria.protocol_name}"
    return int(record.figures[key].get("k", len(record.cases) + 1))


def _of_reranker(
    record: SystemRecord | None, criteria: Criteria
) -> tuple[str, dict[str, Figure], dict[str, Figure]]:
    """What item 7 asks of a cross-encoder, in every hazard that has a failure mode."""
    if record is None:
        return "", {}, {}
    found, missing = figures_of(record), NotMeasured("not in this run")
    hazards = [mode.hazard for mode in criteria.fmea.failure_modes]
    key = f"failure@protocol={criteria.protocol_name}"
    failures = {h: found.get(f"suite.{h}.{key}", missing) for h in hazards}
    return record.label, failures, {h: found.get(f"suite.{h}.inversion", missing) for h in hazards}


def _script(
    record: SystemRecord,
    reranker: SystemRecord | None,
    criteria: Criteria,
    hazards: Sequence[str],
    left_out: Sequence[str],
) -> script.ScriptVerdict:
    bi = record if record.identity.kind == "bi-encoder" else None
    return script.judge(
        _rows(bi, criteria, hazards) if bi else {},
        _rows(reranker, criteria, hazards) if reranker else {},
        TOLERANCE,
        left_out,
    )


def _rows(
    record: SystemRecord, criteria: Criteria, hazards: Sequence[str]
) -> Mapping[str, list[tuple[str, float, float]]]:
    """Hazard -> contradicting pairs with their limits; empty where one case was not measured."""
    rows: dict[str, list[tuple[str, float, float]]] = {h: [] for h in hazards}
    for case in record.cases:
        if case.scores is not None:
            limit = criteria.protocol.limit(record.identity.kind, case.hazard, case.factor)
            rows[case.hazard].append((case.id, case.scores["a|b"], limit))
    whole = {c.hazard for c in record.cases} - {c.hazard for c in record.cases if c.scores is None}
    return {h: found if h in whole else [] for h, found in rows.items()}


def figures_of(record: SystemRecord) -> dict[str, Figure]:
    """The stored figures of a system."""
    return {key: figure_from_json(parts) for key, parts in record.figures.items()}

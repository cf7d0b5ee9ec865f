"""Two audits of the same cases: did the second get worse, where, and by which cases?

A regression is a hazard in which B fails more often than A beyond the 95 % interval of the paired difference. It is
looked for in the threshold failure, in its price (same-meaning pairs below the limit) and in the inversion, by hazard
and over all cases, so that a little in every hazard is seen too. The intervals are not corrected for their number,
Holm's p is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from clinsafe.benchmarks.outcomes import failed, inverted, ranked, same_missed
from clinsafe.errors import UsageError
from clinsafe.paired import Difference, difference, holm
from clinsafe.reports.evidence import RANKS_ONLY, CaseRecord, Criteria, SystemRecord
from clinsafe.reports.suite_record import SuiteRecord
from clinsafe.stats import NotMeasured

EVENTS = ("failure", "same_missed", "inversion")
LOST = "B did not measure what A measured"
WORDS = {
    "failure": "contradiction above limit",
    "same_missed": "same meaning below limit",
    "inversion": "contradiction preferred",
}


class Rules(Protocol):
    """By what an audit was made: its cases and its criteria."""

    @property
    def suite(self) -> SuiteRecord:
        """Which cases."""

    @property
    def content(self) -> dict[str, str]:
        """Content file -> SHA-256."""

    @property
    def criteria(self) -> Criteria:
        """What decided."""


class Audited(Rules, Protocol):
    """What a comparison reads of a record: `Evidence` and `PreviousAudit` both have it."""

    @property
    def subjects(self) -> list[SystemRecord]:
        """The systems under test."""


@dataclass(frozen=True, slots=True)
class HazardChange:
    """One hazard, one event. `worse` and `better` are the cases that changed; `p_holm` is over all rows."""

    hazard: str
    event: str
    change: Difference | NotMeasured
    p_holm: float | None
    worse: Sequence[str]
    better: Sequence[str]

    @property
    def regression(self) -> bool:
        """B is worse beyond the interval, or did not measure what A measured."""
        return self.change.reason == LOST if isinstance(self.change, NotMeasured) else self.change.more


@dataclass(frozen=True, slots=True)
class AuditComparison:
    """A against B. `lost` are cases that A measured and B did not: silence is not an improvement."""

    a: str
    b: str
    protocol: str
    rows: Sequence[HazardChange]
    lost: Sequence[str]
    fakes: Sequence[str] = ()

    @property
    def regressed(self) -> list[str]:
        """Hazards with a regression, in order."""
        return list(dict.fromkeys(row.hazard for row in self.rows if row.regression))

    def to_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "a": self.a,
            "b": self.b,
            "protocol": self.protocol,
            "regressed": self.regressed,
            "lost": list(self.lost),
            "rows": [
                asdict(row)
                | {"regression": row.regression, "not_measured": isinstance(row.change, NotMeasured)}
                for row in self.rows
            ],
        }


def compare_audits(
    a: Audited, b: Audited, *, system_a: str | None = None, system_b: str | None = None
) -> AuditComparison:
    """Paired comparison of one system of each record.

    Args:
        a, b: earlier and later record, of one suite and one protocol.
        system_a, system_b: labels; None is the only system under test.

    Raises:
        UsageError: another suite, other cases or another protocol: the difference would say nothing.
    """
    comparable(a, b)
    first, second = _system(a, system_a, "A"), _system(b, system_b, "B")
    if first.identity.kind != second.identity.kind:
        raise UsageError(
            f"{first.label} is a {first.identity.kind}, {second.label} a {second.identity.kind}: their scores have "
            "other limits, and a difference would say nothing"
        )
    cases_a = {case.id: case for case in first.cases if case.scores is not None}
    cases_b = {case.id: case for case in second.cases if case.scores is not None}
    lost = sorted(set(cases_a) - set(cases_b))
    fakes = [s.label for s in (first, second) if s.identity.fake]
    events = EVENTS if first.identity.kind not in RANKS_ONLY else EVENTS[2:]
    rows: list[HazardChange] = []
    for hazard in [*dict.fromkeys(case.hazard for case in first.cases), "all"]:
        shared = [i for i, case in cases_a.items() if hazard in (case.hazard, "all") and i in cases_b]
        gone = any(hazard in (cases_a[i].hazard, "all") for i in lost)
        for event in events:
            happened_a, happened_b = _event(event, first, a), _event(event, second, b)
            before = [happened_a(cases_a[i]) for i in shared]
            after = [happened_b(cases_b[i]) for i in shared]
            change = NotMeasured(LOST, len(shared)) if gone else difference(before, after)
            worse = [i for i, x, y in zip(shared, before, after, strict=True) if y and not x]
            better = [i for i, x, y in zip(shared, before, after, strict=True) if x and not y]
            rows.append(HazardChange(hazard, event, change, None, worse, better))
    return AuditComparison(first.label, second.label, a.criteria.protocol_name, _with_holm(rows), lost, fakes)


def _with_holm(rows: Sequence[HazardChange]) -> list[HazardChange]:
    p = [row.change.p for row in rows if isinstance(row.change, Difference)]
    adjusted = iter(holm(p))
    return [
        HazardChange(r.hazard, r.event, r.change, next(adjusted), r.worse, r.better)
        if isinstance(r.change, Difference)
        else r
        for r in rows
    ]


def _event(event: str, record: SystemRecord, evidence: Rules) -> Callable[[CaseRecord], bool]:
    kind, protocol = record.identity.kind, evidence.criteria.protocol

    def happened(case: CaseRecord) -> bool:
        scores = case.scores or {}
        if event == "inversion":
            return inverted(ranked(scores, kind))
        limit = protocol.limit(kind, case.hazard, case.factor)
        return failed(scores, limit) if event == "failure" else same_missed(scores, limit)

    return happened


def comparable(a: Rules, b: Rules) -> None:
    """Raises UsageError where a difference between the two would say nothing."""
    if a.suite.tier != b.suite.tier:
        raise UsageError(
            f"A was made on tier {a.suite.tier!r}, B on {b.suite.tier!r}: two tiers are never compared or pooled; "
            "audit both on one"
        )
    if a.suite.version != b.suite.version:
        raise UsageError(
            f"A was made with suite {a.suite.version}, B with {b.suite.version}: audit both with one suite"
        )
    # by their bytes: a mined suite may have been given another name
    cases_a, cases_b = ({h: r.content.get(r.suite.file_of(h)) for h in r.suite.counts} for r in (a, b))
    if a.suite.counts != b.suite.counts or cases_a != cases_b:
        raise UsageError("A and B were made with other cases: audit both with one suite and the same hazards")
    if a.criteria.protocol != b.criteria.protocol:
        raise UsageError(
            f"A was judged by protocol {a.criteria.protocol_name!r}, B by {b.criteria.protocol_name!r}, or their "
            "thresholds differ: audit both with one protocol"
        )


def _system(evidence: Audited, label: str | None, side: str) -> SystemRecord:
    found = {system.label: system for system in evidence.subjects}
    if label is None and len(found) > 1:
        raise UsageError(
            f"{side} has several systems; choose one with --system-{side.lower()}: {', '.join(found)}"
        )
    chosen = label if label is not None else next(iter(found))
    if chosen not in found:
        raise UsageError(f"{side} has no system called {chosen!r}; there are: {', '.join(found)}")
    return found[chosen]


def changes(before: Audited | None, after: Sequence[SystemRecord], now: Audited) -> list[dict[str, Any]]:
    """What changed since the audit before, for every system under test that has a counterpart there.

    A counterpart has the same label; where both audits have one system, these two are compared whatever they are
    called: a change of the model is what an audit is repeated for.
    """
    if before is None:
        return []
    found = []
    earlier = {system.label: system for system in before.subjects}
    for system in after:
        sole = len(earlier) == 1 and len(after) == 1
        other = next(iter(earlier.values())) if sole else earlier.get(system.label)
        if other is None:
            found.append({"label": system.label, "not_compared": "it was not in the earlier audit"})
        elif other.identity.kind != system.identity.kind:
            kinds = f"it is a {system.identity.kind}, the earlier system was a {other.identity.kind}"
            found.append({"label": system.label, "not_compared": kinds})
        else:
            compared = compare_audits(before, now, system_a=other.label, system_b=system.label)
            found.append({"label": system.label} | _plain(compared))
    return found


def _plain(compared: AuditComparison) -> dict[str, Any]:
    """As canonical JSON can hold it: without nulls."""
    rows = [
        {
            "hazard": row.hazard,
            "event": row.event,
            "regression": row.regression,
            "worse": list(row.worse),
            "better": list(row.better),
            "change": {"not_measured": row.change.reason}
            if isinstance(row.change, NotMeasured)
            else {name: value for name, value in asdict(row.change).items() if value is not None},
            "p_holm": "none" if row.p_holm is None else row.p_holm,
        }
        for row in compared.rows
    ]
    return {"before": compared.a, "regressed": compared.regressed, "lost": list(compared.lost), "rows": rows}

"""What the report's templates see beside the evidence: figures by short name, charts, verdicts by hazard."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from clinsafe.benchmarks.hybrid import FORMULA
from clinsafe.checklist.fmea import FailureMode
from clinsafe.checklist.hazards import Hazard
from clinsafe.protocols import MetricKey
from clinsafe.reports.assess import EVENTS
from clinsafe.reports.changes import WORDS
from clinsafe.reports.charts import Distribution, similarity_svg
from clinsafe.reports.evidence import RANKS_ONLY, Evidence, SystemRecord, sha256, to_bytes
from clinsafe.reports.formats import NONE, plain
from clinsafe.reports.grouped import FamilyRow, by_family, by_subtype, named
from clinsafe.reports.guard_record import frame
from clinsafe.reports.sections import ORDER, TITLES
from clinsafe.reports.suite_record import MinedRecord
from clinsafe.reports.tables import Table
from clinsafe.reports.trace import decision, guard_figure, tables
from clinsafe.stats import SEED, Estimate, Figure, NotMeasured, figure_from_json


@dataclass(frozen=True)
class SubjectView:
    """One system under test: its record, what the record says about it, and its charts by hazard."""

    record: SystemRecord
    said: Mapping[str, Any]
    charts: Mapping[str, str]
    limits: Sequence[str]

    @property
    def tried(self) -> list[tuple[str, str]]:
        """(limit in words, slice of its figures) of every limit that was tried."""
        fixed = [(limit, f"limit={limit}") for limit in self.limits]
        return [*fixed, ("calibrated, test cases", "limit=calibrated,split=test")]

    @property
    def label(self) -> str:
        """Its name in this report."""
        return self.record.label

    @property
    def has_limits(self) -> bool:
        """Whether a threshold means anything on its scale."""
        return self.record.identity.kind not in RANKS_ONLY

    @property
    def has_cosines(self) -> bool:
        """Whether its scores are cosines, which the paper's effect size speaks of."""
        return self.record.identity.kind == "bi-encoder"

    def decision(self, hazard: str) -> str:
        """The worst of a hazard's gates."""
        return decision(self.said, hazard)

    def undetected(self, hazard: str) -> float | None:
        """Upper bound of failure without any control; None where it was not measured."""
        row = next((row for row in self.said["fmea"] if row["hazard"] == hazard), None)
        if row is None:
            return None
        bound: float | None = row["guarded"]["failure_upper"] if "guarded" in row else row["undetected_upper"]
        return bound

    def row(self, table: str, hazard: str) -> Mapping[str, Any]:
        """A hazard's row of the ``fmea`` or the ``risk`` table."""
        found: Mapping[str, Any] = next(row for row in self.said[table] if row["hazard"] == hazard)
        return found


@dataclass(frozen=True)
class View:
    """The whole report."""

    evidence: Evidence
    evidence_sha256: str
    subjects: Sequence[SubjectView]
    hazards: Sequence[Hazard]
    fusion: str = FORMULA

    sections: Mapping[str, str] = field(default_factory=lambda: TITLES)
    order: Sequence[str] = ORDER
    events: Sequence[str] = EVENTS
    event_words: Mapping[str, str] = field(
        default_factory=lambda: {**WORDS, "pairwise": "both paraphrases find their own"}
    )
    seed: int = SEED

    @cached_property
    def tables(self) -> Mapping[str, Table]:
        """The tables that trace hazards, by their ids."""
        return {table.id: table for table in tables(self.evidence)}

    @property
    def title(self) -> str:
        """The models' names."""
        return ", ".join(subject.label for subject in self.subjects)

    @property
    def fake(self) -> bool:
        """Whether any system under test is a fake."""
        return any(subject.record.identity.fake for subject in self.subjects)

    @property
    def systems(self) -> list[SystemRecord]:
        """All of them, those under test first."""
        return list(self.evidence.systems)

    @property
    def rerankers(self) -> list[SubjectView]:
        """The cross-encoders under test."""
        return [s for s in self.subjects if s.record.identity.kind == "cross-encoder"]

    @property
    def rows(self) -> list[tuple[str, str]]:
        """(hazard id, name) of every hazard, and of all together."""
        return [*((h.id, h.short) for h in self.hazards), ("all", "All hazards")]

    @property
    def mined(self) -> MinedRecord | None:
        """Where the cases were mined; None for the written suite."""
        return self.evidence.suite.mined

    @property
    def novelty(self) -> list[tuple[str, int, int, int, int]]:
        """(hazard's name, families, novel ones, cases, those of novel families), for mined cases."""
        families = self.mined.families if self.mined is not None else {}
        rows = []
        for hazard in self.hazards:
            own = list(families.get(hazard.id, {}).values())
            new = [one for one in own if one.novel]
            cases, of_new = (sum(len(one.cases) for one in group) for group in (own, new))
            rows.append((hazard.name, len(own), len(new), cases, of_new))
        return rows

    @property
    def subtypes(self) -> list[tuple[str, str]]:
        """(hazard, subtype) of every case, once."""
        return list(dict.fromkeys((c.hazard, c.subtype) for c in self.subjects[0].record.cases))

    @property
    def by_severity(self) -> list[FailureMode]:
        """The failure modes of this run, in the order of the first system's FMEA."""
        modes = {mode.hazard: mode for mode in self.evidence.criteria.fmea.failure_modes}
        return [modes[row["hazard"]] for row in self.subjects[0].said["fmea"]]

    @property
    def published_faults(self) -> list[Mapping[str, Any]]:
        """Published claims that are not consistent."""
        return [c for c in self.evidence.arithmetic["published"] if c["verdict"] != "consistent"]

    @property
    def protocol_slice(self) -> str:
        """The slice of the threshold figures."""
        return f"protocol={self.evidence.criteria.protocol_name}"

    def figure(self, record: SystemRecord, hazard: str, metric: str, part: str | None = None,
               slice_: str | None = None) -> Figure | None:  # fmt: skip
        """A figure of one system, or None where this record has no such key."""
        found = record.figures.get(str(MetricKey("suite", hazard, metric, part, slice_)))
        return None if found is None else figure_from_json(found)

    @property
    def frame(self) -> str:
        """What the guard's figures are about."""
        return frame(self.evidence.suite.tier)

    def guarded(
        self, record: SystemRecord, hazard: str, metric: str, part: str | None = None
    ) -> Figure | None:
        """A figure of the guard on the test cases."""
        return guard_figure(record, hazard, metric, part)

    def unflagged(self, subject: SubjectView, hazard: str) -> str:
        """Ids of the test cases whose contradiction is preferred and not flagged. Mined ones are counted."""
        found = subject.said["unflagged"][hazard]
        if self.mined is not None:
            test = [c for c in subject.record.cases if (c.hazard, c.split) == (hazard, "test")]
            return by_subtype(test, found)
        return f"{len(found)}: {', '.join(found)}" if found else "none"

    def short(self, system: SystemRecord) -> str:
        """A name that fits a narrow column."""
        return system.label.rpartition("/")[2]

    def name_of(self, hazard: str) -> str:
        """The hazard's full name."""
        return next(
            (h.name for h in self.hazards if h.id == hazard), "All hazards" if hazard == "all" else hazard
        )

    def short_of(self, hazard: str) -> str:
        """The hazard's short name, as the charts have it."""
        return dict(self.rows).get(hazard, hazard)

    def said_of(self, key: str) -> str:
        """A figure's key in the words of the tables."""
        return self.event_words.get(MetricKey.parse(key).metric, key)

    @property
    def priorities(self) -> Sequence[str]:
        """The steps of the severity-first rule in words."""
        return [
            f"{step.priority}: S at least {step.severity_at_least} and the bound above {step.bound_above:g}"
            for step in self.evidence.criteria.risk.priority
        ]

    def count(self, hazard: str, what: str, value: str) -> int:
        """Cases of a hazard whose `what` (``split``, ``stratum``) is `value`."""
        cases = self.subjects[0].record.cases
        return sum(case.hazard == hazard and getattr(case, what) == value for case in cases)

    def listed(self, subject: SubjectView, hazard: str, event: str) -> str:
        """Ids of the cases with a fault; of many, those without it are shorter to name. Mined ones are counted."""
        found = subject.said["anomalies"][hazard][event]
        if self.mined is not None:
            return by_subtype([case for case in subject.record.cases if case.hazard == hazard], found)
        every = [case.id for case in subject.record.cases if case.hazard == hazard]
        others = [case for case in every if case not in set(found)]
        if not found:
            return "none"
        if not others:
            return f"all {len(every)}"
        if len(others) < len(found):
            return f"{len(found)}: all but {', '.join(others)}"
        return f"{len(found)}: {', '.join(found)}"

    def some(self, ids: Sequence[str]) -> str:
        """Ids of written cases, all of them; of mined cases the first."""
        return named(ids) if self.mined is not None else ", ".join(ids) or "none"

    def families(self, subject: SubjectView, hazard: str) -> list[FamilyRow]:
        """The rule families of a mined hazard, those first whose contradictions are preferred most often."""
        mined = self.mined
        if mined is None:
            return []
        return by_family(mined.families.get(hazard, {}), subject.said["anomalies"][hazard], EVENTS[0])

    def after(self, subject: SubjectView, hazard: str) -> str:
        """The priority after controls, as the record has it."""
        return str(next(row["after"] for row in subject.said["risk"] if row["hazard"] == hazard))

    def n(self, hazard: str) -> int:
        """Cases of a hazard, or of all."""
        counts = self.evidence.suite.counts
        return sum(counts.values()) if hazard == "all" else counts[hazard]

    def threshold_text(self, subject: SubjectView, hazard: str) -> str:
        """The hazard's limits for this system, in words."""
        protocol = self.evidence.criteria.protocol
        if subject.record.identity.kind == "cross-encoder":
            return f"{protocol.cross_encoder:.2f} after a sigmoid"
        if not subject.has_limits:
            return "none on this scale"
        threshold = protocol.thresholds[hazard]
        tenfold = f" ({threshold.tenfold:.2f} from 10×)" if threshold.tenfold is not None else ""
        return f"{threshold.cosine:.2f}{tenfold}"

    def calibrated_text(self, record: SystemRecord) -> str:
        """The model's own limit, and how it was set."""
        figure = self.figure(record, "all", "calibrated_limit")
        if not isinstance(figure, Estimate):
            return f"{NONE}: {figure.reason if figure else 'no such figure'}."
        return f"{figure.value:.3f}, the {figure.method} (n = {figure.n})."

    def spread(self, record: SystemRecord, hazard: str, pair: str, slice_: str | None = None) -> str:
        """``SD 0.08, 0.41 to 0.97``."""
        sd, least, most = (
            self.figure(record, hazard, f"similarity_{x}", pair, slice_) for x in ("sd", "min", "max")
        )
        if least is None or isinstance(least, NotMeasured):
            return NONE
        return f"SD {plain(sd)}, {plain(least)} to {plain(most)}"

    def mean_and_spread(self, record: SystemRecord, hazard: str, slice_: str) -> str:
        """``0.87 ± 0.08, 0.41 to 0.97`` of a small cell."""
        mean, sd, least, most = (
            plain(self.figure(record, hazard, name, "contradicting", slice_))
            for name in ("similarity", "similarity_sd", "similarity_min", "similarity_max")
        )
        return f"{mean} ± {sd}, {least} to {most}"

    def mean_sd(self, record: SystemRecord, hazard: str) -> str:
        """``0.913 ± 0.046``, in the paper's form."""
        mean = self.figure(record, hazard, "similarity", "contradicting")
        sd = self.figure(record, hazard, "similarity_sd", "contradicting")
        if not isinstance(mean, Estimate) or not isinstance(sd, Estimate):
            return NONE
        return f"{mean.value:.3f} ± {sd.value:.3f}"

    def cell_sizes(self, record: SystemRecord, hazard: str, subtype: str) -> str:
        """``7 (4 / 3)``: cases of a subtype, in the balanced and in the other stratum."""
        strata = [c.stratum for c in record.cases if (c.hazard, c.subtype) == (hazard, subtype)]
        balanced = strata.count("balanced")
        return f"{len(strata)} ({balanced} / {len(strata) - balanced})"

    def concerned(self, topic: str) -> str:
        """Which hazards a reason for a difference concerns."""
        published = self.evidence.published
        rows = {h: {*row.differs, *published.reranking[h].differs} for h, row in published.bi_encoder.items()}
        found = [h for h, topics in rows.items() if topic in topics]
        return "(all hazards)" if len(found) == len(rows) else f"({', '.join(found)})"


def build(evidence: Evidence, *, charts: bool) -> View:
    """The view of a record; drawing can be left out."""
    measured = {case.hazard for system in evidence.subjects for case in system.cases}
    hazards = [h for h in evidence.criteria.hazards if h.id in measured]
    return View(
        evidence=evidence,
        evidence_sha256=sha256(to_bytes(evidence)),
        subjects=[
            SubjectView(record, said, _charts(record, hazards, evidence, charts), _limits(record, evidence))
            for record, said in zip(evidence.subjects, evidence.assessments, strict=True)
        ],
        hazards=hazards,
    )


def _limits(record: SystemRecord, evidence: Evidence) -> list[str]:
    if record.identity.kind in RANKS_ONLY:
        return []
    return [f"{limit:g}" for limit in evidence.criteria.protocol.fixed(record.identity.kind)]


def _charts(
    record: SystemRecord, hazards: Sequence[Hazard], evidence: Evidence, wanted: bool
) -> dict[str, str]:
    low, cross = _axis_start(record), record.identity.kind == "cross-encoder"
    drawn = {}
    for hazard in hazards:
        scores = [c.scores for c in record.cases if c.hazard == hazard.id and c.scores is not None]
        threshold = evidence.criteria.protocol.thresholds[hazard.id]
        limits = {threshold.cosine} | ({threshold.tenfold} if threshold.tenfold is not None else set())
        if cross:
            limits = {evidence.criteria.protocol.cross_encoder}
        chart = Distribution(
            title=hazard.short,
            contradicting=[s["a|b"] for s in scores],
            same=[s["a|a_same"] for s in scores],
            limits=[] if record.identity.kind in RANKS_ONLY else sorted(limits),
            low=low,
            axis="probability (sigmoid of the logit)" if cross else "cosine similarity",
            prefix=record.label,
        )
        drawn[hazard.id] = similarity_svg(chart) if wanted else ""
    return drawn


def _axis_start(record: SystemRecord) -> float:
    """One tenth at or below the lowest similarity of the system, so that its charts compare."""
    scores = [c.scores for c in record.cases if c.scores is not None]
    lowest = min((min(s["a|b"], s["a|a_same"]) for s in scores), default=0.0)
    return max(-1.0, math.floor(min(lowest, 0.7) * 10) / 10)

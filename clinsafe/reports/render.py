"""From an evidence record to the report's HTML; the PDF is made from the very same HTML.

Everything that is printed comes from the evidence. Formatting lives here, words and layout in ``reports/``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clinsafe.checklist.hazards import Hazard
from clinsafe.content import Content
from clinsafe.protocols import MetricKey
from clinsafe.reports.assess import under_test
from clinsafe.reports.charts import Distribution, similarity_svg
from clinsafe.reports.evidence import CaseRecord, Evidence, SystemRecord, sha256, to_bytes
from clinsafe.stats import Estimate, Figure, NotMeasured, figure_from_json

TEMPLATES = ("reports/templates/report.html.j2", "reports/templates/report.css")
FONTS = ("reports/fonts/DejaVuSans.ttf", "reports/fonts/DejaVuSans-Bold.ttf")
STRATA = (("all cases", None), ("balanced", "stratum=balanced"), ("b closer", "stratum=b_closer"))


def proportion(figure: Figure | None) -> str:
    """``9/10 = 0.90 [0.55, 1.00]``: count, rate and exact two-sided 95 % interval, or why there is none."""
    if figure is None or isinstance(figure, NotMeasured):
        return "not measured"
    return f"{figure.k}/{figure.n} = {figure.value:.2f} {interval(figure)}"


def number(figure: Figure | None) -> str:
    """``0.87 [0.81, 0.92]``: value and two-sided 95 % interval, or why there is none."""
    if figure is None or isinstance(figure, NotMeasured):
        return "not measured"
    return f"{figure.value:.2f} {interval(figure)}"


def interval(figure: Estimate) -> str:
    """``[0.55, 1.00]``, or that it cannot be estimated."""
    if figure.low is None or figure.high is None:
        return "[not estimable]"
    return f"[{figure.low:.2f}, {figure.high:.2f}]"


@dataclass(frozen=True)
class View:
    """What the template sees beside the evidence: figures by short name, charts, hashes."""

    evidence: Evidence
    evidence_sha256: str
    system: SystemRecord
    baselines: list[SystemRecord]
    hazards: list[Hazard]
    charts: dict[str, str]

    def figure(self, record: SystemRecord, hazard: str, metric: str, subtype: str | None = None,
               slice_: str | None = None) -> Figure | None:  # fmt: skip
        """A figure of one system, or None where this record has no such key."""
        parts = record.figures.get(str(MetricKey("suite", hazard, metric, subtype, slice_)))
        return None if parts is None else figure_from_json(parts)

    @property
    def protocol_slice(self) -> str:
        """The slice of the threshold figures."""
        return f"protocol={self.evidence.criteria.protocol_name}"

    @property
    def held(self) -> list[str]:
        """Hazard ids that hold release."""
        return list(self.evidence.assessment["held"])

    def gate_decisions(self, hazard: str) -> list[Mapping[str, Any]]:
        """The gate results of one hazard."""
        return [g for g in self.evidence.assessment["gates"] if g["hazard"] == hazard]

    def hazard_decision(self, hazard: str) -> str:
        """The worst of a hazard's gates."""
        decisions = {g["decision"] for g in self.gate_decisions(hazard)}
        return next((d for d in ("FAIL", "INCONCLUSIVE") if d in decisions), "PASS")

    def threshold_text(self, hazard: str) -> str:
        """The hazard's cosine limits in words."""
        threshold = self.evidence.criteria.protocol.thresholds[hazard]
        tenfold = f" ({threshold.tenfold:.2f} from 10×)" if threshold.tenfold is not None else ""
        return f"{threshold.cosine:.2f}{tenfold}"


def html(evidence: Evidence, content: Content, *, charts: bool = True) -> str:
    """The report as one self-contained HTML document.

    Args:
        charts: False leaves the pictures out, for comparing words where nothing can draw.
        evidence: the record.
        content: where templates and fonts lie; the template's hash stands in ``evidence.content``.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    template = content.path(TEMPLATES[0])
    environment = Environment(
        loader=FileSystemLoader(template.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(proportion=proportion, number=number)
    view = _view(evidence, charts)
    css = content.path(TEMPLATES[1]).read_text(encoding="utf-8")
    return str(environment.get_template(template.name).render(v=view, e=evidence, css=css, strata=STRATA))


def _view(evidence: Evidence, charts: bool) -> View:
    system = under_test(evidence)
    measured = {case.hazard for case in system.cases}
    hazards = [h for h in evidence.criteria.hazards if h.id in measured]
    return View(
        evidence=evidence,
        evidence_sha256=sha256(to_bytes(evidence)),
        system=system,
        baselines=[s for s in evidence.systems if s.role == "baseline"],
        hazards=hazards,
        charts={
            h.id: similarity_svg(_distribution(h, system.cases, evidence)) if charts else "" for h in hazards
        },
    )


def _distribution(hazard: Hazard, cases: Sequence[CaseRecord], evidence: Evidence) -> Distribution:
    scores = [c.scores for c in cases if c.hazard == hazard.id and c.scores is not None]
    threshold = evidence.criteria.protocol.thresholds[hazard.id]
    limits = {threshold.cosine} | ({threshold.tenfold} if threshold.tenfold is not None else set())
    return Distribution(
        title=hazard.short,
        contradicting=[s["a|b"] for s in scores],
        same=[s["a|a_same"] for s in scores],
        limits=sorted(limits),
        low=_axis_start(evidence),
    )


def _axis_start(evidence: Evidence) -> float:
    """One tenth at or below the lowest similarity of the whole report, so that charts compare."""
    scores = [c.scores for c in under_test(evidence).cases if c.scores is not None]
    lowest = min((min(s["a|b"], s["a|a_same"]) for s in scores), default=0.0)
    return max(-1.0, math.floor(min(lowest, 0.7) * 10) / 10)

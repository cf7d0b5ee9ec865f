"""The judge on the pages: who, by which rubric, what its audit found, and what became of every task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clinsafe.protocols import MetricKey
from clinsafe.rag.auditing.figures import slug
from clinsafe.rag.auditing.record import JudgeAudit
from clinsafe.rag.judging.rubrics import FOLDER
from clinsafe.rag.metrics import metric_of
from clinsafe.rag.standing import FALSE_SUPPORT, FEWEST_LABELLED, KAPPA, AnyStanding, Declared
from clinsafe.reports.rag_formats import Notes, result
from clinsafe.reports.rag_record import JudgeRecord, RagEvidence
from clinsafe.stats import Figure

OUTCOMES = ("scored", "unscored", "refused", "error")
SETS = {"answers": "labelled answers", "written": "written suite", "generated": "generated suite"}
COLUMNS = (
    ("false_support", "False support"),
    ("false_support.unsupported", "The same, unstated answers too"),
    ("false_rejection", "False rejection"),
    ("kappa", "Kappa"),
)
BARS = (
    f"at least {FEWEST_LABELLED} labelled answers on all hazards, the lower bound of kappa at least {KAPPA}, "
    f"the upper bound of false support at most {FALSE_SUPPORT:.2f} (one-sided, 95 %)"
)


@dataclass(frozen=True, slots=True)
class AuditGrid:
    """Figures of one set, a row a hazard."""

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]
    notes: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class JudgeView:
    """What the section prints.

    Attributes:
        said: who judged and what that word is worth, in sentences.
        earned: whether CUE is measured by it.
        identity, audit: names and values.
        grids: figures of the audit.
        outcomes: metric -> counts in the order of `OUTCOMES`, with the sum in front.
        reasons: why tasks were not scored, the most frequent first.
    """

    said: Sequence[str]
    earned: bool
    identity: Sequence[tuple[str, str]]
    audit: Sequence[tuple[str, str]]
    grids: Sequence[AuditGrid]
    outcomes: Sequence[tuple[str, Sequence[int]]]
    reasons: Sequence[tuple[str, int]]
    usage: Sequence[tuple[str, int]]


def judged(record: RagEvidence, hazards: Mapping[str, str], standings: Sequence[AnyStanding]) -> JudgeView:
    """The judge of a record.

    Args:
        record: the evidence.
        hazards: id -> name.
        standings: of the systems, in their order.
    """
    judge, earned = record.judge, all(one.earned for one in standings)
    if judge is None:
        said = ["Nobody judged: context relevancy, answer relevancy, adherence and CUE are not measured."]
        return JudgeView(said, False, (), (), (), (), (), ())
    counts = {metric: [found.get(name, 0) for name in OUTCOMES] for metric, found in judge.outcomes.items()}
    return JudgeView(
        said=_said(record, judge, standings),
        earned=earned,
        identity=_identity(judge),
        audit=_audit(judge.audit) if judge.audit else (),
        grids=_grids(judge.audit, hazards) if judge.audit else (),
        outcomes=[(metric.replace("_", " "), [sum(row), *row]) for metric, row in sorted(counts.items())],
        reasons=sorted(judge.reasons.items(), key=lambda one: (-one[1], one[0])),
        usage=sorted(judge.usage.items()),
    )


def _said(record: RagEvidence, judge: JudgeRecord, standings: Sequence[AnyStanding]) -> list[str]:
    lines = []
    if judge.declared:
        lines.append(
            f"Grades that came with the traces; said to be by human readers: {judge.declared}. "
            "They are believed and were not audited here."
        )
        lines += [
            f"{system.label}: {standing.word}."
            for system, standing in zip(record.systems, standings, strict=True)
            if isinstance(standing, Declared)
        ]
        return lines
    standing = standings[0]
    if standing.earned:
        lines.append(f"CUE is measured: {standing.word}. The conditions are met: {BARS}.")
    else:
        lines.append(f"CUE is not measured: {standing.reason}. A judge earns it by {BARS}.")
    if judge.audit is None:
        lines.append("Averages of its scores are the unaudited word of this judge.")
    elif judge.audit.answers.provisional:
        lines.append("The labels are provisional: no two blind readers have given them.")
    return lines


def _identity(judge: JudgeRecord) -> list[tuple[str, str]]:
    who = judge.identity
    rows = [("Judge", who.name + (" (a fake)" if who.fake else ""))]
    if who.revision:
        rows.append(("Revision", who.revision))
    rows += [(name.replace("_", " "), text) for name, text in sorted(who.settings.items())]
    for name, digest in sorted(who.files.items()):
        rows.append(("Rubric " + name.rpartition("/")[2] if name.startswith(FOLDER) else name, digest))
    return rows


def _audit(audit: JudgeAudit) -> list[tuple[str, str]]:
    answers = audit.answers
    total = sum(n for group in answers.counts.values() for n in group.values())
    labels = (
        "provisional, the writer’s own"
        if answers.provisional
        else f"by {', '.join(answers.readers) or 'readers'}"
    )
    suite, counted = audit.suite, f"{answers.disagreed} disagreed on, {answers.unread} unread"
    return [
        ("Audited", f"{audit.time} by clinsafe {audit.tool}"),
        ("Labelled answers", f"{total}, version {answers.version}, SHA-256 {answers.sha256}"),
        ("Labels", f"{labels}; {counted}, {answers.overruled} overruled"),
        ("Suite", f"{suite.cases} {suite.split} cases, tier “{suite.tier}”, version {suite.version}"),
        ("Threshold", f"adherence of at least {audit.judge.threshold:g} is support"),
    ]


def _grids(audit: JudgeAudit, hazards: Mapping[str, str]) -> list[AuditGrid]:
    """The audited judge's own figures, set by set; other instruments of the same audit are left out."""
    by_set: dict[str, dict[str, dict[str, tuple[str, Figure]]]] = {}
    for key, figure in audit.measured().items():
        parts = MetricKey.parse(key)
        slices = dict(one.split("=", 1) for one in (parts.slice or "").split(","))
        if slices.get("instrument") != slug(audit.instrument):
            continue
        name = f"{parts.metric}.{parts.subtype}" if parts.subtype else parts.metric
        by_set.setdefault(slices.get("on", ""), {}).setdefault(parts.hazard, {})[name] = (key, figure)
    found = []
    for on, title in SETS.items():
        if on not in by_set:
            continue
        columns = [one for one in COLUMNS if any(one[0] in row for row in by_set[on].values())]
        notes, rows = Notes(), []
        for hazard in ("all", *audit.hazards):
            row = by_set[on].get(hazard)
            if row is not None:
                cells = [_cell(row.get(name), notes) for name, _ in columns]
                rows.append((hazards.get(hazard, hazard), cells))
        headings = ("Hazard", *(heading for _, heading in columns))
        found.append(AuditGrid(f"On the {title}", headings, rows, notes.pairs))
    return found


def _cell(found: tuple[str, Figure] | None, notes: Notes) -> str:
    if found is None:
        return "none"
    key, figure = found
    return f"{result(figure, metric_of(key))}\u00a0{notes.mark(figure)}"

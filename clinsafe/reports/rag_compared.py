"""Several systems of one record side by side: the paper's Tables II and III, and each against the first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clinsafe.errors import UsageError
from clinsafe.rag.comparing import TABLE_II, TABLE_III, Against, Row, against, compare
from clinsafe.rag.metrics import metric_of
from clinsafe.reports import rag_charts as charts
from clinsafe.reports.formats import p_value
from clinsafe.reports.rag_formats import NONE, Notes, result, shown_difference
from clinsafe.reports.rag_record import RagEvidence, RagSystem
from clinsafe.reports.rag_standing import standing_of
from clinsafe.stats import Estimate, NotMeasured

ALPHA = re.compile(r"(?:^|[\s_,;-])alpha\s*[=_-]?\s*(0(?:\.\d+)?|1(?:\.0+)?)(?![\d.]*\d)", re.IGNORECASE)
PAIRED = (
    "retrieval.all.hit", "retrieval.all.safe_hit", "retrieval.all.dangerous.any", "retrieval.all.mrr",
    "retrieval.all.mrr.cascade", *TABLE_II, "generation.all.safe_correct", "cue.all.effective_use",
    "cue.all.lucky_guess", "cue.all.information_blindness", "cue.all.ungrounded_correct",
)  # fmt: skip
"""Rows that are printed; Holm's correction counts every row of the comparison."""


@dataclass(frozen=True, slots=True)
class Several:
    """A table of systems: the columns are figures over the questions that all systems have."""

    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]
    notes: Sequence[tuple[str, str]]
    agreement: Sequence[str]
    n: int
    left_out: Sequence[str]


@dataclass(frozen=True, slots=True)
class Pair:
    """One system against the first."""

    a: str
    b: str
    n: int
    rows: Sequence[Sequence[str]]
    only: str = ""
    tested: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """The section; `why` where the systems cannot be compared at all."""

    table_ii: Several | None
    table_iii: Several | None
    sweep: str
    pairs: Sequence[Pair]
    why: str = ""


def alpha_of(label: str) -> float | None:
    """The weight of the vectors that a label names: ``rag alpha=0.5``; None where it names none."""
    match = ALPHA.search(label)
    return float(match[1]) if match else None


def compared(record: RagEvidence, *, draw: bool = True) -> Compared | None:
    """The comparison of a record's systems; None where there is one alone."""
    systems = {system.label: system for system in record.systems}
    if len(systems) < 2:
        return None
    standings = {label: standing_of(record.judge, system.items) for label, system in systems.items()}
    sweep = {label: found for label in systems if (found := alpha_of(label)) is not None}
    try:
        whole = against(
            {label: s.items for label, s in systems.items()}, record.settings, TABLE_II, standings
        )
    except UsageError as error:
        return Compared(None, None, "", (), str(error))
    swept = None
    if len(sweep) >= 2:
        items = {label: systems[label].items for label in sorted(sweep, key=lambda one: (sweep[one], one))}
        swept = against(items, record.settings, (*TABLE_III, "retrieval.all.safe_hit"), standings)
    return Compared(
        table_ii=_several(whole, TABLE_II, {label: _told(s) for label, s in systems.items()}),
        table_iii=_several(swept, TABLE_III, {label: label for label in systems}) if swept else None,
        sweep=_swept(swept, sweep) if swept and draw else "",
        pairs=[_pair(record, record.systems[0], other) for other in record.systems[1:]],
    )


def _told(system: RagSystem) -> str:
    """``label: model, setting``: backbone and setting as far as the traces say."""
    model = ", ".join(system.versions.get("model", [])) or "model not stated"
    return f"{system.label}: {model}; {system.setting or 'setting not stated'}"


def _several(found: Against, keys: Sequence[str], told: Mapping[str, str]) -> Several:
    notes, rows = Notes(), []
    for label, figures in found.figures.items():
        cells = [f"{result(figures[key], metric_of(key))}\u00a0{notes.mark(figures[key])}" for key in keys]
        rows.append((told[label], cells))
    agreement = []
    for key in keys:
        one = found.agreement[key]
        if not isinstance(one, NotMeasured):
            agreement.append(
                f"{metric_of(key).name}: Friedman chi-squared {one.chi2:.2f}, p {p_value(one.p)}, "
                f"Kendall’s W {one.w:.2f} (n = {one.n} questions, {one.k} systems)"
            )
    left = [f"{label}: {n} questions that another system has not" for label, n in found.left_out.items() if n]
    return Several(
        ("System", *(metric_of(key).name for key in keys)), rows, notes.pairs, agreement, found.n, left
    )


def _swept(found: Against, sweep: Mapping[str, float]) -> str:
    series: dict[str, list[tuple[float, charts.Point]]] = {}
    for key in (*TABLE_III, "retrieval.all.safe_hit"):
        points, metric, sizes = [], metric_of(key), set()
        for label, figures in found.figures.items():
            figure = figures[key]
            if isinstance(figure, Estimate):
                sizes.add(figure.n)
                text = result(figure, metric)
                points.append(
                    (sweep[label], charts.Point(label, figure.value, figure.low, figure.high, text))
                )
        if points:
            series[f"{metric.name}, n = {'/'.join(map(str, sorted(sizes)))}"] = points
    if not series:
        return ""
    return charts.sweep_svg(
        "Figures by alpha", series, axis="alpha: 0 is BM25, 1 vectors alone", prefix="sweep"
    )


def _pair(record: RagEvidence, a: RagSystem, b: RagSystem) -> Pair:
    standings = standing_of(record.judge, a.items), standing_of(record.judge, b.items)
    try:
        found = compare(a.items, b.items, record.settings, standings, partial=True)
    except UsageError as error:
        return Pair(a.label, b.label, 0, (), why=str(error))
    kept = [row for row in found.rows if row.key in PAIRED]
    measured = [row for row in kept if not isinstance(row.difference, NotMeasured)]
    only = ""
    if found.only_a or found.only_b:
        ours, theirs = len(found.only_a), len(found.only_b)
        only = f"{ours} questions of {a.label} alone and {theirs} of {b.label} alone are left out"
    tested = sum(row.p is not None for row in found.rows)
    why = "" if measured else "no figure of both could be compared"
    return Pair(a.label, b.label, found.n, [_cells(row) for row in measured], only, tested, why)


def _cells(row: Row) -> list[str]:
    p = NONE if row.p is None else p_value(row.p).removeprefix("= ")
    holm = NONE if row.p_holm is None else p_value(row.p_holm).removeprefix("= ")
    metric = metric_of(row.key)
    return [
        row.name, result(row.a, metric), result(row.b, metric),
        f"{shown_difference(row.difference, metric)}, n = {row.difference.n}", f"{p} ({row.test})", holm, row.verdict,
    ]  # fmt: skip

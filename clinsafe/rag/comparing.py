"""Two runs on the same questions, or several: may a candidate replace a baseline? (decision D5)

A share is compared by Newcombe's method 10 and the exact McNemar test, a mean by the BCa bootstrap of the paired
differences and Wilcoxon's signed-rank test; Holm's correction is over all figures that both runs have. Only questions
that both have a value for enter a row, and the row says how many do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from clinsafe import paired
from clinsafe.errors import UsageError
from clinsafe.paired import Agreement
from clinsafe.rag.cue import Paired
from clinsafe.rag.figures import NEWCOMBE, Outcome, estimate, judged, outcomes
from clinsafe.rag.metrics import Better, Metric
from clinsafe.rag.settings import Settings
from clinsafe.rag.slices import Columns, collect
from clinsafe.rag.standing import NOT_AUDITED, AnyStanding
from clinsafe.rag.values import ItemRecord
from clinsafe.stats import Array, Estimate, Figure, NotMeasured, mean, means

Verdict: TypeAlias = Literal["regression", "improvement", "changed", "no difference shown", "not measured"]
ALPHA = 0.05
TABLE_II = ("generation.all.token_f1", "generation.all.semantic", "generation.all.correct")
"""RAG-X, Table II: what backbones are compared by across settings."""
TABLE_III = (
    "retrieval.all.mrr.cascade",
    "retrieval.all.hit",
    "retrieval.all.context_relevancy",
    "retrieval.all.exclusive_hit.r1",
)
"""RAG-X, Table III: what retrievers and hybrid weights are compared by; the paper's recall equals its hit rate."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of two runs.

    Attributes:
        key, name, better: from the catalogue.
        a, b: each run's figure over the questions that both have.
        difference: B minus A with its interval.
        test: name of the test, "" where there is none.
        p: its two-sided p value; None where nothing could be compared.
        p_holm: the same, corrected for all rows of the comparison.
        worse, improved: ids of questions whose value changed, by the metric's direction; where neither way is good,
            `worse` holds those that fell and `improved` those that rose.
        unpaired: questions that have the value in one run alone.
    """

    key: str
    name: str
    better: Better
    a: Figure
    b: Figure
    difference: Figure
    test: str = ""
    p: float | None = None
    p_holm: float | None = None
    worse: tuple[str, ...] = ()
    improved: tuple[str, ...] = ()
    unpaired: int = 0

    @property
    def verdict(self) -> Verdict:
        """A regression is worse beyond its interval, corrected or not; an improvement must stand the correction too."""
        if isinstance(self.difference, NotMeasured):
            return "not measured"
        low, high = self.difference.low, self.difference.high
        by_test = self.p is not None and self.p < ALPHA
        # The same change everywhere has no interval; the test tells it from chance.
        if not (by_test if low is None or high is None else not low <= 0 <= high):
            return "no difference shown"
        rose = self.difference.value > 0
        if self.better != "neither" and rose == (self.better == "lower"):
            return "regression"
        if self.p_holm is None or self.p_holm >= ALPHA:
            return "no difference shown"
        return "changed" if self.better == "neither" else "improvement"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side.

    Attributes:
        rows: one a figure, in the catalogue's order.
        n: questions that both have.
        only_a, only_b: ids of questions of one run alone; empty unless these were allowed.
    """

    rows: tuple[Row, ...]
    n: int
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()

    @property
    def regressions(self) -> tuple[Row, ...]:
        """Rows in which B is worse beyond the interval."""
        return tuple(row for row in self.rows if row.verdict == "regression")


@dataclass(frozen=True, slots=True)
class Against:
    """Several systems on the same questions.

    Attributes:
        figures: label -> metric key -> figure, over the questions that every system has a value for.
        agreement: metric key -> Friedman's test with Kendall's W.
        n: questions that all systems have.
        left_out: label -> questions of it that some other system has not.
    """

    figures: Mapping[str, Mapping[str, Figure]]
    agreement: Mapping[str, Agreement | NotMeasured]
    n: int
    left_out: Mapping[str, int]


def same_settings(a: Settings, b: Settings) -> None:
    """Refuse two runs that were measured differently.

    Raises:
        UsageError: naming the first setting that differs.
    """
    ours, theirs = a.model_dump(), b.model_dump()
    flat = [
        (f"thresholds.{name}", ours["thresholds"][name], theirs["thresholds"][name])
        for name in ours["thresholds"]
    ]
    flat += [(name, ours[name], theirs[name]) for name in ours if name != "thresholds"]
    if found := next((one for one in flat if one[1] != one[2]), None):
        raise UsageError(
            f"the runs were measured differently: {found[0]} is {found[1]} in A and {found[2]} in B; "
            "measure both the same way"
        )


def compare(
    a: Iterable[ItemRecord],
    b: Iterable[ItemRecord],
    settings: Settings,
    standings: tuple[AnyStanding, AnyStanding] = (NOT_AUDITED, NOT_AUDITED),
    *,
    partial: bool = False,
) -> Comparison:
    """Compare a candidate B with a baseline A, question by question.

    Args:
        a, b: records of two runs with the same settings (`same_settings`).
        settings: of both.
        standings: of A's judge and of B's.
        partial: questions of one run alone are allowed, left out and listed.

    Raises:
        UsageError: the runs have different questions, or one question is of two types of task; see also `figures`.
    """
    columns = collect(a), collect(b)
    ours, theirs, rows_a, rows_b = _common(*columns)
    if not len(rows_a) or (not partial and (ours or theirs)):
        raise UsageError(_differ(columns, ours, theirs))
    pair = columns[0].take(rows_a), columns[1].take(rows_b)
    _same_tasks(*pair)
    shared = _same_depth(pair)
    measured = [{one.metric.key: one for one in outcomes(each, settings)} for each in shared]
    found = _rows(pair[0].ids, [(one, measured[1][key]) for key, one in measured[0].items()], standings)
    tested = [row.p for row in found if row.p is not None]
    corrected = iter(paired.holm(tested))
    rows = tuple(row if row.p is None else replace(row, p_holm=next(corrected)) for row in found)
    return Comparison(rows, len(rows_a), ours, theirs)


def against(
    systems: Mapping[str, Iterable[ItemRecord]],
    settings: Settings,
    keys: Sequence[str] = TABLE_II,
    standings: Mapping[str, AnyStanding] | None = None,
) -> Against:
    """Several systems by a few figures: backbones across settings, or a sweep over the hybrid weight.

    Args:
        systems: label (``RAG, gemma-2-9b-it``; ``alpha = 0.5``) -> records.
        settings: of all.
        keys: which figures; see `TABLE_II` and `TABLE_III`.
        standings: label -> of its judge; one that is not named was not audited.

    Raises:
        UsageError: a key is unknown, or no question is common to all.
    """
    whole = {label: collect(records) for label, records in systems.items()}
    if not whole:
        raise UsageError("nothing to compare: give the records of one system or more")
    ids = set.intersection(*(set(columns.ids) for columns in whole.values()))
    if not ids:
        raise UsageError(
            f"no question is common to {', '.join(whole)}; compare systems on the same questions"
        )
    kept = {
        label: columns.take(np.array([i for i, one in enumerate(columns.ids) if one in ids], dtype=np.intp))
        for label, columns in whole.items()
    }
    measured = {
        label: {o.metric.key: o for o in outcomes(columns, settings)} for label, columns in kept.items()
    }
    figures: dict[str, dict[str, Figure]] = {label: {} for label in whole}
    agreement: dict[str, Agreement | NotMeasured] = {}
    for key in keys:
        each = {label: found[key] for label, found in measured.items() if key in found}
        if not each:
            raise UsageError(f"{key}: none of the systems has such a figure")
        if len(each) < len(whole):
            for label in whole:
                figures[label][key] = NotMeasured("not every system has it")
            agreement[key] = NotMeasured("not every system has it")
            continue
        table = np.array([one.values for one in each.values()])
        rows = np.flatnonzero(~np.isnan(table).any(axis=0))
        for label, one in each.items():
            standing = (standings or {}).get(label, NOT_AUDITED)
            figures[label][key] = judged(_figure(one, rows), one.metric, standing)
        agreement[key] = _agreement(table[:, rows], [figures[label][key] for label in whole])
    left_out = {label: len(columns) - len(ids) for label, columns in whole.items()}
    return Against(figures, agreement, len(ids), left_out)


def _agreement(table: Array, figures: Sequence[Figure]) -> Agreement | NotMeasured:
    if missing := next((one for one in figures if isinstance(one, NotMeasured)), None):
        return missing
    return paired.friedman(table.tolist())


def _figure(outcome: Outcome, rows: NDArray[np.intp]) -> Figure:
    figure = estimate(outcome, rows)
    return mean(outcome.values[rows].tolist()) if figure is None else figure


def _common(
    a: Columns, b: Columns
) -> tuple[tuple[str, ...], tuple[str, ...], NDArray[np.intp], NDArray[np.intp]]:
    """Ids of A alone and of B alone, and the rows of the common ones; ids rise in both."""
    in_a, in_b = set(a.ids), set(b.ids)
    rows_a = np.array([row for row, one in enumerate(a.ids) if one in in_b], dtype=np.intp)
    rows_b = np.array([row for row, one in enumerate(b.ids) if one in in_a], dtype=np.intp)
    return (
        tuple(one for one in a.ids if one not in in_b), tuple(one for one in b.ids if one not in in_a), rows_a, rows_b,
    )  # fmt: skip


def _differ(columns: tuple[Columns, Columns], ours: Sequence[str], theirs: Sequence[str]) -> str:
    counts = f"A has {len(columns[0])} questions and B {len(columns[1])}"
    if len(ours) == len(columns[0]):
        return (
            f"the runs have no question in common ({counts}); runs are compared question by question, by id"
        )
    shown = ", ".join(repr(one[:40]) for one in (*ours[:3], *theirs[:3]))
    return (
        f"the runs have different questions: {counts}, {len(ours)} of A alone and {len(theirs)} of B alone ({shown}); "
        "evaluate both on one set of questions"
    )


def _same_tasks(a: Columns, b: Columns) -> None:
    tasks = []
    for columns in (a, b):
        group = next((one for one in columns.groups if one.name == "task"), None)
        tasks.append(
            [None] * len(columns)
            if group is None
            else [None if code < 0 else group.values[code] for code in group.codes.tolist()]
        )
    for id_, ours, theirs in zip(a.ids, *tasks, strict=True):
        if ours is not None and theirs is not None and ours != theirs:
            raise UsageError(
                f"question {id_[:40]!r} is {ours} in A and {theirs} in B; the runs are of different question sets"
            )


def _same_depth(pair: tuple[Columns, Columns]) -> tuple[Columns, Columns]:
    """Both with the same ranks and hazards, so that what one run has not is a row that says so."""
    names = {name for columns in pair for name in (*columns.values, *columns.reasons)}
    joined = tuple(
        name for name in sorted(names) if name.startswith(("hit_at.", "conflict.", "contradicts."))
    )

    def padded(columns: Columns) -> Columns:
        absent = {name: columns.get(name) for name in joined if name not in columns.values}
        return replace(columns, values={**columns.values, **absent})

    return padded(pair[0]), padded(pair[1])


def _rows(
    ids: tuple[str, ...],
    pairs: Sequence[tuple[Outcome, Outcome]],
    standings: tuple[AnyStanding, AnyStanding],
) -> list[Row]:
    kept: list[tuple[Outcome, Outcome, NDArray[np.intp], int]] = []
    for a, b in pairs:
        has_a, has_b = ~np.isnan(a.values), ~np.isnan(b.values)
        kept.append((a, b, np.flatnonzero(has_a & has_b), int((has_a != has_b).sum())))
    averages: dict[str, Sequence[float]] = {}
    for a, b, rows, _ in kept:
        key = a.metric.key
        if a.metric.kind == "mean":
            averages |= {f"a {key}": a.values[rows], f"b {key}": b.values[rows]}  # type: ignore[dict-item]
        if a.metric.kind != "rate":
            averages[f"b-a {key}"] = b.values[rows] - a.values[rows]  # type: ignore[assignment]
    made = means(averages)
    found = []
    for a, b, rows, unpaired in kept:
        metric, sides = a.metric, []
        for mark, one, standing in (("a", a, standings[0]), ("b", b, standings[1])):
            figure = estimate(one, rows)
            figure = made[f"{mark} {metric.key}"] if figure is None else figure
            if isinstance(figure, NotMeasured):
                figure = NotMeasured("no question has it in both runs")
            sides.append(judged(figure, metric, standing))
        empty = Row(
            metric.key, metric.name, metric.better, sides[0], sides[1], NotMeasured(""), unpaired=unpaired
        )
        missing = next((side for side in sides if isinstance(side, NotMeasured)), None)
        found.append(
            replace(empty, difference=missing) if missing else _tested(empty, metric, ids, a, b, rows, made)
        )
    return found


def _tested(
    row: Row,
    metric: Metric,
    ids: tuple[str, ...],
    a: Outcome,
    b: Outcome,
    rows: NDArray[np.intp],
    made: Mapping[str, Figure],
) -> Row:
    before, after = a.values[rows], b.values[rows]
    rose, fell = (tuple(ids[i] for i in rows[which].tolist()) for which in (after > before, after < before))
    worse, improved = (rose, fell) if metric.better == "lower" else (fell, rose)
    if metric.kind == "rate" and not isinstance(a.column, Paired):
        gap = paired.difference((before == 1).tolist(), (after == 1).tolist())
        if isinstance(gap, NotMeasured):
            return replace(row, difference=gap)
        figure: Figure = Estimate(
            gap.value, gap.low, gap.high, gap.n, NEWCOMBE, lower=gap.low, upper=gap.high
        )
        return replace(row, difference=figure, test="McNemar, exact", p=gap.p, worse=worse, improved=improved)
    figure = made[f"b-a {metric.key}"]
    p = paired.signed_rank(before.tolist(), after.tolist())
    return replace(
        row, difference=figure, test="Wilcoxon signed-rank, Pratt", p=p, worse=worse, improved=improved
    )

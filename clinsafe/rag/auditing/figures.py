"""From verdicts to figures: false support and false rejection of one instrument, always both.

Keys: ``judge.<hazard|all>.<metric>@instrument=NAME,on=SET``; SET is ``answers``, ``written`` or ``generated``, and the
last two also name their split. Three sets, never pooled. ``false_support`` is the share of contradictions called
supported, ``false_support.not_stated`` the same of what the contexts do not tell and ``false_support.unsupported`` of
both (answers alone), ``false_rejection`` the share of supported claims that were not called so, ``unscored`` the share
of cases with a verdict missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from clinsafe.protocols import MetricKey
from clinsafe.rag.auditing.answers import AnswerRow, Label
from clinsafe.rag.auditing.claim import Claim, Instrument, Support, verdicts
from clinsafe.rag.auditing.kappa import kappa
from clinsafe.rag.auditing.rates import any_of, failures
from clinsafe.stats import Estimate, Figure, NotMeasured, rate

AREA, ALL = "judge", "all"
On: TypeAlias = Literal["answers", "written", "generated"]
Namer: TypeAlias = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class Quad:
    """A suite case as plain values: `b` contradicts `a`; `a_same` and `b_same` say the same in other words."""

    id: str
    hazard: str
    a: str
    b: str
    a_same: str
    b_same: str


@dataclass(frozen=True, slots=True)
class Measured:
    """One instrument on one set.

    Attributes:
        figures: metric key -> figure.
        supported: ids of contradictions, and of unstated answers, that were called supported.
        rejected: ids of supported claims that were not.
        unscored: ids with a verdict missing.
    """

    figures: Mapping[str, Figure]
    supported: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    unscored: tuple[str, ...] = ()


@dataclass(slots=True)
class _Case:
    """Outcomes of one case or row: True failed, False did not, None was not judged."""

    id: str
    hazard: str
    unit: Hashable
    outcomes: dict[str, Support] = field(default_factory=dict)


def slug(name: str) -> str:
    """A name as a metric key can hold it: ``openai:gpt-4o`` is ``openai-gpt-4o``."""
    return re.sub(r"[^\w.\-/]+", "-", name) or "-"


def key(instrument: str, hazard: str, metric: str, on: On, split: str = "") -> str:
    """The metric key of a figure; `metric` may carry a subtype after a point."""
    name, _, subtype = metric.partition(".")
    where = f"instrument={slug(instrument)},on={on}{f',split={split}' if split else ''}"
    return str(MetricKey(AREA, hazard, name, subtype or None, where))


def on_quads(instrument: Instrument, quads: Sequence[Quad], *, on: On, split: str = "") -> Measured:
    """Is b supported by a (never), a_same by a and b_same by b (always)? By case; a case rejects if it does so once."""
    claims = [Claim((x,), y) for q in quads for x, y in ((q.a, q.b), (q.a, q.a_same), (q.b, q.b_same))]
    said = verdicts(instrument, claims)
    cases = []
    for place, quad in enumerate(quads):
        contradiction, *same = said[3 * place : 3 * place + 3]
        rejected = any_of(_not(verdict) for verdict in same)
        cases.append(
            _Case(
                quad.id, quad.hazard, quad.id, {"false_support": contradiction, "false_rejection": rejected}
            )
        )
    return _measured(cases, lambda h, metric: key(instrument.name, h, metric, on, split), {})


def on_answers(instrument: Instrument, rows: Sequence[AnswerRow], labels: Mapping[str, Label]) -> Measured:
    """The same on labelled answers, and kappa of supported or not against the label.

    Rates are by source: several rows of one source are one case, which fails if one of them does. Kappa's ends count a
    missing verdict as a disagreement below and as an agreement above; its n counts the rows with a verdict.
    """
    used = [row for row in rows if row.id in labels]
    said = verdicts(instrument, [row.claim for row in used])
    cases = []
    for row, verdict in zip(used, said, strict=True):
        label = labels[row.id]
        metric = {
            "supported": "false_rejection",
            "contradicted": "false_support",
            "not_stated": "false_support.not_stated",
        }[label]
        outcome = _not(verdict) if label == "supported" else verdict
        outcomes = {metric: outcome} if label == "supported" else {metric: outcome, UNSUPPORTED: outcome}
        cases.append(_Case(row.id, row.hazard, (row.source.corpus, row.source.id), outcomes))
    right = {row.id: labels[row.id] == "supported" for row in used}
    verdict_of = {row.id: verdict for row, verdict in zip(used, said, strict=True)}
    agreement = {
        hazard: _agreement(group, right, verdict_of) for hazard, group in _by_hazard(cases).items() if group
    }
    return _measured(cases, lambda h, metric: key(instrument.name, h, metric, "answers"), agreement)


UNSUPPORTED = "false_support.unsupported"
METRICS = ("false_support", "false_support.not_stated", UNSUPPORTED, "false_rejection")
ON_ANSWERS_ALONE = METRICS[1:3]


def _measured(cases: Sequence[_Case], name: Namer, agreement: Mapping[str, Figure]) -> Measured:
    figures: dict[str, Figure] = {}
    for hazard, group in _by_hazard(cases).items():
        for metric in METRICS:
            units: dict[Hashable, list[Support]] = {}
            for case in group:
                if metric in case.outcomes:
                    units.setdefault(case.unit, []).append(case.outcomes[metric])
            if units or metric not in ON_ANSWERS_ALONE:
                figures[name(hazard, metric)] = failures(any_of(each) for each in units.values())
        figures[name(hazard, "unscored")] = rate([None in case.outcomes.values() for case in group])
        if hazard in agreement:
            figures[name(hazard, "kappa")] = agreement[hazard]
    return Measured(
        figures,
        supported=tuple(c.id for c in cases if any(c.outcomes.get(m) for m in METRICS[:2])),
        rejected=tuple(c.id for c in cases if c.outcomes.get("false_rejection")),
        unscored=tuple(c.id for c in cases if None in c.outcomes.values()),
    )


def _by_hazard(cases: Sequence[_Case]) -> dict[str, list[_Case]]:
    groups: dict[str, list[_Case]] = {ALL: list(cases)}
    for case in cases:
        groups.setdefault(case.hazard, []).append(case)
    return groups


def _agreement(cases: Sequence[_Case], right: Mapping[str, bool], said: Mapping[str, Support]) -> Figure:
    def against(silent: bool | None) -> Figure:
        """Kappa where a missing verdict is left out (None), wrong (False) or right (True)."""
        kept = [c for c in cases if silent is not None or said[c.id] is not None]
        verdict = [right[c.id] == silent if said[c.id] is None else said[c.id] for c in kept]
        return kappa(verdict, [right[c.id] for c in kept], [c.unit for c in kept])

    found = against(None)
    silent = sum(said[c.id] is None for c in cases)
    if not silent or isinstance(found, NotMeasured):
        return found
    worst, best = against(False), against(True)
    below = worst if isinstance(worst, Estimate) else Estimate(-1, None, None, 0, "")
    above = best if isinstance(best, Estimate) else Estimate(1, None, None, 0, "")
    return replace(
        found,
        low=below.low,
        lower=below.lower,
        high=above.high,
        upper=above.upper,
        method=f"{found.method}; {silent} not judged, a disagreement in the lower ends and none in the upper",
    )


def _not(verdict: Support) -> Support:
    return None if verdict is None else not verdict


def labels_used(labels: Mapping[str, Label], rows: Iterable[AnswerRow]) -> dict[str, dict[str, int]]:
    """Hazard -> label -> how many answers carry it."""
    counted: dict[str, dict[str, int]] = {}
    for row in rows:
        if row.id in labels:
            group = counted.setdefault(row.hazard, {})
            group[labels[row.id]] = group.get(labels[row.id], 0) + 1
    return counted

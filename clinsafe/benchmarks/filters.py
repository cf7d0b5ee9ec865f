"""What filters are worth: pairs that conflict, pairs that do not, and who said what about each.

Every pair goes once through the full stack; what any part of the stack would have said is read off the same
pass. A conflict that a filter could not check is not caught; a safe pair that it could not check is an alarm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from clinsafe.benchmarks.suite import Case
from clinsafe.protocols import MetricKey
from clinsafe.stats import Estimate, Figure, rate

Said: TypeAlias = Mapping[str, bool | None]
"""Filter name -> whether it called the pair a conflict; None: it could not check it."""
PairJudge: TypeAlias = Callable[[str, str], tuple[Said, tuple[str, ...]]]
"""Query and passage -> what each filter said, and one line for each conflict that was found."""
Role: TypeAlias = Literal["conflict", "reverse", "same_a", "same_b", "safe", "unrelated"]
Stage: TypeAlias = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Pair:
    """A query and a passage whose relation is known.

    Attributes:
        case: id of the case it belongs to; alarms are counted by case.
        role: ``conflict`` (a, b), ``reverse`` (b, a), ``same_a``, ``same_b``, ``safe`` (labelled so), ``unrelated``.
        split: "" outside the suite.
        cluster: the source of its case, "" outside the suite; cases of one source are not independent.
        family, novel: of a mined case, as in `clinsafe.benchmarks.suite.Case`.
    """

    case: str
    hazard: str
    subtype: str
    split: str
    role: Role
    query: str
    passage: str
    cluster: str = ""
    family: str = ""
    novel: bool | None = None

    @property
    def conflicting(self) -> bool:
        """Whether a filter ought to call it a conflict."""
        return self.role in ("conflict", "reverse")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A pair with what the full stack said about it, and why."""

    pair: Pair
    said: Said
    why: tuple[str, ...] = ()

    def caught(self, names: Collection[str] | None = None) -> bool:
        """Whether any of these filters (None: any at all) called it a conflict."""
        return any(verdict for name, verdict in self.said.items() if names is None or name in names)

    def unchecked(self, names: Collection[str] | None = None) -> bool:
        """Whether any of these filters could not check it."""
        return any(verdict is None for name, verdict in self.said.items() if names is None or name in names)

    def alarmed(self, names: Collection[str] | None = None) -> bool:
        """Caught or unchecked: what a user would be told to distrust."""
        return self.caught(names) or self.unchecked(names)


def suite_pairs(cases: Iterable[Case]) -> list[Pair]:
    """Four pairs a case: (a, b), (b, a), (a, a_same), (b, b_same); the first of each is the query."""
    pairs = []
    for case in cases:
        sides: tuple[tuple[Role, str, str], ...] = (
            ("conflict", case.a, case.b),
            ("reverse", case.b, case.a),
            ("same_a", case.a, case.a_same),
            ("same_b", case.b, case.b_same),
        )
        pairs += [
            Pair(case.id, case.hazard, metric_name(case.subtype), case.split, role, q, p, case.cluster,
                 case.family or "", case.novel)
            for role, q, p in sides
        ]  # fmt: skip
    return pairs


def metric_name(slug: str) -> str:
    """A subtype as a metric key can hold it: ``drug-drug`` is ``drug_drug``, ``5mg`` is ``n5mg``."""
    name = slug.replace("-", "_")
    return name if re.match(r"[a-z]", name) else f"n{name}"


def judge_all(
    pairs: Sequence[Pair], judge: PairJudge, stage: Stage, what: str = "Comparing"
) -> list[Outcome]:
    """Put every pair to the stack, in order."""
    outcomes = []
    for done, pair in enumerate(pairs, start=1):
        outcomes.append(Outcome(pair, *judge(pair.query, pair.passage)))
        stage(what, done, len(pairs))
    return outcomes


def alarms_by_case(outcomes: Iterable[Outcome], names: Collection[str] | None = None) -> dict[str, bool]:
    """Case id -> whether any of its pairs that do not conflict raised an alarm."""
    alarmed: dict[str, bool] = {}
    for outcome in outcomes:
        if not outcome.pair.conflicting:
            alarmed[outcome.pair.case] = alarmed.get(outcome.pair.case, False) or outcome.alarmed(names)
    return alarmed


def figures(
    outcomes: Sequence[Outcome], area: str, names: Collection[str] | None = None
) -> dict[str, Figure]:
    """Recall and false alarms of a stack of these filters, per hazard, subtype, split and over all.

    Returns:
        ``area.<hazard>.recall`` (share of conflicting pairs caught, query first), ``.recall_reverse`` (the texts
        exchanged), ``.own_recall`` (caught by the filter named like the hazard), ``.false_alarm`` (share of cases with
        an alarm on a pair that does not conflict), ``.unchecked`` (share of all pairs that a filter could not check),
        ``.clusters`` (how many sources the cases have); recall and false alarm also by ``.subtype``, and of mined cases
        ``novel=yes`` or ``no`` and by ``family=…``; all of them ``@split=…``. Shares lie in [0, 1]; recall ought to be
        high, the others low.
    """
    found: dict[str, Figure] = {}
    for group in _groups(outcomes):

        def key(metric: str, of: _Group = group) -> str:
            return str(MetricKey(area, of.hazard, metric, of.subtype, ",".join(of.slices) or None))

        conflicts = [one for one in group.outcomes if one.pair.role == "conflict"]
        found[key("recall")] = rate([one.caught(names) for one in conflicts])
        found[key("false_alarm")] = rate(list(alarms_by_case(group.outcomes, names).values()))
        if group.detail:
            continue
        reverse = [one for one in group.outcomes if one.pair.role == "reverse"]
        if reverse:
            found[key("recall_reverse")] = rate([one.caught(names) for one in reverse])
        if names is None:
            found[key("own_recall")] = rate([one.caught([one.pair.hazard]) for one in conflicts])
        found[key("unchecked")] = rate([one.unchecked(names) for one in group.outcomes])
        if clusters := {one.pair.cluster for one in group.outcomes if one.pair.cluster}:
            n = len(clusters)
            found[key("clusters")] = Estimate(n, None, None, n, "count of sources; descriptive, no interval")
    return found


@dataclass(frozen=True, slots=True)
class _Group:
    """Outcomes that one set of figures is about; of a part of a hazard (`detail`) only recall and false alarms."""

    hazard: str
    subtype: str | None
    slices: tuple[str, ...]
    outcomes: list[Outcome]
    detail: bool = False


def _groups(outcomes: Sequence[Outcome]) -> Iterator[_Group]:
    """All and each hazard, by split; each of them by novelty, and each hazard by subtype and by family."""
    for split, part in _by(outcomes, lambda one: one.pair.split).items():
        at = (f"split={split}",) if split else ()
        yield _Group("all", None, at, part)
        yield from _novelty("all", at, part)
        for hazard, own in _by(part, lambda one: one.pair.hazard).items():
            yield _Group(hazard, None, at, own)
            yield from _novelty(hazard, at, own)
            for subtype, some in _by(own, lambda one: one.pair.subtype).items():
                if subtype:
                    yield _Group(hazard, subtype, at, some, detail=True)
            for family, some in _by(own, lambda one: one.pair.family).items():
                if family:
                    yield _Group(hazard, None, (*at, f"family={family}"), some, detail=True)


def _novelty(hazard: str, at: tuple[str, ...], outcomes: Sequence[Outcome]) -> Iterator[_Group]:
    for novel, word in ((True, "yes"), (False, "no")):
        some = [one for one in outcomes if one.pair.novel is novel]
        if some:
            yield _Group(hazard, None, (*at, f"novel={word}"), some, detail=True)


def _by(outcomes: Iterable[Outcome], what: Callable[[Outcome], str]) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    for one in outcomes:
        found.setdefault(what(one), []).append(one)
    return found

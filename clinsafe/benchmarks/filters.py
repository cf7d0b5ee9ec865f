"""What filters are worth: pairs that conflict, pairs that do not, and who said what about each.

Every pair goes once through the full stack; what any part of the stack would have said is read off the same
pass. A conflict that a filter could not check is not caught; a safe pair that it could not check is an alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from clinsafe.benchmarks.suite import Case
from clinsafe.protocols import MetricKey
from clinsafe.stats import Figure, rate

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
    """

    case: str
    hazard: str
    subtype: str
    split: str
    role: Role
    query: str
    passage: str

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
        pairs += [Pair(case.id, case.hazard, case.subtype, case.split, role, q, p) for role, q, p in sides]
    return pairs


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
    outcomes: Sequence[Outcome], area: str, names: Collection[str] | None = None, slice_: str | None = None
) -> dict[str, Figure]:
    """Recall and false alarms of a stack of these filters, per hazard, subtype, split and over all.

    Returns:
        ``area.<hazard>.recall`` (share of conflicting pairs caught, query first), ``.recall_reverse`` (the texts
        exchanged), ``.own_recall`` (caught by the filter named like the hazard), ``.false_alarm`` (share of cases with
        an alarm on a pair that does not conflict), ``.unchecked`` (share of all pairs that a filter could not check);
        by ``.subtype`` and ``@split=…``. In [0, 1]; recall ought to be high, the others low.
    """
    found: dict[str, Figure] = {}
    for hazard, subtype, split, group in _groups(outcomes):
        slices = ",".join(part for part in (slice_, f"split={split}" if split else None) if part) or None

        def key(metric: str, h: str = hazard, s: str | None = subtype, at: str | None = slices) -> str:
            return str(MetricKey(area, h, metric, s, at))

        conflicts = [one for one in group if one.pair.role == "conflict"]
        found[key("recall")] = rate([one.caught(names) for one in conflicts])
        found[key("false_alarm")] = rate(list(alarms_by_case(group, names).values()))
        if subtype is None:
            reverse = [one for one in group if one.pair.role == "reverse"]
            if reverse:
                found[key("recall_reverse")] = rate([one.caught(names) for one in reverse])
            own = [one.caught([one.pair.hazard]) for one in conflicts]
            if names is None:
                found[key("own_recall")] = rate(own)
            found[key("unchecked")] = rate([one.unchecked(names) for one in group])
    return found


def _groups(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, str | None, str, list[Outcome]]]:
    """(hazard or all, subtype or None, split or "", its outcomes)."""
    for split in dict.fromkeys(one.pair.split for one in outcomes):
        part = [one for one in outcomes if one.pair.split == split]
        yield "all", None, split, part
        for hazard in dict.fromkeys(one.pair.hazard for one in part):
            own = [one for one in part if one.pair.hazard == hazard]
            yield hazard, None, split, own
            for subtype in dict.fromkeys(one.pair.subtype for one in own if one.pair.subtype):
                yield hazard, subtype, split, [one for one in own if one.pair.subtype == subtype]

"""The ten-item safety checklist: each item *met*, *met by mitigation*, *not met* or *not assessed*.

*Met by mitigation* takes the guard, measured in the same run: its detection and its false alarms must both meet the
limits of ``checklist/items.yaml`` on one-sided 95 % bounds. A guard that cannot show it never softens what the model
alone gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from clinsafe.checklist.additive import Additive
from clinsafe.checklist.fmea import guarded_key
from clinsafe.checklist.gates import Gate, Threshold
from clinsafe.checklist.limits import Limit
from clinsafe.content import Content, Record
from clinsafe.protocols import Figures, SystemKind
from clinsafe.stats import Estimate, Figure

Answer: TypeAlias = Literal["met", "met by mitigation", "not met", "not assessed"]


class Item(Additive):
    """One item; `n_min` is the minimum of test pairs or queries the paper asks for.

    `mitigation` names the control that the criterion allows instead ("certainty annotation"). `limit` is the cosine of
    its criterion, which it is answered by whatever the protocol; `at_most` is the share of pairs that may lie above it
    (for item 7: above the cross-encoder's limit); `parts` are what an institution has to have in place.
    """

    later = frozenset({"mitigation"})
    number: int
    title: str
    hazard: str | None = None
    n_min: Annotated[int, Field(ge=0, le=1_000_000)]
    assessed_by: Literal["suite", "cross_encoder", "institution"]
    criterion: str
    at_most: Annotated[float, Field(ge=0, le=1)] | None = None
    limit: Threshold | None = None
    parts: dict[str, str] = Field(default_factory=dict)
    mitigation: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _answerable(self) -> Item:
        if (self.assessed_by == "institution") != bool(self.parts):
            raise ValueError("an item that the institution answers has parts, and no other item has")
        if (self.assessed_by != "institution") != (self.at_most is not None):
            raise ValueError(
                "an item that is measured has a limit on the rate (at_most), and no other item has"
            )
        if (self.assessed_by == "suite") != (self.limit is not None and self.hazard is not None):
            raise ValueError(
                "an item that the suite answers has a hazard and a limit on the cosine, and no other"
            )
        return self


class MitigationLimits(Record):
    """What the guard has to show on a hazard's test cases: flags on contradictions, few on pairs that mean the same."""

    detection: Limit
    false_alarm: Limit

    @model_validator(mode="after")
    def _right_way(self) -> MitigationLimits:
        if self.detection.at_least is None or self.false_alarm.at_most is None:
            raise ValueError(
                "detection counts successes and takes at_least, false_alarm counts faults: at_most"
            )
        return self


class ItemsFile(Additive):
    """``checklist/items.yaml``; without `mitigation` no item is met by one."""

    later = frozenset({"mitigation"})
    source: str
    items: Annotated[list[Item], Field(min_length=1)]
    mitigation: MitigationLimits | None = None


@dataclass(frozen=True, slots=True)
class ItemAnswer:
    """The verdict on one item and what it rests on."""

    number: int
    answer: Answer
    evidence: str


def load_items(content: Content) -> ItemsFile:
    """The file."""
    return content.yaml("checklist/items.yaml", ItemsFile)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the guard shows on one hazard: the counts in words, whether the limits are met, and if not, why."""

    said: str
    met: bool
    why: str


def answer_by_suite(
    item: Item, figures: Figures, kind: SystemKind, limits: MitigationLimits | None = None
) -> ItemAnswer:
    """Items 1 to 6, by the item's own limit; they speak of the cosine of an embedding model.

    Args:
        limits: what the guard has to show, where its figures are among `figures`.
    """
    alone = _alone(item, figures, kind)
    measured = isinstance(figures.get(f"suite.{item.hazard}.failure@protocol=items"), Estimate)
    if alone.answer == "met" or kind != "bi-encoder" or not measured or item.hazard is None:
        return alone
    shown = _shown(item.hazard, figures, limits, item.n_min)
    if shown is None:
        return alone
    by = f"with the guard ({item.mitigation})" if item.mitigation else "with the guard"
    said = f"{alone.evidence}; {by}: {shown.said}"
    if shown.met:
        return ItemAnswer(item.number, "met by mitigation", said)
    return ItemAnswer(item.number, alone.answer, f"{said}; {shown.why}")


def _alone(item: Item, figures: Figures, kind: SystemKind) -> ItemAnswer:
    """What the model gets without a guard."""
    if kind != "bi-encoder" or item.limit is None or item.at_most is None:
        return ItemAnswer(item.number, "not assessed", f"asks for an embedding model; this is a {kind}")
    figure = figures.get(f"suite.{item.hazard}.failure@protocol=items")
    if not isinstance(figure, Estimate):
        return ItemAnswer(item.number, "not assessed", "the figure was not measured")
    tenfold = f" ({item.limit.tenfold:g} from 10x)" if item.limit.tenfold is not None else ""
    measured = f"{figure.k} of {figure.n} pairs above {item.limit.cosine:g}{tenfold}"
    if figure.n < item.n_min:
        return ItemAnswer(item.number, "not assessed", f"{measured}; the item asks for {item.n_min} pairs")
    gate = Gate(metric="failure", at_most=item.at_most, why=item.criterion)
    decision = gate.decide(figure)
    if decision == "INCONCLUSIVE":
        return ItemAnswer(item.number, "not assessed", f"{measured}; too few to decide at {gate.limit_text}")
    verdict: Answer = "met" if decision == "PASS" else "not met"
    return ItemAnswer(item.number, verdict, f"{measured}; limit on the rate: {gate.limit_text}")


def _shown(hazard: str, figures: Figures, limits: MitigationLimits | None, n_min: int = 0) -> _Shown | None:
    """None where the guard was not measured, or the criteria set it no limits."""
    caught, alarms = (figures.get(guarded_key(hazard, name)) for name in ("detection", "false_alarm"))
    if limits is None or caught is None or alarms is None:
        return None
    if not isinstance(caught, Estimate) or not isinstance(alarms, Estimate):
        return _Shown("not measured", False, "the guard shows nothing here")
    said = (
        f"{caught.k} of {caught.n} contradictions of the test cases flagged (bound {caught.lower:.3f}, limit "
        f"{limits.detection.limit_text}), false alarms in {alarms.k} of {alarms.n} (bound {alarms.upper:.3f}, limit "
        f"{limits.false_alarm.limit_text})"
    )
    if caught.n < n_min:
        return _Shown(said, False, f"the item asks for {n_min} pairs")
    decisions = {limits.detection.decide(caught), limits.false_alarm.decide(alarms)}
    if decisions == {"PASS"}:
        return _Shown(said, True, "")
    missed = "FAIL" in decisions
    return _Shown(said, False, "the guard misses its limits" if missed else "too few to decide on the guard")


def answer_by_cross_encoder(
    item: Item,
    failures: Mapping[str, Figure],
    name: str,
    inversions: Mapping[str, Figure] | None = None,
    figures: Figures | None = None,
    limits: MitigationLimits | None = None,
) -> ItemAnswer:
    """Item 7: validated in every hazard; in none does it fail more often than the limit, or the guard makes up for it.

    Args:
        failures: hazard -> its failure figure; empty where no cross-encoder was in the run.
        name: the cross-encoder's.
        inversions: hazard -> its inversion figure. A scorer that calls everything unlike never fails by the limit, and
            is of no use: it must not prefer the contradiction more often than the limit either.
        figures, limits: the guard's figures, and what it has to show in a hazard where the cross-encoder fails.
    """
    limit = item.at_most if item.at_most is not None else 0.0
    if not failures:
        return ItemAnswer(item.number, "not assessed", "no cross-encoder was audited in this run")
    measured = {h: f for h, f in failures.items() if isinstance(f, Estimate)}
    said = f"{name}: " + ", ".join(f"{h} {f.k}/{f.n}" for h, f in measured.items())
    judged = list(measured.items()) + [
        (h, f) for h, f in (inversions or {}).items() if isinstance(f, Estimate)
    ]
    if over := sorted({h for h, f in judged if f.lower is not None and f.lower > limit}):
        guard = {h: _shown(h, figures or {}, limits) for h in over}
        why = f"more than {limit:.0%} fail or are inverted in {', '.join(over)}"
        if not any(guard.values()):
            return ItemAnswer(item.number, "not met", f"{said}; {why}; no further mitigation was measured")
        said = f"{said}; {why}; with the guard: " + "; ".join(
            f"{h} {shown.said if shown else 'not measured'}{f', {shown.why}' if shown and shown.why else ''}"
            for h, shown in guard.items()
        )
        if not all(shown is not None and shown.met for shown in guard.values()):
            return ItemAnswer(item.number, "not met", said)
        judged = [(h, f) for h, f in judged if h not in over]
    if len(measured) < len(failures):
        return ItemAnswer(item.number, "not assessed", f"{said}; not measured in every hazard")
    if all(f.upper is not None and f.upper <= limit for _, f in judged):
        if over:
            return ItemAnswer(item.number, "met by mitigation", said)
        return ItemAnswer(item.number, "met", f"{said}; at most {limit:.0%} in every hazard")
    return ItemAnswer(item.number, "not assessed", f"{said}; too few to decide at {limit:.0%}")

"""Could these printed figures be right? Pure arithmetic on claims; nothing here knows any paper.

A printed number stands for every value that rounds to it. A claim **cannot be right** only if no such values could
give it; it is **not reproducible** if no usual formula gives it, though an unusual one might. The same check runs on
our own report, whose figures are unrounded: `own_claims`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from clinsafe.benchmarks import judging
from clinsafe.benchmarks.claims import (
    Claim,
    Effect,
    EffectRow,
    Extreme,
    Interval,
    Mean,
    Order,
    Rate,
    Ratings,
    Sum,
    rating_claims,
)
from clinsafe.benchmarks.judging import OK, Said, Verdict
from clinsafe.benchmarks.measure import NULL
from clinsafe.protocols import Figures, MetricKey
from clinsafe.stats import Estimate

JUDGES: Mapping[str, Callable[[Any], Said]] = {
    "rate": judging.rate,
    "interval": judging.interval,
    "sum": judging.total,
    "mean": judging.mean,
    "product": judging.multiplied,
    "complement": judging.complement,
    "effect": judging.effect,
    "spread": judging.spread,
    "extreme": judging.extreme,
    "order": judging.order,
}


@dataclass(frozen=True, slots=True)
class Check:
    """One claim, judged.

    Attributes:
        where, kind: of the claim.
        stated: what is printed.
        derived: what the arithmetic gives.
        why: one sentence for a reader who is no statistician.
    """

    where: str
    kind: str
    stated: str
    derived: str
    verdict: Verdict
    why: str

    @property
    def fault(self) -> bool:
        """Anything but consistent."""
        return self.verdict != OK


def check(claims: Iterable[Claim]) -> list[Check]:
    """Judge every claim, in order."""
    found = []
    for claim in claims:
        stated, derived, verdict, why = JUDGES[claim.kind](claim)
        found.append(Check(claim.where, claim.kind, f"{claim.about}: {stated}", derived, verdict, why))
    return found


# ── our own report ─────────────────────────────────────────────────────────────────────────────

CLOSE = Decimal("1e-9")  # what two floating-point routes to one unrounded figure may differ by
EXACT = Decimal(0)
RATES = {
    "inversion",
    "pairwise",
    "failure",
    "same_missed",
    "detection",
    "false_alarm",
    "residual",
    "unchecked",
}
WITHOUT = {"stratum", "subtype"}  # slices that divide the cases of a figure up
PARTIAL = {*WITHOUT, "split"}  # slices in which a figure has not all cases of its hazard
COUNTED = {
    *RATES,
    "auroc",
    "similarity",
    "similarity_min",
    "similarity_max",
}  # measured wherever there is one case


class _Key(NamedTuple):
    """A metric key with its slices apart."""

    area: str
    hazard: str
    metric: str
    part: str | None
    slices: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, text: str) -> _Key:
        key = MetricKey.parse(text)
        pairs = (item.split("=", 1) for item in (key.slice or "").split(",") if item)
        return cls(
            key.area, key.hazard, key.metric, key.subtype, frozenset((name, value) for name, value in pairs)
        )

    def wholes(self) -> Iterator[tuple[str, _Key]]:
        """(what divides it, the figure that this one is a part of)."""
        if self.hazard != "all":
            yield "hazard", self._replace(hazard="all")
        for name, value in self.slices:
            if name in WITHOUT:
                yield name, self._replace(slices=self.slices - {(name, value)})

    def sibling(self, metric: str, part: str | None) -> _Key:
        return self._replace(metric=metric, part=part)


def own_claims(figures: Figures, counts: Mapping[str, int], fmea_rows: Iterable[Ratings]) -> list[Claim]:
    """What the figures of one audited system must satisfy among themselves.

    Args:
        figures: metric key -> figure, as `clinsafe.benchmarks.measure` makes them; what is not measured claims
            nothing.
        counts: hazard id -> cases in the run.
        fmea_rows: the report's own FMEA, as plain values.

    Raises:
        ValueError: a key outside the grammar, or a figure that is not a finite number.
    """
    measured = {_Key.of(text): figure for text, figure in figures.items() if isinstance(figure, Estimate)}
    names = {_Key.of(text): text for text in figures}
    parts: dict[tuple[_Key, str], dict[str, Estimate]] = {}
    claims: list[Claim] = []
    for key, figure in measured.items():
        if key.metric in RATES and figure.n > 0:
            claims += _rate_claims(names[key], figure)
        if key.metric in COUNTED and PARTIAL.isdisjoint(dict(key.slices)):
            cases = counts.values() if key.hazard == "all" else [counts.get(key.hazard, 0)]
            claims.append(_exact_sum(names[key], "cases against the suite's", figure.n, cases))
        for divided_by, whole in key.wholes():
            if key.metric in COUNTED and whole in measured:
                parts.setdefault((whole, divided_by), {})[names[key]] = figure
        claims += _relations(names[key], key, measured)
    for (whole, divided_by), group in parts.items():
        claims += _adds_up(names[whole], whole.metric, measured[whole], group, divided_by)
    return [*claims, *rating_claims("FMEA", fmea_rows)]


def _number(value: float) -> Decimal:
    return Decimal(repr(float(value)))


def _exact_sum(where: str, about: str, total: int, parts: Iterable[int]) -> Claim:
    return Sum(
        where=where, about=about, total=Decimal(total), parts=[Decimal(p) for p in parts], within=EXACT
    )


def _rate_claims(where: str, f: Estimate) -> Iterator[Claim]:
    """The rate is k / n, and both its intervals are the exact ones of k and n."""
    one = Decimal(1)
    yield Rate(where=where, about="rate", value=_number(f.value), n=f.n, k=f.k, whole=one, within=CLOSE)
    if f.k is None or not 0 <= f.k <= f.n:
        return
    for about, level, low, high in (
        ("95 % interval", 0.95, f.low, f.high),
        ("one-sided 95 % bounds", 0.90, f.lower, f.upper),
    ):
        if low is not None and high is not None:
            yield Interval(
                where=where, about=about, value=Decimal(f.k) / f.n, n=f.n, k=f.k, low=_number(low), high=_number(high),
                whole=one, level=level, method="Clopper-Pearson", within=CLOSE,
            )  # fmt: skip


def _relations(where: str, key: _Key, measured: Mapping[_Key, Estimate]) -> Iterator[Claim]:
    """What one figure says about its neighbours over the same cases."""

    def row(**columns: _Key) -> dict[str, Decimal] | None:
        found = {name: measured.get(k) for name, k in columns.items()}
        return {n: _number(f.value) for n, f in found.items() if f} if all(found.values()) else None

    def ordered(order: str, columns: dict[str, Decimal]) -> Claim:
        return Order(where=where, about="order", order=order, rows={key.hazard: dict(columns)}, within=CLOSE)

    if (key.metric, key.part) == ("inversion", None):
        columns = row(inversion=key, either_side=key.sibling("inversion", "any"))
        if columns:
            yield ordered("inversion <= either_side", columns)
    if key.metric == "similarity":
        columns = row(minimum=key.sibling("similarity_min", key.part), mean=key,
                      maximum=key.sibling("similarity_max", key.part))  # fmt: skip
        if columns:
            yield ordered("minimum <= mean <= maximum", columns)
    if key.metric == "cohen_d":
        columns = row(
            d=key, mean=key.sibling("similarity", key.part), sd=key.sibling("similarity_sd", key.part)
        )
        if columns:
            yield Effect(
                where=where, about="effect size", centre=_number(NULL), within=CLOSE,
                rows={key.hazard: EffectRow(d=columns["d"], mean=columns["mean"])},
                others={"the SD of the same scores": columns["sd"]},
            )  # fmt: skip


def _adds_up(
    where: str, metric: str, whole: Estimate, parts: Mapping[str, Estimate], divided_by: str
) -> Iterator[Claim]:
    """The parts of a figure have all its cases, all its faults, its mean and its extremes."""
    yield _exact_sum(where, f"cases by {divided_by}", whole.n, [f.n for f in parts.values()])
    if whole.k is not None:
        counted: Sequence[int] = [f.k for f in parts.values() if f.k is not None]
        yield _exact_sum(where, f"count by {divided_by}", whole.k, counted)
    values = {name: _number(f.value) for name, f in parts.items() if f.n > 0}
    about = f"{metric} by {divided_by}"
    if not values:
        return
    if metric == "similarity":
        weights = {name: parts[name].n for name in values}
        yield Mean(where=where, about=about, value=_number(whole.value), parts=dict(values), weights=weights,
                   weighting="weighted", within=CLOSE)  # fmt: skip
    if metric == "similarity_min":
        yield Extreme(where=where, about=about, minimum=_number(whole.value), rows=dict(values), within=CLOSE)
    if metric == "similarity_max":
        yield Extreme(where=where, about=about, maximum=_number(whole.value), rows=dict(values), within=CLOSE)

"""What a figure means and what to do about it: RAG-X's Table IV from rules that an institution can change.

A rule fits where the bound of a figure proves its condition, never where the value alone meets it (decision D5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, FiniteFloat, model_validator

from clinsafe.content import Content, Record
from clinsafe.errors import UsageError
from clinsafe.protocols import Figures
from clinsafe.rag.metrics import METRICS, Metric, metric_of, template_of
from clinsafe.stats import Estimate, Figure, NotMeasured

FILE = "benchmarks/rag/insights.yaml"
Weight: TypeAlias = Literal["good", "note", "warning", "danger"]
State: TypeAlias = Literal["found", "inconclusive", "not measured"]


def _catalogued(key: str) -> str:
    if any(metric.key == key for metric in METRICS):
        return key
    try:
        metric_of(key)
    except UsageError as error:
        raise ValueError(str(error)) from None
    if "@" in key:
        raise ValueError("a rule is for a metric and not for a slice of it")
    return key


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty; it is printed in the table")
    rest = text.replace("{value}", "")
    if "{" in rest or "}" in rest:
        raise ValueError("the only placeholder is {value}")
    return text


Words: TypeAlias = Annotated[str, AfterValidator(_said)]


class Rule(Record):
    """One condition of one metric, and what it means."""

    metric: Annotated[str, AfterValidator(_catalogued)]
    at_least: FiniteFloat | None = None
    below: FiniteFloat | None = None
    severity: Weight
    interpretation: Words
    insight: Words

    @model_validator(mode="after")
    def _one_limit(self) -> Rule:
        if (self.at_least is None) == (self.below is None):
            raise ValueError("a rule has exactly one of at_least and below")
        return self

    def fits(self, figure: Estimate) -> bool:
        """The figure's one-sided 95 % bound proves the condition."""
        if self.at_least is not None:
            return figure.lower is not None and figure.lower >= self.at_least
        return figure.upper is not None and self.below is not None and figure.upper < self.below

    @property
    def limit(self) -> str:
        """The condition in words."""
        return f"at least {self.at_least:g}" if self.at_least is not None else f"below {self.below:g}"


class Rules(Record):
    """``benchmarks/rag/insights.yaml``."""

    rules: Annotated[tuple[Rule, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Insight:
    """One row of the table.

    Attributes:
        key: of the figure.
        metric: as a table heads it.
        value: the figure as text.
        interpretation, insight: what it means, what to do.
        state: whether a rule fits.
        severity: of the rule; "note" where none fits.
        figure: the figure itself, with interval, n and method.
    """

    key: str
    metric: str
    value: str
    interpretation: str
    insight: str
    state: State
    severity: Weight
    figure: Figure


def load_rules(content: Content) -> tuple[Rule, ...]:
    """The rules, an overlay's if it has some.

    Raises:
        ContentError: with file, line and field.
    """
    return content.yaml(FILE, Rules).rules


def insights(figures: Figures, rules: Sequence[Rule]) -> list[Insight]:
    """One row for each metric that has rules, in the order of the rules; slices have none.

    A metric that no figure is there for has a row that says so; of a rule for ``{hazard}``, ``{rank}`` or ``{pair}``
    each figure has one that has no rule of its own.
    """
    by_metric: dict[str, list[Rule]] = {}
    for rule in rules:
        by_metric.setdefault(rule.metric, []).append(rule)
    rows = []
    for metric, group in by_metric.items():
        for key in _keys(metric, figures, by_metric):
            figure = figures.get(key, NotMeasured("there is no such figure in these results"))
            rows.append(_row(metric_of(key), figure, group))
    return rows


def shown(figure: Figure, metric: Metric) -> str:
    """A figure as the table prints it: shares in per cent, differences in points, means as they are."""
    if isinstance(figure, NotMeasured):
        return "not measured"
    if metric.kind == "rate":
        return f"{100 * figure.value:.1f} %"
    return f"{100 * figure.value:+.1f} points" if metric.kind == "difference" else f"{figure.value:.2f}"


def _keys(metric: str, figures: Figures, own: dict[str, list[Rule]]) -> Iterator[str]:
    if "{" not in metric:
        yield metric
        return
    for key in figures:
        try:
            fits = "@" not in key and key not in own and template_of(key) == metric
        except UsageError:  # a figure of another part of the evidence
            continue
        if fits:
            yield key


def _row(metric: Metric, figure: Figure, rules: Sequence[Rule]) -> Insight:
    def row(interpretation: str, insight: str, state: State, severity: Weight = "note") -> Insight:
        return Insight(
            metric.key, metric.name, value, interpretation.replace("{value}", value),
            insight.replace("{value}", value), state, severity, figure,
        )  # fmt: skip

    value = shown(figure, metric)
    if isinstance(figure, NotMeasured):
        return row(
            f"Not measured: {figure.reason}.", "Measure it before relying on this part.", "not measured"
        )
    rule = next((one for one in rules if one.fits(figure)), None)
    if rule is not None:
        return row(rule.interpretation, rule.insight, "found", rule.severity)
    limits = ", ".join(one.limit for one in rules)
    if figure.lower is None or figure.upper is None:
        why = f"an interval is not estimable (n = {figure.n})"
    else:
        why = (
            f"with n = {figure.n} the true value may lie from {_end(figure.lower, metric)} to "
            f"{_end(figure.upper, metric)}"
        )
    return row(
        f"INCONCLUSIVE: {why}; no rule is proven ({limits}).", "Measure more questions before acting on it.",
        "inconclusive",
    )  # fmt: skip


def _end(value: float, metric: Metric) -> str:
    return shown(Estimate(value, None, None, 1, ""), metric)

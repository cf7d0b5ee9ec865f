"""How a figure is written on a page. Whatever was not measured says so, and never looks like a zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from clinsafe.stats import Estimate, Figure, NotMeasured

NONE = "not measured"
HEAT = (0.1, 0.25, 0.5, 0.75)


def proportion(figure: Figure | None) -> str:
    """``9/10 = 0.90 [0.55, 1.00]``: count, rate and exact two-sided 95 % interval, or why there is none."""
    if figure is None or isinstance(figure, NotMeasured):
        return NONE
    return f"{figure.k}/{figure.n} = {figure.value:z.2f} {interval(figure)}"


def number(figure: Figure | None) -> str:
    """``0.87 [0.81, 0.92]``: value and two-sided 95 % interval, or why there is none."""
    if figure is None or isinstance(figure, NotMeasured):
        return NONE
    return f"{figure.value:z.2f} {interval(figure)}"


def score(figure: Figure | None) -> str:
    """``0.871 [0.862, 0.880]``: a mean similarity, with the decimals that the paper prints."""
    if figure is None or isinstance(figure, NotMeasured):
        return NONE
    return f"{figure.value:z.3f} {interval(figure, 3)}"


def plain(figure: Figure | None) -> str:
    """``8.71``: a descriptive figure, which has no interval."""
    return NONE if figure is None or isinstance(figure, NotMeasured) else f"{figure.value:z.2f}"


def interval(figure: Estimate, decimals: int = 2) -> str:
    """``[0.55, 1.00]``, or that it cannot be estimated."""
    if figure.low is None or figure.high is None:
        return "[not estimable]"
    return f"[{figure.low:z.{decimals}f}, {figure.high:z.{decimals}f}]"


def upper_bound(figure: Figure | None) -> str:
    """``0.173``: the one-sided 95 % upper bound."""
    if figure is None or isinstance(figure, NotMeasured) or figure.upper is None:
        return NONE
    return f"{figure.upper:.3f}"


def p_value(p: float) -> str:
    """``= 0.032``, ``< 0.001``."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def signed(value: float) -> str:
    """``+0.021``, ``-0.130``, and never ``-0.000``."""
    return f"{value:+z.3f}"


def heat(bound: float | None) -> int:
    """Shade 0 (pale) to 4 (dark) of an upper bound; the darkest where nothing was measured."""
    return len(HEAT) if bound is None else sum(bound > step for step in HEAT)


def gate_value(parts: Mapping[str, Any] | None) -> str:
    """What a gate read: ``3/56`` for a rate, ``0.87`` for anything else."""
    if parts is None or "not_measured" in parts:
        return NONE
    return f"{parts['k']}/{parts['n']}" if "k" in parts else f"{parts['value']:z.3f} (n = {parts['n']})"


def gate_bounds(parts: Mapping[str, Any] | None) -> str:
    """The one-sided bounds that a gate compares with its limit."""
    ends = [] if parts is None else [parts.get("lower"), parts.get("upper")]
    return (
        f"{ends[0]:z.3f} to {ends[1]:z.3f}"
        if ends and all(isinstance(e, int | float) for e in ends)
        else "none"
    )


FILTERS: Mapping[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (proportion, number, score, plain, upper_bound, p_value, signed, heat, gate_value, gate_bounds)
}

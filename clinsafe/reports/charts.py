"""Pictures of the scores, as SVG text that is byte-identical for equal input.

Shape and position carry the meaning, not colour alone: contradicting pairs are filled circles on the upper line,
same-meaning pairs open squares on the lower one, so that the charts read in grey print.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from clinsafe.errors import MissingDependency

CONTRADICTING = "#b3261e"
SAME = "#1f5a96"
INK = "#1d2733"


@dataclass(frozen=True, slots=True)
class Distribution:
    """What one hazard's chart shows: similarities in [-1, 1] and the limits between them.

    `low` is where the axis begins; charts that stand side by side share it. `axis` names the scale, `prefix` keeps the
    ids of charts of several systems apart.
    """

    title: str
    contradicting: Sequence[float]
    same: Sequence[float]
    limits: Sequence[float]
    low: float = 0.0
    axis: str = "cosine similarity"
    prefix: str = ""


def similarity_svg(chart: Distribution, *, width: float = 3.35, height: float = 1.5) -> str:
    """One hazard: contradicting pairs above, same-meaning pairs below, limits as dashed lines.

    Args:
        width, height: inches.

    Returns:
        An ``<svg>`` element for inlining, with ``role="img"`` and a text alternative.
    """
    pyplot = _pyplot()
    with pyplot.rc_context(_STYLE):
        figure, axes = pyplot.subplots(figsize=(width, height))
        for line, values, marker, colour, fill in (
            (1.0, chart.contradicting, "o", CONTRADICTING, CONTRADICTING),
            (0.0, chart.same, "s", SAME, "none"),
        ):
            heights = [line + _spread(i) for i in range(len(values))]
            axes.scatter(
                values, heights, s=9, marker=marker, edgecolors=colour, facecolors=fill, linewidths=0.6
            )
        for limit in chart.limits:
            axes.axvline(limit, color=INK, linewidth=0.8, linestyle=(0, (4, 2)))
        axes.set(xlim=(chart.low - 0.02, 1.02), ylim=(-0.55, 1.55), yticks=[0, 1])
        axes.set_yticklabels(["same\nmeaning", "contra-\ndicting"])
        axes.locator_params(axis="x", nbins=5)
        axes.set_title(chart.title, loc="left", fontweight="bold")
        axes.set_xlabel(chart.axis)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.tick_params(axis="y", length=0)
        # fixed margins: measuring them would draw every chart twice
        figure.subplots_adjust(left=0.16, right=0.99, top=0.86, bottom=0.26)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
    return _inline(buffer.getvalue(), chart)


def alternative(chart: Distribution) -> str:
    """The chart in a sentence, for people who do not see it."""
    limits = " and ".join(f"{limit:g}" for limit in chart.limits) or "none"
    if not chart.contradicting:
        return f"{chart.title}: nothing was measured."
    above = sum(value > min(chart.limits, default=1.0) for value in chart.contradicting)
    return (
        f"{chart.title}: similarity of {len(chart.contradicting)} contradicting pairs from "
        f"{min(chart.contradicting):.2f} to {max(chart.contradicting):.2f}, {above} above the lowest limit; "
        f"{len(chart.same)} same-meaning pairs from {min(chart.same):.2f} to {max(chart.same):.2f}; "
        f"limit {limits}."
    )


_STYLE: Mapping[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "clinsafe",
    "font.size": 7,
    "axes.titlesize": 8,
    "axes.edgecolor": INK,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.6,
}


def _spread(index: int) -> float:
    """A fixed zig-zag so that equal values do not hide one another; height means nothing."""
    return ((index * 7) % 11 - 5) * 0.05


def _inline(document: str, chart: Distribution) -> str:
    """The bare <svg>: text alternative, the page's own font, and ids that stay unique on a page of charts."""
    svg = document[document.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;\"]*", "font-family: 'CS Sans', sans-serif", svg)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    prefix = re.sub(r"\W+", "-", f"{chart.prefix} {chart.title}".strip().lower()) + "-"
    svg = re.sub(r' id="([^"]+)"', lambda m: f' id="{prefix}{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r'(href="#|url\(#)([^")]+)', rf"\g<1>{prefix}\g<2>", svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(alternative(chart))}" ', 1)


def _pyplot() -> Any:
    try:
        import matplotlib

        matplotlib.use("svg")
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingDependency("drawing charts", "matplotlib", "pip install 'clinsafe[audit]'") from error
    return pyplot

"""Pictures of a RAG evaluation, as SVG text that is byte-identical for equal input.

Position, shape and hatching carry the meaning, so that grey print reads the same; every number stands beside its n.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from clinsafe.reports.charts import _STYLE, CONTRADICTING, INK, SAME, _pyplot

QUIET = "#4d5b69"
SHADES = {"good": "#dfe9f3", "warning": "#f6e7cf", "danger": "#f0cfc9", "neutral": "#eef1f4"}
HATCHES = {"good": "", "warning": "..", "danger": "////", "neutral": ""}
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
LINES = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)))


@dataclass(frozen=True, slots=True)
class Point:
    """One figure of a chart: `text` says value, interval and n; the ends are None where not estimable."""

    label: str
    value: float
    low: float | None
    high: float | None
    text: str
    danger: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """One quadrant."""

    name: str
    text: str
    tone: str


def intervals_svg(title: str, points: Sequence[Point], *, prefix: str, width: float = 7.0) -> str:
    """Figures one below the other, each a mark with its 95 % interval and its result in words at the right.

    Args:
        points: shares in [0, 1]; at least one.
        prefix: tells the ids of this chart from those of others on the page.
        width: inches.
    """
    pyplot = _pyplot()
    height = 0.62 + 0.24 * len(points)
    with pyplot.rc_context(_STYLE):
        figure, axes = pyplot.subplots(figsize=(width, height))
        for row, point in enumerate(points):
            y, colour = len(points) - 1 - row, CONTRADICTING if point.danger else SAME
            if point.low is not None and point.high is not None:
                axes.plot([point.low, point.high], [y, y], color=colour, linewidth=1.4, solid_capstyle="butt")
                axes.plot(
                    [point.low, point.high], [y, y], color=colour, marker="|", markersize=5, linestyle="none"
                )
            face = colour if point.danger else "white"
            axes.plot([point.value], [y], marker="s" if point.danger else "o", markersize=5, color=colour,
                      markerfacecolor=face, linestyle="none")  # fmt: skip
            axes.text(-0.02, y, point.label, ha="right", va="center", transform=axes.get_yaxis_transform(),
                      parse_math=False)  # fmt: skip
            axes.text(1.02, y, point.text, ha="left", va="center", transform=axes.get_yaxis_transform(),
                      parse_math=False)  # fmt: skip
        _percent_axis(axes, len(points))
        figure.subplots_adjust(left=0.27, right=0.72, top=1 - 0.24 / height, bottom=0.30 / height)
        axes.set_title(title, loc="left", fontweight="bold", parse_math=False)
        svg = _saved(figure)
        pyplot.close(figure)
    said = "; ".join(f"{point.label}: {point.text}" for point in points)
    return inline(svg, prefix, f"{title}. {said}.")


def quadrants_svg(title: str, cells: Sequence[Cell], *, found: str, prefix: str, width: float = 3.4) -> str:
    """Two by two: evidence found or not (rows), answer adheres or not (columns).

    Args:
        cells: effective use, information blindness, lucky guess, correct rejection.
        found: what the upper row is called.
    """
    pyplot = _pyplot()
    with pyplot.rc_context(_STYLE):
        figure, axes = pyplot.subplots(figsize=(width, 0.62 * width))
        for place, cell in enumerate(cells):
            x, y = place % 2, 1 - place // 2
            axes.add_patch(
                pyplot.Rectangle((x, y), 1, 1, facecolor=SHADES[cell.tone], edgecolor="white",
                                 hatch=HATCHES[cell.tone], linewidth=0)
            )  # fmt: skip
            axes.add_patch(
                pyplot.Rectangle((x, y), 1, 1, fill=False, edgecolor=INK, linewidth=1.6 if not place else 0.7)
            )
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1.6}
            axes.text(x + 0.5, y + 0.64, cell.name, ha="center", va="center", fontweight="bold", bbox=box)
            axes.text(x + 0.5, y + 0.32, cell.text, ha="center", va="center", bbox=box, parse_math=False)
        axes.set(xlim=(-0.02, 2.02), ylim=(-0.02, 2.02), xticks=[0.5, 1.5], yticks=[1.5, 0.5])
        axes.set_xticklabels(["answer adheres", "does not adhere"])
        axes.set_yticklabels([found, f"not\n{found}"])
        axes.tick_params(length=0)
        for side in axes.spines.values():
            side.set_visible(False)
        axes.set_title(title, loc="left", fontweight="bold", parse_math=False)
        figure.subplots_adjust(left=0.17, right=0.995, top=0.89, bottom=0.10)
        svg = _saved(figure)
        pyplot.close(figure)
    said = "; ".join(f"{cell.name}: {' '.join(cell.text.split())}" for cell in cells)
    return inline(svg, prefix, f"{title}. {said}.")


def sweep_svg(
    title: str,
    series: Mapping[str, Sequence[tuple[float, Point]]],
    *,
    axis: str,
    prefix: str,
    width: float = 7.0,
) -> str:
    """Figures over a setting: one line a figure, told apart by marker and dashes.

    Args:
        series: name, with its n -> (setting, figure), rising.
    """
    pyplot = _pyplot()
    with pyplot.rc_context(_STYLE):
        figure, axes = pyplot.subplots(figsize=(width, 2.3))
        for number, (name, points) in enumerate(series.items()):
            shift = 0.006 * (number - (len(series) - 1) / 2)  # intervals at one setting lie side by side
            xs, ys = [x + shift for x, _ in points], [point.value for _, point in points]
            colour = (INK, SAME, CONTRADICTING, QUIET)[number % 4]
            axes.plot(xs, ys, color=colour, linestyle=LINES[number % len(LINES)], linewidth=1,
                      marker=MARKERS[number % len(MARKERS)], markersize=4, label=name)  # fmt: skip
            for x, (_, point) in zip(xs, points, strict=True):
                if point.low is not None and point.high is not None:
                    axes.plot([x, x], [point.low, point.high], color=colour, linewidth=0.8)
        settings = sorted({x for points in series.values() for x, _ in points})
        axes.set(ylim=(0, 1.02), xticks=settings, xlabel=axis)
        axes.set_xticklabels([f"{x:g}" for x in settings])
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=7)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.set_title(title, loc="left", fontweight="bold", parse_math=False)
        figure.subplots_adjust(left=0.06, right=0.66, top=0.89, bottom=0.17)
        svg = _saved(figure)
        pyplot.close(figure)
    said = "; ".join(
        f"{name}: " + ", ".join(f"{x:g} {point.text}" for x, point in points)
        for name, points in series.items()
    )
    return inline(svg, prefix, f"{title}. {said}.")


def inline(document: str, prefix: str, text: str) -> str:
    """The bare <svg>: text alternative, the page's own font, and ids that stay unique on a page of charts."""
    svg = document[document.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;\"]*", "font-family: 'CS Sans', sans-serif", svg)
    svg = re.sub(r"font: ([^;\"]*?)(\d+(?:\.\d+)?px) [^;\"]*", r"font: \g<1>\g<2> 'CS Sans', sans-serif", svg)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    start = re.sub(r"\W+", "-", prefix.strip().lower()) + "-"
    svg = re.sub(r' id="([^"]+)"', lambda m: f' id="{start}{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r'(href="#|url\(#)([^")]+)', rf"\g<1>{start}\g<2>", svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(text)}" ', 1)


def _percent_axis(axes: Any, rows: int) -> None:
    axes.set(xlim=(-0.015, 1.015), ylim=(-0.6, rows - 0.4), yticks=[], xticks=[0, 0.25, 0.5, 0.75, 1])
    axes.set_xticklabels(["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.grid(axis="x", color="#c3ccd5", linewidth=0.4)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _saved(figure: Any) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()

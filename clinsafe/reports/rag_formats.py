"""How a figure of a RAG evaluation is written: shares in per cent with their count, means as they are, all with n."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from clinsafe.protocols import MetricKey
from clinsafe.rag.insights import shown
from clinsafe.rag.metrics import METRICS, Metric, template_of
from clinsafe.stats import Estimate, Figure, NotMeasured

NONE = "not measured"
ALPHABET = "abcdefghijklmnopqrstuvwxyz"
ORDER = {metric.key: number for number, metric in enumerate(METRICS)}


def ordered(keys: Iterable[str], hazards: Mapping[str, str]) -> list[str]:
    """Keys in the catalogue's order, hazards in theirs, rank 2 before rank 10: a record sorts them as text."""
    places = {hazard: number for number, hazard in enumerate(hazards)}

    def place(key: str) -> tuple[int, int, list[int], str]:
        parts = MetricKey.parse(key)
        ranks = [int(digits) for digits in re.findall(r"\d+", parts.subtype or "")]
        return ORDER[template_of(key)], places.get(parts.hazard, len(places)), ranks, key

    return sorted(keys, key=place)


def kept(text: str) -> str:
    """The text with spaces inside figures that no line may be broken at."""
    figure = r"\d+/\d+ = -?[\d.]+ %|\[[^\]]*\]|n = \d+"
    return re.sub(figure, lambda match: match[0].replace(" ", "\u00a0"), text)


def result(figure: Figure, metric: Metric) -> str:
    """``29/59 = 49.2 % [35.9, 62.5]``, ``0.84 [0.79, 0.88], n = 59``, or that it was not measured."""
    if isinstance(figure, NotMeasured):
        return NONE
    return f"{value(figure, metric)} {ends(figure, metric)}{tail(figure)}"


def value(figure: Figure, metric: Metric) -> str:
    """``29/59 = 49.2 %``, ``+12.3 points``, ``0.84``."""
    if isinstance(figure, Estimate) and figure.k is not None and metric.kind == "rate":
        return f"{figure.k}/{figure.n} = {shown(figure, metric)}"
    return shown(figure, metric)


def ends(figure: Figure, metric: Metric) -> str:
    """``[35.9, 62.5]``: the two-sided 95 % interval in the unit of the value; "" where nothing was measured."""
    if isinstance(figure, NotMeasured):
        return ""
    if figure.low is None or figure.high is None:
        return "[not estimable]"
    scale, form = (1, "z.2f") if metric.kind == "mean" else (100, "z.1f")
    sign = "+" if metric.kind == "difference" else ""
    return f"[{scale * figure.low:{sign}{form}}, {scale * figure.high:{sign}{form}}]"


def tail(figure: Figure) -> str:
    """``, n = 59`` where the value does not say its n."""
    return "" if isinstance(figure, NotMeasured) or figure.k is not None else f", n = {figure.n}"


def percent(share: float | None) -> str:
    """``49.2 %``; a bound that is not there says so."""
    return "not estimable" if share is None else f"{100 * share:z.1f} %"


@dataclass
class Notes:
    """Methods and reasons by letter, so that each is written once beneath its table."""

    texts: list[str] = field(default_factory=list)

    def mark(self, figure: Figure) -> str:
        """The letter of how a figure was made, or of why there is none."""
        text = f"not measured: {figure.reason}" if isinstance(figure, NotMeasured) else figure.method
        if text not in self.texts:
            self.texts.append(text)
        place = self.texts.index(text)
        turn, letter = divmod(place, len(ALPHABET))
        return ALPHABET[letter] + (str(turn + 1) if turn else "")

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """(letter, text) in order of first use."""
        return [
            (ALPHABET[i % len(ALPHABET)] + (str(i // len(ALPHABET) + 1) if i >= len(ALPHABET) else ""), text)
            for i, text in enumerate(self.texts)
        ]


def shown_difference(figure: Figure, metric: Metric) -> str:
    """``+4.0 [-1.2, +9.1] points`` or, of means, ``+0.04 [+0.01, +0.07]``; never ``-0.0``."""
    if isinstance(figure, NotMeasured):
        return NONE
    scale, form, unit = (1, "+z.2f", "") if metric.kind == "mean" else (100, "+z.1f", " points")
    if figure.low is None or figure.high is None:
        return f"{scale * figure.value:{form}} [not estimable]{unit}"
    return f"{scale * figure.value:{form}} [{scale * figure.low:{form}}, {scale * figure.high:{form}}]{unit}"

"""How much a conflict of numbers weighs: doses by ratio, values by decision threshold (decision D4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clinsafe.mitigations.numbers.lexicon import Lexicon
from clinsafe.mitigations.numbers.pack import Analyte
from clinsafe.mitigations.numbers.pairs import Pair
from clinsafe.mitigations.numbers.units import Measure
from clinsafe.protocols import Severity

_STEPS: tuple[Severity, ...] = ("moderate", "high", "critical")
_DAY, _WEEK = 24.0, 168.0


def severity(pair: Pair, lexicon: Lexicon, defaults: Mapping[str, Measure]) -> Severity:
    """Severity of one conflict."""
    one, other = pair.query.normal, pair.passage.normal
    subject = one["subject"] or other["subject"]
    alert = subject in lexicon.sets["high_alert"]
    if pair.why == "unit":
        return "critical" if one["role"] == "dose" else "high"
    if pair.why == "limit":
        return _step(1, alert and one["role"] == "dose")
    if one["role"] == "interval":
        return _step(_of_interval(one["hours"], other["hours"]), alert and one["relation"] == "dose")
    if pair.why == "schedule":
        return _step(
            max(
                _of_interval(one["hours"], other["hours"]),
                _by_ratio(_ratio(one["forms"][0], other["forms"][0])),
            ),
            alert,
        )
    form, second = pair.forms
    if form is None or second is None:
        return "moderate"
    ratio = _ratio(form, second)
    if one["role"] == "dose":
        return _step(_by_ratio(ratio), alert)
    if one["role"] == "span":
        return _STEPS[_by_ratio(ratio)]
    return _by_threshold(subject, form, second, ratio, lexicon, defaults)


def _ratio(one: tuple[Any, ...], other: tuple[Any, ...]) -> float:
    low = max(abs(one[2]), abs(other[2])), min(abs(one[2]), abs(other[2]))
    return low[0] / low[1] if low[1] else 1e9


def _by_ratio(ratio: float) -> int:
    return 2 if ratio >= 9.99 else 1 if ratio >= 1.99 else 0


def _of_interval(one: tuple[float, ...], other: tuple[float, ...]) -> int:
    if not one or not other:
        return 0
    pair = sorted((one[0], other[0]))
    if pair[0] <= _DAY and pair[1] >= _WEEK - 0.5:
        return 2
    return _by_ratio(pair[1] / pair[0])


def _step(level: int, alert: bool) -> Severity:
    return _STEPS[min(level + alert, 2)]


def _by_threshold(
    subject: str,
    form: tuple[Any, ...],
    second: tuple[Any, ...],
    ratio: float,
    lexicon: Lexicon,
    defaults: Mapping[str, Measure],
) -> Severity:
    """Critical if a critical threshold lies between the two, high if a threshold does; else by ratio."""
    analyte = next((one for one in lexicon.pack.analytes if one.id == subject), None)
    default = defaults.get(subject)
    level = 1 if ratio >= 1.99 else 0
    if analyte is None:
        return _STEPS[_by_ratio(ratio)]
    values = sorted(_in_unit(value, form[0], default, analyte) for value in (form[1], second[1]))
    if any(values[0] < cut <= values[1] or values[0] <= cut < values[1] for cut in analyte.critical):
        return "critical"
    if any(values[0] < cut <= values[1] or values[0] <= cut < values[1] for cut in analyte.cuts):
        level = 1
    return "critical" if ratio >= 9.99 else _STEPS[level]


def _in_unit(value: float, dim: str, default: Measure | None, analyte: Analyte) -> float:
    """A base value in the unit of the threshold table."""
    if default is None or dim == "number":
        return value
    molar, valence = analyte.molar, analyte.valence
    if dim.startswith("eq/"):
        if not valence:
            return value
        value, dim = value / valence, "mole" + dim.removeprefix("eq")
    if molar and dim.startswith("mass/") and default.dim.startswith("mole/"):
        value /= molar
    elif molar and dim.startswith("mole/") and default.dim.startswith("mass/"):
        value *= molar
    hours = default.hours or 1.0
    return (value * hours - default.offset) / (default.factor * analyte.scale)

"""Do two facts state the same quantity? Same, different, turned round, or nothing in common.

How closely they must meet (decision D4):

- a laboratory value or vital sign in one unit: within half a unit of the last printed digit of the coarser side, so
  that 38 °C covers 37.5 to 38.5 and 134 is not 135; in two units: within 1 %;
- a dose: exactly, after its unit is brought to the base unit, for rounding could hide a dose difference (2 mg is not
  2.4 mg); within 1 % only for what is worked out: rates, totals of a day, conversions by a factor;
- a limit or a range: exactly, for it is chosen and not measured;
- months beside weeks or days: within 9 %, for twelve weeks are three months.
"""

from __future__ import annotations

from typing import Any, Literal

from clinsafe.mitigations.numbers.forms import ASSUMED, BARE, BY_FACTOR, DERIVED, ONLY_AGREES, SHARE, WRITTEN

Relation = Literal["same", "different", "reversed", "apart"]
_CONVERTED, _PRINTED = 0.01, 0.05
_TEMPERATURE = 0.1
_MANYFOLD = 5.0
_CALENDAR = 0.09
_HALF_MONTH = 365.25  # hours
_DAYS = frozenset(["day", "week", "fortnight"])

Sort = Literal["dose", "value", "other"]


def close(one: float, other: float, tolerance: float) -> bool:
    """Whether two base values are equal within an absolute tolerance (and rounding of the machine)."""
    return abs(one - other) <= tolerance + 1e-9 * max(abs(one), abs(other))


def _tolerance(one: tuple[Any, ...], other: tuple[Any, ...], size: float, sort: Sort, points: bool) -> float:
    dim, unit, ways = one[0], one[3], (one[5], other[5])
    alike = unit == other[3]
    if dim == "temperature" and not alike:
        return _TEMPERATURE
    if dim in ("time", "interval") and _months(one, other):
        return _CALENDAR * size
    if alike and all(way in (WRITTEN, ASSUMED) for way in ways):
        return _printed(max(one[4], other[4]), size, sort, points)
    if sort == "dose" and ways == (WRITTEN, WRITTEN) and not dim.endswith("/time"):
        return 0.0
    tolerance = _CONVERTED * size
    if BY_FACTOR in ways or SHARE in (unit, other[3]):
        tolerance = max(tolerance, min(one[4] + other[4], _PRINTED * size))
    return tolerance


def _printed(coarse: float, size: float, sort: Sort, points: bool) -> float:
    """Tolerance within one unit; `coarse`: half a unit of the last printed digit of the coarser side."""
    if sort == "other":
        return coarse if coarse <= _PRINTED * size else 0.0
    return coarse if sort == "value" and points else 0.0


def _months(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether exactly one of the two is in months, beside weeks or days."""
    if one[0] == "interval":
        return _of_months(one[1]) != _of_months(other[1])
    units = {one[3], other[3]}
    return "month" in units and not units.isdisjoint(_DAYS)


def _of_months(hours: float) -> bool:
    """Whether an interval is a number of months or years; no such number is one of whole days within a year."""
    return hours >= 2 * _HALF_MONTH and (hours / _HALF_MONTH).is_integer()


def forms_relation(
    one: tuple[Any, ...], other: tuple[Any, ...], sign: str, other_sign: str, sort: Sort = "other"
) -> Relation:
    """Two forms of one dimension, with the limits of their facts.

    Args:
        sort: dose, value (a laboratory value or vital sign), or other (a span, an interval, a share).
    """
    low, high, low2, high2 = one[1], one[2], other[1], other[2]
    points = low == high and low2 == high2 and not sign and not other_sign
    tolerance = _tolerance(one, other, max(abs(low), abs(low2)), sort, points)
    tolerance_high = _tolerance(one, other, max(abs(high), abs(high2)), sort, points)
    equal = close(low, low2, tolerance) and close(high, high2, tolerance_high)
    if sign and other_sign and sign != other_sign:
        if equal:
            return "reversed"
        below, above = (high, low2) if sign == "<" else (high2, low)
        return "different" if below < above else "same"
    if equal:
        return "same"
    if sign != other_sign:
        limit, point, way = (one, other, sign) if sign else (other, one, other_sign)
        inside = point[2] <= limit[2] + tolerance_high if way == "<" else point[1] >= limit[1] - tolerance
        return "same" if inside else "different"
    if not sign and (low == high) != (low2 == high2):
        point, span = (one, other) if low == high else (other, one)
        if span[3] != "total" and span[1] - tolerance <= point[1] <= span[2] + tolerance_high:
            return "same"
    return "different"


def relation(
    one: dict[str, Any], other: dict[str, Any]
) -> tuple[Relation, tuple[Any, ...] | None, tuple[Any, ...] | None]:
    """Two facts: the relation and the forms that show it; of several that differ the most direct."""
    worst: tuple[Relation, tuple[Any, ...] | None, tuple[Any, ...] | None] = ("apart", None, None)
    least = 99
    shared = [(form, second) for form in one["forms"] for second in other["forms"] if form[0] == second[0]]
    if one["forms"] and other["forms"] and one["forms"][0][0] == other["forms"][0][0] == BARE:
        shared = [(one["forms"][0], other["forms"][0])]  # two numbers of one thing, both without a unit
    sort = _sort(one, other)
    direct = _direct(one, other)
    rates = len(shared) > 1 and any(form[0].endswith("/time") for form, _ in shared)
    for form, second in shared:
        only = form[5] == ONLY_AGREES or second[5] == ONLY_AGREES
        if only and (rates or _of_strength(one, form, second) or _of_strength(other, second, form)):
            continue  # 15 mg a day is not 15 mg a week
        if direct and _worked_out(form, second, one["hours"] == other["hours"]):
            continue
        found = forms_relation(form, second, one["sign"], other["sign"], sort)
        if found == "same":
            return found, form, second
        if not only and form[5] + second[5] < least and not _doubtful(form, second):
            worst, least = (found, form, second), form[5] + second[5]
    if worst[0] != "reversed" and _bare_agrees(one, other):
        return "same", one["forms"][0], other["forms"][0]
    if worst[0] == "apart" and (_exceeds(one, other) or _exceeds(other, one)):
        return "different", one["forms"][0], other["forms"][0]
    return worst


def _direct(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether the written forms of the two can be compared themselves."""
    if not one["forms"] or not other["forms"]:
        return False
    form, second = one["forms"][0], other["forms"][0]
    return bool(form[0] == second[0] and form[5] == second[5] == WRITTEN)


def _worked_out(one: tuple[Any, ...], other: tuple[Any, ...], one_schedule: bool) -> bool:
    """Whether two forms only repeat what the written ones say, less closely: both by one factor, or by one schedule."""
    return one[5] == other[5] == BY_FACTOR or (one_schedule and one[3] == other[3] == "total")


def _sort(one: dict[str, Any], other: dict[str, Any]) -> Sort:
    roles = {one["role"], other["role"]}
    if "dose" in roles or one["drug"] or other["drug"]:
        return "dose"
    return "value" if roles == {"measure"} else "other"


def _of_strength(fact: dict[str, Any], form: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """The amount in a strength (100 mg in 5 mL) says nothing of a volume that is given of it."""
    return bool(form[5] == ONLY_AGREES and second[5] == DERIVED and fact["forms"][0][0].endswith("/volume"))


def _exceeds(whole: dict[str, Any], dose: dict[str, Any]) -> bool:
    """A single dose of many times the amount of a whole day: 50 mg at once, 0.5 mg in 24 h."""
    if not whole["forms"] or not dose["forms"] or whole["sign"] or dose["sign"] or dose["hours"]:
        return False
    daily, amount = whole["forms"][0], dose["forms"][0]
    return bool(
        daily[0] == f"{amount[0]}/time"
        and dose["role"] == whole["role"] == "dose"
        and whole["subject"]
        and whole["subject"] == dose["subject"]
        and any(
            form[0] == amount[0] and form[5] == ONLY_AGREES and amount[1] >= _MANYFOLD * form[2] > 0
            for form in whole["forms"]
        )
    )


def _doubtful(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """A unit was assumed, and the two differ so much that it may be another unit."""
    if ASSUMED not in (one[5], other[5]) or one[5] == other[5]:
        return False
    small, large = sorted((abs(one[1]), abs(other[1])))
    return bool(large > 4 * small)


def _bare_agrees(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """ "bicarbonate 19" and "bicarbonate 19 mmol/L"."""
    if one["raw"] != other["raw"] or not one["forms"] or not other["forms"]:
        return False
    return bool(BARE in (one["forms"][0][0], other["forms"][0][0]))

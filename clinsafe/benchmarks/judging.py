"""One judge for every kind of claim; `clinsafe.benchmarks.arithmetic` calls them.

Each takes a claim and returns (stated, derived, verdict, why).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import islice, product
from typing import Literal, TypeAlias

from clinsafe.benchmarks.claims import (
    Complement,
    Effect,
    EffectRow,
    Extreme,
    Interval,
    Mean,
    Method,
    Order,
    Product,
    Quantity,
    Rate,
    Share,
    Spread,
    Sum,
)
from clinsafe.benchmarks.rounding import (
    ENDS,
    Range,
    coarsest,
    quantile,
    reach,
    reproduces,
    sd_of_means,
    span,
    spreads,
    whole_numbers,
)

Verdict = Literal["consistent", "cannot be right", "not reproducible"]
OK: Verdict = "consistent"
WRONG: Verdict = "cannot be right"
UNKNOWN: Verdict = "not reproducible"

Said: TypeAlias = tuple[str, str, Verdict, str]
"""stated, derived, verdict, why"""

FARTHEST = 1000  # beyond this distance no other number of cases is looked for
NEAREST = 3  # so many other numbers of cases are named


def _verdict(right: bool) -> Verdict:
    return OK if right else WRONG


def _places(number: Decimal) -> int:
    return min(9, max(0, -int(number.as_tuple().exponent)))


def _show(value: Fraction | float, places: int) -> str:
    """Rounded as people do: half up, from the exact value."""
    return f"{Decimal(math.floor(Fraction(value) * 10**places + Fraction(1, 2))).scaleb(-places):f}"


def _between(values: Range, places: int) -> str:
    low, high = (_show(end, places) for end in values)
    return low if low == high else f"{low} to {high}"


# ── rates and their intervals ──────────────────────────────────────────────────────────────────


def rate(c: Rate) -> Said:
    """A percentage of n must be k of n."""
    unit = " %" if c.whole == 100 else ""
    share = span(c.value, c.within).over(c.whole)
    allowed = whole_numbers(share, c.n)

    def of(k: int) -> str:
        return f"{k} of {c.n} is {_show(Fraction(k, c.n) * Fraction(c.whole), _places(c.value))}{unit}"

    stated = f"{c.value}{unit} of {c.n}"
    if c.k is not None:
        return f"{stated}, counted as {c.k}", of(c.k), _verdict(c.k in allowed), f"{of(c.k)}."
    if len(allowed) == 1:
        return stated, of(allowed[0]), OK, f"{of(allowed[0])}."
    if allowed:
        derived = f"{allowed[0]} to {allowed[-1]} of {c.n}"
        return stated, derived, OK, f"{derived} all round to {c.value}{unit}."
    exact = Fraction(c.value) / Fraction(c.whole) * c.n
    beside = sorted({min(c.n, max(0, k)) for k in (math.floor(exact), math.ceil(exact))})
    fitting = ((k[0], m) for m in _sizes(c.n) if (k := whole_numbers(share, m)))
    others = [f"{k} of {m}" for k, m in islice(fitting, NEAREST)]
    hint = f"; it would fit {', '.join(others)}" if others else ""
    why = f"No whole number of {c.n} cases gives {c.value}{unit}{hint}."
    return stated, "; ".join(map(of, beside)), WRONG, why


def _sizes(n: int) -> Iterator[int]:
    """Other numbers of cases that may have been meant, nearest first."""
    for step in range(1, min(n, FARTHEST) + 1):
        if n - step >= 2:
            yield n - step
        yield n + step


NORMAL = "the normal approximation (Wald), unreliable near 0 and 100 % and in small samples"
CALLED: Mapping[Method, str] = {
    "Wald": NORMAL,
    "Wald clipped": f"{NORMAL}, cut off at 0 and 100 %",
    "Clopper-Pearson": "the exact interval (Clopper-Pearson)",
    "Wilson": "the Wilson score interval",
}


def interval(c: Interval) -> Said:
    """Which formula gives the printed interval; a zero width at 0 or 100 % is a fault."""
    value = span(c.value, c.within).over(c.whole)
    rates = (max(0.0, float(value.low)), min(1.0, float(value.high)))
    p = float(c.value / c.whole)
    if c.k is not None:
        p = c.k / c.n
        rates = (p, p)
    methods = _methods(c, c.n, rates)
    k = round(p * c.n)
    exact = _printed(c, "Clopper-Pearson", k / c.n)
    shown = next(iter(methods), c.method or "Wald clipped")
    derived = f"exact {exact} for {k} of {c.n}"
    if shown != "Clopper-Pearson":
        derived = f"{shown} {_printed(c, shown, p)}; {derived}"
    stated = f"[{c.low}, {c.high}] for {c.value if c.k is None else c.k} of {c.n}"
    if c.low == c.high and c.low in (0, c.whole) and not {"Clopper-Pearson", "Wilson"} & set(methods):
        why = f"An interval without width claims certainty, which {c.n} cases cannot give; exact is {exact}."
        return stated, derived, WRONG, why
    if methods:
        return stated, derived, OK, f"It is {CALLED[methods[0]]}; exact is {exact}."
    if c.method:
        return stated, derived, WRONG, f"It is not {CALLED[c.method]} of {c.n} cases, which is {exact}."
    other = next((m for m in _sizes(c.n) if c.k is None and _fits_whole(c, m)), None)
    hint = f", but {other} cases would" if other else ""
    return stated, derived, UNKNOWN, f"No usual formula gives this interval for {c.n} cases{hint}."


def _printed(c: Interval, method: Method, p: float) -> str:
    places = max(_places(c.low), _places(c.high))
    low, high = (_show(float(c.whole) * end, places) for end in ENDS[method](p, c.n, quantile(c.level)))
    return f"[{low}, {high}]"


def _methods(c: Interval, n: int, rates: tuple[float, float]) -> list[Method]:
    """The formulas that give the printed ends, of the one named or else of all."""
    z = quantile(c.level)
    tables = (z, round(z, 2)) if c.within is None else (z,)  # 1.96 by hand
    printed = [span(end, c.within).over(c.whole) for end in (c.low, c.high)]
    tried: Iterable[Method] = ENDS if c.method is None else (c.method,)
    return [m for m in tried if any(reproduces(m, rates, n, x, printed) for x in tables)]


def _fits_whole(c: Interval, n: int) -> bool:
    """Whether another number of cases has both the rate and the interval."""
    counts = whole_numbers(span(c.value, c.within).over(c.whole), n)
    return any(_methods(c, n, (k / n, k / n)) for k in counts)


# ── sums, means, products ──────────────────────────────────────────────────────────────────────


def total(c: Sum) -> Said:
    """Whether the parts can add up to the total."""
    parts = [_part(part, c.within) for part in c.parts]
    added = Range(sum((p.low for p in parts), Fraction(0)), sum((p.high for p in parts), Fraction(0)))
    derived = _between(added, _places(c.total))
    right = span(c.total, c.within).meets(added)
    why = "The parts add up to it." if right else f"However they were rounded, the parts add up to {derived}."
    return f"{c.total} in all", derived, _verdict(right), why


def _part(part: Decimal | Share, within: Decimal | None) -> Range:
    if isinstance(part, Decimal):
        return span(part, within)
    share = span(part.percent).over(Decimal(100))
    counts = whole_numbers(share, part.of)
    return (
        Range(Fraction(counts[0]), Fraction(counts[-1])) if counts else Range(*(e * part.of for e in share))
    )


def mean(c: Mean) -> Said:
    """Whether it is the plain or the weighted mean."""
    parts = {name: reach(part, c.within) for name, part in c.parts.items()}
    means = {"unweighted": _average(parts, dict.fromkeys(parts, 1))}
    if c.weights is not None:
        means["weighted"] = _average(parts, c.weights)
    means = {name: mean for name, mean in means.items() if c.weighting in (None, name)}
    value = span(c.value, c.within)
    fits = [name for name, mean in means.items() if value.meets(mean)]
    places = _places(c.value) + 1
    derived = ", ".join(f"{_show((m.low + m.high) / 2, places)} {name}" for name, m in means.items())
    between = Range(min(p.low for p in parts.values()), max(p.high for p in parts.values()))
    if fits:
        return str(c.value), derived, OK, f"It is the mean of the {len(parts)} parts ({' or '.join(fits)})."
    if c.weights is None and c.weighting is None and value.meets(between):
        return str(c.value), derived, UNKNOWN, "It is not the plain mean of the parts; weights could give it."
    return str(c.value), derived, WRONG, f"However they were rounded, the mean of the parts is {derived}."


def _average(parts: Mapping[str, Range], weights: Mapping[str, int]) -> Range:
    total = sum(weights.values())
    return Range(
        *(sum((weights[n] * r[end] for n, r in parts.items()), Fraction(0)) / total for end in (0, 1))
    )


def multiplied(c: Product) -> Said:
    """Whether the factors multiply to it."""
    corners = [
        math.prod(corner, start=Fraction(1)) for corner in product(*(span(f, c.within) for f in c.factors))
    ]
    derived = Range(min(corners), max(corners))
    shown = f"{' x '.join(map(str, c.factors))} = {_between(derived, _places(c.value))}"
    return str(c.value), shown, _verdict(span(c.value, c.within).meets(derived)), f"{shown}."


def complement(c: Complement) -> Said:
    """Whether both can be halves of one whole."""
    other = span(c.other, c.within)
    left = Range(Fraction(c.whole) - other.high, Fraction(c.whole) - other.low)
    derived = str(c.whole - c.other)
    right = _verdict(span(c.value, c.within).meets(left))
    return str(c.value), derived, right, f"{c.other} leaves {derived} of {c.whole}."


# ── standard deviations and effect sizes ───────────────────────────────────────────────────────


def spread(c: Spread) -> Said:
    """Which standard deviation it is."""
    columns = [(group.n, cell) for group in c.groups.values() for cell in group.cells.values()]
    found = spreads(columns, c.within)
    half = coarsest([cell.mean for _, cell in columns], c.within)
    rows = [sum((x.mean for x in g.cells.values()), Decimal(0)) / len(g.cells) for g in c.groups.values()]
    for name, means in (("the column means", [cell.mean for _, cell in columns]), ("the row means", rows)):
        if len(means) > 1:
            found[f"SD of {name} (n)"] = sd_of_means(means, [1] * len(means), half)
            found[f"SD of {name} (n - 1)"] = sd_of_means(means, [1] * len(means), half, ddof=1)
    fits = [name for name, sd in found.items() if span(c.value, c.within).meets(sd)]
    derived = "; ".join(
        f"{name} {_show((sd.low + sd.high) / 2, _places(c.value))}" for name, sd in found.items()
    )
    if fits:
        return f"SD {c.value}", derived, OK, f"It is: {', '.join(fits)}."
    return (
        f"SD {c.value}",
        derived,
        UNKNOWN,
        "No usual way to take a standard deviation of these gives it.",
    )


def effect(c: Effect) -> Said:
    """Which standard deviation each row was divided by, and whether it is the same one."""
    found = {name: _behind(c, row) for name, row in c.rows.items()}
    stated = ", ".join(f"{row.d} {name}" for name, row in c.rows.items())
    derived = "; ".join(
        f"{name}: {' or '.join(fits) or 'no SD printed here'}" for name, fits in found.items()
    )
    common = [name for name in next(iter(found.values())) if all(name in fits for fits in found.values())]
    if common:
        return stated, derived, OK, f"It is the difference from {c.centre} in units of: {', '.join(common)}."
    if not all(found.values()):
        return stated, derived, UNKNOWN, "No standard deviation printed for the row gives the effect size."
    return (
        stated,
        derived,
        UNKNOWN,
        "No one standard deviation gives all rows, so the rows cannot be compared.",
    )


def _behind(c: Effect, row: EffectRow) -> list[str]:
    """Which SDs give the row's d."""
    sds = {f"SD of {name}": span(cell.sd, c.within) for name, cell in row.cells.items()}
    if row.cells:
        sds |= spreads([(1, cell) for cell in row.cells.values()], c.within)
    sds |= {name: span(sd, c.within) for name, sd in c.others.items()}
    tops = [end - Fraction(c.centre) for end in span(row.mean, c.within)]
    d = span(row.d, c.within)

    def gives(sd: Range) -> bool:
        # d = top / sd for one pair of values; compared as d x sd so that an SD of 0 needs no care
        reached = [x * y for x in d for y in sd]
        return Range(min(reached), max(reached)).meets(Range(tops[0], tops[1]))

    return [name for name, sd in sds.items() if gives(sd)]


# ── extremes and orders ────────────────────────────────────────────────────────────────────────


def extreme(c: Extreme) -> Said:
    """Whether the rows have these extremes."""
    rows = {name: reach(row, c.within) for name, row in c.rows.items()}
    places = max(map(_places, (x for x in (c.minimum, c.maximum, c.above) if x is not None)))
    stated, derived, right = [], [], []
    for value, named, end, of in (
        (c.minimum, c.lowest, "lowest", min),
        (c.maximum, c.highest, "highest", max),
    ):
        if value is None:
            continue
        best = Range(of(r.low for r in rows.values()), of(r.high for r in rows.values()))
        who = of(rows, key=lambda name: rows[name].low + rows[name].high)
        stated.append(f"{end} {value}{f' ({named})' if named else ''}")
        derived.append(f"{end} {_show((rows[who].low + rows[who].high) / 2, places)} ({who})")
        right.append(span(value, c.within).meets(best) and (named is None or rows[named].meets(best)))
    if c.above is not None:
        below = [name for name, r in rows.items() if r.high <= Fraction(c.above)]
        stated.append(f"all {len(rows)} above {c.above}")
        names = f" (not {', '.join(below)})" if below else ""
        derived.append(f"{len(rows) - len(below)} of {len(rows)} above{names}")
        right.append(not below)
    said = ", ".join(derived)
    return ", ".join(stated), said, _verdict(all(right)), f"The rows themselves say: {said}."


def order(c: Order) -> Said:
    """In how many rows the ordering can hold."""
    can, must = [], []
    for name, row in c.rows.items():
        steps = [(_side(c, row, x, y), sign, _side(c, row, y, x)) for x, sign, y in c.steps]
        if not any(_below(y, x, strictly=sign == "<=") for x, sign, y in steps):
            can.append(name)
        if all(_below(x, y, strictly=sign == "<") for x, sign, y in steps):
            must.append(name)
    stated = len(c.rows) if c.in_rows is None else c.in_rows
    names = ", ".join(can)
    derived = f"holds in {len(can)} of {len(c.rows)}{f' ({names})' if names else ''}"
    right = len(must) <= stated <= len(can)
    return (
        f"{c.order} in {stated} of {len(c.rows)}",
        derived,
        _verdict(right),
        f"It {derived} rows." if not names else f"It holds in {len(can)} of {len(c.rows)} rows: {names}.",
    )


def _below(x: Range, y: Range, *, strictly: bool) -> bool:
    """Whether x surely lies below y. Ranges that only touch are apart: whoever rounds ties, rounds them one way."""
    return x.high <= y.low and not (strictly and x == y)


def _side(c: Order, row: Mapping[str, Quantity], name: str, against: str) -> Range:
    if name != "others":
        return reach(row[name], c.within)
    rest = [reach(q, c.within) for n, q in row.items() if n != against]
    return Range(max(r.low for r in rest), max(r.high for r in rest))

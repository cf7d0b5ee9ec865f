"""The arithmetic check on claims whose truth is known, against brute force, and against checkers broken on purpose."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from clinsafe.benchmarks.arithmetic import JUDGES, Check, check
from clinsafe.benchmarks.claims import (
    Cell,
    Complement,
    Effect,
    EffectRow,
    Extreme,
    Group,
    Interval,
    Mean,
    Order,
    Product,
    Rate,
    Share,
    Spread,
    Standardised,
    Sum,
)

OK, WRONG, UNKNOWN = "consistent", "cannot be right", "not reproducible"
TEXT = {"where": "here", "about": "what"}


def D(text) -> Decimal:  # noqa: N802
    return Decimal(str(text))


def numbers(*texts):
    return [D(t) for t in texts]


def cell(mean, sd) -> Cell:
    return Cell(mean=D(mean), sd=D(sd))


def rate(value, n, k=None):
    return Rate(**TEXT, value=D(value), n=n, k=k)


def interval(value, n, low, high, **more):
    return Interval(**TEXT, value=D(value), n=n, low=D(low), high=D(high), **more)


def extreme(rows, **ends):
    ends = {k: D(v) if k in ("minimum", "maximum", "above") else v for k, v in ends.items()}
    return Extreme(
        **TEXT, rows={k: v if isinstance(v, Standardised) else D(v) for k, v in rows.items()}, **ends
    )


def order(text, *rows, **more):
    named = {f"row {i}": {k: D(v) for k, v in row.items()} for i, row in enumerate(rows)}
    return Order(**TEXT, order=text, rows=named, **more)


def effect(*rows, **others):
    found = {f"row {i}": EffectRow(d=D(d), mean=D(m), cells=cells) for i, (d, m, cells) in enumerate(rows)}
    return Effect(**TEXT, centre=D("0.50"), rows=found, others={k: D(v) for k, v in others.items()})


def judge(claim) -> Check:
    return check([claim])[0]


A, B = {"x": cell("0.90", "0.10")}, {"x": cell("0.80", "0.20")}
TALL = Standardised(mean=D("0.990"), centre=D("0.50"), sd=D("0.007"))
EQUAL = {"x": Group(n=10, cells={"p": cell("0.50", "0.10"), "q": cell("0.50", "0.10")})}

KNOWN = [
    (rate("66.7", 3), OK),
    (rate("66.7", 3, k=2), OK),
    (rate("66.7", 4), WRONG),  # 50.0 or 75.0
    (rate("66.7", 3, k=1), WRONG),
    (rate("100.1", 3), WRONG),
    (interval("72.0", 50, "59.6", "84.4"), OK),  # Wald
    (interval("72.0", 50, "57.5", "83.8"), OK),  # exact
    (interval("72.0", 50, "58.3", "82.5"), OK),  # Wilson
    (interval("98.0", 50, "94.1", "100.0"), OK),  # Wald, cut off at 100
    (interval("72.0", 50, "60.6", "85.4"), UNKNOWN),
    (interval("72.0", 50, "59.6", "84.4", method="Clopper-Pearson"), WRONG),
    (interval("100.0", 30, "100.0", "100.0"), WRONG),
    (interval("0.0", 30, "0.0", "0.0"), WRONG),
    (interval("0.0", 10**6, "0.0", "0.0"), OK),  # so many cases that the exact interval rounds to it
    (Sum(**TEXT, total=D(6), parts=numbers(1, 2, 3), within=D(0)), OK),
    (Sum(**TEXT, total=D(7), parts=numbers(1, 2, 3), within=D(0)), WRONG),
    (Sum(**TEXT, total=D(100), parts=numbers(33, 33, 33)), OK),  # thirds
    (Sum(**TEXT, total=D(102), parts=numbers(33, 33, 33)), WRONG),
    (Sum(**TEXT, total=D(3), parts=[Share(percent=D(50), of=2), Share(percent=D(67), of=3)], within=D(0)), OK),
    (Sum(**TEXT, total=D(4), parts=[Share(percent=D(50), of=2), Share(percent=D(67), of=3)], within=D(0)), WRONG),
    (Mean(**TEXT, value=D("2.0"), parts={"x": D("1.0"), "y": D("3.0")}), OK),
    (Mean(**TEXT, value=D("2.5"), parts={"x": D("1.0"), "y": D("3.0")}), UNKNOWN),  # with weights it could be
    (Mean(**TEXT, value=D("3.5"), parts={"x": D("1.0"), "y": D("3.0")}), WRONG),
    (Mean(**TEXT, value=D("2.5"), parts={"x": D("1.0"), "y": D("3.0")}, weights={"x": 1, "y": 3}), OK),
    (Mean(**TEXT, value=D("2.0"), parts={"x": D("1.0"), "y": D("3.0")}, weights={"x": 1, "y": 3}), OK),
    (Mean(**TEXT, value=D("2.0"), parts={"x": D("1.0"), "y": D("3.0")}, weights={"x": 1, "y": 3},
          weighting="weighted"), WRONG),
    (Product(**TEXT, value=D(640), factors=numbers(10, 8, 8)), OK),
    (Product(**TEXT, value=D(641), factors=numbers(10, 8, 8)), WRONG),
    (Complement(**TEXT, value=D("73.2"), other=D("26.8")), OK),
    (Complement(**TEXT, value=D("73.4"), other=D("26.8")), WRONG),
    (effect(("4.00", "0.90", A), ("1.50", "0.80", B)), OK),
    (effect(("4.00", "0.90", A), ("3.00", "0.80", B), shared="0.10"), OK),
    (effect(("4.00", "0.90", A), ("6.00", "0.80", B), other="0.05"), UNKNOWN),  # an SD each
    (effect(("9.99", "0.90", A)), UNKNOWN),
    (Spread(**TEXT, value=D("0.10"), groups=EQUAL), OK),
    (Spread(**TEXT, value=D("0.20"), groups=EQUAL), UNKNOWN),
    (extreme({"x": "0.1", "y": "0.9"}, minimum="0.1", lowest="x", maximum="0.9", highest="y"), OK),
    (extreme({"x": "0.1", "y": "0.9"}, maximum="0.9", highest="x"), WRONG),
    (extreme({"x": "0.1", "y": "0.9"}, minimum="0.3"), WRONG),
    (extreme({"x": "0.1", "y": "0.9"}, above="0.0"), OK),
    (extreme({"x": "0.1", "y": "0.9"}, above="0.2"), WRONG),
    (extreme({"x": "0.2", "y": "0.9"}, above="0.2"), OK),  # 0.2 may have been 0.24
    (extreme({"x": "21.09", "y": TALL}, maximum="21.09"), WRONG),
    (extreme({"x": "21.09", "y": TALL}, maximum="70"), OK),
    (order("x < y", {"x": 1, "y": 2}, {"x": 3, "y": 4}), OK),
    (order("x < y", {"x": 1, "y": 2}, {"x": 4, "y": 3}), WRONG),
    (order("x < y", {"x": 1, "y": 2}, {"x": 4, "y": 2}, in_rows=1), OK),
    (order("x < y", {"x": 1, "y": 2}, {"x": 2, "y": 3}, in_rows=1), WRONG),
    (order("x <= y", {"x": 2, "y": 2}), OK),
    (order("x < y", {"x": 2, "y": 2}), OK),  # both were rounded
    (order("x < y", {"x": 2, "y": 2}, in_rows=0), OK),
    (order("x <= y", {"x": 3, "y": 2}), WRONG),
    (order("x <= y", {"x": 2, "y": 2}, within=D(0)), OK),
    (order("x < y", {"x": 2, "y": 2}, within=D(0)), WRONG),  # exact counts
    (order("others < z", {"x": 1, "y": 2, "z": 3}), OK),
    (order("others < z", {"x": 1, "y": 2, "z": 3}, in_rows=0), WRONG),
    (order("others < z", {"x": 1, "y": 4, "z": 3}), WRONG),
]  # fmt: skip


def misjudged(checker) -> list[str]:
    """The known claims that a checker gets wrong."""
    found = []
    for claim, verdict in KNOWN:
        answers = checker([claim])
        if [a.verdict for a in answers] != [verdict]:
            found.append(claim.kind)
    return found


def test_every_known_claim_gets_its_verdict():
    wrong = [(c, v, judge(c)) for c, v in KNOWN if judge(c).verdict != v]
    assert wrong == []


def says(verdict, kinds=None):
    """A checker that gives one verdict whatever it is shown (or only to some kinds)."""

    def checker(claims):
        return [replace(a, verdict=verdict) if kinds is None or a.kind in kinds else a for a in check(claims)]

    return checker


def test_a_disabled_an_always_content_and_an_always_faulty_checker_are_found_out():
    assert misjudged(check) == []
    assert len(misjudged(lambda claims: [])) == len(KNOWN)
    for verdict in (OK, WRONG, UNKNOWN):
        assert misjudged(says(verdict))


@pytest.mark.parametrize("kind", sorted(JUDGES))
def test_a_judge_that_is_blind_or_alarmed_in_one_kind_is_found_out(kind):
    for verdict in (OK, WRONG, UNKNOWN):
        assert set(misjudged(says(verdict, {kind}))) == {kind}


def test_what_is_said_is_one_sentence_and_keeps_the_claims_place():
    for claim, _ in KNOWN:
        found = judge(claim)
        assert (found.where, found.kind) == ("here", claim.kind)
        assert found.stated
        assert found.derived
        assert found.why.endswith(".")
        assert "\n" not in found.why


# ── rates ──────────────────────────────────────────────────────────────────────────────────────

shares = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
decimals = st.integers(0, 3)
half_ways = st.sampled_from([ROUND_HALF_UP, ROUND_HALF_EVEN])


def printed(value, places: int, how=ROUND_HALF_UP) -> Decimal:
    return Decimal(value).quantize(Decimal(1).scaleb(-places), how)


@given(shares, decimals, half_ways)
def test_a_true_percentage_is_consistent_however_it_was_rounded(share, places, how):
    k, n = share
    value = printed(Decimal(100 * k) / n, places, how)
    assert judge(rate(value, n)).verdict == OK
    assert judge(rate(value, n, k=k)).verdict == OK


@given(st.integers(0, 10000), st.integers(1, 150), st.integers(0, 2))
@settings(deadline=None)
def test_a_percentage_is_a_fault_exactly_when_no_count_rounds_to_it(units, n, places):
    value = Decimal(units).scaleb(-places)
    assume(value <= 100)
    half = Decimal(1).scaleb(-places) / 2
    possible = any(abs(Decimal(100 * k) / n - value) <= half + Decimal("1e-20") for k in range(n + 1))
    assert (judge(rate(value, n)).verdict == OK) == possible


def test_the_other_numbers_of_cases_that_are_named_do_fit():
    found = judge(rate("93.3", 54))
    assert "50 of 54 is 92.6 %" in found.derived
    assert "51 of 54 is 94.4 %" in found.derived
    assert "42 of 45" in found.why
    assert judge(rate("93.3", 45)).verdict == OK


# ── sums, means, products ──────────────────────────────────────────────────────────────────────

reals = st.lists(st.integers(0, 10**6).map(lambda i: Decimal(i) / 1000), min_size=1, max_size=8)


@given(reals, decimals, half_ways)
def test_a_true_sum_is_never_a_fault(values, places, how):
    parts = [printed(v, places, how) for v in values]
    assert judge(Sum(**TEXT, total=printed(sum(values), places, how), parts=parts)).verdict == OK


@given(reals, decimals, st.sampled_from([-1, 1]))
def test_a_sum_moved_beyond_all_rounding_always_is(values, places, sign):
    unit = Decimal(1).scaleb(-places)
    parts = [printed(v, places) for v in values]
    off = sum(parts) + sign * (len(parts) + 2) * unit
    assert judge(Sum(**TEXT, total=off, parts=parts)).verdict == WRONG


@given(st.lists(shares, min_size=1, max_size=6), st.integers(0, 1))
@settings(deadline=None)
def test_a_total_of_percentages_is_a_fault_exactly_when_no_counts_give_it(many, places):
    parts = [Share(percent=printed(Decimal(100 * k) / n, places), of=n) for k, n in many]
    fits = [[k for k in range(n + 1) if abs(Decimal(100 * k) / n - p.percent) <= Decimal(1).scaleb(-places) / 2]
            for p, (_, n) in zip(parts, many, strict=True)]  # fmt: skip

    def verdict(total):
        return judge(Sum(**TEXT, total=D(total), parts=parts, within=D(0))).verdict

    lowest, highest = sum(f[0] for f in fits), sum(f[-1] for f in fits)
    assert verdict(sum(k for k, _ in many)) == OK
    assert verdict(lowest) == verdict(highest) == OK
    assert verdict(lowest - 1) == verdict(highest + 1) == WRONG


weighted = st.lists(st.tuples(st.integers(0, 10**5), st.integers(1, 60)), min_size=2, max_size=8)


@given(weighted, decimals, half_ways)
def test_a_true_mean_is_consistent_and_a_moved_one_is_not(rows, places, how):
    values = [Decimal(v) / 1000 for v, _ in rows]
    weights = {str(i): w for i, (_, w) in enumerate(rows)}
    parts = {str(i): printed(v, places, how) for i, v in enumerate(values)}
    true = sum(v * w for v, (_, w) in zip(values, rows, strict=True)) / sum(weights.values())

    def verdict(value, weighting):
        given_weights = None if weighting == "unweighted" else weights
        return judge(
            Mean(**TEXT, value=value, parts=parts, weights=given_weights, weighting=weighting)
        ).verdict

    assert verdict(printed(true, places, how), "weighted") == OK
    assert verdict(printed(sum(values) / len(values), places, how), "unweighted") == OK
    assert verdict(printed(true, places, how) + Decimal(3).scaleb(-places), "weighted") == WRONG


@given(st.lists(st.integers(1, 10), min_size=1, max_size=4), st.sampled_from([-1, 1]))
def test_a_product_is_exact(factors, step):
    value = math.prod(factors)
    assert judge(Product(**TEXT, value=D(value), factors=numbers(*factors))).verdict == OK
    assert judge(Product(**TEXT, value=D(value + step), factors=numbers(*factors))).verdict == WRONG


@given(st.integers(0, 100000), decimals, half_ways)
def test_a_complement_may_be_rounded_apart_but_not_further(units, places, how):
    true = Decimal(units) / 1000
    value, other = printed(100 - true, places, how), printed(true, places, how)
    assert judge(Complement(**TEXT, value=value, other=other)).verdict == OK
    moved = value + Decimal(3).scaleb(-places)
    assert judge(Complement(**TEXT, value=moved, other=other)).verdict == WRONG


# ── standard deviations and effect sizes ───────────────────────────────────────────────────────

columns = st.lists(
    st.lists(st.integers(0, 1000).map(lambda i: i / 1000), min_size=4, max_size=4), min_size=1, max_size=10
)


@given(columns)
@settings(deadline=None)
def test_the_sd_of_all_scores_is_found_from_the_printed_columns(many):
    """From raw scores: what a reader can see (rounded means and SDs) never contradicts what they were."""
    scores = np.array(many)
    cells = {str(i): cell(printed(c.mean(), 3), printed(c.std(), 3)) for i, c in enumerate(scores)}
    groups = {"x": Group(n=4, cells=cells)}
    for name, sd in (
        ("all scores together", scores.std()),
        ("pooled within columns", math.sqrt((scores.std(axis=1) ** 2).mean())),
        ("average of the SDs", scores.std(axis=1).mean()),
    ):
        found = judge(Spread(**TEXT, value=printed(sd, 3), groups=groups))
        assert found.verdict == OK
        assert name in found.why


@given(columns, st.integers(1, 3))
@settings(deadline=None)
def test_effect_sizes_of_one_definition_are_consistent(many, which):
    scores = np.array(many)
    sds = {1: scores.std(), 2: math.sqrt((scores.std(axis=1) ** 2).mean()), 3: scores[0].std()}
    assume(sds[which] > 0.01)
    cells = {str(i): cell(printed(c.mean(), 3), printed(c.std(), 3)) for i, c in enumerate(scores)}
    d, mean = printed((scores.mean() - 0.5) / sds[which], 2), printed(scores.mean(), 3)
    assert judge(effect((d, mean, cells), (d, mean, cells))).verdict == OK


def test_the_definition_found_is_said_row_by_row():
    found = judge(effect(("4.00", "0.90", A), ("6.00", "0.80", B), other="0.05"))
    assert "row 0: SD of x" in found.derived
    assert "row 1: other" in found.derived


# ── extremes and orders ────────────────────────────────────────────────────────────────────────


@given(
    st.lists(st.integers(-1000, 1000).map(lambda i: Decimal(i) / 1000), min_size=1, max_size=8),
    st.integers(0, 2),
)
def test_true_extremes_are_consistent_and_moved_ones_are_not(values, places):
    rows = {str(i): printed(v, places) for i, v in enumerate(values)}
    low, high = printed(min(values), places), printed(max(values), places)
    named = {"lowest": str(values.index(min(values))), "highest": str(values.index(max(values)))}
    assert judge(extreme(rows, minimum=low, maximum=high, **named)).verdict == OK
    step = Decimal(2).scaleb(-places)
    for moved in (
        {"minimum": low - step},
        {"minimum": low + step},
        {"maximum": high - step},
        {"maximum": high + step},
    ):
        assert judge(extreme(rows, **moved)).verdict == WRONG


@given(st.lists(st.lists(st.integers(0, 100), min_size=3, max_size=3, unique=True), min_size=1, max_size=6))
def test_an_order_holds_in_as_many_rows_as_it_does(many):
    rows = [dict(zip("xyz", row, strict=True)) for row in many]
    holds = sum(x < y < z for x, y, z in many)
    for count in range(
        len(rows) + 2
    ):  # rounding keeps the order of different numbers, so the count is certain
        assert judge(order("x < y < z", *rows, in_rows=count)).verdict == (OK if count == holds else WRONG)
    assert judge(order("x < y < z", *rows)).verdict == (OK if holds == len(rows) else WRONG)


@pytest.mark.parametrize("text", ["x y", "x <", "x > y", "x < nobody", "< x <"])
def test_an_order_that_cannot_be_read_is_refused(text):
    with pytest.raises(ValueError, match=r"order reads|no column"):
        order(text, {"x": 1, "y": 2})


@pytest.mark.parametrize("value", ["1e900000000", "1e-400000", "0." + "1" * 500])
def test_a_number_that_takes_for_ever_to_write_is_refused(value):
    with pytest.raises(ValidationError, match="400 digits"):
        Rate(where="a record", about="a stranger's", value=value, n=10, whole="100")


def test_a_huge_number_of_cases_is_judged_at_once():
    """Other numbers of cases are looked for near it, not everywhere."""
    (found,) = check([Rate(where="abc", about="abc", value="0.3333333331", n=10**7, whole="1", within="0")])
    assert found.verdict == "cannot be right"

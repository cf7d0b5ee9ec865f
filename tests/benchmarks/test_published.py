"""The paper's figures: every known inconsistency is found from the file, and nothing that is right is blamed."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest
import rfc8785

from clinsafe.benchmarks.arithmetic import check
from clinsafe.benchmarks.claims import Complement, Effect, Interval, Mean, Rate, Ratings, Share, Sum
from clinsafe.benchmarks.paper38 import load_paper38
from clinsafe.benchmarks.published import FILE, Published, load_published, published_claims
from clinsafe.checklist.fmea import load_fmea
from clinsafe.content import Content
from clinsafe.errors import ContentError

WRONG, UNKNOWN = "cannot be right", "not reproducible"
RATES = {"entity_swap": ("93.3", "50 of 54 is 92.6 %; 51 of 54 is 94.4 %", "42 of 45"),
         "quantifier": ("57.1", "29 of 52 is 55.8 %; 30 of 52 is 57.7 %", "28 of 49"),
         "negation": ("43.6", "24 of 56 is 42.9 %; 25 of 56 is 44.6 %", "24 of 55"),
         "numerical": ("26.8", "13 of 52 is 25.0 %; 14 of 52 is 26.9 %", "15 of 56")}  # fmt: skip
EXACT = {"entity_swap": "[82.1, 97.9] for 50 of 54", "temporal": "[92.6, 100.0] for 48 of 48",
         "hedging": "[57.5, 83.8] for 36 of 50", "quantifier": "[43.2, 71.3] for 30 of 52",
         "negation": "[29.7, 56.8] for 24 of 56", "numerical": "[15.6, 41.0] for 14 of 52"}  # fmt: skip

FAULTS = [
    ("sections 5.1 to 5.6 against 6.1", "sum", WRONG, ["1223 to 1229"]),
    ("abstract", "extreme", WRONG, ["4 of 6 above (not quantifier, hedging)"]),
    ("abstract", "extreme", WRONG, ["20 of 24", "MiniLM quantifier, Nomic quantifier, MiniLM hedging, Nomic hedging"]),
    ("abstract and section 6.1", "spread", UNKNOWN, ["0.061", "0.043", "0.047"]),
    ("sections 5.1, 5.3 and 5.5", "effect", UNKNOWN, [
        "negation: the SD of all hazards together", "temporal: SD of MiniLM or SD of BGE; hedging: SD of MiniLM"]),
    ("section 6.1", "extreme", WRONG, ["highest 70.36 (entity_swap)"]),
    ("section 6.1", "order", WRONG, ["3 of 6 (numerical, quantifier, hedging)"]),
    *((f"Table 2, {hazard}", "rate", WRONG, [beside, fits]) for hazard, (_, beside, fits) in RATES.items()),
    ("Table 2, entity_swap", "interval", UNKNOWN, ["Wald clipped [86.6, 100.0]", "45 cases would"]),
    ("Table 2, temporal", "interval", WRONG, ["without width", "[92.6, 100.0]"]),
    ("Table 2, quantifier", "interval", UNKNOWN, ["Wald clipped [43.6, 70.6]"]),
    ("section 6.2, temporal", "interval", WRONG, ["[92.6, 100.0]"]),
]  # fmt: skip

RIGHT = Counter(
    {
        "sum": 1,  # 312
        "rate": 5,  # 98.6 %, hedging and quantifier at 0.70, temporal and hedging of Table 2
        "product": 7,  # 312 x 4 and six risk priority numbers
        "mean": 7,  # six rows and 0.925
        "complement": 4,
        "extreme": 8,  # the six ranges, the hazards' range, the two above 0.96
        "spread": 1,  # entity swap, 0.007
        "order": 1,  # GTE highest in five
        "interval": 3,  # hedging, negation, numerical: Wald
    }
)


@pytest.fixture(scope="module")
def published() -> Published:
    return load_published(Content())


def ratings():
    modes = load_fmea(Content()).failure_modes
    return [Ratings(m.hazard, m.published.s, m.published.o, m.published.d, m.published.rpn) for m in modes]


@pytest.fixture(scope="module")
def checks(published):
    return check(published_claims(published, ratings()))


# ── verdicts ───────────────────────────────────────────────────────────────────────────────────


def test_the_golden_list_of_faults(checks):
    found = [(c.where, c.kind, c.verdict) for c in checks if c.fault]
    assert sorted(found) == sorted(fault[:3] for fault in FAULTS)


@pytest.mark.parametrize(("where", "kind", "verdict", "words"), FAULTS)
def test_each_fault_is_found_with_its_numbers(checks, where, kind, verdict, words):
    said = [
        f"{c.derived} | {c.why}" for c in checks if (c.where, c.kind, c.verdict) == (where, kind, verdict)
    ]
    assert any(all(word in text for word in words) for text in said)


def test_nothing_that_is_right_is_blamed(checks):
    assert Counter(c.kind for c in checks if not c.fault) == RIGHT


@pytest.mark.parametrize("hazard", EXACT)
def test_every_printed_interval_is_named_and_set_beside_the_exact_one(checks, hazard):
    (found,) = [c for c in checks if (c.where, c.kind) == (f"Table 2, {hazard}", "interval")]
    assert EXACT[hazard] in found.derived
    if not found.fault:
        assert "(Wald)" in found.why


def verdicts(overlay, change):
    """Where the verdict differs from that on the real file, after a change to the file."""
    before = check(load_published(Content()).claims)
    after = check(load_published(Content(overlay(FILE, change))).claims)
    return {
        (b.where, b.kind): a.verdict for b, a in zip(before, after, strict=True) if a.verdict != b.verdict
    }


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("failure rate, value: 93.3", "failure rate, value: 92.6", {("Table 2, entity_swap", "rate"): "consistent"}),
        ("value: 93.3, n: 54, low: 86.0", "value: 93.3, n: 54, low: 86.6",
         {("Table 2, entity_swap", "interval"): "consistent"}),
        ("low: 92.5, high: 100,", "low: 92.6, high: 100,", {("section 6.2, temporal", "interval"): "consistent"}),
        ("total: 1231\n", "total: 1228\n", {("sections 5.1 to 5.6 against 6.1", "sum"): "consistent"}),
        ("maximum: 21.09\n    highest: temporal", "maximum: 70\n    highest: entity_swap",
         {("section 6.1", "extreme"): "consistent"}),
        ("about: spread of all cosines\n    value: 0.045", "about: spread of all cosines\n    value: 0.061",
         {("abstract and section 6.1", "spread"): "consistent"}),
        ("total: 312, parts", "total: 313, parts", {("section 4.1", "sum"): WRONG}),
        ("value: 0.964, parts", "value: 0.966, parts", {("Table 1, temporal", "mean"): WRONG}),
        ("value: 56.4, other", "value: 56.6, other", {("section 8.1, negation", "complement"): WRONG}),
        ("in_rows: 5", "in_rows: 6", {("sections 6.1 and 6.3", "order"): WRONG}),
    ],
)  # fmt: skip
def test_the_verdict_follows_the_number(overlay, old, new, changed):
    assert verdicts(overlay, lambda text: replaced(text, old, new)) == changed


def replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


# ── the file agrees with itself and with its neighbours ────────────────────────────────────────


def by_place(published, kind):
    return {c.where: c for c in published.claims if isinstance(c, kind)}


def test_claims_and_table_2_say_the_same(published):
    rates, intervals, left = (by_place(published, kind) for kind in (Rate, Interval, Complement))
    for hazard, row in published.reranking.items():
        rate, interval = rates[f"Table 2, {hazard}"], intervals[f"Table 2, {hazard}"]
        assert (rate.value, rate.n) == (interval.value, interval.n) == (row.failure_rate, row.n)
        assert (interval.low, interval.high) == (row.low, row.high)
        if row.detection is not None:
            assert (left[f"section 8.1, {hazard}"].value, left[f"section 8.1, {hazard}"].other) == (
                row.detection,
                row.failure_rate,
            )


def test_claims_and_table_1_say_the_same(published):
    means = by_place(published, Mean)
    rows = published.bi_encoder
    for hazard, row in rows.items():
        claim = means[f"Table 1, {hazard}"]
        assert (claim.value, claim.parts) == (row.overall, row.cells)
        assert published.reranking[hazard].n == row.n
    grand = means["abstract and section 6.1"]
    assert grand.value == published.total.mean
    assert grand.parts == {h: row.overall for h, row in rows.items()}
    assert grand.weights == {h: row.n for h, row in rows.items()}
    (cells,) = [c for c in published.claims if getattr(c, "about", "").startswith("model and hazard means")]
    assert cells.rows == {f"{m} {h}": cell.mean for h, row in rows.items() for m, cell in row.cells.items()}
    (effects,) = [c for c in published.claims if isinstance(c, Effect)]
    assert {h: r.d for h, r in effects.rows.items()} == {
        h: row.effect.d for h, row in rows.items() if row.effect
    }


def test_the_totals_are_those_of_the_rows(published):
    sums = by_place(published, Sum)
    rows, total = published.bi_encoder, published.total
    assert sorted(sums["section 4.1"].parts) == sorted(row.n for row in rows.values())
    assert sums["section 4.1"].total == total.pairs
    shares = sums["sections 5.1 to 5.6 against 6.1"]
    assert shares.total == total.failures
    models = len(published.models)
    key = lambda s: (s.percent, s.of)  # noqa: E731
    expected = [Share(percent=row.failure_rate, of=row.n * models) for row in rows.values()]
    assert sorted(shares.parts, key=key) == sorted(expected, key=key)
    assert total.evaluations == total.pairs * models


def test_the_sd_named_beside_an_effect_size_gives_it(published):
    for row in published.bi_encoder.values():
        if row.effect:
            means = [row.overall - Decimal("0.0005"), row.overall + Decimal("0.0005")]
            low, high = ((mean - Decimal("0.5")) / row.effect.sd for mean in means)
            assert low <= row.effect.d + Decimal("0.005")
            assert row.effect.d - Decimal("0.005") <= high


def test_hazards_and_counts_are_the_suites(published, suite):
    assert Counter(c.hazard for c in suite) == {h: row.n for h, row in published.bi_encoder.items()}


def test_what_is_not_arithmetic_is_remarked_upon(published):
    topics = {remark.topic for remark in published.remarks}
    assert topics >= {
        "null_value", "one_pair", "benchmark_rank", "occurrence", "detection", "severity", "most_dangerous",
        "necessary", "thresholds", "pairs_published", "script_settings", "activation", "relevance",
        "not_contradictions", "review", "reference_sapbert", "reference_negbio", "references_missing", "doubling_time",
    }  # fmt: skip
    for remark in published.remarks:
        assert remark.text.endswith(".")
        assert ". " not in remark.text, f"{remark.topic} is more than one sentence"


def test_the_remark_on_the_public_pairs_counts_what_the_file_of_pairs_says(published):
    pairs = load_paper38(Content())
    not_one = Counter(p.hazard for p in pairs if not p.contradiction)
    (remark,) = [r.text for r in published.remarks if r.topic == "not_contradictions"]
    assert len(pairs) == 38
    assert sum(not_one.values()) == 7
    assert remark.startswith("Seven of the 38")
    named = ", ".join(f"{not_one[h]} {h.replace('_', ' ')}" for h in ("numerical", "temporal", "entity_swap"))
    assert f"({named})" in remark
    with_such_pairs = {h for h, row in published.bi_encoder.items() if "contradictions" in row.differs}
    assert with_such_pairs == set(not_one)


def test_every_row_says_why_ours_can_differ(published, checks):
    impossible = {c.where.removeprefix("Table 2, ") for c in checks if c.fault and c.kind == "rate"}
    assert {h for h, row in published.reranking.items() if "count" in row.differs} == impossible
    for hazard, row in published.bi_encoder.items():
        topics = {*row.differs, *published.reranking[hazard].differs}
        reasons = {published.differences[topic] for topic in topics}
        assert len(reasons) >= 5
        assert any("312 pairs" in reason for reason in reasons)


# ── as a file ──────────────────────────────────────────────────────────────────────────────────


def test_numbers_keep_their_printed_decimals_through_json(published):
    plain = published.model_dump(mode="json")
    assert plain["bi_encoder"]["entity_swap"]["overall"] == "0.990"
    rfc8785.dumps(plain)
    again = Published.model_validate(plain)
    assert again == published
    assert str(again.bi_encoder["temporal"].cells["Nomic"].sd) == "0.020"
    assert check(again.claims) == check(published.claims)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("kind: product, where: section 6.1", "kind: quotient, where: section 6.1", "claims"),
        ("value: 98.6, n: 1248", "value: many, n: 1248", "claims"),
        ("value: 98.6, n: 1248", "value: nan, n: 1248", "claims"),
        ("differs: [pairs, total, baseline", "differs: [pears, total, baseline", "differences"),
        ("  interval: >-", "  intervals: >-", "differences"),
        ("order: MiniLM < Nomic <= BGE < GTE", "order: MiniLM < Nomic <= BERT", "claims"),
        ("topic: one_pair", "topic: null_value", "remarks"),
        ("lowest: BGE", "lowest: BERT", "claims"),
        ("name: Nomic", "name: Nomad", "bi_encoder"),
    ],
)
def test_a_file_that_does_not_hang_together_is_refused_with_its_place(overlay, old, new, field):
    with pytest.raises(ContentError) as caught:
        load_published(Content(overlay(FILE, lambda text: text.replace(old, new, 1))))
    assert caught.value.line is not None
    assert field in str(caught.value)

"""Our own figures under the arithmetic check: none is at fault, and each kind of tampering is found."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.adapters.reference import LookupEncoder
from clinsafe.benchmarks.arithmetic import Check, check, own_claims
from clinsafe.benchmarks.claims import Ratings
from clinsafe.benchmarks.measure import Limits, figures
from clinsafe.benchmarks.scoring import CaseResult, score
from clinsafe.benchmarks.suite import SENTENCES
from clinsafe.stats import Estimate, NotMeasured, rate_of
from tests.strategies import pair_scores

RATINGS = [Ratings("negation", 8, 10, 10, 800), Ratings("temporal", 9, None, 10, None)]


LIMITS = [0.70, 0.85]


@pytest.fixture(scope="module")
def results(suite):
    """A small audit whose model is right in some cases: cases of each hazard, uneven in number."""
    cases = [c for c in suite if int(c.id.rsplit("-", 1)[-1]) % 5 == 0 or c.hazard == "negation"]
    vectors = {}
    for i, case in enumerate(cases):
        for j, name in enumerate(SENTENCES):
            same_side = name in (("a", "a_same") if i % 3 else ("a", "b_same"))
            vectors[getattr(case, name)] = (
                (1.0, 0.05 * (i % 7) + 0.01 * j) if same_side else (0.1 * (i % 5), 1.0)
            )
    return score(LookupEncoder(vectors, (1.0, 1.0)), cases)


def measured(results, *, detail):
    found = figures(results, Limits("checklist", {r.id: 0.85 for r in results}, LIMITS), detail=detail)
    return found, dict(Counter(r.hazard for r in results))


@pytest.fixture(scope="module")
def audit(results):
    return measured(results, detail=False)


def faults(found, counts, ratings=RATINGS) -> list[Check]:
    return [c for c in check(own_claims(found, counts, ratings)) if c.fault]


def test_our_own_figures_have_no_fault(results):
    found, counts = measured(results, detail=True)
    claims = own_claims(found, counts, RATINGS)
    assert {c.kind for c in claims} == {
        "rate",
        "interval",
        "sum",
        "mean",
        "order",
        "extreme",
        "effect",
        "product",
    }
    metrics = ("inversion", "inversion.any", "pairwise")
    everywhere = {f"suite.{hazard}.{metric}" for hazard in (*counts, "all") for metric in metrics}
    assert {c.where for c in claims} >= everywhere
    assert faults(found, counts) == []
    assert faults({}, {}, []) == []


RATE = "suite.negation.inversion"
TAMPERED = [
    (RATE, "value", lambda v: v + 1e-6),
    (RATE, "k", lambda v: v + 1),
    (RATE, "k", lambda v: v - 1),
    (RATE, "k", lambda v: 1000),
    (RATE, "k", lambda v: None),
    (RATE, "n", lambda v: v + 1),
    (RATE, "low", lambda v: v + 1e-6),
    (RATE, "high", lambda v: v - 1e-6),
    (RATE, "lower", lambda v: v + 1e-6),
    (RATE, "upper", lambda v: v - 1e-6),
    ("suite.all.pairwise", "n", lambda v: v - 1),
    ("suite.all.inversion.any", "k", lambda v: v + 1),
    ("suite.all.failure@protocol=checklist", "k", lambda v: v - 1),
    ("suite.temporal.same_missed@limit=0.7", "value", lambda v: v + 1e-6),
    ("suite.negation.inversion@stratum=balanced", "k", lambda v: v + 1),
    ("suite.negation.auroc", "n", lambda v: v + 1),
    ("suite.all.similarity.contradicting", "value", lambda v: v + 1e-6),
    ("suite.negation.similarity.same", "value", lambda v: v - 1e-6),
    ("suite.all.similarity_min.contradicting", "value", lambda v: v + 1e-6),
    ("suite.hedging.similarity_max.same", "value", lambda v: v - 1e-6),
    ("suite.negation.similarity_sd.contradicting", "value", lambda v: 2 * v),
    ("suite.negation.cohen_d.contradicting", "value", lambda v: v + 1e-3),
]


@pytest.mark.parametrize(("key", "field", "change"), TAMPERED)
def test_every_kind_of_tampering_is_found(audit, key, field, change):
    found, counts = audit
    before = found[key]
    changed = found | {key: replace(before, **{field: change(getattr(before, field))})}
    reported = faults(changed, counts)
    assert reported
    hazard = key.split(".")[1]
    assert all({hazard, "all"} & set(f.where.split(".")) or hazard == "all" for f in reported)


def test_a_wholly_consistent_lie_about_one_hazard_still_does_not_add_up(audit):
    """A better count with the rate and intervals that belong to it: only the totals give it away."""
    found, counts = audit
    before = found[RATE]
    reported = faults(found | {RATE: rate_of(before.k - 1, before.n)}, counts)
    assert {f.kind for f in reported} == {"sum"}


def test_inversion_from_either_side_cannot_be_rarer():
    only = {RATE: rate_of(5, 56), "suite.negation.inversion.any": rate_of(4, 56)}
    assert [f.kind for f in faults(only, {"negation": 56}, [])] == ["order"]
    assert faults(only | {"suite.negation.inversion.any": rate_of(5, 56)}, {"negation": 56}, []) == []


@pytest.mark.parametrize(
    ("value", "kinds"), [(0.5, []), (0.1, []), (0.9, []), (0.0, ["order"]), (0.95, ["order"])]
)
def test_a_mean_lies_between_its_extremes(value, kinds):
    known = {"similarity_min": 0.1, "similarity": value, "similarity_max": 0.9}
    found = {f"suite.negation.{m}.same": Estimate(v, None, None, 56, "m") for m, v in known.items()}
    assert [f.kind for f in faults(found, {"negation": 56}, [])] == kinds


def test_a_hazard_that_was_left_out_or_miscounted_is_found(audit):
    found, counts = audit
    without = {k: f for k, f in found.items() if not k.startswith("suite.temporal.")}
    assert faults(without, counts)
    assert faults(found, counts | {"temporal": counts["temporal"] + 1})
    assert faults(found, {h: n for h, n in counts.items() if h != "temporal"})


def test_a_risk_priority_number_is_multiplied_again(audit):
    found, counts = audit
    (fault,) = faults(found, counts, [Ratings("negation", 8, 10, 10, 80)])
    assert fault.kind == "product"
    assert "8 x 10 x 10 = 800" in fault.why


def test_what_was_not_measured_claims_nothing(audit):
    found, counts = audit
    nothing = dict.fromkeys(found, NotMeasured("switched off"))
    assert own_claims(nothing, counts, []) == []


@given(st.lists(st.tuples(st.sampled_from(["negation", "hedging"]), st.sampled_from(["balanced", "b_closer"]),
                          st.sampled_from(["p", "q"]), pair_scores), min_size=1, max_size=9),
       st.booleans())  # fmt: skip
@settings(max_examples=20, deadline=None)
def test_whatever_was_scored_our_figures_agree_with_each_other(rows, one_unmeasured):
    results = [
        CaseResult(f"c{i}", hazard, subtype, stratum, None, scores, "dev" if i % 3 == 0 else "test")
        for i, (hazard, stratum, subtype, scores) in enumerate(rows)
    ]
    if one_unmeasured:
        results.append(CaseResult("c-last", "hedging", "p", "balanced", None, NotMeasured("NaN")))
    found = figures(results, Limits("checklist", {r.id: 0.85 for r in results}, [0.7]))
    assert faults(found, Counter(r.hazard for r in results)) == []


def test_a_key_outside_the_grammar_is_refused():
    with pytest.raises(ValueError, match="not a metric key"):
        own_claims({"nonsense": Estimate(0.5, None, None, 2, "mean")}, {}, [])

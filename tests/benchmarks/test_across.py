"""Several systems on the same cases: what differs is found, what does not is not, and nobody hides behind silence."""

from __future__ import annotations

import pytest

from clinsafe.adapters.lexical import Bm25, TokenJaccard
from clinsafe.benchmarks import hybrid
from clinsafe.benchmarks.across import System, compare_all
from clinsafe.benchmarks.scoring import PAIRS, UNRELATED, CaseResult, score_with_scorer
from clinsafe.paired import Agreement
from clinsafe.protocols import ModelIdentity
from clinsafe.stats import NotMeasured

HAZARDS = ("negation", "numerical", "temporal")


def results(similarity, inverted, n=40, missing=()):
    found = []
    for i in range(n):
        scores = {f"{q}|{p}": similarity + i / 1000 for q, p in PAIRS} | {UNRELATED: 0.1}
        scores["a|a_same"] = scores["a|b"] + (-0.1 if i < inverted else 0.1)
        found.append(
            CaseResult(
                f"c{i}",
                HAZARDS[i % 3],
                "plain",
                "balanced",
                None,
                NotMeasured("x") if i in missing else scores,
            )
        )
    return found


def system(label, similarity=0.5, inverted=10, kind="bi-encoder", **options):
    return System(label, kind, results(similarity, inverted, **options))


def test_one_system_has_nothing_to_be_compared_with():
    assert compare_all([system("a")]) == []


def test_a_difference_in_inversions_is_found_and_corrected_for():
    outcome = compare_all([system("a", inverted=4), system("b", inverted=30), system("c", inverted=4)])[0]
    assert isinstance(outcome.agreement, Agreement)
    assert outcome.agreement.p < 0.001
    by = {(p.a, p.b): p for p in outcome.pairs}
    assert by["a", "b"].value == pytest.approx(26 / 40)
    assert by["a", "b"].low > 0
    assert by["a", "b"].p_holm < 0.001
    assert by["a", "c"].p_holm == 1
    assert all(p.p_holm >= p.p for p in outcome.pairs)


def test_equal_systems_do_not_differ():
    outcome, similarity = compare_all([system("a"), system("b")])
    assert isinstance(outcome.agreement, NotMeasured)
    assert [p.p for p in (*outcome.pairs, *similarity.pairs)] == [1, 1]


def test_similarities_are_compared_between_encoders_only():
    found = compare_all([system("a"), system("b", similarity=0.6), system("words", kind="lexical")])
    assert len(found) == 2
    assert {(p.a, p.b) for p in found[1].pairs} == {("a", "b")}
    assert found[1].pairs[0].value == pytest.approx(0.1)
    assert (
        len(compare_all([system("a"), system("b"), system("c")])) == 3
    )  # the paper's own comparison needs three


def test_a_case_that_one_system_did_not_answer_is_left_out_for_all():
    outcome = compare_all([system("a", missing=(0, 1)), system("b", missing=(5,))])[0]
    assert outcome.n == 37


def test_bm25_ranks_as_bm25_does_and_knows_rare_words():
    corpus = ["the patient has fever", "the patient has sepsis", "the patient", "unrelated words only"]
    scores = Bm25(corpus).score([("sepsis in the patient", text) for text in corpus])
    assert scores[1] == 1  # the best passage of the query
    assert scores[1] > scores[0] > scores[3] == 0
    assert list(Bm25(corpus).score([("xyzzy", corpus[0])])) == [0]


def test_the_hybrid_is_the_mean_of_its_parts_and_has_no_more_cases_than_they(suite):
    cases = suite[:8]
    texts = [getattr(c, name) for c in cases for name in ("a", "b", "a_same", "b_same")]
    sparse = score_with_scorer(Bm25(texts), cases)
    dense = score_with_scorer(TokenJaccard(), cases)
    dense[3] = CaseResult(*[getattr(dense[3], f) for f in ("id", "hazard", "subtype", "stratum", "factor")],
                          NotMeasured("NaN"))  # fmt: skip
    fused = hybrid.fuse(dense, sparse)
    assert fused[0].scores["a|b"] == pytest.approx((dense[0].scores["a|b"] + sparse[0].scores["a|b"]) / 2)
    assert isinstance(fused[3].scores, NotMeasured)
    made = hybrid.identity(ModelIdentity("org/model"), Bm25(texts).identity)
    assert made.kind == "hybrid"
    assert "0.5" in made.settings["formula"]

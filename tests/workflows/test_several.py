"""Several systems in one audit, on real weights and a real server: verdicts of each, and what they say together."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import clinsafe
from clinsafe.adapters.encoders import ModelOptions
from clinsafe.adapters.lexical import TokenJaccard
from clinsafe.adapters.reference import FakeEncoder
from clinsafe.benchmarks.scoring import score
from clinsafe.errors import ModelError, UsageError
from clinsafe.reports import pdf, view
from clinsafe.reports.assess import derive_figures
from clinsafe.reports.differences import differences
from clinsafe.workflows import audit as workflow
from clinsafe.workflows.audit import Interrupted, Subject, run_audit
from tests.adapters import embedding_server as es

pytestmark = pytest.mark.usefixtures("shared_intervals")


@pytest.fixture(autouse=True)
def _no_pdf(monkeypatch):
    monkeypatch.setattr(pdf, "render", lambda *_: b"%PDF-1.7 stand-in")
    monkeypatch.setattr(view, "similarity_svg", lambda _: "<svg></svg>")


@pytest.fixture
def server():
    with es.EmbeddingServer().running() as running:
        yield running


@pytest.mark.slow
def test_two_encoders_and_a_cross_encoder_on_real_weights(tmp_path):
    models = ["minilm", "bge-small-int8", "ms-marco-l12-int8"]
    result = run_audit(models, hazards=["temporal"], out=tmp_path / "run", offline=True)
    evidence = result.evidence
    kinds = [s.identity.kind for s in evidence.systems]
    assert kinds == ["bi-encoder", "bi-encoder", "cross-encoder", "lexical", "lexical", "hybrid", "hybrid"]
    assert [s.identity.settings["dtype"] for s in evidence.subjects] == ["float32", *["int8 (not fp32)"] * 2]
    assert not result.released
    minilm, bge, reranker = evidence.subjects
    # the unrelated pairs show why one limit does not mean the same for two encoders
    unrelated = [s.figures["suite.temporal.similarity.unrelated"]["value"] for s in (minilm, bge)]
    assert unrelated[0] < 0.3 < 0.45 < unrelated[1]
    assert reranker.figures["suite.temporal.failure@protocol=checklist"]["k"] == 48
    items = {a.number: a for a in result.assessments[0].items}
    assert items[7].answer == "not met"
    assert "temporal 48/48" in items[7].evidence
    assert {a.answer for a in result.assessments[2].items[:6]} == {"not assessed"}
    assert len(evidence.comparisons) == 2  # inversions of all, similarities of the two encoders
    assert evidence.arithmetic["own_faults"] == []
    assert differences(evidence) == []
    page = result.html.read_text(encoding="utf-8")
    assert "a different model from the paper&#39;s" in page
    assert "int8 (not fp32)" in page


@pytest.mark.slow
def test_no_verdict_depends_on_the_batch_or_the_order_of_the_texts(minilm, suite, tmp_path):
    """Real weights: other batches change vectors in the seventh decimal and no outcome of any case."""
    cases = [c for c in suite if c.hazard == "negation"]

    class OtherBatches:
        identity = minilm.identity

        def encode(self, texts, /):
            order = sorted(range(len(texts)), key=lambda i: texts[i])
            rows = minilm._model.encode([texts[i] for i in order], batch_size=3, normalize_embeddings=True)
            return rows[np.argsort(order)]

    one, other = score(minilm, cases), score(OtherBatches(), cases)
    gaps = [abs(x.scores[k] - y.scores[k]) for x, y in zip(one, other, strict=True) for k in x.scores]
    assert 0 < max(gaps) < 1e-5
    record = run_audit(minilm, hazards=["negation"], out=tmp_path / "run").evidence
    swapped = record.systems[0].model_copy(
        update={
            "cases": [
                c.model_copy(update={"scores": dict(r.scores)})
                for c, r in zip(record.systems[0].cases, other, strict=True)
            ]
        }
    )
    before, after = (derive_figures(s, record.criteria) for s in (record.systems[0], swapped))
    counts = {key: f.k for key, f in before.items() if getattr(f, "k", None) is not None}
    assert counts == {key: after[key].k for key in counts}


def test_an_endpoint_is_audited_like_the_encoder_behind_it(server, small_suite, tmp_path):
    options = ModelOptions(base_url=server.url, offline=True)
    result = run_audit(
        f"endpoint:{es.MODEL}", options=options, offline=True, overlay=small_suite, out=tmp_path / "run"
    )
    local = run_audit("fake:words", overlay=small_suite, out=tmp_path / "local")
    found, wanted = (r.evidence.systems[0].figures for r in (result, local))
    assert {k: v.get("k") for k, v in found.items()} == {k: v.get("k") for k, v in wanted.items()}
    assert "nothing proves that another run would measure the same model" in result.html.read_text(
        encoding="utf-8"
    )
    assert not result.evidence.systems[0].identity.files


def test_an_endpoint_that_dies_midway_leaves_cases_unmeasured_and_the_rest_counts(
    server, suite, tmp_path, monkeypatch
):
    cases = [c for c in suite if c.hazard in ("negation", "temporal")]
    poison = cases[0].a_same
    refuse = es.status(400)

    def behave(request):
        return refuse(request) if poison in request.texts else es.ok(request)

    server.script = [behave] * 400
    options = ModelOptions(base_url=server.url)
    result = run_audit(
        f"endpoint:{es.MODEL}", options=options, hazards=["negation", "temporal"], out=tmp_path / "run"
    )
    missing = result.assessment.not_measured
    assert missing == {"negation": [cases[0].id], "temporal": []}
    decisions = {g.hazard: g.decision for g in result.assessment.gates if g.metric == "inversion"}
    assert decisions["negation"] == "INCONCLUSIVE"
    assert decisions["temporal"] != "INCONCLUSIVE"


class Asymmetric(FakeEncoder):
    """Sees queries in another light than passages."""

    def encode_queries(self, texts, /):
        return super().encode([f"query {text}" for text in texts])


def test_queries_are_encoded_as_queries(small_suite, tmp_path):
    plain = run_audit(FakeEncoder("words"), overlay=small_suite, out=tmp_path / "plain").evidence.systems[0]
    asked = run_audit(Asymmetric("words"), overlay=small_suite, out=tmp_path / "asked").evidence.systems[0]
    one, other = plain.cases[0].scores, asked.cases[0].scores
    assert one["a|b"] == pytest.approx(one["b|a"])
    assert other["a|b"] != pytest.approx(other["b|a"], abs=1e-4)
    assert one["a|b"] != pytest.approx(other["a|b"], abs=1e-4)


def test_a_scorer_of_ones_own_is_audited_by_rank_or_by_limit_as_it_says(small_suite, tmp_path):
    ranks = run_audit(TokenJaccard(), overlay=small_suite, out=tmp_path / "ranks")
    assert not any("failure" in key for key in ranks.evidence.systems[0].figures)
    assert {g.decision for g in ranks.assessment.gates if g.metric == "failure"} == {"INCONCLUSIVE"}

    class Reranker(TokenJaccard):
        identity = dataclasses.replace(TokenJaccard.identity, name="org/reranker", kind="cross-encoder")

    judged = run_audit(Reranker(), overlay=small_suite, out=tmp_path / "judged").evidence
    assert "suite.negation.failure@limit=0.5" in judged.systems[0].figures


def test_two_of_one_name_are_told_apart_and_one_bad_one_holds_both(small_suite, tmp_path):
    result = clinsafe.audit(["fake:words", "fake:words"], overlay=small_suite, out=tmp_path / "run")
    assert [s.label for s in result.evidence.subjects] == ["fake:words", "fake:words (2)"]
    assert result.evidence.comparisons[0].get("pairs")
    with pytest.raises(UsageError, match="no model to audit"):
        run_audit([], out=tmp_path / "none")
    with pytest.raises(UsageError, match="selects nothing"):
        clinsafe.audit("fake:words", hazards=[], out=tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_scorer_that_never_works_is_an_error_and_one_that_fails_on_a_case_is_not(
    suite, small_suite, tmp_path
):
    victim = suite[0].a

    class Sometimes(TokenJaccard):
        def score(self, pairs, /):
            if any(victim in pair for pair in pairs):
                raise RuntimeError("no")
            return super().score(pairs)

    result = run_audit(Sometimes(), overlay=small_suite, out=tmp_path / "run")
    assert suite[0].id in result.assessment.not_measured["negation"]
    assert len(result.assessment.not_measured["negation"]) == 1

    class Never(TokenJaccard):
        def score(self, pairs, /):
            raise RuntimeError("no")

    with pytest.raises(ModelError, match="does not work"):
        run_audit(Never(), overlay=small_suite, out=tmp_path / "never")


def test_ctrl_c_in_the_second_model_keeps_the_first(suite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = {"fake:words": FakeEncoder("words"), "fake:hash": FakeEncoder("hash")}
    calls = {"fake:words": 0, "fake:hash": 0}
    stop = {"now": True}

    def counted(name):
        encoder, inner = made[name], type(made[name]).encode

        def encode(texts, /):
            calls[name] += 1
            if name == "fake:hash" and stop["now"] and calls[name] == 3:
                raise KeyboardInterrupt
            return inner(encoder, texts)

        encoder.encode = encode
        return encoder

    monkeypatch.setattr(workflow, "load_model", lambda name, _: counted(name))
    models = [Subject("fake:words"), Subject("fake:hash")]
    with pytest.raises(Interrupted, match="run the same command again"):
        run_audit(models, hazards=["negation", "temporal"])
    first = dict(calls)
    stop["now"] = False
    run_audit(models, hazards=["negation", "temporal"])
    assert calls["fake:words"] == first["fake:words"]  # nothing of the first was computed again
    assert calls["fake:hash"] == first["fake:hash"] + 5  # two of seven chunks of the second were kept

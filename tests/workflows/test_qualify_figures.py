"""Operational qualification of the figures: sound ones pass, and each that is broken on purpose is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clinsafe import paired, stats
from clinsafe.adapters import lexical, reference
from clinsafe.benchmarks import measure, vectors
from clinsafe.checklist.gates import Gate
from clinsafe.errors import UnknownModel
from clinsafe.reports import pdf, view
from clinsafe.reports.assess import Assessment
from clinsafe.stats import Estimate, rate_of
from clinsafe.workflows import qualify_figures as figures
from clinsafe.workflows.qualify import INSTRUMENTS, make_checks
from clinsafe.workflows.qualify_bench import Bench

pytestmark = pytest.mark.usefixtures("shared_intervals")


@pytest.fixture
def bench(tmp_path):
    """A fresh one: nothing dear is made before it is asked for."""
    return Bench(tmp_path / "scratch", with_model=False)


FAST = ["OQ-01", "OQ-02", "OQ-03", "OQ-04"]


@pytest.mark.parametrize("check", FAST)
def test_sound_arithmetic_passes(bench, check):
    found = INSTRUMENTS[check](bench)
    assert (found.outcome, found.reason) == ("pass", "")


def wald(k, n):
    p = k / n
    half = 1.96 * (p * (1 - p) / n) ** 0.5
    return Estimate(p, max(0, p - half), min(1, p + half), n, "Wald", p - half, p + half, k)


def two_sided_bounds(k, n):
    figure = rate_of(k, n)
    return replace(figure, lower=figure.low, upper=figure.high)


@pytest.mark.parametrize(
    ("check", "place", "name", "broken"),
    [
        ("OQ-01", stats, "rate_of", wald),
        ("OQ-01", stats, "rate_of", two_sided_bounds),
        ("OQ-01", stats, "rate_of", lambda k, n: stats.NotMeasured("no")),
        ("OQ-01", stats, "wilson", lambda k, n: (0.0, 1.0)),
        ("OQ-02", paired, "newcombe10", lambda *_: (0.0, 0.4)),
        ("OQ-02", paired, "mcnemar", lambda a, b: 0.05),
        ("OQ-02", paired, "holm", lambda p: [min(1.0, x * len(p)) for x in p]),
        ("OQ-02", paired, "friedman", lambda s: stats.NotMeasured("no")),
        ("OQ-03", measure, "inverted", lambda s: s["a|b"] > s["a|a_same"]),  # ties for the model
        ("OQ-03", measure, "inverted_any", lambda s: s["a|b"] >= s["a|a_same"]),
        ("OQ-03", measure, "failed", lambda s, t: s["a|b"] > t + 0.12),
        ("OQ-03", measure, "same_missed", lambda s, t: s["a|a_same"] <= t),
        ("OQ-03", measure, "pairwise", lambda s: s["a_same|a"] >= s["a_same|b"]),
        ("OQ-03", measure, "auroc", lambda p, n: Estimate(0.7753906, None, None, len(p), "ties count whole")),
        ("OQ-04", stats, "rate_of", two_sided_bounds),
        ("OQ-04", Gate, "decide", lambda self, f: "PASS"),
        ("OQ-04", Gate, "decide", lambda self, f: "INCONCLUSIVE"),
    ],
)
def test_broken_arithmetic_is_found(bench, monkeypatch, check, place, name, broken):
    monkeypatch.setattr(place, name, broken)
    (found,) = make_checks(bench, only=check)
    assert found.outcome == "fail", found.observed


def test_oq04_a_missing_figure_that_passes_is_found(bench, monkeypatch):
    true = Gate.decide
    monkeypatch.setattr(Gate, "decide", lambda self, f: true(self, f) if isinstance(f, Estimate) else "PASS")
    assert figures.gates_at_edges(bench).outcome == "fail"


@pytest.mark.slow
def test_oq09_passes_and_a_gate_or_an_encoder_side_that_lets_missing_data_pass_is_found(bench, monkeypatch):
    assert figures.not_measured(bench).outcome == "pass"
    with monkeypatch.context() as patch:
        true = Gate.decide
        patch.setattr(Gate, "decide", lambda self, f: true(self, f) if isinstance(f, Estimate) else "PASS")
        assert figures.not_measured(bench).outcome == "fail"
    monkeypatch.setattr(vectors, "_checked", lambda row: np.nan_to_num(row) + np.float32(1e-3))
    assert figures.not_measured(bench).outcome == "fail"


@pytest.mark.parametrize("check", ["OQ-17", "OQ-18"])
def test_the_model_left_out_or_missing_was_not_run_and_says_so(bench, tmp_path, monkeypatch, check):
    assert INSTRUMENTS[check](bench).outcome == "not run"
    assert "--without-model" in INSTRUMENTS[check](bench).reason

    def missing(*_):
        raise UnknownModel("not in the local cache")

    monkeypatch.setattr("clinsafe.adapters.encoders.load_model", missing)
    found = INSTRUMENTS[check](Bench(tmp_path))
    assert found.outcome == "not run"
    assert "local cache" in found.reason


@pytest.mark.parametrize("check", ["OQ-17", "OQ-18"])
def test_another_model_under_its_name_is_found(tmp_path, check):
    bench = Bench(tmp_path)
    bench.__dict__["reference"] = reference.FakeEncoder("words")
    assert INSTRUMENTS[check](bench).outcome == "fail"


@pytest.mark.slow
def test_the_reference_model_passes_and_a_small_change_of_its_vectors_is_found(minilm, tmp_path):
    bench = Bench(tmp_path)
    bench.__dict__["reference"] = minilm
    assert figures.reference_counts(bench).outcome == "pass"
    assert figures.reference_cosines(bench).outcome == "pass"
    first = bench.known.model.cosines[0]
    moved = [
        replace(r, scores={**r.scores, first.pair: r.scores[first.pair] + 5e-5}) if r.id == first.case else r
        for r in bench.reference_results
    ]
    bench.__dict__["reference_results"] = moved
    assert figures.reference_cosines(bench).outcome == "fail"


PATH = ["OQ-05", "OQ-06", "OQ-07", "OQ-08"]


@pytest.fixture(scope="module")
def walked(shared_intervals, tmp_path_factory):
    """The audit of both extremes, made once; its pages are not drawn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pdf, "render", lambda *_: b"%PDF-1.7 stand-in")
        patch.setattr(view, "similarity_svg", lambda _: "<svg></svg>")
        bench = Bench(tmp_path_factory.mktemp("walked"))
        assert bench.extremes.folder.is_dir()
    return bench


@pytest.mark.slow
@pytest.mark.parametrize("check", PATH)
def test_the_whole_path_passes(walked, check):
    found = INSTRUMENTS[check](walked)
    assert (found.outcome, found.reason) == ("pass", "")


@pytest.mark.slow
def test_broken_encoders_and_a_broken_baseline_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(pdf, "render", lambda *_: b"%PDF-1.7 stand-in")
    monkeypatch.setattr(view, "similarity_svg", lambda _: "<svg></svg>")
    monkeypatch.setitem(reference.KINDS, "constant", reference._hashed)  # no longer blind
    monkeypatch.setattr(Bench, "knowing_vectors", lambda self: {})  # knows nothing
    monkeypatch.setattr(lexical, "_jaccard", lambda x, y: len(x & y) / max(len(x), 1))
    bench = Bench(tmp_path)
    outcomes = {check: INSTRUMENTS[check](bench).outcome for check in PATH}
    assert outcomes == dict.fromkeys(PATH, "fail")


@pytest.mark.slow
def test_a_fake_that_is_released_or_unmarked_is_found(walked, tmp_path, monkeypatch):
    page = tmp_path / "report.html"
    page.write_text("a clean report")
    unmarked = Bench(tmp_path)
    unmarked.__dict__["extremes"] = replace(walked.extremes, html=page)
    assert figures.fake_is_held(unmarked).outcome == "fail"
    monkeypatch.setattr(Assessment, "released", property(lambda self: not self.held))
    assert figures.fake_is_held(walked).outcome == "fail"

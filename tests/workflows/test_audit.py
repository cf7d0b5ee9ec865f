"""The whole audit, in process: verdicts, interruption, unmeasured cases, untrusted and fake models."""

from __future__ import annotations

import json

import numpy as np
import pytest

import clinsafe
from clinsafe.adapters.reference import FakeEncoder, LookupEncoder
from clinsafe.benchmarks.suite import SENTENCES
from clinsafe.errors import ClinsafeError, UsageError
from clinsafe.protocols import ModelIdentity
from clinsafe.reports import pdf, view
from clinsafe.reports.differences import differences
from clinsafe.reports.evidence import Declaration
from clinsafe.workflows import audit as workflow
from clinsafe.workflows import write as writing
from clinsafe.workflows.audit import Interrupted, run_audit

pytestmark = pytest.mark.usefixtures("shared_intervals")


@pytest.fixture(autouse=True)
def _no_pdf(monkeypatch):
    """Pages have tests of their own; here they would only cost time."""
    monkeypatch.setattr(pdf, "render", lambda *_: b"%PDF-1.7 stand-in")
    monkeypatch.setattr(view, "similarity_svg", lambda _: "<svg></svg>")


def oracle(cases, *, good: bool):
    """An encoder that knows the answers (or their opposites), by construction."""
    vectors = {}
    for case in cases:
        for name in SENTENCES:
            same_side = name in ("a", "a_same") if good else name in ("a", "b_same")
            vectors[getattr(case, name)] = (1.0, 0.0) if same_side else (0.0, 1.0)
    return LookupEncoder(vectors, (1.0, 1.0))


def real(encoder):
    """The same encoder under the identity of a real model."""
    encoder.identity = ModelIdentity(name="org/known-answer", settings={"dtype": "float32"})
    return encoder


def test_a_model_that_knows_the_answers_is_released(suite, tmp_path):
    result = run_audit(real(oracle(suite, good=True)), out=tmp_path / "run")
    assert result.held == []
    assert result.released
    assert differences(result.evidence) == []
    figures = result.evidence.systems[0].figures
    assert figures["suite.all.pairwise"]["value"] == 1
    # no failure at all, and still O = 10: with 48 to 56 cases the bound stays above 0.05, and the report says so
    assert all(row.occurrence == 10 and "would bound it at" in row.note for row in result.assessment.fmea)


def test_a_model_that_knows_the_opposite_is_held_everywhere(suite, tmp_path):
    result = run_audit(real(oracle(suite, good=False)), out=tmp_path / "run")
    assert len(result.held) == 6
    assert not result.released
    assert sum(len(found["inversion"]) for found in result.assessment.anomalies.values()) == 312


def test_one_bad_hazard_holds_that_hazard_alone(suite, tmp_path):
    encoder = oracle(suite, good=True)
    bad = oracle([c for c in suite if c.hazard == "temporal"], good=False)
    encoder._vectors = encoder._vectors | bad._vectors
    assert run_audit(real(encoder), out=tmp_path / "run").held == ["temporal"]


@pytest.mark.parametrize("kind", ["hash", "words", "constant"])
def test_a_fake_is_never_released(kind, small_suite, tmp_path):
    result = run_audit(f"fake:{kind}", out=tmp_path / "run", overlay=small_suite)
    assert not result.released
    assert "NOT FOR RELEASE" in result.html.read_text(encoding="utf-8")


def test_even_a_fake_that_knows_the_answers_is_never_released(suite, tmp_path):
    result = run_audit(oracle(suite, good=True), out=tmp_path / "run")
    assert result.held == []
    assert not result.released


def test_one_unmeasured_case_makes_its_hazard_inconclusive_and_the_run_goes_on(suite, tmp_path):
    encoder = real(oracle(suite, good=True))
    victim = next(c for c in suite if c.hazard == "hedging")
    encoder._vectors[victim.a] = (float("nan"), 0.0)
    result = run_audit(encoder, out=tmp_path / "run")
    assert result.held == ["hedging"]
    assert result.assessment.not_measured["hedging"] == [victim.id]
    assert {g.decision for g in result.assessment.gates if g.hazard == "hedging"} == {"INCONCLUSIVE"}
    row = next(r for r in result.assessment.fmea if r.hazard == "hedging")
    assert row.occurrence is None
    assert "not measured" in result.html.read_text(encoding="utf-8")


class Stops(FakeEncoder):
    """Ctrl-C in the second chunk, the first time."""

    chunks, stop = 0, True

    def encode(self, texts, /):
        self.chunks += 1
        if self.stop and self.chunks == 2:
            raise KeyboardInterrupt
        return super().encode(texts)


def test_ctrl_c_keeps_what_was_computed_and_the_same_call_resumes(suite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    encoder = Stops("words")
    monkeypatch.setattr(workflow, "load_model", lambda *_, **__: encoder)
    with pytest.raises(Interrupted, match="run the same command again") as caught:
        run_audit("fake:words", hazards=["temporal"])
    assert caught.value.exit_code == 130
    (folder,) = (tmp_path / "runs").iterdir()
    started = json.loads((folder / "run.json").read_text())["started"]
    encoder.stop, encoder.chunks = False, 0
    result = run_audit("fake:words", hazards=["temporal"])
    assert result.folder.resolve() == folder
    assert encoder.chunks == 2  # 3 chunks of 64 for 192 texts, one of them kept
    assert result.evidence.criteria_fixed == started
    assert not (folder / "partial").exists()


@pytest.mark.slow
def test_vectors_of_an_object_are_never_taken_up_by_another_object(suite, tmp_path, monkeypatch):
    """Its identity may say the same while its code has changed."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Interrupted, match="starts anew"):
        run_audit(Stops("words"), hazards=["temporal"])
    other = Stops("hash")
    other.identity, other.stop = Stops("words").identity, False
    fresh = run_audit(FakeEncoder("hash"), hazards=["temporal"], out=tmp_path / "fresh")
    assert run_audit(other, hazards=["temporal"]).evidence.systems[0].cases == fresh.evidence.systems[0].cases


def test_a_named_plugin_without_hashed_files_starts_anew_too(suite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    encoder = real(Stops("words"))
    monkeypatch.setattr(workflow, "load_model", lambda *_, **__: encoder)
    with pytest.raises(Interrupted, match="starts anew"):
        run_audit("my-plugin:model", hazards=["temporal"])
    encoder.stop, encoder.chunks = False, 0
    run_audit("my-plugin:model", hazards=["temporal"])
    assert encoder.chunks == 3


def test_a_part_of_the_suite_is_never_a_release(suite, tmp_path):
    result = run_audit(real(oracle(suite, good=True)), hazards=["negation"], out=tmp_path / "run")
    assert result.held == []
    assert not result.released
    assert len(result.assessment.left_out) == 5
    assert "Not measured in this run, and so not released" in result.html.read_text(encoding="utf-8")


def test_a_failed_second_audit_keeps_the_first_report(small_suite, tmp_path, monkeypatch):
    first = run_audit("fake:words", out=tmp_path / "run", overlay=small_suite)
    before = first.report.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "html", fail)
    with pytest.raises(OSError, match="No space"):
        run_audit("fake:hash", out=tmp_path / "run", overlay=small_suite, force=True)
    assert first.report.read_bytes() == before


def test_hazards_may_be_chosen_and_unknown_ones_are_one_line(tmp_path):
    result = run_audit("fake:words", hazards=["negation"], out=tmp_path / "run")
    assert list(result.evidence.suite.counts) == ["negation"]
    assert {g.hazard for g in result.assessment.gates} == {"negation"}
    with pytest.raises(UsageError, match="negation, numerical"):
        run_audit("fake:words", hazards=["laterality"], out=tmp_path / "other")


def test_the_python_function_is_the_same_road(tmp_path, small_suite):
    result = clinsafe.audit("fake:words", out=tmp_path / "run", overlay=small_suite)
    assert result.folder == tmp_path / "run"
    assert result.report.is_file()


def test_protocols_differ_only_in_thresholds(tmp_path, few, small_suite):
    results = {
        name: run_audit("fake:words", out=tmp_path / name, overlay=small_suite, protocol=name)
        for name in ("paper", "skill", "checklist")
    }
    rank = {n: r.evidence.systems[0].figures["suite.all.auroc"] for n, r in results.items()}
    assert rank["paper"] == rank["skill"] == rank["checklist"]
    above = {
        n: r.evidence.systems[0].figures[f"suite.all.failure@protocol={n}"]["k"] for n, r in results.items()
    }
    assert above["paper"] >= above["skill"]


@pytest.mark.slow
def test_minilm_on_the_written_suite(minilm, tmp_path):
    """Real weights, the full suite: the figures of the README, to two decimals of slack for other hardware."""
    result = run_audit(minilm, out=tmp_path / "run")
    assert len(result.held) == 6
    figures = result.evidence.systems[0].figures
    above = figures["suite.all.failure@protocol=checklist"]
    assert above["value"] > 0.9
    assert 0.3 < figures["suite.all.inversion"]["value"] < 0.6
    assert np.isclose(figures["suite.all.auroc"]["value"], 0.36, atol=0.05)
    assert result.evidence.systems[0].identity.files["model.safetensors"].startswith("53aa5117")
    assert differences(result.evidence) == []


def test_what_is_no_encoder_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for thing in (object(), lambda texts: texts, 7, FakeEncoder):
        with pytest.raises(UsageError, match="needs `encode"):
            run_audit(thing)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("checklist/hazards.yaml", lambda t: t.replace("id: temporal", "id: negation"), "declared twice"),
        (
            "checklist/fmea.yaml",
            lambda t: t.replace("- hazard: hedging", "- hazard: other"),
            "severity of hedging",
        ),
        (
            "checklist/gates.yaml",
            lambda t: t.replace("cosine: 0.85", "cosine: 85", 1),
            "less than or equal to 1",
        ),
        (
            "checklist/gates.yaml",
            lambda t: t.replace("at_most: 0.10", "at_most: -1", 1),
            "greater than or equal to 0",
        ),
        (
            "checklist/items.yaml",
            lambda t: t.replace("n_min: 50, assessed_by: suite", "n_min: 50, assessed_by: magic", 1),
            "assessed_by",
        ),
    ],
)
def test_an_edited_checklist_with_a_fault_is_one_line(overlay, tmp_path, name, change, words):
    with pytest.raises(ClinsafeError, match=words) as caught:
        run_audit("fake:words", out=tmp_path / "run", overlay=overlay(name, change))
    assert name.rpartition("/")[2] in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "identity",
    [None, "name", {"name": "x"}, ModelIdentity(None), ModelIdentity("x", revision=None),
     ModelIdentity("x", settings=["a"]), ModelIdentity("\ud800")],
)  # fmt: skip
def test_an_unfit_identity_is_refused_before_the_first_text(identity, tmp_path):
    encoder = FakeEncoder("words")
    encoder.identity = identity
    encoder.encode = None  # must not be reached
    with pytest.raises(UsageError, match="identity"):
        run_audit(encoder, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_numbers_in_settings_become_text(small_suite, tmp_path):
    encoder = FakeEncoder("words")
    encoder.identity = ModelIdentity("mine", settings={"dimension": 64}, fake=True)
    result = run_audit(encoder, out=tmp_path / "run", overlay=str(small_suite))
    assert result.evidence.systems[0].identity.settings == {"dimension": "64"}


def test_words_that_cannot_be_written_are_refused_at_once(tmp_path):
    declaration = Declaration().model_copy(update={"operator": "\udcff"})
    with pytest.raises(UsageError, match="operator"):
        run_audit("fake:words", out=tmp_path / "run", declaration=declaration)
    assert not (tmp_path / "run").exists()


def test_an_encoder_that_never_works_is_an_error_not_an_audit(tmp_path):
    class Broken(FakeEncoder):
        def encode(self, texts, /):
            raise RuntimeError("no device")

    with pytest.raises(ClinsafeError, match=r"RuntimeError.* does not work"):
        run_audit(Broken("words"), out=tmp_path / "run")


def test_complex_vectors_are_not_measured(small_suite, tmp_path):
    class Complex(FakeEncoder):
        def encode(self, texts, /):
            return super().encode(texts) * 1j

    result = run_audit(Complex("words"), out=tmp_path / "run", overlay=small_suite)
    assert {g.decision for g in result.assessment.gates} == {"INCONCLUSIVE"}


def test_offline_holds_for_the_call_and_no_longer(small_suite, tmp_path):
    import socket

    from clinsafe.adapters import offline

    run_audit("fake:words", out=tmp_path / "run", overlay=small_suite, offline=True)
    assert offline._state["active"] is False
    with offline.only_this_machine(True), pytest.raises(ClinsafeError):
        socket.gethostbyaddr("192.0.2.1")

"""Operational qualification of the record: a verifier or renderer that is broken on purpose is found."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from clinsafe.adapters import reference
from clinsafe.reports import pages, pdf
from clinsafe.reports import verify as verifying
from clinsafe.reports.pdfcheck import PdfCheck
from clinsafe.workflows import qualify_record as written
from clinsafe.workflows.qualify import INSTRUMENTS
from clinsafe.workflows.qualify_bench import Bench
from tests.drawing import REAL

pytestmark = pytest.mark.usefixtures("shared_renders")
SAID = "VALID"


@pytest.fixture(scope="module")
def signed(shared_renders, tmp_path_factory):
    """A bench with a real small report, signed."""
    bench = Bench(tmp_path_factory.mktemp("signed"))
    assert written._signed(bench).is_file()
    return bench


def stub(valid):
    """A verifier that never looks."""
    facts = SimpleNamespace(
        valid=valid, verdict=SAID, rerender="IDENTICAL", rerender_reason="", figures=1, faults=(),
        signature=SimpleNamespace(trusted=True),
    )  # fmt: skip
    return lambda *_: facts


@pytest.mark.slow
@pytest.mark.parametrize("check", [f"OQ-{n}" for n in range(10, 17)])
def test_a_sound_record_passes(signed, monkeypatch, check):
    if check in ("OQ-11", "OQ-12"):  # the same pages twice: drawn again, not remembered
        monkeypatch.setattr(pdf, "render", REAL)
    found = INSTRUMENTS[check](signed)
    assert (found.outcome, found.reason) == ("pass", "")


@pytest.mark.slow
@pytest.mark.parametrize("check", ["OQ-13", "OQ-14", "OQ-15", "OQ-16"])
def test_a_verifier_that_always_says_valid_is_found(signed, monkeypatch, check):
    monkeypatch.setattr(verifying, "verify", stub(valid=True))
    assert INSTRUMENTS[check](signed).outcome == "fail"


@pytest.mark.slow
def test_a_verifier_that_always_says_invalid_is_found(signed, monkeypatch):
    monkeypatch.setattr(verifying, "verify", stub(valid=False))
    assert written.genuine_report(signed).outcome == "fail"


@pytest.mark.slow
def test_a_signature_check_that_overlooks_changes_is_found(signed, monkeypatch):
    monkeypatch.setattr(PdfCheck, "valid", property(lambda self: True))
    assert written.flipped_bit(signed).outcome == "fail"


@pytest.mark.slow
def test_figures_that_nobody_derives_again_are_found(signed, monkeypatch):
    monkeypatch.setattr(verifying, "differences", lambda _: [])
    assert written.forged_figure(signed).outcome == "fail"


@pytest.mark.slow
def test_pages_that_nobody_compares_are_found(signed, monkeypatch):
    monkeypatch.setattr(verifying, "compare_pages", lambda *_: pages.Pages("IDENTICAL", "no", read=True))
    assert written.changed_page(signed).outcome == "fail"
    monkeypatch.setattr(
        verifying, "compare_pages", lambda *_: pages.Pages("NOT_COMPARABLE", "no", read=False)
    )
    assert written.genuine_report(signed).outcome == "fail"


@pytest.mark.slow
def test_a_renderer_that_adds_the_time_is_found(signed, monkeypatch):
    monkeypatch.setattr(pdf, "render", lambda *_: signed.document + b"%% 12:00:01\n")
    assert written.same_pages_twice(signed).outcome == "fail"


@pytest.mark.slow
def test_an_encoder_that_is_not_the_same_twice_is_found(signed, monkeypatch):
    noise = np.random.default_rng(1)
    monkeypatch.setattr(pdf, "render", lambda *_: b"%PDF-1.7 stand-in")
    true = reference.KINDS["words"]
    monkeypatch.setitem(
        reference.KINDS, "words", lambda text: true(text) + noise.normal(size=64).astype(np.float32)
    )
    assert written.same_record_twice(signed).outcome == "fail"

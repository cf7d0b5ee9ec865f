"""Two finished records of a fake model, shared by the report tests of all workers."""

from __future__ import annotations

import pickle

import pytest

from tests.conftest import write_small
from tests.drawing import REAL, once


def audited(few, folder, **settings):
    """A finished, unsigned audit of a fake on three cases a hazard, with a short list of software; read only.

    Its pages are drawn by the tool itself, and not kept for `shared_renders`: what equals them was drawn again.
    """

    def make() -> bytes:
        from clinsafe.reports import pdf
        from clinsafe.reports.soup import collect
        from clinsafe.workflows import audit

        root = write_small(folder.with_suffix(".content"), few)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(audit, "collect", lambda: collect()[:6])
            patch.setattr(pdf, "render", REAL)
            return pickle.dumps(audit.run_audit("fake:words", out=folder, overlay=root, **settings))

    return pickle.loads(once(folder.with_suffix(".pickle"), make).read_bytes())


@pytest.fixture(scope="session")
def finished(few, run_folder):
    """All six hazards; see `audited`."""
    return audited(few, run_folder / "finished")


@pytest.fixture(scope="session")
def one_hazard(few, run_folder):
    """Negation alone, for the tests that draw many pages; see `audited`."""
    return audited(few, run_folder / "one-hazard", hazards=["negation"])


@pytest.fixture(scope="session")
def record(finished):
    """The evidence of all six."""
    return finished.evidence

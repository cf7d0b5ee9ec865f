"""One finished record of a fake model, shared by the report tests."""

from __future__ import annotations

import pytest

from tests.conftest import write_small


@pytest.fixture(scope="session")
def finished(few, tmp_path_factory):
    """A finished, unsigned audit of a fake on three cases a hazard, with a short list of software."""
    from clinsafe.reports.soup import collect
    from clinsafe.workflows import audit

    root = write_small(tmp_path_factory.mktemp("small") / "content", few)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit, "collect", lambda: collect()[:6])
        return audit.run_audit("fake:words", out=tmp_path_factory.mktemp("run") / "run", overlay=root)


@pytest.fixture(scope="session")
def record(finished):
    """Its evidence."""
    return finished.evidence

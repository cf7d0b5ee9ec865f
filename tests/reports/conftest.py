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


@pytest.fixture(scope="module")
def shared_renders():
    """Equal input is rendered once: that it gives equal bytes is shown elsewhere (test_pages, tests/cli)."""
    from clinsafe.reports import pdf

    render, kept = pdf.render, {}

    def once(page, evidence, created, content):
        key = (page, evidence, created)
        if key not in kept:
            kept[key] = render(page, evidence, created, content)
        return kept[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pdf, "render", once)
        yield

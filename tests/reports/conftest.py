"""One finished record of a fake model, shared by the report tests."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def finished(few, tmp_path_factory):
    """A finished, unsigned audit of a fake on three cases a hazard, without rendering a PDF twice."""
    from clinsafe.workflows.audit import run_audit

    root = tmp_path_factory.mktemp("small")
    folder = root / "benchmarks" / "clinsafeembed"
    folder.mkdir(parents=True)
    for hazard in dict.fromkeys(case.hazard for case in few):
        lines = [c.model_dump_json() for c in few if c.hazard == hazard]
        (folder / f"{hazard}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return run_audit("fake:words", out=tmp_path_factory.mktemp("run") / "run", overlay=root)


@pytest.fixture(scope="session")
def record(finished):
    """Its evidence."""
    return finished.evidence

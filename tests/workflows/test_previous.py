"""--previous: what changed since the last audit stands in the report, and is derived again from the record alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clinsafe.content import Content
from clinsafe.errors import UsageError
from clinsafe.protocols import ModelIdentity
from clinsafe.reports import pdf
from clinsafe.reports.differences import differences
from clinsafe.reports.evidence import canonical, from_bytes, to_bytes
from clinsafe.reports.render import html
from clinsafe.workflows.audit import run_audit
from tests.workflows.test_audit import oracle

pytestmark = pytest.mark.usefixtures("shared_intervals")


@pytest.fixture(scope="module")
def audit(shared_intervals, suite, tmp_path_factory):
    cases = [c for c in suite if c.hazard == "temporal"]

    def run(name: str, wrong: int, previous: Path | None = None, **more):
        encoder = oracle(cases, good=True)
        encoder._vectors = encoder._vectors | oracle(cases[:wrong], good=False)._vectors
        encoder.identity = ModelIdentity(name=f"org/{name}", settings={"dtype": "float32"})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pdf, "render", lambda *_: b"%PDF-1.7 stand-in")
            out = tmp_path_factory.mktemp("run") / name
            return run_audit(encoder, **{"hazards": ["temporal"], "out": out, "previous": previous} | more)

    return run


@pytest.fixture(scope="module")
def pair(audit):
    before = audit("model", 0)
    return before, audit("model", 12, before.folder)


def test_a_regression_is_printed_with_its_interval_and_cases(pair):
    _, after = pair
    (change,) = after.evidence.changes
    assert change["regressed"] == ["temporal", "all"]
    page = html(after.evidence, Content(), charts=False)
    assert "Regressed: temporal, all." in page
    assert "<strong>regression</strong>" in page
    row = next(r for r in change["rows"] if (r["hazard"], r["event"]) == ("temporal", "inversion"))
    assert len(row["worse"]) == 12
    assert row["worse"][0] in page


def test_without_an_earlier_audit_nothing_is_said_about_change(pair):
    before, _ = pair
    assert before.evidence.changes == []
    assert "nothing is said about change" in html(before.evidence, Content(), charts=False)


def test_the_change_is_derived_again_from_the_record(pair):
    _, after = pair
    assert differences(after.evidence) == []
    plain = json.loads(to_bytes(after.evidence))
    inversion = next(i for i, row in enumerate(plain["changes"][0]["rows"]) if row["event"] == "inversion")
    for edit in (
        lambda e: e["changes"][0].update(regressed=[]),
        lambda e: e["changes"].clear(),
        lambda e: e["changes"][0]["rows"][inversion].update(worse=[]),
        lambda e: e["previous"]["systems"][0]["cases"][0]["scores"].update({"a|a_same": -1.0}),
    ):
        changed = json.loads(canonical(plain))
        edit(changed)
        faults = differences(from_bytes(canonical(changed)))
        assert any("change" in fault for fault in faults), faults


def test_a_sole_model_is_compared_with_the_sole_earlier_one_whatever_its_name(audit, pair):
    before, _ = pair
    (change,) = audit("other", 1, before.folder / "evidence.json").evidence.changes
    assert (change["label"], change["before"]) == ("org/other", "org/model")


def test_an_audit_that_cannot_be_compared_is_refused_before_a_model_is_loaded(audit, pair, tmp_path):
    before, _ = pair

    class NeverLoaded:
        identity = ModelIdentity(name="org/never")

        def encode(self, texts, /):
            raise AssertionError("encoded")

    with pytest.raises(UsageError, match=r"cannot be compared with this audit.*other cases"):
        run_audit(NeverLoaded(), hazards=["negation"], previous=before.folder, out=tmp_path / "x")
    with pytest.raises(UsageError, match="protocol"):
        run_audit(
            NeverLoaded(), hazards=["temporal"], protocol="paper", previous=before.folder, out=tmp_path / "y"
        )

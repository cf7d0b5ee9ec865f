"""What the installed suite and checklist can contradict is found, however carefully everything was derived again."""

from __future__ import annotations

import copy
import json

import pytest

from clinsafe.errors import ReportError
from clinsafe.reports import pdf, view
from clinsafe.reports.complete import criteria_as_packaged, incomplete, suite_compared
from clinsafe.reports.differences import differences
from clinsafe.reports.evidence import canonical, from_bytes, to_bytes
from tests.reports.test_verify import rederived

pytestmark = pytest.mark.usefixtures("shared_intervals")


@pytest.fixture(scope="module")
def evidence(shared_intervals, tmp_path_factory):
    from clinsafe.workflows.audit import run_audit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pdf, "render", lambda *_: b"%PDF")
        patch.setattr(view, "similarity_svg", lambda _: "<svg></svg>")
        folder = tmp_path_factory.mktemp("run")
        return run_audit("fake:words", out=folder / "run", hazards=["numerical", "temporal"]).evidence


def edited(evidence, change):
    plain = json.loads(to_bytes(evidence))
    change(plain)
    return from_bytes(canonical(plain))


def faults(evidence):
    return incomplete(evidence, to_bytes(evidence))


def test_an_honest_record_has_no_fault(evidence):
    assert suite_compared(evidence)
    assert criteria_as_packaged(evidence)
    assert faults(evidence) == []
    assert differences(evidence) == []


def baseline(plain, name):
    return next(s for s in plain["systems"] if s["identity"]["name"].startswith(name))


def worsened(name):
    """The model looks better beside a baseline that was made worse."""

    def change(plain):
        for case in baseline(plain, name)["cases"]:
            case["scores"]["a|a_same"] = 0.0

    return change


def diluted(plain):
    """Invented cases that every model passes."""
    for system in plain["systems"]:
        extra = [copy.deepcopy(c) | {"id": f"{c['id']}-more"} for c in system["cases"]]
        system["cases"] += extra
    plain["suite"]["counts"] = {h: 2 * n for h, n in plain["suite"]["counts"].items()}


def swapped_case(plain):
    for system in plain["systems"]:
        system["cases"][0]["id"] = "num-999"


def swapped_splits(plain):
    for case in plain["systems"][0]["cases"]:
        case["split"] = "dev" if case["split"] == "test" else "test"


def no_unrelated(plain):
    for system in plain["systems"]:
        for case in system["cases"]:
            del case["scores"]["a|other"]


def one_sided(plain):
    """The contradiction is made less similar, and nothing else is thought of."""
    for case in plain["systems"][0]["cases"]:
        case["scores"]["a|b"] = 0.0


def impossible(plain):
    """Both directions are thought of, and not what four vectors can be."""
    for case in plain["systems"][0]["cases"]:
        case["scores"].update({"a|b": -0.9, "b|a": -0.9})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (worsened("token Jaccard"), "token Jaccard: its scores are not those"),
        (worsened("BM25"), "BM25: its scores are not those"),
        (worsened("hybrid"), "hybrid of fake:words and BM25: its scores are not those"),
        (lambda e: e["systems"].pop(), "2 baselines, and 3 belong"),
        (diluted, "are not in the suite"),
        (swapped_case, "are missing"),
        (lambda e: e["systems"][0]["cases"][5].update(factor=1), "not described as in the suite"),
        (swapped_splits, "not described as in the suite"),
        (no_unrelated, "lacks its unrelated pair"),
        (one_sided, "another similarity of a to b than of b to a"),
        (impossible, "no four vectors have the similarities"),
        (
            lambda e: e["suite"].update(clinician_review="Reviewed by ten physicians."),
            "what the suite's card says",
        ),
        (lambda e: e.update(limits=["none"]), "limits of the audit"),
    ],
)
def test_a_careful_forger_is_found(evidence, change, words):
    forged = rederived(edited(evidence, change))
    assert differences(forged) == []  # everything was derived again: only the suite can tell
    assert any(words in fault for fault in faults(forged)), faults(forged)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda e: e["criteria"]["items"]["items"][0].update(n_min=1), "checklist/items.yaml"),
        (lambda e: e["criteria"]["items"]["items"][6].update(at_most=1.0), "checklist/items.yaml"),
        (lambda e: e["criteria"]["hazards"][0].update(name="Harmless"), "checklist/hazards.yaml"),
        (lambda e: e["criteria"]["protocol"].update(title="Approved protocol"), "checklist/gates.yaml"),
        (lambda e: e["criteria"]["fmea"].update(severity_status="reviewed"), "checklist/fmea.yaml"),
        (lambda e: e["published"].update(status="sound"), "benchmarks/published.yaml"),
    ],
)
def test_other_criteria_under_the_name_of_the_packaged_file_are_a_fault(evidence, change, name):
    """With a hash of their own they are an institution's, and named as such."""
    forged = edited(evidence, change)
    assert any(f"names the installed {name}" in fault for fault in faults(forged))
    own = edited(forged, lambda e: e["content"].update({name: "0" * 64}))
    assert not any("names the installed" in fault for fault in faults(own))
    assert not criteria_as_packaged(own)


def test_known_weights_under_another_name_are_a_fault(evidence):
    from clinsafe.adapters.weights import ALIASES

    pinned = ALIASES["bge-small-int8"].sha256
    forged = edited(evidence, lambda e: e["systems"][0]["identity"].update(files={"model.onnx": pinned}))
    assert any("is the file of BAAI/bge-small" in fault for fault in faults(forged))


@pytest.mark.slow
def test_an_honest_record_of_all_six_hazards_has_no_fault(tmp_path, monkeypatch):
    """Canonical JSON sorts the hazards, and the suite does not: nothing may depend on their order."""
    from clinsafe.workflows.audit import run_audit

    monkeypatch.setattr(pdf, "render", lambda *_: b"%PDF")
    monkeypatch.setattr(view, "similarity_svg", lambda _: "<svg></svg>")
    assert faults(run_audit("fake:words", out=tmp_path / "run").evidence) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda e: e["systems"][0].update(label="openai/text-embedding-3-large"),
            "is not the name of the system",
        ),
        (lambda e: e["systems"][0].update(label="x\n"), "is not the name of the system"),
        (
            lambda e: (
                e["systems"][0].update(label="a\x1bb"),
                e["systems"][0]["identity"].update(name="a\x1bb"),
            ),
            "printable",
        ),
        (lambda e: e["systems"][1]["identity"].update(kind="bi-encoder"), "no baseline"),
        (lambda e: e["systems"][0]["identity"].update(kind="cross-encoder"), "below 0"),
    ],
)
def test_a_system_that_is_not_what_it_says_is_no_record(evidence, change, words):
    plain = json.loads(to_bytes(evidence))
    plain["systems"][0]["cases"][0]["scores"]["b|a"] = -0.1
    change(plain)
    with pytest.raises(ReportError, match=words):
        from_bytes(canonical(plain))

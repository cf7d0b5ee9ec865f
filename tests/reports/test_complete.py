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


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
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
        (lambda e: e["systems"][0]["cases"][5].update(split="dev"), "not described as in the suite"),
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
    "change",
    [
        lambda e: e["criteria"]["items"]["items"][0].update(n_min=1),
        lambda e: e["criteria"]["items"]["items"][6].update(at_most=1.0),
        lambda e: e["criteria"]["hazards"][0].update(name="Harmless"),
        lambda e: e["criteria"]["protocol"].update(title="Approved protocol"),
        lambda e: e["published"].update(status="sound"),
    ],
)
def test_criteria_and_published_figures_of_ones_own_are_named_as_such(evidence, change):
    assert not criteria_as_packaged(edited(evidence, change))


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

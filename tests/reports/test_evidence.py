"""The record: canonical, self-consistent, readable for ever, and without a sentence in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clinsafe.benchmarks.suite import SENTENCES
from clinsafe.errors import ReportError
from clinsafe.reports.differences import differences
from clinsafe.reports.evidence import canonical, criteria_hash, from_bytes, load, to_bytes

pytestmark = pytest.mark.usefixtures("shared_intervals")
GOLDEN = Path(__file__).parent.parent / "golden"


def test_equal_records_have_equal_bytes(record):
    assert to_bytes(from_bytes(to_bytes(record))) == to_bytes(record)
    assert canonical({"b": 1.0, "a": [1e21, 0.1]}) == b'{"a":[1e+21,0.1],"b":1}'


def test_the_record_holds_no_sentence_of_the_suite(record, few):
    text = to_bytes(record).decode()
    for case in few:
        for name in SENTENCES:
            assert getattr(case, name) not in text


def test_a_fresh_record_derives_again_without_a_difference(record):
    assert differences(record) == []
    assert criteria_hash(record.criteria) == record.criteria_sha256


def swap_splits(plain):
    """The cases on which a limit was set are passed off as those on which it was tried."""
    for case in plain["systems"][0]["cases"]:
        case["split"] = "dev" if case["split"] == "test" else "test"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda e: e["systems"][0]["figures"]["suite.negation.inversion"].update(value=0.0),
            "inversion.value says 0",
        ),
        (lambda e: e["systems"][0]["figures"].pop("suite.all.auroc"), "suite.all.auroc is missing"),
        (lambda e: e["systems"][0]["figures"].update({"suite.all.safety": {"value": 1.0}}), "not derived"),
        (
            lambda e: e["systems"][1]["figures"]["suite.all.pairwise"].update(k=0),
            "token Jaccard: suite.all.pairwise.k",
        ),
        (lambda e: e["systems"][0]["cases"][0]["scores"].update({"a|b": -0.5}), "the scores yield"),
        (lambda e: e["assessments"][0].update(held=[], released=True), "assessment[0].held"),
        (lambda e: e["assessments"][0]["gates"][0].update(decision="PASS"), "gates[0].decision says PASS"),
        (lambda e: e["assessments"][0]["fmea"][0].update(occurrence=1), "fmea[0].occurrence"),
        (lambda e: e["assessments"][0]["items"][0].update(answer="met"), "items[0].answer"),
        (
            lambda e: e["assessments"][0]["anomalies"]["negation"].update(failure=["x", "y", "z", "w"]),
            "anomalies",
        ),
        (lambda e: e["systems"][0]["identity"].update(fake=False), "assessment[0].fake"),
        (lambda e: e["criteria"]["protocol"]["thresholds"]["negation"].update(cosine=1.0), "failure"),
        (lambda e: e["comparisons"][0]["pairs"][0].update(p_holm=0.0), "comparison[0].pairs[0].p_holm"),
        (lambda e: e["arithmetic"].update(own_faults=["none"]), "arithmetic.own_faults"),
        (
            lambda e: e["arithmetic"]["published"][0].update(verdict="sound"),
            "arithmetic.published[0].verdict",
        ),
        (swap_splits, "calibrated"),
    ],
)
def test_every_kind_of_edit_is_found(record, change, words):
    plain = json.loads(to_bytes(record))
    change(plain)
    faults = differences(from_bytes(canonical(plain)))
    assert any(words in fault for fault in faults), faults


def test_a_checker_that_never_looks_would_miss_them_all(record):
    """The table above is only worth something if the unchanged record passes and a changed one does not."""
    plain = json.loads(to_bytes(record))
    plain["assessments"][0]["released"] = not plain["assessments"][0]["released"]
    assert differences(record) == []
    assert differences(from_bytes(canonical(plain)))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not JSON"),
        (b"{" * 100_000, "not JSON"),
        (b"[]", "schema_version None"),
        (b'{"schema_version": 99}', "schema_version 99; this version of clinsafe reads 1"),
        (b'{"schema_version": 1}', "Field required"),
    ],
)
def test_what_is_no_record_is_one_line(data, words):
    with pytest.raises(ReportError, match=words) as caught:
        from_bytes(data)
    assert "\n" not in str(caught.value)


def test_a_case_with_neither_scores_nor_a_reason_is_a_fault(record):
    plain = json.loads(to_bytes(record))
    plain["systems"][0]["cases"][0]["scores"] = None
    (fault,) = differences(from_bytes(canonical(plain)))
    assert "needs all nine scores" in fault


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda e: e["systems"][0]["cases"][0]["scores"].update({"a|b": float("nan")}),
            "canonical JSON cannot",
        ),
        (
            lambda e: e["systems"][0]["figures"]["suite.all.auroc"].update(value=10**400),
            "canonical JSON cannot",
        ),
        (lambda e: e["suite"].update(counts={"negation": 10**30}), "canonical JSON cannot"),
        (lambda e: e["declaration"].update(operator="\ud800"), "canonical JSON cannot"),
        (lambda e: e.update(created="yesterday"), "yesterday"),
        (lambda e: e.update(created="2026-11-30T12:00:00"), "with its zone"),
        (lambda e: e.update(systems=[]), "at least 1"),
        (lambda e: e.update(systems=e["systems"][:1]), "a baseline"),
        (lambda e: e["systems"][0]["cases"][0]["scores"].update({"a|b": 5.0}), "less than or equal to 1"),
        (lambda e: e["criteria"]["fmea"].update(failure_modes=[]), "no criteria for hazard"),
        (lambda e: e["assessments"][0].update(deep=json.loads("[" * 300 + "]" * 300)), "evidence.json"),
        (lambda e: e.update(systems=e["systems"][1:]), "a system under test"),
        (lambda e: e.update(systems=e["systems"] * 2), "two systems have one label"),
        (lambda e: e.update(assessments=e["assessments"] * 2), "exactly one assessment"),
        (lambda e: e["criteria"].update(hazards=[]), "no criteria for hazard"),
        (lambda e: e["systems"][0]["cases"][0].update(hazard="zzz"), "no criteria for hazard zzz"),
        (
            lambda e: e["criteria"]["protocol"]["thresholds"].pop("negation"),
            "no criteria for hazard negation",
        ),
    ],
)
def test_a_record_that_cannot_be_one_is_refused_in_one_line(record, change, words):
    plain = json.loads(to_bytes(record))
    change(plain)
    with pytest.raises(ReportError, match=words) as caught:
        from_bytes(json.dumps(plain).encode())
    assert "\n" not in str(caught.value)


def test_an_empty_assessment_is_a_fault_not_a_release(record):
    plain = json.loads(to_bytes(record))
    plain["assessments"][0] = {}
    assert "assessment[0].held is missing" in differences(from_bytes(canonical(plain)))


def test_an_absent_file_is_one_line(tmp_path):
    with pytest.raises(ReportError, match="cannot be read"):
        load(tmp_path / "evidence.json")


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("evidence-*.json")), ids=lambda f: f.name)
def test_old_records_load_for_ever_and_still_derive(file):
    assert differences(load(file)) == []

"""compare: a regression is found, an improvement is none, silence is no improvement, unlike things are refused."""

from __future__ import annotations

import json

import pytest

from clinsafe.errors import ReportError, UsageError
from clinsafe.protocols import ModelIdentity
from clinsafe.reports import pdf
from clinsafe.reports.changes import compare_audits
from clinsafe.reports.evidence import canonical, from_bytes, load, to_bytes
from clinsafe.stats import NotMeasured
from clinsafe.workflows.audit import run_audit
from tests.workflows.test_audit import oracle

pytestmark = pytest.mark.usefixtures("shared_intervals")


@pytest.fixture(scope="module")
def runs(shared_intervals, suite, tmp_path_factory):
    """One hazard, by models that know all answers, none, and all but a few."""
    cases = [c for c in suite if c.hazard == "temporal"]
    folder = tmp_path_factory.mktemp("runs")

    def audit(name, encoder):
        encoder.identity = ModelIdentity(name=f"org/{name}", settings={"dtype": "float32"})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pdf, "render", lambda *_: b"%PDF-1.7 stand-in")
            return run_audit(encoder, hazards=["temporal"], out=folder / name).evidence

    few_wrong, many_wrong = oracle(cases, good=True), oracle(cases, good=True)
    few_wrong._vectors = few_wrong._vectors | oracle(cases[:2], good=False)._vectors
    many_wrong._vectors = many_wrong._vectors | oracle(cases[:12], good=False)._vectors
    return {
        "good": audit("good", oracle(cases, good=True)),
        "few": audit("few", few_wrong),
        "many": audit("many", many_wrong),
        "folder": folder,
    }


def test_a_regression_is_found_with_its_cases(runs):
    result = compare_audits(runs["few"], runs["many"])
    assert result.regressed == ["temporal", "all"]
    inversion = next(row for row in result.rows if row.event == "inversion")
    assert (inversion.change.only_a, inversion.change.only_b) == (0, 10)
    assert len(inversion.worse) == 10
    assert not inversion.better
    assert inversion.p_holm >= inversion.change.p


def test_an_improvement_and_no_change_are_no_regression(runs):
    assert compare_audits(runs["many"], runs["good"]).regressed == []
    same = compare_audits(runs["many"], runs["many"])
    assert same.regressed == []
    assert all(row.change.p == 1 for row in same.rows)


def test_two_more_failures_lie_within_the_interval(runs):
    """An always-alarming comparison would fail here, one that never alarms above."""
    result = compare_audits(runs["good"], runs["few"])
    assert result.regressed == []
    assert any(row.worse for row in result.rows)


def test_what_b_did_not_measure_is_a_regression(runs):
    plain = json.loads(to_bytes(runs["good"]))
    case = plain["systems"][0]["cases"][0]
    case.update(scores=None, not_measured="the model failed")
    result = compare_audits(runs["good"], from_bytes(canonical(plain)))
    assert result.lost == [case["id"]]
    assert result.regressed == ["temporal", "all"]
    assert all(isinstance(row.change, NotMeasured) for row in result.rows)
    json.dumps(result.to_json())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda e: e["suite"].update(version="9.9"), "suite 1.0, B with 9.9"),
        (lambda e: e["content"].update({"benchmarks/clinsafeembed/temporal.jsonl": "0" * 64}), "other cases"),
        (lambda e: e["criteria"]["protocol"]["thresholds"]["temporal"].update(cosine=0.5), "one protocol"),
    ],
)
def test_unlike_audits_are_refused(runs, change, words):
    plain = json.loads(to_bytes(runs["good"]))
    change(plain)
    with pytest.raises(UsageError, match=words):
        compare_audits(runs["good"], from_bytes(canonical(plain)))


def test_an_unknown_system_is_named_with_those_there_are(runs):
    with pytest.raises(UsageError, match=r"B has no system called 'x'; there are: org/few"):
        compare_audits(runs["good"], runs["few"], system_b="x")


def test_a_record_comes_from_a_folder_or_a_file(runs, tmp_path):
    assert load(runs["folder"] / "good") == runs["good"]
    assert load(runs["folder"] / "good" / "evidence.json") == runs["good"]
    with pytest.raises(ReportError, match="cannot be read"):
        load(tmp_path / "nothing")


def flipped(evidence, how_many):
    """The record with that many more inversions in each hazard, all at a similarity below every limit."""
    plain = json.loads(to_bytes(evidence))
    done = {}
    for case in plain["systems"][0]["cases"]:
        done[case["hazard"]] = done.get(case["hazard"], 0) + 1
        if done[case["hazard"]] <= how_many:
            case["scores"]["a|a_same"] = case["scores"]["a|b"]
    return from_bytes(canonical(plain))


def test_a_little_in_every_hazard_is_seen_in_the_row_over_all(suite, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pdf, "render", lambda *_: b"%PDF-1.7 stand-in")
        encoder = oracle(suite, good=True)
        encoder.identity = ModelIdentity(name="org/good", settings={"dtype": "float32"})
        good = run_audit(encoder, out=tmp_path / "good").evidence
    result = compare_audits(good, flipped(good, 3))
    assert "all" in result.regressed
    inversions = {row.hazard: row for row in result.rows if row.event == "inversion"}
    assert not inversions["negation"].regression  # three of 56 lie within the interval
    assert inversions["all"].change.only_b == 18


def test_unlike_kinds_and_useless_candidates(runs):
    plain = json.loads(to_bytes(runs["good"]))
    for case in plain["systems"][0]["cases"]:
        case["scores"] = dict.fromkeys(case["scores"], 0.0)  # calls everything unlike everything
    useless = from_bytes(canonical(plain))
    assert "temporal" in compare_audits(runs["good"], useless).regressed
    rows = compare_audits(runs["good"], useless).rows
    assert any(row.event == "same_missed" and row.regression for row in rows)
    plain["systems"][0]["identity"]["kind"] = "cross-encoder"
    with pytest.raises(UsageError, match=r"a bi-encoder, .* a cross-encoder"):
        compare_audits(runs["good"], from_bytes(canonical(plain)))

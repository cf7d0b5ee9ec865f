"""Reports of mined suites: verified with the suite's file or said not to be; old records keep their bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clinsafe.benchmarks.mined import card_path
from clinsafe.cli.app import app
from clinsafe.errors import UsageError
from clinsafe.reports import pdf, view
from clinsafe.reports.complete import incomplete, suite_compared
from clinsafe.reports.evidence import CaseRecord, canonical, from_bytes, load, to_bytes
from clinsafe.reports.grouped import FAMILIES, NAMED, by_family, by_subtype, named
from clinsafe.reports.suite_record import Family
from clinsafe.reports.verify import verify
from clinsafe.workflows.audit import run_audit
from tests.reports.test_verify import rederived
from tests.tiers import mined, write_mined

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("evidence-*.json")), ids=lambda f: f.name)
def test_a_record_from_before_there_were_tiers_keeps_its_bytes(file):
    same = to_bytes(load(file)) == canonical(json.loads(file.read_bytes()))
    assert same  # not compared in the assertion: a difference would print the whole record


@pytest.fixture(scope="module")
def signed(few, signing_key, shared_intervals, tmp_path_factory):
    """A signed record of a mined suite, and that suite."""
    folder = tmp_path_factory.mktemp("signed")
    path = write_mined(folder, mined(few))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pdf, "render", lambda *_: b"%PDF-1.7 stand-in")
        patch.setattr(view, "similarity_svg", lambda _: "<svg></svg>")
        patch.setattr("clinsafe.workflows.write._sign_pages", lambda *_: [])
        result = run_audit("fake:words", suite=path, out=folder / "run", key=signing_key)
    trust = folder / "trust.der"
    trust.write_bytes(signing_key.certificate)
    return result, path, trust


def test_without_the_suite_completeness_is_said_not_to_be_compared(signed):
    result, _, trust = signed
    found = verify(result.folder / "evidence.json", [trust])
    assert found.valid
    assert not found.suite_compared
    assert "completeness not compared (the mined suite was not given)" in found.verdict
    assert found.to_json()["suite_tier"] == "generated"
    assert found.to_json()["suite_compared"] is False


def test_with_the_suite_it_is_compared_by_hash_and_cases(signed, tmp_path):
    result, path, trust = signed
    found = verify(result.folder / "evidence.json", [trust], suite=path)
    assert found.valid, found.problems
    assert found.suite_compared
    assert "not compared" not in found.verdict
    renamed = tmp_path / "other.jsonl"
    renamed.write_bytes(path.read_bytes())
    card_path(renamed).write_bytes(card_path(path).read_bytes())
    assert verify(result.folder / "evidence.json", [trust], suite=renamed).valid  # the bytes count


def test_another_suite_or_card_makes_it_invalid(signed, few, tmp_path):
    result, path, trust = signed
    other = write_mined(tmp_path, mined(few)[:-1])
    found = verify(result.folder / "evidence.json", [trust], suite=other)
    assert not found.valid
    assert any("is not the suite of the record" in problem for problem in found.problems)
    same = tmp_path / "same.jsonl"
    same.write_bytes(path.read_bytes())
    card_path(same).write_text(card_path(path).read_text().replace("9 of 10", "10 of 10"))
    found = verify(result.folder / "evidence.json", [trust], suite=same)
    assert not found.valid
    assert not found.suite_compared
    assert [p for p in found.problems if "is not the card of the record" in p]


def test_a_suite_for_a_written_report_and_a_missing_one_are_one_line(signed, record, tmp_path):
    result, path, trust = signed
    with pytest.raises(UsageError, match="made on the written suite"):
        incomplete(record, to_bytes(record), path)
    with pytest.raises(UsageError, match="no such file"):
        verify(result.folder / "evidence.json", [trust], suite=tmp_path / "none.jsonl")


def dropped(plain):
    """Every system loses its worst case."""
    for system in plain["systems"]:
        gone = next(c for c in system["cases"] if c["hazard"] == "negation")
        system["cases"].remove(gone)
    plain["suite"]["counts"]["negation"] -= 1


def reviewed(plain):
    plain["suite"]["clinician_review"] = "By ten physicians."


def licensed(plain):
    plain["suite"]["mined"]["sources"][0]["licence"] = "public domain"


def regrouped(plain):
    families = plain["suite"]["mined"]["families"]["negation"]
    families["negation-known"]["novel"] = True


def worsened(plain):
    baseline = next(s for s in plain["systems"] if s["label"] == "token Jaccard")
    for case in baseline["cases"]:
        case["scores"]["a|a_same"] = 0.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dropped, "are missing"),
        (reviewed, "suite's card says"),
        (licensed, "suite's card says"),
        (regrouped, "suite's card says"),
        (worsened, "its scores are not those"),
    ],
)
def test_a_careful_forger_is_found_by_who_has_the_suite(signed, shared_intervals, change, words):
    result, path, _ = signed
    plain = json.loads(to_bytes(result.evidence))
    change(plain)
    forged = rederived(from_bytes(canonical(plain)))
    assert incomplete(forged, to_bytes(forged)) == []  # nobody else can tell
    assert not suite_compared(forged)
    found = incomplete(forged, to_bytes(forged), path)
    assert any(words in fault for fault in found), found


def test_a_written_record_cannot_pass_as_compared_by_calling_itself_mined(record):
    plain = json.loads(to_bytes(record))
    assert plain["suite"]["tier"] == "written"
    plain["suite"].update(tier="generated")
    with pytest.raises(Exception, match="says where it was mined"):
        from_bytes(canonical(plain))


def test_the_command_says_tier_and_what_was_not_compared(signed):
    result, path, trust = signed
    arguments = ["report", "verify", str(result.folder / "evidence.json"), "--trust", str(trust)]
    alone, given = (
        CliRunner().invoke(app, arguments),
        CliRunner().invoke(app, [*arguments, "--suite", str(path)]),
    )
    assert alone.exit_code == given.exit_code == 0, alone.output + given.output
    assert "NOT COMPARED: the mined suite was not given; who has it adds --suite mined.jsonl" in alone.output
    assert "tier generated, version mined-7" in alone.output
    assert "all cases and criteria are there" in given.output


def case(number, subtype):
    return CaseRecord(id=f"c{number}", hazard="negation", subtype=subtype, stratum="balanced", split="test",
                      scores=None, not_measured="x")  # fmt: skip


def test_cases_are_counted_by_subtype_the_worst_share_first():
    cases = [*(case(n, "finding") for n in range(10)), *(case(n, "drug_dose") for n in range(10, 14))]
    assert by_subtype(cases, ["c0", "c10", "c11"]) == "3 of 14: drug dose 2/4, finding 1/10"
    assert by_subtype(cases, []) == "none of 14"


def test_families_beyond_the_worst_are_counted_together_and_none_is_lost():
    families = {
        f"f{n}": Family(novel=False, cases=[f"{n}-{i}" for i in range(10)]) for n in range(FAMILIES + 3)
    }
    anomalies = {
        "inversion": [f"{n}-{i}" for n in range(FAMILIES + 3) for i in range(n % 7)],
        "failure": ["0-0"],
    }
    rows = by_family(families, anomalies, "inversion")
    assert len(rows) == FAMILIES + 1
    assert rows[-1].name == "3 others"
    assert sum(row.n for row in rows) == 10 * len(families)
    for event, ids in anomalies.items():
        assert sum(row.faults[event] for row in rows) == len(ids)
    shares = [row.faults["inversion"] / row.n for row in rows[:-1]]
    assert shares == sorted(shares, reverse=True)


def test_a_long_list_of_ids_is_cut_with_its_number():
    assert named([]) == "none"
    assert named(["a", "b"]) == "a, b"
    many = [f"c{n}" for n in range(1000)]
    assert named(many).startswith("1000: c0, c1, ")
    assert len(named(many).split(",")) == NAMED

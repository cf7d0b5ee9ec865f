"""An audit on a mined suite: one tier, said everywhere, never compared with the other, hashed and counted."""

from __future__ import annotations

import json
import re

import pytest

from clinsafe.benchmarks.mined import card_path
from clinsafe.content import Content, sha256_file
from clinsafe.errors import ContentError, UsageError
from clinsafe.protocols import ModelIdentity
from clinsafe.reports import pdf, view
from clinsafe.reports.changes import compare_audits
from clinsafe.reports.differences import differences
from clinsafe.reports.evidence import canonical, from_bytes, limits, to_bytes
from clinsafe.reports.render import html
from clinsafe.workflows.audit import run_audit
from tests.tiers import mined, write_mined
from tests.workflows.test_audit import oracle

pytestmark = pytest.mark.usefixtures("shared_intervals")


@pytest.fixture(scope="module")
def drawn(shared_intervals):
    """Pages have tests of their own; here they would only cost time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pdf, "render", lambda *_: b"%PDF-1.7 stand-in")
        patch.setattr(view, "similarity_svg", lambda _: "<svg></svg>")
        yield


@pytest.fixture(scope="module")
def cases(few):
    return mined(few)


@pytest.fixture(scope="module")
def suite_file(cases, tmp_path_factory):
    return write_mined(tmp_path_factory.mktemp("mined"), cases)


@pytest.fixture(scope="module")
def evidence(suite_file, drawn, tmp_path_factory):
    return run_audit("fake:words", suite=suite_file, out=tmp_path_factory.mktemp("run") / "run").evidence


@pytest.fixture(scope="module")
def page(evidence):
    text = re.sub(r"<style>.*?</style>", "", html(evidence, Content(), charts=False), flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def test_the_record_says_which_tier_and_what_its_card_says(evidence, cases, suite_file):
    record = evidence.suite
    assert (record.tier, record.version) == ("generated", "mined-7")
    assert record.counts == dict.fromkeys(dict.fromkeys(c.hazard for c in cases), 3)
    assert (record.authorship, record.second_reader) == ("Rules by a test.", "Blind, 9 of 10.")
    assert record.not_covered == ["laterality"]
    assert [source.licence for source in record.mined.sources] == ["MIT", "CC BY 4.0"]
    assert evidence.content["suite/mined.jsonl"] == sha256_file(suite_file)
    assert evidence.content["suite/mined.card.yaml"] == sha256_file(card_path(suite_file))
    assert not any(name.startswith("benchmarks/clinsafeembed/") for name in evidence.content)
    assert evidence.options["suite"] == "suite/mined.jsonl"
    assert evidence.limits == limits("generated") != limits("written")
    assert differences(evidence) == []


def test_every_case_stands_in_one_family_of_the_record(evidence, cases):
    found = [
        i for families in evidence.suite.mined.families.values() for f in families.values() for i in f.cases
    ]
    assert sorted(found) == sorted(case.id for case in cases)
    assert evidence.suite.mined.families["negation"]["negation-new"].novel
    assert not evidence.suite.mined.families["negation"]["negation-known"].novel


def test_the_record_holds_no_sentence(evidence, cases):
    plain = to_bytes(evidence).decode()
    for case in cases:
        assert case.a not in plain
        assert case.b_same not in plain


def test_the_pages_say_the_tier_its_frame_and_its_sources(page):
    for said in (
        "tier “generated”",
        "Bounds hold for this tier’s sampling frame, not your hospital",
        "results of two tiers are never pooled",
        "PubMedQA, github.com/pubmedqa",
        "CC BY 4.0",
        "c0ffee1234567890",
        "Negation 9/10",
        "Cases of the generated tier were made from published text by rules",
    ):
        assert said in page, said
    assert "“written”" not in page
    assert "written suite" not in page


def test_mined_cases_are_counted_by_subtype_and_family_not_named(evidence, page, cases):
    assert "3 of 3: plain-form 3/3" in page
    assert "negation-new" in page
    assert not any(case.id in page for case in cases)
    listed = str(evidence.assessments[0]["anomalies"])
    assert any(case.id in listed for case in cases)  # the record keeps them


def test_the_written_tier_still_names_its_cases_and_says_its_tier(small_suite, drawn, tmp_path):
    result = run_audit("fake:words", out=tmp_path / "run", overlay=small_suite)
    text = html(result.evidence, Content(), charts=False)
    assert "tier “written”" in text
    assert "neg-0" in text
    assert result.evidence.options["suite"] == "written"
    assert "Rule famil" not in text
    assert "mined" not in result.evidence.suite.model_dump()


def test_some_hazards_of_it_are_audited_alone(suite_file, drawn, tmp_path):
    found = run_audit("fake:words", suite=suite_file, hazards=["temporal"], out=tmp_path / "run").evidence
    assert found.suite.counts == {"temporal": 3}
    assert list(found.suite.mined.families) == ["temporal"]


@pytest.mark.parametrize("hazards", [["laterality"], [], "negation"])
def test_a_hazard_that_it_does_not_have_is_one_line(hazards, suite_file, tmp_path):
    with pytest.raises(UsageError):
        run_audit("fake:words", suite=suite_file, hazards=hazards, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_file_that_is_not_its_cards_is_refused_before_a_model_is_loaded(cases, tmp_path):
    with pytest.raises(UsageError, match="no such file"):
        run_audit("fake:words", suite=tmp_path / "none.jsonl")
    path = write_mined(tmp_path, cases)
    path.write_text(path.read_text().replace(cases[0].a, f"{cases[0].a[:-1]} today."))
    with pytest.raises(ContentError, match=r"are not those of mined\.card\.yaml"):
        run_audit("fake:words", suite=path)
    with pytest.raises(UsageError, match="cannot be recorded"):
        run_audit("fake:words", suite=write_mined(tmp_path, cases, "big.jsonl", seed=2**60))


def test_a_written_case_among_mined_ones_is_refused(cases, few, tmp_path):
    with pytest.raises(ContentError, match="tiers are never pooled"):
        run_audit("fake:words", suite=write_mined(tmp_path, [*cases, few[0]]))


@pytest.fixture(scope="module")
def written(few, drawn, tmp_path_factory):
    from tests.conftest import write_small

    folder = tmp_path_factory.mktemp("written")
    return run_audit("fake:words", out=folder / "run", overlay=write_small(folder / "content", few))


def known(cases, name):
    encoder = oracle(cases, good=True)
    encoder.identity = ModelIdentity(name=f"org/{name}", settings={"dtype": "float32"})
    return encoder


def test_two_tiers_are_never_compared(evidence, written, suite_file, tmp_path):
    for a, b in ((evidence, written.evidence), (written.evidence, evidence)):
        with pytest.raises(UsageError, match="two tiers are never compared or pooled"):
            compare_audits(a, b)
    with pytest.raises(UsageError, match=r"cannot be compared with this audit.*two tiers"):
        run_audit("fake:hash", suite=suite_file, previous=written.folder, out=tmp_path / "run")


def test_another_version_and_other_mined_cases_are_refused(evidence, cases, drawn, tmp_path):
    plain = json.loads(to_bytes(evidence))
    plain["suite"]["version"] = "mined-8"
    with pytest.raises(UsageError, match="suite mined-7, B with mined-8"):
        compare_audits(evidence, from_bytes(canonical(plain)))
    plain = json.loads(to_bytes(evidence))
    plain["content"]["suite/mined.jsonl"] = "0" * 64
    with pytest.raises(UsageError, match="other cases"):
        compare_audits(evidence, from_bytes(canonical(plain)))


def test_the_same_mined_cases_under_another_name_are_compared(cases, suite_file, drawn, tmp_path):
    before = run_audit(known(cases, "model"), suite=suite_file, out=tmp_path / "a")
    other = write_mined(tmp_path, cases, "renamed.jsonl")
    after = run_audit(known(cases, "model"), suite=other, previous=before.folder, out=tmp_path / "b")
    (change,) = after.evidence.changes
    assert change["regressed"] == []
    assert differences(after.evidence) == []
    assert after.evidence.previous.content == {
        name: digest for name, digest in before.evidence.content.items()
        if name.startswith(("benchmarks/", "suite/"))
    }  # fmt: skip


def test_a_tier_without_its_origin_and_an_origin_without_its_tier_are_no_record(evidence):
    plain = json.loads(to_bytes(evidence))
    for change in (lambda s: s.pop("mined"), lambda s: s.update(tier="written")):
        edited = json.loads(canonical(plain))
        change(edited["suite"])
        with pytest.raises(Exception, match="says where it was mined"):
            from_bytes(canonical(edited))

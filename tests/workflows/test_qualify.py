"""Qualification of the tool: the verdict follows from the checks, and the record of it holds."""

from __future__ import annotations

import re
import tomllib
import zlib
from contextlib import suppress
from pathlib import Path

import pytest

from clinsafe.checklist.qualification import CheckSpec, load_qualification
from clinsafe.content import Content, packaged_root
from clinsafe.errors import MissingDependency, OutputExists, ReportError, WeightsMismatch
from clinsafe.reports import pdf
from clinsafe.reports import qualification as records
from clinsafe.reports.pages import Pages
from clinsafe.reports.qualification import CheckRecord, deviations_of, verdict_of
from clinsafe.reports.qualification_check import check_qualification
from clinsafe.reports.sign import sign_pdf
from clinsafe.workflows import qualify as workflow
from clinsafe.workflows.qualify import INSTRUMENTS, make_checks, run_qualify
from clinsafe.workflows.qualify_bench import Bench, Found
from tests.drawing import REAL

pytestmark = pytest.mark.usefixtures("shared_renders")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(tmp_path):
    """A fresh one: nothing dear is made before it is asked for."""
    return Bench(tmp_path / "scratch", with_model=False)


@pytest.fixture(scope="module")
def asked():
    return load_qualification(Content())


def spec(check="OQ-01", level="always"):
    return CheckSpec(id=check, title="A check", level=level, requirement="It is so.", expected="so")


def made(outcome, level="always", check="OQ-01"):
    reason = "" if outcome == "pass" else "because"
    return CheckRecord(**spec(check, level).model_dump(), observed="seen", outcome=outcome, reason=reason)


# ── the file and the verdict ───────────────────────────────────────────────────────────────────


def test_every_check_that_is_asked_for_has_an_instrument_and_no_other(asked):
    assert [check.id for check in asked.checks] == list(INSTRUMENTS)


def test_the_pins_are_those_that_the_tests_are_run_with_and_leave_out_nothing_needed(asked):
    lines = (ROOT / "requirements" / "constraints.txt").read_text().splitlines()
    frozen = dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    frozen = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in frozen.items()}
    assert asked.pins.items() <= frozen.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    declared = project["dependencies"] + [d for e, group in extras.items() if e != "dev" for d in group]
    named = {re.split(r"[\[<>=;! ]", line)[0].lower() for line in declared} - {"clinsafe"}
    assert named & set(frozen) <= set(asked.pins)


def test_no_word_of_it_claims_more_than_evidence():
    for file in ("checklist/qualification.yaml", "reports/templates/qualification.html.j2"):
        text = (packaged_root() / file).read_text(encoding="utf-8").lower()
        assert not re.search(r"\b(validated|compliant|certified|approved)\b", text), file


@pytest.mark.parametrize(
    ("level", "outcome", "blocks"),
    [("always", "pass", False), ("always", "fail", True), ("always", "not run", True),
     ("where possible", "pass", False), ("where possible", "fail", True), ("where possible", "not run", False),
     ("reported", "pass", False), ("reported", "fail", False), ("reported", "not run", False)],
)  # fmt: skip
def test_only_what_may_be_missing_may_be_missing(level, outcome, blocks):
    checks = [made("pass"), made(outcome, level, "OQ-02")]
    assert verdict_of(checks) == ("NOT QUALIFIED" if blocks else "QUALIFIED")
    assert len(deviations_of(checks)) == (outcome != "pass")


def test_nothing_checked_is_not_qualified():
    assert verdict_of([]) == "NOT QUALIFIED"


def test_what_did_not_pass_says_why():
    with pytest.raises(ValueError, match="must say why"):
        CheckRecord(**spec().model_dump(), observed="", outcome="not run")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(ZeroDivisionError("no"), "fail"), (MissingDependency("x", "y", "pip install y"), "not run"),
     (AssertionError(), "fail"), (WeightsMismatch("other weights"), "fail")],
)  # fmt: skip
def test_an_instrument_that_breaks_is_never_a_pass(bench, monkeypatch, error, outcome):
    def breaks(_):
        raise error

    monkeypatch.setattr(workflow, "INSTRUMENTS", {**INSTRUMENTS, "OQ-01": breaks})
    (check,) = make_checks(bench, only="OQ-01")
    assert check.outcome == outcome
    assert check.reason


def test_a_check_without_an_instrument_was_not_run(bench, monkeypatch):
    monkeypatch.setattr(workflow, "INSTRUMENTS", {})
    assert {check.outcome for check in make_checks(bench)} == {"not run"}


def test_no_path_of_the_machine_gets_into_the_record(bench, monkeypatch):
    seen = f"{bench.scratch}/x {packaged_root()}/y {Path.home()}/z \x1b[31m" + 1000 * "long "
    monkeypatch.setattr(workflow, "INSTRUMENTS", {"OQ-01": lambda _: Found(seen, "fail", seen)})
    (check,) = make_checks(bench, only="OQ-01")
    for text in (check.observed, check.reason):
        assert str(bench.scratch) not in text
        assert str(packaged_root()) not in text
        assert "\x1b" not in text
        assert len(text) < 300


def outcomes(**changed):
    """Instruments that all pass, but those that are named: `OQ_05=("fail", "why")`."""
    found = {check: (lambda _: Found("as expected", "pass")) for check in INSTRUMENTS}
    for check, (outcome, reason) in changed.items():
        found[check.replace("_", "-")] = lambda _, o=outcome, r=reason: Found("something else", o, r)
    return found


@pytest.fixture
def no_pdf(monkeypatch):
    monkeypatch.setattr(pdf, "render", lambda *_: b"%PDF-1.7 stand-in")


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [({}, "QUALIFIED"), ({"OQ_05": ("fail", "why")}, "NOT QUALIFIED"), ({"OQ_05": ("not run", "why")}, "NOT QUALIFIED"),
     ({"OQ_17": ("not run", "why")}, "QUALIFIED"), ({"OQ_17": ("fail", "why")}, "NOT QUALIFIED"),
     ({"IQ_03": ("fail", "why")}, "QUALIFIED"), ({"IQ_04": ("fail", "why")}, "NOT QUALIFIED")],
)  # fmt: skip
def test_the_verdict_follows_and_the_page_says_it(changed, verdict, tmp_path, monkeypatch, no_pdf):
    monkeypatch.setattr(workflow, "INSTRUMENTS", outcomes(**changed))
    result = run_qualify(out=tmp_path / "q", operator="<b>QA & co</b>")
    assert result.record.verdict == verdict
    assert result.qualified == (verdict == "QUALIFIED")
    assert records.from_bytes(result.json.read_bytes()) == result.record
    page = records.html(result.record, Content())
    assert f"<strong>{verdict}</strong>" in page
    assert "&lt;b&gt;QA &amp; co" in page
    assert all(f"{line}</li>" in page for line in result.record.deviations)
    for question in result.record.yours:
        assert question.title in page


def test_one_call_tells_of_every_check(tmp_path, monkeypatch, no_pdf):
    monkeypatch.setattr(workflow, "INSTRUMENTS", outcomes())
    told = []
    run_qualify(out=tmp_path / "q", stage=lambda *said: told.append(said))
    assert [what.split()[0] for what, _, _ in told[:-1]] == list(INSTRUMENTS)
    assert {total for _, _, total in told[:-1]} == {len(INSTRUMENTS)}


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "report.pdf").write_bytes(b"mine")
    with pytest.raises(OutputExists, match="choose another"):
        run_qualify(out=tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["report.pdf"]


def test_a_stopped_qualification_leaves_no_folder_in_the_way(tmp_path, monkeypatch, no_pdf):
    def stops(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(workflow, "INSTRUMENTS", {**outcomes(), "OQ-03": stops})
    with pytest.raises(KeyboardInterrupt):
        run_qualify(out=tmp_path / "q")
    assert not (tmp_path / "q").exists()


def test_without_a_renderer_the_record_is_kept(tmp_path, monkeypatch):
    def missing(*_):
        raise MissingDependency("making the PDF", "weasyprint", "pip install it")

    monkeypatch.setattr(workflow, "INSTRUMENTS", outcomes(OQ_11=("not run", "no renderer")))
    monkeypatch.setattr(pdf, "render", missing)
    result = run_qualify(out=tmp_path / "q")
    assert result.pdf is None
    assert result.json.is_file()
    assert result.notes
    assert not result.qualified


@pytest.fixture(scope="module")
def qualified(shared_renders, tmp_path_factory, signing_key):
    """A real, signed record of a run in which one check failed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workflow, "INSTRUMENTS", outcomes(OQ_08=("fail", "another count")))
        return run_qualify(out=tmp_path_factory.mktemp("qualified") / "q", key=signing_key)


@pytest.fixture
def pem(signing_key, tmp_path):
    path = tmp_path / "trusted.der"
    path.write_bytes(signing_key.certificate)
    return path


def test_a_genuine_record_is_valid_whatever_its_verdict(qualified, pem, monkeypatch):
    monkeypatch.setattr(pdf, "render", REAL)  # the pages are drawn again, not remembered
    found = check_qualification(qualified.pdf, [pem])
    assert found.valid, found.verdict
    assert found.rerender == "IDENTICAL"
    assert not found.record.qualified
    assert check_qualification(qualified.json, [pem]).valid
    assert not check_qualification(qualified.pdf, []).valid  # nobody is trusted


def test_the_document_is_short_and_carries_the_record(qualified):
    import pypdfium2

    from clinsafe.reports.pdfcheck import attachment

    with pypdfium2.PdfDocument(qualified.pdf.read_bytes()) as document:
        assert len(document) <= 4
    assert attachment(qualified.pdf.read_bytes()) == qualified.json.read_bytes()
    assert re.search(rb"pdfaid:part(>|=.)3", b"".join(streams(qualified.pdf.read_bytes())))


def test_without_the_same_renderer_the_words_are_looked_for(qualified, pem, monkeypatch):
    other = {**pdf.renderer_versions(), "pango": "0.1"}
    monkeypatch.setattr(pdf, "renderer_versions", lambda: other)
    found = check_qualification(qualified.pdf, [pem])
    assert (found.rerender, found.accepted) == ("NOT_COMPARABLE", True)
    true = records.html
    monkeypatch.setattr(records, "html", lambda *a: true(*a).replace("another count", "no count at all"))
    assert not check_qualification(qualified.pdf, [pem]).valid


def test_pages_of_another_template_are_not_accepted_unread(qualified, pem, monkeypatch):
    monkeypatch.setattr("clinsafe.reports.qualification_check.sha256_file", lambda _: "0" * 64)
    found = check_qualification(qualified.pdf, [pem])
    assert found.rerender == "NOT_COMPARABLE"
    assert not found.accepted


def streams(document):
    """The content of every stream of a PDF that is compressed in the usual way, or not at all."""
    for found in re.finditer(rb"stream\r?\n(.*?)endstream", document, re.DOTALL):
        with suppress(zlib.error):
            yield zlib.decompressobj().decompress(found[1])
        yield found[1]


def better(record):
    checks = [
        check.model_copy(update={"outcome": "pass", "reason": ""}) if check.id == "OQ-08" else check
        for check in record.checks
    ]
    return {"checks": checks, "verdict": "QUALIFIED", "deviations": []}


FORGERIES = {
    "verdict": lambda r: {"verdict": "QUALIFIED"},
    "deviations": lambda r: {"deviations": []},
    "check left out": lambda r: {
        "checks": [c for c in r.checks if c.id != "OQ-08"], "verdict": "QUALIFIED", "deviations": [],
    },
    "level lowered": lambda r: {
        "checks": [c.model_copy(update={"level": "reported"}) for c in r.checks], "verdict": "QUALIFIED",
    },
    "other requirements": lambda r: {"requirements_sha256": "0" * 64},
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_a_record_that_does_not_follow_is_invalid_even_when_signed_anew(
    qualified, signing_key, pem, tmp_path, name, monkeypatch
):
    forged = qualified.record.model_copy(update=FORGERIES[name](qualified.record))
    data = records.to_bytes(forged)
    monkeypatch.setattr("clinsafe.reports.qualification_check.attachment", lambda _: data)
    monkeypatch.setattr(
        "clinsafe.reports.qualification_check._pages", lambda *_: Pages("IDENTICAL", "no", read=True)
    )
    found = check_qualification(qualified.pdf, [pem])
    assert found.signature.valid
    assert not found.valid, name


@pytest.mark.slow
def test_a_better_outcome_is_betrayed_by_pages_and_signature(qualified, pem, tmp_path, signing_key):
    """A forger without the key can change the JSON only; the page and both signatures tell."""
    forged = qualified.record.model_copy(update=better(qualified.record))
    path = tmp_path / "qualification.json"
    path.write_bytes(records.to_bytes(forged))
    (tmp_path / records.SIDECAR).write_bytes((qualified.folder / records.SIDECAR).read_bytes())
    assert not check_qualification(path, [pem]).valid
    page = records.html(forged, Content())
    document = pdf.render(page, qualified.json.read_bytes(), forged.created, Content())
    changed = tmp_path / "changed.pdf"
    changed.write_bytes(sign_pdf(document, signing_key, meaning="author"))
    assert check_qualification(changed, [pem]).rerender == "DIFFERENT"
    assert not check_qualification(changed, [pem]).valid


def test_an_appended_byte_and_a_missing_sidecar_are_invalid(qualified, pem, tmp_path):
    longer = tmp_path / "longer.pdf"
    longer.write_bytes(qualified.pdf.read_bytes() + b"\n")
    assert not check_qualification(longer, [pem]).valid
    alone = tmp_path / "qualification.json"
    alone.write_bytes(qualified.json.read_bytes())
    assert not check_qualification(alone, [pem]).valid


@pytest.mark.parametrize(
    "data",
    [b"{}", b'{"schema_version": 1}', b"not json {", b'{"record": "clinsafe qualification", "schema_version": 2}',
     b'{"record": "clinsafe qualification", "schema_version": 1}', b"[1]"],
)  # fmt: skip
def test_what_is_no_record_is_one_line(data, tmp_path):
    path = tmp_path / "qualification.json"
    path.write_bytes(data)
    with pytest.raises(ReportError) as caught:
        check_qualification(path)
    assert "\n" not in str(caught.value)


def test_a_report_is_no_qualification(tmp_path):
    with pytest.raises(ReportError, match="report verify"):
        records.from_bytes((ROOT / "tests/golden/evidence-1.json").read_bytes())


@pytest.mark.slow
def test_the_whole_qualification_of_this_checkout(tmp_path, signing_key, pem, drawer, monkeypatch):
    monkeypatch.setattr(pdf, "render", drawer.fresh)  # every page is drawn, none remembered
    result = run_qualify(out=tmp_path / "q", key=signing_key, with_model=False)
    by = {check.id: check.outcome for check in result.record.checks}
    assert result.qualified, result.record.deviations
    assert by["OQ-17"] == by["OQ-18"] == "not run"
    assert {by[c.id] for c in result.record.checks if c.level == "always"} == {"pass"}
    assert check_qualification(result.pdf, [pem]).valid

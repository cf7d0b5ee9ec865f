"""``report verify`` on whole reports: a table of attacks, and two broken verifiers that must fail it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from clinsafe.content import Content
from clinsafe.errors import ReportError
from clinsafe.reports import pdf
from clinsafe.reports.arithmetic import own_arithmetic
from clinsafe.reports.assess import assess_all, compare, system
from clinsafe.reports.evidence import canonical, from_bytes, to_bytes
from clinsafe.reports.keys import load_key, make_development_key
from clinsafe.reports.render import html
from clinsafe.reports.sign import sign_pdf
from clinsafe.reports.verify import verify
from tests.attacks.judges import shared

pytestmark = [  # whole reports are rendered
    pytest.mark.slow, pytest.mark.usefixtures("shared_renders", "shared_intervals"),
]  # fmt: skip


@dataclass
class Signed:
    """A signed report, its key, and the certificate that is trusted."""

    folder: Path
    key: object
    trust: Path
    document: bytes
    evidence: object


@pytest.fixture(scope="module")
def signed(one_hazard, signing_key, shared_renders, shared_intervals, tmp_path_factory):
    folder = tmp_path_factory.mktemp("signed")
    trust = folder / "trust.der"
    trust.write_bytes(signing_key.certificate)
    document = sign_pdf(one_hazard.pdf.read_bytes(), signing_key, meaning="author")
    return Signed(folder, signing_key, trust, document, one_hazard.evidence)


def render_signed(
    signed: Signed, evidence, page: str | None = None, key=None, record: bytes | None = None
) -> bytes:
    record = record or to_bytes(evidence)
    page = page or html(evidence, Content())
    return sign_pdf(
        pdf.render(page, record, evidence.created, Content()), key or signed.key, meaning="author"
    )


def edited(signed: Signed, change: Callable[[dict], None]):
    plain = json.loads(to_bytes(signed.evidence))
    change(plain)
    return from_bytes(canonical(plain))


def untouched(signed):
    return signed.document


def appended(signed):
    return signed.document + b"\n"


def flipped(signed):
    position = len(signed.document) // 3
    return (
        signed.document[:position] + bytes([signed.document[position] ^ 1]) + signed.document[position + 1 :]
    )


def cut(signed):
    return signed.document[:-2000]


def unsigned(signed):
    return pdf.render(
        html(signed.evidence, Content()), to_bytes(signed.evidence), signed.evidence.created, Content()
    )


def other_signer(signed):
    path = make_development_key(signed.folder / "other", "Somebody Else", b"x" * 12, force=True)
    return render_signed(signed, signed.evidence, key=load_key(path, b"x" * 12))


def figure_edited_in_the_evidence(signed):
    def change(e):
        e["systems"][0]["figures"]["suite.negation.inversion"]["value"] = 0.0

    return render_signed(signed, edited(signed, change))


def verdict_edited_in_the_evidence(signed):
    return render_signed(signed, edited(signed, lambda e: e["assessments"][0].update(held=[], released=True)))


def figure_edited_in_the_page(signed):
    page = html(signed.evidence, Content()).replace("FAIL", "PASS").replace("INCONCLUSIVE", "PASS")
    return render_signed(signed, signed.evidence, page=page)


def case_left_out(signed):
    def change(e):
        for s in e["systems"]:
            s["cases"] = [c for c in s["cases"] if c["id"] != s["cases"][0]["id"]]

    evidence = edited(signed, change)
    return render_signed(signed, evidence)


def case_left_out_and_everything_derived_again(signed):
    """The careful forger: drops a failing case and re-derives all figures. The counts give it away."""
    plain = json.loads(to_bytes(signed.evidence))
    for s in plain["systems"]:
        s["cases"] = s["cases"][1:]
    return render_signed(signed, rederived(from_bytes(canonical(plain))))


def criteria_loosened_afterwards(signed):
    def change(e):
        for gate in e["criteria"]["protocol"]["gates"]:
            gate["at_most"] = 0.99

    loose = edited(signed, change)
    return render_signed(signed, judged_again(loose))


def pages_faked_behind_another_renderer(signed):
    """The signer claims another renderer, so that the pages cannot be compared byte by byte."""
    evidence = edited(signed, lambda e: e["environment"].update(pango="9.9"))
    return render_signed(signed, evidence, page="<p>All six hazards PASS. RELEASED.</p>")


def criteria_fixed_after_the_run(signed):
    plain = json.loads(to_bytes(signed.evidence))
    plain["criteria_fixed"] = "2099-01-01T00:00:00+00:00"
    return render_signed(signed, signed.evidence, record=canonical(plain))


def rederived(evidence):
    """Every figure and verdict derived again, as a careful forger would."""
    systems = [
        system(
            _identity(s),
            [c.result() for c in s.cases],
            evidence.criteria,
            label=s.label,
            baseline=s.role == "baseline",
        )
        for s in evidence.systems
    ]
    return judged_again(evidence.model_copy(update={"systems": systems}))


def judged_again(evidence):
    """Every verdict, comparison and check as these figures yield it."""
    assessed = assess_all(evidence.systems, evidence.criteria, evidence.answers)
    return evidence.model_copy(
        update={
            "assessments": [a.to_json() for a in assessed],
            "comparisons": compare(evidence.systems),
            "arithmetic": own_arithmetic(evidence.systems, assessed, evidence.criteria, evidence.published),
        }
    )


def _identity(record):
    from clinsafe.protocols import ModelIdentity

    i = record.identity
    return ModelIdentity(i.name, i.revision, i.files, i.settings, i.fake, i.trusted_code, i.kind)


ATTACKS: list[tuple[Callable[[Signed], bytes], bool, str]] = [
    (untouched, True, ""),
    (appended, False, "file"),
    (flipped, False, ""),
    (cut, False, ""),
    (unsigned, False, "sign"),
    (other_signer, False, "trust"),
    (figure_edited_in_the_evidence, False, "suite.negation.inversion.value says 0"),
    (verdict_edited_in_the_evidence, False, "assessment"),
    (figure_edited_in_the_page, False, "pages are not what the evidence renders to"),
    (case_left_out, False, "number of cases"),
    (case_left_out_and_everything_derived_again, False, "number of cases"),
    (criteria_loosened_afterwards, False, "criteria"),
    (pages_faked_behind_another_renderer, False, "pages are not what the evidence renders to"),
    (criteria_fixed_after_the_run, False, "fixed after the run"),
]


@pytest.fixture(scope="module")
def files(signed):
    """Every attacked file, made once."""
    made = {}
    for attack, _, _ in ATTACKS:
        path = signed.folder / f"{attack.__name__}.pdf"
        path.write_bytes(attack(signed))
        made[attack.__name__] = path
    return made


@pytest.fixture(scope="module")
def verdicts(files, signed):
    """Our verification of every file, or the error that refused it; made once."""
    found = {}
    with shared():
        for name, path in files.items():
            try:
                found[name] = verify(path, [signed.trust])
            except ReportError as error:
                found[name] = error
    return found


def mistakes(judge, verdicts) -> list[str]:
    return [attack.__name__ for attack, valid, _ in ATTACKS if judge(verdicts[attack.__name__]) != valid]


def ours(verdict) -> bool:
    return not isinstance(verdict, ReportError) and verdict.valid


def signature_only(verdict) -> bool:
    return not isinstance(verdict, ReportError) and not verdict.signature.problems


def test_every_attack_is_found_and_the_good_file_passes(verdicts):
    assert mistakes(ours, verdicts) == []


@pytest.mark.parametrize("answer", [True, False])
def test_a_verifier_that_always_says_the_same_fails_the_table(verdicts, answer):
    assert mistakes(lambda verdict: answer, verdicts)


def test_a_verifier_that_only_trusts_the_signature_fails_the_table(verdicts):
    assert len(mistakes(signature_only, verdicts)) >= 5


@pytest.mark.parametrize(
    ("attack", "valid", "words"), [row for row in ATTACKS if row[2]], ids=lambda x: getattr(x, "__name__", "")
)
def test_the_reason_is_said(attack, valid, words, verdicts):
    verdict = verdicts[attack.__name__]
    found = str(verdict) if isinstance(verdict, ReportError) else " | ".join(verdict.problems)
    assert words in found


def test_the_good_verdict_says_that_the_key_is_for_development(verdicts):
    result = verdicts["untouched"]
    assert result.rerender == "IDENTICAL"
    assert "DEVELOPMENT" in result.verdict
    assert result.figures > 100
    assert result.to_json()["valid"] is True


def test_a_record_of_another_suite_is_said_not_to_be_compared(verdicts):
    """The fixture audits a small overlay suite, whose files are not the installed ones."""
    assert "completeness not compared" in verdicts["untouched"].verdict
    assert verdicts["untouched"].to_json()["suite_compared"] is False


def test_the_sidecar_must_say_what_the_record_says(signed, tmp_path):
    from clinsafe.reports.dsse import attest
    from clinsafe.reports.evidence import PREDICATE, predicate

    record = to_bytes(signed.evidence)
    (tmp_path / "evidence.json").write_bytes(record)
    good = predicate(signed.evidence)
    for type_, said, valid in (
        (PREDICATE, good, True),
        (PREDICATE, good | {"result": "PASSED"}, False),
        ("https://example.com/received/v1", good, False),
    ):
        envelope = attest({"evidence.json": record}, signed.key, predicate_type=type_, predicate=said)
        (tmp_path / "evidence.dsse.json").write_text(json.dumps(envelope))
        result = verify(tmp_path / "evidence.json", [signed.trust])
        assert result.valid is valid, result.problems
        assert valid or "sidecar's statement" in result.problems[0]


@pytest.mark.parametrize("sidecar", ["", "[" * 100_000, "null", "{}", '{"payload": 7}'])
def test_a_broken_sidecar_is_invalid_never_a_traceback(signed, tmp_path, sidecar):
    (tmp_path / "evidence.json").write_bytes(to_bytes(signed.evidence))
    (tmp_path / "evidence.dsse.json").write_text(sidecar)
    assert not verify(tmp_path / "evidence.json", [signed.trust]).valid


def test_another_renderer_version_is_not_comparable_and_not_a_pass_of_the_pages(files, signed, monkeypatch):
    monkeypatch.setattr(pdf, "renderer_versions", lambda: {"weasyprint": "1.0"})
    result = verify(files["untouched"], [signed.trust])
    assert result.rerender == "NOT_COMPARABLE"
    assert result.verdict.startswith("VALID RECORD, PAGES NOT COMPARED")
    assert "weasyprint" in result.rerender_reason
    assert "every printed cell was found" in result.rerender_reason


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"%PDF-1.7\nrubbish", b"\x00" * 5000, b'{"schema_version": 1}', b"PK\x03\x04"]
)
def test_what_is_no_report_is_one_line(tmp_path, data, signed):
    path = tmp_path / "x.pdf"
    path.write_bytes(data)
    with pytest.raises(ReportError) as caught:
        verify(path, [signed.trust])
    assert "\n" not in str(caught.value)


def test_a_trust_file_that_is_no_certificate_is_one_line(files, tmp_path):
    bad = tmp_path / "bad.pem"
    bad.write_text("-----BEGIN CERTIFICATE-----\nnot base64\n-----END CERTIFICATE-----\n")
    with pytest.raises(ReportError, match="not a certificate"):
        verify(files["untouched"], [bad])


def test_a_file_that_is_far_too_large_is_not_read(tmp_path, signed):
    path = tmp_path / "huge.pdf"
    with path.open("wb") as stream:
        stream.truncate(500_000_000)
    with pytest.raises(ReportError, match="larger than"):
        verify(path, [signed.trust])

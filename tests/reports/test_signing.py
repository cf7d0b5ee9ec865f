"""Signing: what a signature says and leaves as it was, what cannot be signed, and the evidence inside."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from clinsafe.errors import KeyFileError, MissingDependency, ReportError
from clinsafe.protocols import Signer
from clinsafe.reports import pdfcheck
from clinsafe.reports.pdfcheck import PdfCheck, attachment, check_pdf
from clinsafe.reports.sign import REASONS, PdfSigner, sign_pdf
from tests.reports.attacks import encrypted, overlay
from tests.reports.signing import DAY, DEVELOPMENT, EVIDENCE, FORGED, NOW, World, certify, render, run, update

pytest.importorskip("weasyprint")


@pytest.fixture(scope="module")
def world() -> World:
    return World()


# ── signing ────────────────────────────────────────────────────────────────────────────────────


def test_the_report_is_the_first_revision(world: World) -> None:
    """Byte for byte, so that it can be rendered again and compared; the rest is the signature."""
    assert world.signed.startswith(world.unsigned)
    found = check_pdf(world.signed, [world.key.certificate])
    assert found.first_revision == world.unsigned == check_pdf(world.unsigned, []).first_revision
    assert repr(found).find("first_revision") == -1
    assert len(world.signed) - len(world.unsigned) < 10_000


def test_what_the_signature_says(world: World) -> None:
    """Who, when, why; and that a development key is one."""
    from pyhanko.pdf_utils.reader import PdfFileReader

    for meaning, reason in REASONS.items():
        document = sign_pdf(world.unsigned, world.key, meaning=meaning, when=NOW - DAY)
        found = check_pdf(document, [world.key.certificate])
        assert found.valid
        assert (found.signer, found.development) == (DEVELOPMENT + "A. Auditor", True)
        assert (found.signed_at, found.fingerprint) == (NOW - DAY, world.key.fingerprint)
        said = PdfFileReader(BytesIO(document)).embedded_signatures[0]
        assert (said.field_name, said.sig_object["/Reason"]) == ("ClinsafeSignature", reason)
        assert said.sig_object["/SubFilter"] == "/ETSI.CAdES.detached"
    assert not check_pdf(world.by(world.issued), []).development


def test_the_signer_plugs_in(world: World) -> None:
    """The protocol's shape; the time is the clock's."""
    signer: Signer = PdfSigner(world.key, "review")
    assert isinstance(signer, Signer)
    assert (signer.name, signer.development) == (world.key.name, True)
    found = check_pdf(signer.sign(world.unsigned), [world.key.certificate])
    assert found.valid
    assert found.signed_at is not None
    assert abs(found.signed_at - datetime.now(UTC)) < timedelta(minutes=1)


def test_what_cannot_be_signed(world: World) -> None:
    """One line each; nothing is signed twice, and a certificate only signs in its own time."""
    for document, told in (
        (world.signed, "signature field already"),
        (encrypted(world), "encrypted"),
        (world.unsigned[:-500], "not a whole PDF"),
        (b"", "not a whole PDF"),
        (b"PK\x03\x04", "not a whole PDF"),
    ):
        with pytest.raises(ReportError, match=told):
            sign_pdf(document, world.key, meaning="approval")
    with pytest.raises(ReportError, match="choose one of author, review, approval, responsibility"):
        sign_pdf(world.unsigned, world.key, meaning="fun")  # type: ignore[arg-type]
    with pytest.raises(KeyFileError, match="not valid on"):
        sign_pdf(world.unsigned, world.key, meaning="approval", when=NOW + 101 * DAY)


def test_a_signer_that_changes_the_report_is_caught(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The promise about the first revision is checked each time, not assumed."""
    from pyhanko.sign import signers

    changed = world.unsigned[:-1] + b"! and a signature"
    monkeypatch.setattr(signers.PdfSigner, "sign_pdf", lambda *_: BytesIO(changed))
    with pytest.raises(ReportError, match="changed the report's own bytes"):
        sign_pdf(world.unsigned, world.key, meaning="approval")


def test_inside_a_running_event_loop(world: World) -> None:
    """In a notebook or a server, where asyncio.run is not possible."""

    async def work() -> PdfCheck:
        return check_pdf(sign_pdf(world.unsigned, world.key, meaning="author"), [world.key.certificate])

    assert asyncio.run(work()).valid


def test_an_intermediate_travels_along(world: World) -> None:
    """A chain in the key file is embedded, so that trust in the root is enough; the root is not embedded."""
    middle = certify("Intermediate", issuer=world.authority, authority=True)
    leaf = certify("L. Eaf", issuer=middle)
    chain = (middle.certificate, world.authority.certificate)
    document = world.by(replace(leaf, chain=chain))
    assert check_pdf(document, [world.authority.certificate]).valid
    assert not check_pdf(world.by(leaf), [world.authority.certificate]).trusted
    assert world.authority.certificate.hex().upper().encode() not in document


def test_fonts_stay_embedded(world: World) -> None:
    """PDF/A: every font of the signed file has its program inside, and the signature brings none."""
    from pyhanko.pdf_utils.generic import DictionaryObject
    from pyhanko.pdf_utils.reader import PdfFileReader

    def fonts(document: bytes) -> list[Any]:
        reader: Any = PdfFileReader(BytesIO(document))
        revisions = range(reader.total_revisions)
        references = set().union(*(reader.xrefs.explicit_refs_in_revision(number) for number in revisions))
        objects = [reader.get_object(reference) for reference in references]
        return [o for o in objects if isinstance(o, DictionaryObject) and o.get("/Type") == "/Font"]

    found = fonts(world.signed)
    assert len(found) == len(fonts(world.unsigned)) > 0
    for font in found:
        if font["/Subtype"] != "/Type0":  # a Type0 font has its program in its descendant
            assert {"/FontFile", "/FontFile2", "/FontFile3"} & set(font["/FontDescriptor"])
    assert b"pdfaid" in PdfFileReader(BytesIO(world.signed)).root["/Metadata"].data


# ── the evidence inside ────────────────────────────────────────────────────────────────────────


def test_the_evidence_comes_out_as_it_went_in(world: World) -> None:
    assert attachment(world.signed) == attachment(world.unsigned) == EVIDENCE


def test_evidence_that_cannot_be_had(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing one lists what is there; two leave a doubt; a large one is not read; nor a broken file."""
    with pytest.raises(ReportError, match=r"0 attachments called 'other.json'.*holds 'evidence.json'"):
        attachment(world.signed, "other.json")
    for junk in (b"", b"no PDF", world.unsigned[:300]):
        with pytest.raises(ReportError, match="cannot be read"):
            attachment(junk)
    with pytest.raises(ReportError, match="2 attachments"):
        attachment(render(EVIDENCE, FORGED))
    monkeypatch.setattr(pdfcheck, "LARGEST_ATTACHMENT", len(EVIDENCE) - 1)
    with pytest.raises(ReportError, match=f"has {len(EVIDENCE)} bytes"):
        attachment(world.signed)


def test_without_the_extra(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each error names the extra of what the user wanted to do."""
    monkeypatch.setitem(sys.modules, "pyhanko.pdf_utils.reader", None)
    monkeypatch.setitem(sys.modules, "pyhanko.pdf_utils.incremental_writer", None)
    with pytest.raises(MissingDependency, match=r"verifying needs pyhanko.*clinsafe\[verify\]"):
        check_pdf(world.unsigned, [])
    with pytest.raises(MissingDependency, match=r"signing needs pyhanko.*clinsafe\[audit\]"):
        sign_pdf(world.unsigned, world.key, meaning="author")
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(MissingDependency, match=r"verifying needs pypdfium2.*clinsafe\[verify\]"):
        attachment(world.unsigned)


def test_the_checker_is_quiet(world: World, tmp_path: Path) -> None:
    """pyHanko logs tracebacks; none reaches the terminal of someone who checks a damaged file."""
    (tmp_path / "report.pdf").write_bytes(update(world.by(world.silent), overlay))
    (tmp_path / "trusted.der").write_bytes(world.authority.certificate)
    program = (
        "import sys, pathlib; from clinsafe.reports.pdfcheck import check_pdf; "
        "report, trusted = (pathlib.Path(name).read_bytes() for name in sys.argv[1:]); "
        "print(check_pdf(report, [trusted]).valid)"
    )
    done = run(sys.executable, "-c", program, tmp_path / "report.pdf", tmp_path / "trusted.der")
    assert (done.stdout, done.stderr) == ("False\n", "")

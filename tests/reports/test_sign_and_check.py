"""Signing and checking: one table of attacks, judged by our checker, by broken ones and by other programs.

The table is data (`ATTACKS`): a name, the document, whom the reader trusts, when, and the facts that must be
False. `score_checker` runs any checker over it, so the table itself is tested: a checker that always says
yes, one that always says no, and pyHanko's own verdict must each fail it.
"""

from __future__ import annotations

import asyncio
import gc
import random
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from clinsafe.errors import KeyFileError, MissingDependency, ReportError
from clinsafe.protocols import Signer
from clinsafe.reports import pdfcheck
from clinsafe.reports.pdfcheck import REQUIRED, PdfCheck, attachment, check_pdf
from clinsafe.reports.sign import REASONS, PdfSigner, SigningKey, holder_of, sign_pdf

pytest.importorskip("weasyprint")

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)
LATER = NOW + 101 * DAY  # when a certificate of `certify` has expired
EVIDENCE = b'{"suite.all.auroc": 0.93}'
FORGED = b'{"suite.all.auroc": 0.99}'
DEVELOPMENT = "DEVELOPMENT KEY - "


def certify(
    name: str, *, issuer: SigningKey | None = None, commitment: bool = True, authority: bool = False,
    days: tuple[int, int] = (-100, 100), bits: int = 0,
) -> SigningKey:  # fmt: skip
    """A signing key whose certificate `issuer` signs (default: itself); RSA if `bits`, else P-256."""
    private: Any = rsa.generate_private_key(65537, bits) if bits else ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    parent = x509.load_der_x509_certificate(issuer.certificate).subject if issuer else subject
    usage = x509.KeyUsage(not authority, commitment, False, False, False, authority, authority, False, False)
    certificate = (
        x509.CertificateBuilder(parent, subject, private.public_key(), x509.random_serial_number())
        .not_valid_before(NOW + days[0] * DAY)
        .not_valid_after(NOW + days[1] * DAY)
        .add_extension(x509.BasicConstraints(authority, None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(private.public_key()), False)
        .sign(issuer.private if issuer else private, hashes.SHA256())
    )
    der = certificate.public_bytes(serialization.Encoding.DER)
    return SigningKey(**vars(holder_of(certificate)), certificate=der, private=private)


def render(*files: bytes) -> bytes:
    """One page of PDF/A-3b with evidence.json inside (for each of `files`), as the renderer makes it."""
    from weasyprint import HTML, Attachment

    made = datetime(2026, 1, 1, tzinfo=UTC)
    attached = {"name": "evidence.json", "description": "Machine-readable evidence", "relationship": "Data"}
    inside = [Attachment(string=data, created=made, modified=made, **attached) for data in files]
    html = "<html lang=en><title>Report</title><body><h1>Report</h1><p>Held: <b>no</b></p></body></html>"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # WeasyPrint 70 leaves its colour profile open
        document: bytes = HTML(string=html).write_pdf(
            pdf_variant="pdf/a-3b", attachments=inside, pdf_identifier=b"clinsafe-testing"
        )
        gc.collect()
    return document


class World:
    """The keys and documents of this module; each is made once, when first asked for."""

    @cached_property
    def unsigned(self) -> bytes:
        return render(EVIDENCE)

    @cached_property
    def forged(self) -> bytes:
        return render(FORGED)

    @cached_property
    def key(self) -> SigningKey:
        return certify(DEVELOPMENT + "A. Auditor")

    @cached_property
    def other(self) -> SigningKey:
        return certify(DEVELOPMENT + "M. Allory")

    @cached_property
    def rsa(self) -> SigningKey:
        return certify("R. Signer", bits=2048)

    @cached_property
    def authority(self) -> SigningKey:
        return certify("Authority", authority=True, days=(-1000, 1000))

    @cached_property
    def issued(self) -> SigningKey:
        return certify("I. Ssued", issuer=self.authority)

    @cached_property
    def silent(self) -> SigningKey:
        return certify("No commitment", commitment=False)

    @cached_property
    def issued_silent(self) -> SigningKey:
        return certify("No commitment, issued", issuer=self.authority, commitment=False)

    @cached_property
    def signed(self) -> bytes:
        return self.by(self.key)

    def by(self, key: SigningKey) -> bytes:
        """The report signed with `key`."""
        return sign_pdf(self.unsigned, key, meaning="approval", when=NOW)

    @cached_property
    def gap(self) -> tuple[int, int]:
        """Start and end of the container in `signed`, angle brackets included."""
        return gap_of(self.signed)


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def gap_of(document: bytes) -> tuple[int, int]:
    """The two middle numbers of the only ByteRange: where the signed range has its hole."""
    match = re.search(rb"/ByteRange\s*\[\s*0\s+(\d+)\s+(\d+)\s+\d+\s*\]", document)
    assert match
    return int(match[1]), int(match[2])


# ── what an attacker can do to the bytes ───────────────────────────────────────────────────────


def update(document: bytes, change: Callable[[Any], None]) -> bytes:
    """Append an incremental update, as a PDF editor does on saving."""
    from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter

    writer: Any = IncrementalPdfFileWriter(BytesIO(document))
    output = BytesIO()
    change(writer)
    writer.write(output)
    assert output.getvalue().startswith(document)
    return output.getvalue()


def overlay(writer: Any) -> None:
    """Paint a white box over the page."""
    from pyhanko.pdf_utils.generic import StreamObject

    writer.add_stream_to_page(0, writer.add_object(StreamObject(stream_data=b"q 1 g 0 0 600 900 re f Q")))


def replace_evidence(writer: Any) -> None:
    """Point the attachment at other data."""
    from pyhanko.pdf_utils.generic import StreamObject, pdf_name

    embedded = writer.add_object(StreamObject(stream_data=FORGED))
    specification = writer.root["/Names"]["/EmbeddedFiles"]["/Names"][1]
    specification["/EF"][pdf_name("/F")] = embedded
    writer.update_container(specification["/EF"])


def retitle(writer: Any) -> None:
    """Change the title in the document information."""
    from pyhanko.pdf_utils.generic import TextStringObject, pdf_name

    information = writer.trailer["/Info"]
    information[pdf_name("/Title")] = TextStringObject("Another report")
    writer.update_container(information)


def sign_otherwise(document: bytes, key: SigningKey, **settings: Any) -> bytes:
    """Sign with pyHanko directly, by settings of one's own."""
    from pyhanko.keys import load_certs_from_pemder_data, load_private_key_from_pemder_data
    from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
    from pyhanko.sign import signers
    from pyhanko.sign.fields import SigSeedSubFilter
    from pyhanko_certvalidator.registry import SimpleCertificateStore

    private = key.private.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    signer = signers.SimpleSigner(
        next(iter(load_certs_from_pemder_data(key.certificate))),
        load_private_key_from_pemder_data(private, None),
        SimpleCertificateStore(),  # type: ignore[no-untyped-call]
        embed_roots=False,
    )
    usual = {"field_name": "Own", "md_algorithm": "sha256", "subfilter": SigSeedSubFilter.PADES}
    settings = {**usual, **settings}
    writer = IncrementalPdfFileWriter(BytesIO(document))
    output: BytesIO = signers.PdfSigner(signers.PdfSignatureMetadata(**settings), signer).sign_pdf(writer)
    return output.getvalue()


def form_filling(world: World) -> bytes:
    """Signed by the right key, but allowing forms to be filled in later."""
    from pyhanko.sign.fields import MDPPerm

    return sign_otherwise(world.unsigned, world.key, certify=True, docmdp_permissions=MDPPerm.FILL_FORMS)


def countersigned(world: World) -> bytes:
    """A second signature by the same key on a file that allows it."""
    return sign_otherwise(form_filling(world), world.key, field_name="Second")


def encrypted(world: World) -> bytes:
    """A copy that opens with an empty password."""
    from pyhanko.pdf_utils.reader import PdfFileReader
    from pyhanko.pdf_utils.writer import copy_into_new_writer

    writer: Any = copy_into_new_writer(PdfFileReader(BytesIO(world.unsigned)))
    output = BytesIO()
    writer.encrypt("owner", "")
    writer.write(output)
    return output.getvalue()


def lower_case(world: World) -> bytes:
    """The container's hex digits in the other case: the same signature to most programs."""
    start, end = world.gap
    return world.signed[:start] + world.signed[start:end].lower() + world.signed[end:]


def padded(world: World) -> bytes:
    """A byte hidden in the container's zero padding."""
    _, end = world.gap
    assert world.signed[end - 5 : end] == b"0000>"
    return world.signed[: end - 2] + b"1" + world.signed[end - 1 :]


def flipped(seed: int) -> Callable[[World], bytes]:
    """One bit of the signed range turned over."""

    def build(world: World) -> bytes:
        (start, end), chance = world.gap, random.Random(seed)
        place = chance.choice([*range(start), *range(end, len(world.signed))])
        bit = 1 << chance.randrange(8)
        return world.signed[:place] + bytes([world.signed[place] ^ bit]) + world.signed[place + 1 :]

    return build


@dataclass(frozen=True)
class Attack:
    """One row: a document, whom the reader trusts, when it is checked, which facts must come out False."""

    name: str
    build: Callable[[World], bytes]
    trust: Callable[[World], list[SigningKey]] = lambda world: [world.key]
    false: frozenset[str] | None = frozenset()  # None: any, the file may be past reading
    now: datetime = NOW
    problem: str = ""

    @property
    def valid(self) -> bool:
        """True for the rows in which nothing was attacked."""
        return self.false == frozenset() and not self.problem


def facts(*names: str) -> frozenset[str]:
    return frozenset(names)


ADDED = facts("covers_whole_file", "unmodified")
ATTACKS = [
    Attack("untouched", lambda w: w.signed),
    Attack("untouched, RSA", lambda w: w.by(w.rsa), lambda w: [w.other, w.rsa]),
    Attack("untouched, issued by a trusted authority", lambda w: w.by(w.issued), lambda w: [w.authority]),
    Attack("untouched, issued, trusted itself", lambda w: w.by(w.issued), lambda w: [w.issued]),
    Attack("nobody trusted", lambda w: w.signed, lambda w: [], facts("trusted")),
    Attack("another signer trusted", lambda w: w.signed, lambda w: [w.other, w.authority], facts("trusted")),
    Attack("evidence edited, rendered again, signed by another",
           lambda w: sign_pdf(w.forged, w.other, meaning="approval", when=NOW), false=facts("trusted")),
    Attack("unsigned", lambda w: w.unsigned, false=None),
    Attack("page painted over", lambda w: update(w.signed, overlay), false=ADDED),
    Attack("evidence replaced", lambda w: update(w.signed, replace_evidence), false=ADDED),
    Attack("title changed", lambda w: update(w.signed, retitle), false=ADDED),
    Attack("bytes appended", lambda w: w.signed + b"% after the end\n", false=facts("covers_whole_file")),
    Attack("one line break appended", lambda w: w.signed + b"\n", false=facts("covers_whole_file")),
    Attack("bytes put in front", lambda w: b"\n" + w.signed, false=None),
    Attack("changed before it was signed",
           lambda w: sign_pdf(update(w.unsigned, retitle), w.key, meaning="approval", when=NOW),
           false=facts("unmodified")),
    Attack("expired, trusted itself", lambda w: w.signed, now=LATER, false=facts("within_validity")),
    Attack("changed in place", lambda w: w.signed.replace(b"/Title", b"/Titlf", 1), false=facts("intact")),
    Attack("claims a time before its certificate",
           lambda w: sign_pdf(w.unsigned, replace(w.key, not_before=NOW - 999 * DAY), meaning="approval",
                              when=NOW - 200 * DAY),
           false=facts("within_validity")),
    Attack("not yet valid", lambda w: w.signed, now=NOW - 101 * DAY, false=facts("within_validity")),
    Attack("expired, issued", lambda w: w.by(w.issued), lambda w: [w.authority], now=LATER,
           false=facts("within_validity", "trusted")),
    Attack("no contentCommitment", lambda w: w.by(w.silent), lambda w: [w.silent], facts("key_usage_ok")),
    Attack("no contentCommitment, issued", lambda w: w.by(w.issued_silent), lambda w: [w.authority],
           facts("key_usage_ok", "trusted")),
    Attack("changes not forbidden", lambda w: sign_otherwise(w.unsigned, w.key),
           false=facts("certification_level_ok")),
    Attack("form filling allowed", form_filling, false=facts("certification_level_ok")),
    Attack("signed twice", countersigned, false=ADDED | {"certification_level_ok"}, problem="exactly one"),
    Attack("container in lower case", lower_case, problem="container"),
    Attack("container padding used", padded, problem="container"),
    Attack("last bytes missing", lambda w: w.signed[:-100], false=None),
    Attack("second half missing", lambda w: w.signed[: len(w.signed) // 2], false=None),
    Attack("signature cut off", lambda w: w.signed[: len(w.unsigned)], false=None),
    Attack("encrypted", encrypted, false=None, problem="encrypted"),
    Attack("only a header", lambda w: b"%PDF-1.7\n", false=None),
    Attack("no PDF", lambda w: b"PK\x03\x04 a zip file", false=None),
    Attack("empty", lambda w: b"", false=None),
    *(Attack(f"bit flipped, {seed}", flipped(seed), false=None) for seed in range(60)),
]  # fmt: skip

READABLE = [attack for attack in ATTACKS if attack.false is not None]
UNREADABLE = [attack for attack in ATTACKS if attack.false is None]

Checker = Callable[[bytes, Sequence[bytes], datetime], bool]


def ours(document: bytes, trust: Sequence[bytes], now: datetime) -> bool:
    """Our verdict; "no PDF at all" is a no."""
    try:
        return check_pdf(document, trust, now=now).valid
    except ReportError:
        return False


def pyhankos(document: bytes, trust: Sequence[bytes], now: datetime) -> bool:
    """The library's own verdict, as a first implementation would use it."""
    from pyhanko.keys import load_certs_from_pemder_data
    from pyhanko.pdf_utils.reader import PdfFileReader
    from pyhanko.sign.validation import validate_pdf_signature
    from pyhanko_certvalidator import ValidationContext

    try:
        roots = [root for der in trust for root in load_certs_from_pemder_data(der)]
        context = ValidationContext(trust_roots=roots, allow_fetching=False, moment=now)
        signature = PdfFileReader(BytesIO(document)).embedded_signatures[0]
        return bool(validate_pdf_signature(signature, context).bottom_line)
    except Exception:
        return False


def score_checker(checker: Checker, world: World) -> list[str]:
    """The names of the rows that a checker judges wrongly."""
    return [
        attack.name
        for attack in ATTACKS
        if checker(attack.build(world), [key.certificate for key in attack.trust(world)], attack.now)
        is not attack.valid
    ]


# ── the table ──────────────────────────────────────────────────────────────────────────────────


def test_our_checker_judges_every_row_rightly(world: World) -> None:
    assert score_checker(ours, world) == []


def test_broken_checkers_fail_the_table(world: World) -> None:
    """Always yes fails every attack, always no every honest file, the library's verdict the quiet attacks."""
    attacked = {attack.name for attack in ATTACKS if not attack.valid}
    honest = {attack.name for attack in ATTACKS if attack.valid}
    assert set(score_checker(lambda *_: True, world)) == attacked
    assert len(attacked) > 80
    assert set(score_checker(lambda *_: False, world)) == honest
    assert len(honest) == 4
    missed = set(score_checker(pyhankos, world))
    assert {"title changed", "bytes appended", "expired, trusted itself", "no contentCommitment"} <= missed


@pytest.mark.parametrize("attack", READABLE, ids=lambda row: row.name)
def test_the_facts_name_the_attack(world: World, attack: Attack) -> None:
    """Exactly the facts of the row are False, and each has its line; nothing else is blamed."""
    found = check_pdf(attack.build(world), [key.certificate for key in attack.trust(world)], now=attack.now)
    assert frozenset(fact for fact in REQUIRED if not getattr(found, fact)) == attack.false
    assert len(found.problems) == len(attack.false or ()) + bool(attack.problem)
    assert attack.problem in " ".join(found.problems)
    assert found.signed
    assert found.valid is attack.valid


def test_the_attacks_are_real(world: World) -> None:
    """A reader would see the forgery: other evidence, another title, a white page."""
    import pypdfium2

    assert attachment(update(world.signed, replace_evidence)) == FORGED
    with pypdfium2.PdfDocument(update(world.signed, retitle)) as pdf:
        assert pdf.get_metadata_value("Title") == "Another report"
    pages = []
    for document in (world.signed, update(world.signed, overlay)):
        with pypdfium2.PdfDocument(document) as pdf:
            pages.append(pdf[0].render().to_numpy().min())
    assert pages[0] < 100
    assert pages[1] == 255


@pytest.mark.parametrize("attack", UNREADABLE, ids=lambda row: row.name)
def test_no_traceback_ever(world: World, attack: Attack) -> None:
    """A file past reading has problems of one plain line; only what is no PDF at all raises."""
    document = attack.build(world)
    if b"%PDF-" not in document[:1024]:
        with pytest.raises(ReportError, match="not a PDF"):
            check_pdf(document, [])
        return
    found = check_pdf(document, [world.key.certificate])
    assert not found.valid
    assert found.problems
    assert attack.problem in " ".join(found.problems)
    for line in found.problems:
        assert "\n" not in line
        assert line.endswith(".")
        assert "Traceback" not in line


def test_an_empty_result_is_not_valid() -> None:
    """Facts default to False, and no problem alone does not make a signature."""
    assert not PdfCheck().valid
    everything = {f.name: True for f in fields(PdfCheck) if f.type == "bool"}
    assert PdfCheck(**everything).valid  # type: ignore[arg-type]
    for fact in ("signed", *REQUIRED):
        assert not PdfCheck(**everything | {fact: False}).valid  # type: ignore[arg-type]


def test_the_librarys_no_is_final(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pyHanko objects to something that the policy has no fact for, the answer is no, too."""
    from pyhanko.sign.validation.status import PdfSignatureStatus

    monkeypatch.setattr(PdfSignatureStatus, "bottom_line", False)
    found = check_pdf(world.signed, [world.key.certificate])
    assert not found.valid
    assert [line for line in found.problems if "was rejected" in line] == list(found.problems)


def test_a_trusted_certificate_that_is_none(world: World) -> None:
    """It is not the report's fault."""
    for junk in (b"", b"junk", world.key.certificate[:-5], b"0\x03\x02\x01\x01"):
        with pytest.raises(KeyFileError, match="trusted certificate"):
            check_pdf(world.signed, [world.key.certificate, junk])


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


# ── other programs ─────────────────────────────────────────────────────────────────────────────

Sample = tuple[Callable[[World], bytes], Callable[[World], SigningKey]]
SAMPLES: dict[str, Sample] = {  # the document, and the certificate that the reader trusts
    "untouched": (lambda w: w.by(w.issued), lambda w: w.authority),
    "untouched, RSA": (lambda w: w.by(w.rsa), lambda w: w.rsa),
    "untouched, development key": (lambda w: w.signed, lambda w: w.key),
    "another signer": (lambda w: w.by(w.other), lambda w: w.authority),
    "bit flipped": (lambda w: w.by(w.issued).replace(b"/Title", b"/Titlf", 1), lambda w: w.authority),
    "page painted over": (lambda w: update(w.by(w.issued), overlay), lambda w: w.authority),
}


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, timeout=99
    )


def write_pem(path: Path, key: SigningKey) -> None:
    certificate = x509.load_der_x509_certificate(key.certificate)
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES)
def test_pdfsig_agrees(world: World, tmp_path: Path, sample: str) -> None:
    """poppler's checker over NSS reads the same facts."""
    for tool, package in (("pdfsig", "poppler-utils"), ("certutil", "libnss3-tools")):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed (Debian package {package})")
    build, trusted = SAMPLES[sample]
    document, root = build(world), trusted(world)
    write_pem(tmp_path / "root.pem", root)
    (tmp_path / "report.pdf").write_bytes(document)
    store = f"sql:{tmp_path}"
    run("certutil", "-d", store, "-N", "--empty-password")
    added = run("certutil", "-d", store, "-A", "-n", "root", "-t", "CT,C,C", "-i", tmp_path / "root.pem")
    assert added.returncode == 0, added.stderr
    told = run("pdfsig", "-nssdir", store, tmp_path / "report.pdf").stdout
    found = check_pdf(document, [root.certificate])
    assert ("Signature is Valid" in told) is found.intact
    assert (
        "Total document signed" in told and "Not total document signed" not in told
    ) is found.covers_whole_file
    # NSS takes authorities as roots only: a self-signed signer's certificate, pinned, stays unknown to it
    if found.intact:
        assert ("Certificate is Trusted" in told) is (found.trusted and root is world.authority)


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES)
def test_openssl_agrees(world: World, tmp_path: Path, sample: str) -> None:
    """The container is a CMS signature over the two signed pieces; OpenSSL knows no PDF, so no "whole"."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed (Debian package openssl)")
    build, trusted = SAMPLES[sample]
    document, root = build(world), trusted(world)
    write_pem(tmp_path / "root.pem", root)
    start, end = gap_of(document)
    length = int(re.search(rb"/ByteRange\s*\[\s*0\s+\d+\s+\d+\s+(\d+)", document)[1])  # type: ignore[index]
    (tmp_path / "content").write_bytes(document[:start] + document[end : end + length])
    (tmp_path / "signature").write_bytes(bytes.fromhex(document[start + 1 : end - 1].decode()))
    done = run("openssl", "cms", "-verify", "-inform", "DER", "-in", tmp_path / "signature", "-content",
               tmp_path / "content", "-binary", "-CAfile", tmp_path / "root.pem", "-purpose", "any", "-out",
               "/dev/null")  # fmt: skip
    found = check_pdf(document, [root.certificate])
    assert (done.returncode == 0) is (found.intact and found.trusted), done.stderr

"""Check the signature of a PDF report, offline, by a policy stricter than the PDF standard's.

A PDF may grow after it was signed, and common readers still call its signature valid: pyHanko's own verdict
is yes for a changed title and for bytes after the end, poppler's for a page painted over. A report never
grows, so here nothing may come after the signature: exactly one signature, over the whole file, in a file
of exactly two revisions (the report, the signature), and a container written in the one canonical way.

Two things that pyHanko leaves unchecked for a certificate trusted directly are checked here: its validity
and its key usage. No trusted clock stands behind the time of signing, only the signer's word, so the
certificate must be valid both then and now.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any

from clinsafe.errors import ClinsafeError, KeyFileError, ReportError
from clinsafe.reports.sign import apart, holder_of, needs

if TYPE_CHECKING:
    from pyhanko.sign.validation import EmbeddedPdfSignature

LARGEST_ATTACHMENT = 200_000_000  # bytes
REQUIRED = {  # every fact a valid signature needs -> the line a reader gets where it is False
    "intact": "The content was changed after signing, or the signature is not by the key that it names.",
    "covers_whole_file": "The signature does not cover the whole file: something was added after signing.",
    "unmodified": "The file has {revisions} revisions and changes of level {changes}; a signed report has "
    "two revisions, the report and its signature, and no change after that.",
    "certification_level_ok": "The signature does not forbid later changes, as that of a report must.",
    "key_usage_ok": "The signer's certificate is not for signing documents (no key usage contentCommitment).",
    "within_validity": "The signer's certificate is valid from {since:%Y-%m-%d} to {until:%Y-%m-%d}, and not "
    "both at the claimed time of signing and at the time of this check.",
    "trusted": "The signer's certificate is not trusted: it is none of those given, nor issued by one.",
}


@dataclass(frozen=True)
class PdfCheck:
    """What was found. A fact that could not be established is False, "" or None; `valid` is computed.

    Attributes:
        signed ... key_usage_ok: see REQUIRED.
        development: signed with a development key, which proves nothing about who signed; not a problem.
        signer, fingerprint: the certificate's common name and SHA-256 (hex).
        signed_at: the time that the signer claims, UTC.
        first_revision: the report as it was before signing.
        problems: one plain line each.
    """

    signed: bool = False
    intact: bool = False
    covers_whole_file: bool = False
    unmodified: bool = False
    certification_level_ok: bool = False
    trusted: bool = False
    within_validity: bool = False
    key_usage_ok: bool = False
    development: bool = False
    signer: str = ""
    signed_at: datetime | None = None
    fingerprint: str = ""
    first_revision: bytes = field(default=b"", repr=False)
    problems: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """No problem, and every required fact established."""
        return self.signed and not self.problems and all(getattr(self, fact) for fact in REQUIRED)


def check_pdf(document: bytes, trust: Sequence[bytes], *, now: datetime | None = None) -> PdfCheck:
    """Check a report against trusted certificates (DER; the signer's own or its issuer's).

    `now` (default: the clock) is the moment of the check. Nothing is fetched. Raises ReportError only if
    `document` is no PDF at all, and KeyFileError if a trusted certificate cannot be read.
    """
    if b"%PDF-" not in document[:1024]:
        raise ReportError("not a PDF: it has no %PDF- header; give a signed report")
    facts: dict[str, Any] = {}
    problems: list[str] = []
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    try:
        apart(lambda: _examine(document, trust, moment, facts, problems))
    except ClinsafeError:
        raise
    except Exception as error:  # a damaged file raises more than a dozen types, AssertionError among them
        problems.append(f"The file is damaged, incomplete or altered; not checked ({type(error).__name__}).")
    return PdfCheck(**facts, problems=tuple(problems))


def _examine(
    document: bytes, trust: Sequence[bytes], now: datetime, facts: dict[str, Any], problems: list[str]
) -> None:
    """Fill `facts` and `problems` step by step, so that an exception leaves what was established."""
    with needs("verifying"):
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import Encoding
        from pyhanko.keys import load_certs_from_pemder_data
        from pyhanko.pdf_utils.reader import PdfFileReader
        from pyhanko.sign.diff_analysis import ModificationLevel
        from pyhanko.sign.fields import MDPPerm, enumerate_sig_fields
        from pyhanko.sign.validation import read_certification_data, validate_pdf_signature
        from pyhanko.sign.validation.status import SignatureCoverageLevel
        from pyhanko_certvalidator import ValidationContext

    try:  # read twice: pyHanko reads lazily and would blame the report for a bad certificate
        pinned = [x509.load_der_x509_certificate(der).public_bytes(Encoding.DER) for der in trust]
    except ValueError as error:
        raise KeyFileError(f"a trusted certificate cannot be read ({error}); give X.509 as DER") from error
    reader = PdfFileReader(BytesIO(document))
    if reader.encrypted:
        problems.append("The PDF is encrypted; a report never is, and nothing in it was checked.")
        return
    # the report ends with the end-of-file mark of its own revision, and that line's break
    mark = document.index(b"%%EOF", reader.xrefs.get_xref_container_info(0).end_location) + len(b"%%EOF")
    facts["first_revision"] = document[:mark] + b"".join(re.findall(rb"^\r?\n?", document[mark : mark + 2]))
    count = len(list(enumerate_sig_fields(reader, filled_status=True)))
    facts["signed"] = count > 0
    if count != 1:
        problems.append(f"A signed report carries exactly one signature, this PDF {count or 'none'}.")
        if not count:
            return
    signature = reader.embedded_signatures[0]
    holder = holder_of(x509.load_der_x509_certificate(signature.signer_cert.dump()))
    facts.update(signer=holder.name, development=holder.development, fingerprint=holder.fingerprint)
    roots = [root for der in pinned for root in load_certs_from_pemder_data(der)]
    context = ValidationContext(trust_roots=roots, allow_fetching=False, moment=now)
    status, rule = validate_pdf_signature(signature, context), read_certification_data(reader)
    level, claimed = status.modification_level, status.signer_reported_dt
    facts.update(
        intact=status.intact and status.valid,
        covers_whole_file=status.coverage == SignatureCoverageLevel.ENTIRE_FILE
        and _covers(document, signature),
        unmodified=reader.total_revisions == 2 and level == ModificationLevel.NONE,
        certification_level_ok=rule is not None
        and rule.author_sig is signature.sig_object
        and signature.docmdp_level == MDPPerm.NO_CHANGES,
        key_usage_ok=holder.may_sign,
        within_validity=claimed is not None
        and all(holder.not_before <= moment <= holder.not_after for moment in (claimed, now)),
        trusted=status.trusted or signature.signer_cert.dump() in pinned,
        signed_at=claimed.astimezone(UTC) if claimed is not None else None,
    )
    shown = {"revisions": reader.total_revisions, "changes": level.name if level else "unknown",
             "since": holder.not_before, "until": holder.not_after}  # fmt: skip
    lines = [line.format(**shown) for fact, line in REQUIRED.items() if not facts[fact]]
    problems.extend(lines)
    if not lines and not _is_canonical(document, signature):  # the one slow check, 0.2 s
        problems.append("The container of the signature was edited: no signing program writes it so.")
    if not lines and not status.bottom_line:
        problems.append(f"The certificate, its algorithm or its timestamp was rejected ({status.summary()}).")


def _covers(document: bytes, signature: EmbeddedPdfSignature) -> bool:
    """The signed range is two pieces: from byte 0 to the container, from there to the last byte."""
    first, size, second, rest = (int(number) for number in signature.byte_range)
    return first == 0 and 0 < size < second and second + rest == len(document)


def _is_canonical(document: bytes, signature: EmbeddedPdfSignature) -> bool:
    """The unsigned gap is ``<HEX>``: upper case, one DER structure, then zeros; no room for anything else."""
    from asn1crypto import cms

    _, start, end, _ = signature.byte_range
    gap = document[start:end]
    if re.fullmatch(rb"<(?:[0-9A-F]{2})+>", gap) is None:
        return False
    container = bytes.fromhex(gap[1:-1].decode())
    encoded = cms.ContentInfo.load(container).dump(force=True)
    return bool(container == signature.pkcs7_content == encoded.ljust(len(container), b"\0"))


def attachment(document: bytes, name: str = "evidence.json") -> bytes:
    """The file called `name` inside a PDF. Raises ReportError unless there is one, of at most 200 MB."""
    with needs("verifying"):
        import pypdfium2

    try:
        with pypdfium2.PdfDocument(document) as pdf:
            files = [pdf.get_attachment(index) for index in range(pdf.count_attachments())]
            names = [file.get_name() for file in files]
            if names.count(name) != 1:
                raise ReportError(f"the PDF holds {names.count(name)} attachments called {name!r}, not one; "
                                  f"it holds {', '.join(map(repr, names)) or 'none'}")  # fmt: skip
            file, size = files[names.index(name)], pypdfium2.raw.c_ulong()
            pypdfium2.raw.FPDFAttachment_GetFile(file, None, 0, size)
            if size.value > LARGEST_ATTACHMENT:
                raise ReportError(f"the attachment {name!r} has {size.value:,} bytes; {LARGEST_ATTACHMENT:,} "
                                  "is the most that is read")  # fmt: skip
            return bytes(file.get_data())
    except pypdfium2.PdfiumError as error:
        raise ReportError(f"the PDF or its attachment cannot be read ({error}); is it damaged?") from error

"""Check the signature of a PDF report, offline, by a policy stricter than the PDF standard's.

A PDF may grow after it was signed, and common readers still call its signature valid: pyHanko's own verdict
is yes for a changed title and for bytes after the end, poppler's for a page painted over. A report never
grows, so here nothing may come after the signature: exactly one signature, over the whole file, in a file
of exactly two revisions (the report, the signature), and a container written in the one canonical way.

Two things that pyHanko leaves unchecked for a certificate trusted directly are checked here: its validity
and its key usage. With the timestamp of a trusted authority the certificate must be valid at that time, and
may have expired since. Without one only the signer's word stands behind the time of signing, so the
certificate must be valid both then and now.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any

from clinsafe.errors import ClinsafeError, KeyFileError, ReportError
from clinsafe.reports.container import is_canonical
from clinsafe.reports.revision import revision_problems
from clinsafe.reports.sign import Holder, apart, holder_of, needs
from clinsafe.reports.stamp import differs, printed
from clinsafe.reports.timestamps import TOLERANCE, Timestamp, read_timestamp

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
    "{when}.",
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
        timestamp: the time that a timestamp authority gives, UTC; None without an intact timestamp.
        timestamp_trusted: that authority is one of the trusted ones; only then does its time count.
        printed: the lines of the visible stamp; none where the signature is invisible, or drawn by others.
        problems: one plain line each.
        notes: what a reader should know and what is no problem, one plain line each.
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
    timestamp: datetime | None = None
    timestamp_trusted: bool = False
    printed: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """No problem, and every required fact established."""
        return self.signed and not self.problems and all(getattr(self, fact) for fact in REQUIRED)


def check_pdf(
    document: bytes, trust: Sequence[bytes], *, now: datetime | None = None, trust_tsa: Sequence[bytes] = ()
) -> PdfCheck:
    """Check a report against trusted certificates. Nothing is fetched.

    Args:
        document: the signed PDF.
        trust: certificates (DER) of signers, or of their issuers.
        now: the moment of the check; default the clock.
        trust_tsa: certificates (DER) of timestamp authorities, or of their issuers; an issuer in `trust` may
            vouch for one, too.

    Raises:
        ReportError: `document` is no PDF at all.
        KeyFileError: a trusted certificate cannot be read.
    """
    if b"%PDF-" not in document[:1024]:
        raise ReportError("not a PDF: it has no %PDF- header; give a signed report")
    facts: dict[str, Any] = {}
    problems: list[str] = []
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    try:
        apart(lambda: _examine(document, _Trust(trust, trust_tsa, moment), facts, problems))
    except ClinsafeError:
        raise
    except Exception as error:  # a damaged file raises more than a dozen types, AssertionError among them
        problems.append(f"The file is damaged, incomplete or altered; not checked ({type(error).__name__}).")
    return PdfCheck(**facts, problems=tuple(problems))


@dataclass(frozen=True)
class _Trust:
    """Whom the reader trusts (DER certificates), and when."""

    signers: Sequence[bytes]
    authorities: Sequence[bytes]
    now: datetime

    def checked(self) -> _Trust:
        """The same, read by another library: pyHanko reads lazily and would blame the report for a fault."""
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import Encoding

        def read(certificates: Sequence[bytes]) -> list[bytes]:
            return [x509.load_der_x509_certificate(der).public_bytes(Encoding.DER) for der in certificates]

        try:
            return _Trust(read(self.signers), read(self.authorities), self.now)
        except ValueError as error:
            raise KeyFileError(
                f"a trusted certificate cannot be read ({error}); give X.509 as DER"
            ) from error


def _examine(document: bytes, trust: _Trust, facts: dict[str, Any], problems: list[str]) -> None:
    """Fill `facts` and `problems` step by step, so that an exception leaves what was established."""
    with needs("verifying"):
        from cryptography import x509
        from pyhanko.pdf_utils.reader import PdfFileReader
        from pyhanko.sign.fields import enumerate_sig_fields

    trust = trust.checked()
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
    stamp = _timestamp(signature, trust, facts, problems)
    lines = _required(document, reader, signature, holder, trust, stamp, facts)
    problems.extend(lines)
    _printed(signature, holder, facts, problems)
    if facts["intact"] and facts["unmodified"] and count == 1:
        problems.extend(revision_problems(reader, signature, facts["first_revision"]))
    if not lines and not _is_canonical(document, signature):
        problems.append("The container of the signature was edited: no signing program writes it so.")


def _required(
    document: bytes, reader: Any, signature: EmbeddedPdfSignature, holder: Holder, trust: _Trust,
    stamp: Timestamp | None, facts: dict[str, Any],
) -> list[str]:  # fmt: skip
    """Establish the facts of REQUIRED; the lines of those that are False, and of the library's own no."""
    from pyhanko.keys import load_certs_from_pemder_data
    from pyhanko.sign.diff_analysis import ModificationLevel
    from pyhanko.sign.fields import MDPPerm
    from pyhanko.sign.validation import read_certification_data, validate_pdf_signature
    from pyhanko.sign.validation.status import SignatureCoverageLevel
    from pyhanko_certvalidator import ValidationContext

    roots = [root for der in trust.signers for root in load_certs_from_pemder_data(der)]
    moment = stamp.time if stamp and stamp.trusted else trust.now
    context = ValidationContext(trust_roots=roots, allow_fetching=False, moment=moment)
    status, rule = validate_pdf_signature(signature, context), read_certification_data(reader)
    level, claimed = status.modification_level, status.signer_reported_dt
    if stamp and stamp.trusted:
        when, moments = "at the time of the timestamp", [stamp.time]
    else:
        when = "both at the claimed time of signing and at the time of this check"
        moments = [claimed, trust.now] if claimed is not None else []
    facts.update(
        intact=status.intact and status.valid,
        covers_whole_file=status.coverage == SignatureCoverageLevel.ENTIRE_FILE
        and _covers(document, signature),
        unmodified=reader.total_revisions == 2 and level == ModificationLevel.NONE,
        certification_level_ok=rule is not None
        and rule.author_sig is signature.sig_object
        and signature.docmdp_level == MDPPerm.NO_CHANGES,
        key_usage_ok=holder.may_sign,
        within_validity=bool(moments)
        and all(holder.not_before <= moment <= holder.not_after for moment in moments),
        trusted=status.trusted or signature.signer_cert.dump() in trust.signers,
        signed_at=claimed.astimezone(UTC) if claimed is not None else None,
    )
    shown = {"revisions": reader.total_revisions, "changes": level.name if level else "unknown",
             "since": holder.not_before, "until": holder.not_after, "when": when}  # fmt: skip
    lines = [line.format(**shown) for fact, line in REQUIRED.items() if not facts[fact]]
    # the timestamp was judged apart: here it must not decide, as its authority may be unknown
    if not lines and not replace(status, timestamp_validity=None).bottom_line:
        lines.append(f"The certificate or its algorithm was rejected ({status.summary()}).")
    return lines


def _timestamp(
    signature: EmbeddedPdfSignature, trust: _Trust, facts: dict[str, Any], problems: list[str]
) -> Timestamp | None:
    """The timestamp, if there is an intact one."""
    try:
        found = read_timestamp(signature, trust.authorities, trust.signers, trust.now)
    except Exception as error:  # what is no timestamp makes the parsers raise a dozen kinds
        problems.append(f"The timestamp is damaged or altered; not checked ({type(error).__name__}).")
        return None
    if found is None:
        return None
    if not found.intact:
        problems.append("The timestamp is broken: it is for another signature, or was altered.")
        return None
    facts.update(timestamp=found.time, timestamp_trusted=found.trusted)
    if not found.trusted:
        facts["notes"] = (
            f"The timestamp by {found.authority} is not trusted and counts for nothing: its authority is none of "
            "those given, nor issued by one, or its certificate is not for timestamps or not valid.",
        )
    claimed = signature.self_reported_timestamp
    if claimed is None or abs(found.time - claimed) > TOLERANCE:
        problems.append(
            f"The timestamp ({found.time:%Y-%m-%d %H:%M:%S} UTC) and the time that the signer claims differ by "
            f"more than {TOLERANCE.seconds // 60} minutes."
        )
    if found.time > trust.now + TOLERANCE:
        problems.append(f"The timestamp ({found.time:%Y-%m-%d %H:%M:%S} UTC) lies in the future.")
    return found


def _printed(
    signature: EmbeddedPdfSignature, holder: Holder, facts: dict[str, Any], problems: list[str]
) -> None:
    """A visible stamp must say what the signature says: a reader on paper sees nothing else."""
    facts["printed"] = printed(signature)
    if not facts["printed"]:
        return
    if wrong := differs(facts["printed"], holder, facts["signed_at"], signature.sig_object):
        problems.append(f"The stamp on the page says another {' and '.join(wrong)} than the signature.")


def _covers(document: bytes, signature: EmbeddedPdfSignature) -> bool:
    """The signed range is two pieces: from byte 0 to the container, from there to the last byte."""
    first, size, second, rest = (int(number) for number in signature.byte_range)
    return first == 0 and 0 < size < second and second + rest == len(document)


def _is_canonical(document: bytes, signature: EmbeddedPdfSignature) -> bool:
    """The unsigned gap is ``<HEX>``: upper case, one DER structure, then zeros; no room for anything else."""
    from asn1crypto import parser

    _, start, end, _ = signature.byte_range
    gap = document[start:end]
    if re.fullmatch(rb"<(?:[0-9A-F]{2})+>", gap) is None:
        return False
    container = bytes.fromhex(gap[1:-1].decode())
    size = parser.peek(container)
    return (
        container == signature.pkcs7_content
        and not container[size:].strip(b"\0")
        and is_canonical(container[:size])
    )


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

"""Sign a report: what a key is, and the PDF signature made with it (PAdES, ETSI EN 319 142-1).

The signature is appended, so the report stays byte for byte the first revision of the signed file and can
be rendered again and compared. It forbids every later change. It may be printed on a page (`stamp`) and
carry the time of a timestamp authority (`timestamps`, level B-T); without one, level B-B, its time is the
signer's own clock. PAdES keeps the claimed time in /M and none in the container.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from clinsafe.errors import ClinsafeError, KeyFileError, MissingDependency, ReportError, UsageError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from pyhanko.sign.timestamps import TimeStamper

    from clinsafe.reports.stamp import Stamp

    PrivateKey: TypeAlias = EllipticCurvePrivateKey | RSAPrivateKey

T = TypeVar("T")
DEVELOPMENT_NAME = "DEVELOPMENT KEY - "
DEVELOPMENT_ORGANISATION = "clinsafe development key - proves nothing about who signed"
FIELD = "ClinsafeSignature"
Meaning: TypeAlias = Literal["author", "review", "approval", "responsibility"]
REASONS: dict[Meaning, str] = {  # the meanings that 21 CFR 11.50(a)(3) asks a signature to state
    "author": "Authorship: I prepared this report",
    "review": "Review: I reviewed this report",
    "approval": "Approval: I approve this report",
    "responsibility": "Responsibility: I am responsible for the contents of this report",
}
LONGEST = 100  # letters of a name or a place
_QUIET = logging.NullHandler()


@contextmanager
def needs(feature: Literal["signing", "verifying"]) -> Iterator[None]:
    """Around imports: a package that is not installed becomes MissingDependency with its pip line."""
    try:
        yield
    except ImportError as error:
        package = (error.name or "a package").partition(".")[0]
        extra = "audit" if feature == "signing" else "verify"
        raise MissingDependency(feature, package, f"pip install 'clinsafe[{extra}]'") from error
    # pyHanko logs tracebacks on its way to a verdict, and Python prints what has no handler to stderr.
    for name in ("pyhanko", "pyhanko_certvalidator"):
        logging.getLogger(name).addHandler(_QUIET)


def apart(work: Callable[[], T]) -> T:
    """Run in a thread of its own: pyHanko starts an event loop, and a notebook or server runs one already."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


@dataclass(frozen=True)
class Holder:
    """What a certificate says: common name, SHA-256 of its DER (hex), validity in UTC, both ends included.

    `development` marks a key that proves nothing about who signed; `may_sign` is the key usage
    contentCommitment (non-repudiation), without which checkers reject a document signature.
    """

    name: str
    development: bool
    may_sign: bool
    fingerprint: str
    not_before: datetime
    not_after: datetime


@dataclass(frozen=True)
class SigningKey(Holder):
    """A private key, its certificate and any issuers' in the file (DER). `repr` shows the holder only."""

    certificate: bytes = field(repr=False)
    private: PrivateKey = field(repr=False, compare=False)
    chain: tuple[bytes, ...] = field(default=(), repr=False)

    def pyhanko_signer(self) -> Any:
        """The key as pyHanko wants it; the copy of the secret stays in memory."""
        from cryptography.hazmat.primitives import serialization as codec
        from pyhanko.keys import load_certs_from_pemder_data, load_private_key_from_pemder_data
        from pyhanko.sign import signers
        from pyhanko_certvalidator.registry import SimpleCertificateStore

        secret = self.private.private_bytes(
            codec.Encoding.DER, codec.PrivateFormat.PKCS8, codec.NoEncryption()
        )
        store = SimpleCertificateStore()  # type: ignore[no-untyped-call]
        store.register_multiple(root for der in self.chain for root in load_certs_from_pemder_data(der))
        return signers.SimpleSigner(
            signing_cert=next(iter(load_certs_from_pemder_data(self.certificate))),
            signing_key=load_private_key_from_pemder_data(secret, passphrase=None),
            cert_registry=store,
            embed_roots=False,  # a root inside the container is never checked, so it could be altered unseen
        )


def holder_of(certificate: x509.Certificate) -> Holder:
    """Read a certificate; characters that could drive a terminal become "?" in the name."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    def first(oid: x509.ObjectIdentifier) -> str:
        values = [str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(oid)]
        return "".join(letter if letter.isprintable() else "?" for letter in (values or [""])[0])

    try:
        may_sign = certificate.extensions.get_extension_for_class(x509.KeyUsage).value.content_commitment
    except x509.ExtensionNotFound:
        may_sign = False
    name = first(x509.NameOID.COMMON_NAME) or "(no name)"
    owned = first(x509.NameOID.ORGANIZATION_NAME) == DEVELOPMENT_ORGANISATION
    return Holder(
        name=name,
        development=owned or name.startswith(DEVELOPMENT_NAME),
        may_sign=may_sign,
        fingerprint=certificate.fingerprint(hashes.SHA256()).hex(),
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
    )


def prepare() -> None:
    """Import what `sign_pdf` needs, half a second's work: call it in a thread while a report is rendered."""
    with needs("signing"):
        import pyhanko.pdf_utils.incremental_writer
        import pyhanko.sign.signers
    from clinsafe.reports.stamp import can_stamp

    if can_stamp():
        import pyhanko.pdf_utils.font.opentype
        import pyhanko.stamp  # noqa: F401


def sign_pdf(
    document: bytes, key: SigningKey, *, meaning: Meaning, when: datetime | None = None,
    printed_name: str | None = None, stamp: Stamp | None = None, timestamper: TimeStamper | None = None,
    location: str = "",
) -> bytes:  # fmt: skip
    """The signed PDF; its first ``len(document)`` bytes are `document`.

    The signature covers the whole file and forbids changes. Not deterministic: ECDSA draws a random number
    each time.

    Args:
        document: the unsigned report.
        key: who signs.
        meaning: what the signature says, see REASONS.
        when: the time the signature claims, to the second; default the clock; without a zone, local time.
        printed_name: of the person who signs; default the certificate's name.
        stamp: where to print the signature; default nowhere. See `clinsafe.reports.stamp.can_stamp`.
        timestamper: a timestamp authority, see `clinsafe.reports.timestamps.authority`.
        location: the place of signing, as the signer tells it.

    Raises:
        ReportError: `document` is not an unsigned, unencrypted PDF.
        KeyFileError: the certificate is not valid at `when`, or the token that holds the key failed.
        UsageError: a name, a place, a page or a box that cannot be printed.
        TimestampError: the authority gave no timestamp that a checker accepts.
    """
    with needs("signing"):
        from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
        from pyhanko.sign import fields, signers

    moment = (when or datetime.now(UTC)).astimezone(UTC).replace(microsecond=0)
    _refuse(key, meaning, moment, {"name": printed_name, "place": location or None})
    drawing = _drawing(key, meaning, moment, printed_name, location) if stamp else None
    authority = _checked(timestamper, moment)

    class Signer(signers.PdfSigner):  # pyHanko has no setting for the claimed time
        def init_signing_session(self, *args: Any, **kwargs: Any) -> Any:
            session = super().init_signing_session(*args, **kwargs)
            session.system_time = moment
            return session

    metadata = signers.PdfSignatureMetadata(
        field_name=FIELD,
        md_algorithm="sha256",
        subfilter=fields.SigSeedSubFilter.PADES,
        certify=True,
        docmdp_permissions=fields.MDPPerm.NO_CHANGES,
        name=printed_name or key.name,
        reason=REASONS[meaning],
        location=location or None,
    )
    signer = key.pyhanko_signer()

    def work() -> bytes:
        writer = IncrementalPdfFileWriter(BytesIO(document))
        if writer.prev.encrypted:
            raise ReportError("the PDF is encrypted; a report is signed unencrypted")
        if next(fields.enumerate_sig_fields(writer.prev), None) is not None:
            raise ReportError("the PDF has a signature field already; sign the unsigned report instead")
        settings = {"timestamper": authority, "stamp_style": drawing, "new_field_spec": _place(stamp, writer)}
        output: BytesIO = Signer(metadata, signer=signer, **settings).sign_pdf(writer)
        return output.getvalue()

    try:
        signed = apart(work)
    except ClinsafeError:
        raise
    except Exception as error:  # pyHanko meets a damaged PDF with a dozen exception types
        raise ReportError(f"not a whole PDF, so it cannot be signed ({type(error).__name__})") from error
    if not signed.startswith(document):
        raise ReportError("signing changed the report's own bytes; the result was thrown away")
    return signed


def _refuse(key: Holder, meaning: Meaning, moment: datetime, texts: Mapping[str, str | None]) -> None:
    """Raise for what no signature can say."""
    if meaning not in REASONS:
        raise ReportError(f"{meaning!r} is not a meaning of a signature; choose one of {', '.join(REASONS)}")
    if not key.not_before <= moment <= key.not_after:
        raise KeyFileError(f"the certificate of {key.name} is not valid on {moment:%Y-%m-%d}; it is valid "
                           f"from {key.not_before:%Y-%m-%d} to {key.not_after:%Y-%m-%d}")  # fmt: skip
    for what, text in texts.items():
        if text is not None and not (text.strip() and text.isprintable() and len(text) <= LONGEST):
            raise UsageError(f"the {what} of a signature is 1 to {LONGEST} printable letters, not {text!r}")


def _checked(timestamper: TimeStamper | None, moment: datetime) -> TimeStamper | None:
    from clinsafe.reports.timestamps import checked

    return None if timestamper is None else checked(timestamper, moment)


def _drawing(
    key: SigningKey, meaning: Meaning, moment: datetime, printed_name: str | None, location: str
) -> Any:
    from clinsafe.reports.stamp import lines, style

    return style(lines(key, meaning, moment, printed_name=printed_name, location=location))


def _place(stamp: Stamp | None, writer: Any) -> Any:
    from clinsafe.reports.stamp import field as field_at

    return None if stamp is None else field_at(stamp, writer)


class PdfSigner:
    """`clinsafe.protocols.Signer` for PDF reports: one key, one meaning."""

    def __init__(self, key: SigningKey, meaning: Meaning = "approval") -> None:
        self._key, self._meaning = key, meaning
        self.name, self.development = key.name, key.development

    def sign(self, document: bytes, /) -> bytes:
        """The signed PDF; see `sign_pdf`."""
        return sign_pdf(document, self._key, meaning=self._meaning)

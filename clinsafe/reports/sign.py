"""Sign a report: what a key is, and the PDF signature made with it (PAdES, ETSI EN 319 142-1, level B-B).

The signature is appended, so the report stays byte for byte the first revision of the signed file and can
be rendered again and compared. It is invisible, which keeps PDF/A-3 (a drawn stamp brings a font that is
not embedded), and it forbids every later change. Its time is the signer's own clock: no trusted timestamp.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from clinsafe.errors import KeyFileError, MissingDependency, ReportError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

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


def sign_pdf(document: bytes, key: SigningKey, *, meaning: Meaning, when: datetime | None = None) -> bytes:
    """The signed PDF; its first ``len(document)`` bytes are `document`.

    `when` (default: the clock) is the time the signature claims; without a zone, local time. The signature
    covers the whole file and forbids changes. Not deterministic: ECDSA draws a random number each time.

    Raises ReportError if `document` is not an unsigned, unencrypted PDF, KeyFileError if the certificate
    is not valid at `when`.
    """
    with needs("signing"):
        from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
        from pyhanko.sign import fields, signers

    if meaning not in REASONS:
        raise ReportError(f"{meaning!r} is not a meaning of a signature; choose one of {', '.join(REASONS)}")
    moment = (when or datetime.now(UTC)).astimezone(UTC)
    if not key.not_before <= moment <= key.not_after:
        raise KeyFileError(f"the certificate of {key.name} is not valid on {moment:%Y-%m-%d}; it is valid "
                           f"from {key.not_before:%Y-%m-%d} to {key.not_after:%Y-%m-%d}")  # fmt: skip

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
        name=key.name,
        reason=REASONS[meaning],
    )

    signer = _simple_signer(key)

    def work() -> bytes:
        writer = IncrementalPdfFileWriter(BytesIO(document))
        if writer.prev.encrypted:
            raise ReportError("the PDF is encrypted; a report is signed unencrypted")
        if next(fields.enumerate_sig_fields(writer.prev), None) is not None:
            raise ReportError("the PDF has a signature field already; sign the unsigned report instead")
        output: BytesIO = Signer(metadata, signer=signer).sign_pdf(writer)
        return output.getvalue()

    try:
        signed = apart(work)
    except ReportError:
        raise
    except Exception as error:  # pyHanko meets a damaged PDF with a dozen exception types
        raise ReportError(f"not a whole PDF, so it cannot be signed ({type(error).__name__})") from error
    if not signed.startswith(document):
        raise ReportError("signing changed the report's own bytes; the result was thrown away")
    return signed


def _simple_signer(key: SigningKey) -> Any:
    """The key as pyHanko wants it; the copy of the secret stays in memory."""
    from cryptography.hazmat.primitives import serialization as codec
    from pyhanko.keys import load_certs_from_pemder_data, load_private_key_from_pemder_data
    from pyhanko.sign import signers
    from pyhanko_certvalidator.registry import SimpleCertificateStore

    secret = key.private.private_bytes(codec.Encoding.DER, codec.PrivateFormat.PKCS8, codec.NoEncryption())
    store = SimpleCertificateStore()  # type: ignore[no-untyped-call]
    store.register_multiple(root for der in key.chain for root in load_certs_from_pemder_data(der))
    return signers.SimpleSigner(
        signing_cert=next(iter(load_certs_from_pemder_data(key.certificate))),
        signing_key=load_private_key_from_pemder_data(secret, passphrase=None),
        cert_registry=store,
        embed_roots=False,  # a root inside the container is never checked, so it could be altered unseen
    )


class PdfSigner:
    """`clinsafe.protocols.Signer` for PDF reports: one key, one meaning."""

    def __init__(self, key: SigningKey, meaning: Meaning = "approval") -> None:
        self._key, self._meaning = key, meaning
        self.name, self.development = key.name, key.development

    def sign(self, document: bytes, /) -> bytes:
        """The signed PDF; see `sign_pdf`."""
        return sign_pdf(document, self._key, meaning=self._meaning)

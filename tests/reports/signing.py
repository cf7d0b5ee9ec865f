"""What the tests of signatures share: certificates, a small report, documents signed and updated."""

from __future__ import annotations

import gc
import re
import subprocess
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from clinsafe.reports.sign import SigningKey, holder_of, sign_pdf

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


@contextmanager
def leftovers() -> Iterator[None]:
    """WeasyPrint 70 leaves its colour profile open: collected here, and not where a test would be blamed for it.

    Only what was made inside is looked at; with all that other tests have left, it would take seconds.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.freeze()
        try:
            yield
            gc.collect()
        finally:
            gc.unfreeze()


@lru_cache(maxsize=64)  # many modules ask for the same documents
def render(*files: bytes) -> bytes:
    """One page of PDF/A-3b with evidence.json inside (for each of `files`), as the renderer makes it."""
    from weasyprint import HTML, Attachment

    made = datetime(2026, 1, 1, tzinfo=UTC)
    attached = {"name": "evidence.json", "description": "Machine-readable evidence", "relationship": "Data"}
    inside = [Attachment(string=data, created=made, modified=made, **attached) for data in files]
    html = "<html lang=en><title>Report</title><body><h1>Report</h1><p>Held: <b>no</b></p></body></html>"
    with leftovers():
        document: bytes = HTML(string=html).write_pdf(
            pdf_variant="pdf/a-3b", attachments=inside, pdf_identifier=b"clinsafe-testing"
        )
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


def gap_of(document: bytes) -> tuple[int, int]:
    """The two middle numbers of the only ByteRange: where the signed range has its hole."""
    match = re.search(rb"/ByteRange\s*\[\s*0\s+(\d+)\s+(\d+)\s+\d+\s*\]", document)
    assert match
    return int(match[1]), int(match[2])


def update(document: bytes, change: Callable[[Any], None]) -> bytes:
    """Append an incremental update, as a PDF editor does on saving."""
    from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter

    writer: Any = IncrementalPdfFileWriter(BytesIO(document))
    output = BytesIO()
    change(writer)
    writer.write(output)
    assert output.getvalue().startswith(document)
    return output.getvalue()


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


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, timeout=99
    )


def write_pem(path: Path, key: SigningKey) -> None:
    certificate = x509.load_der_x509_certificate(key.certificate)
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

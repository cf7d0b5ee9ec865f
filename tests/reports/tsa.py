"""A timestamp authority on this machine, over HTTP, that can be made to fail in each way."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from clinsafe.reports.sign import SigningKey, holder_of
from tests.reports.signing import DAY, NOW

REPLY = "application/timestamp-reply"
Answer = Callable[[bytes], tuple[int, str, bytes]]
"""A query's bytes -> status, media type, body."""


def certify_authority(
    name: str, issuer: SigningKey | None = None, *, usage: bool = True, days: tuple[int, int] = (-900, 900)
) -> SigningKey:
    """The certificate of a timestamp authority (RSA); without `usage`, one that is not for timestamps."""
    private = rsa.generate_private_key(65537, 2048)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    parent = x509.load_der_x509_certificate(issuer.certificate).subject if issuer else subject
    builder = (
        x509.CertificateBuilder(parent, subject, private.public_key(), x509.random_serial_number())
        .not_valid_before(NOW + days[0] * DAY)
        .not_valid_after(NOW + days[1] * DAY)
        .add_extension(x509.BasicConstraints(False, None), critical=True)
        .add_extension(x509.KeyUsage(True, True, *[False] * 7), critical=True)
    )
    if usage:
        builder = builder.add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING]), critical=True
        )
    certificate = builder.sign(issuer.private if issuer else private, hashes.SHA256())  # type: ignore[arg-type]
    der = certificate.public_bytes(serialization.Encoding.DER)
    return SigningKey(**vars(holder_of(certificate)), certificate=der, private=private)


def stamper(key: SigningKey, at: datetime | None = None) -> Any:
    """pyHanko's authority inside this process; its clock stands at `at`."""
    from pyhanko.keys import load_certs_from_pemder_data, load_private_key_from_pemder_data
    from pyhanko.sign.timestamps.dummy_client import DummyTimeStamper

    private = key.private.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return DummyTimeStamper(
        next(iter(load_certs_from_pemder_data(key.certificate))),
        load_private_key_from_pemder_data(private, None),
        fixed_dt=at,
    )


def honest(key: SigningKey, at: datetime | None = None) -> Answer:
    """Answers as an authority should."""
    from asn1crypto import tsp

    inner = stamper(key, at)
    return lambda query: (200, REPLY, inner.request_tsa_response(tsp.TimeStampReq.load(query)).dump())


def by_openssl(key: SigningKey, folder: Path) -> Answer:
    """Answers made by ``openssl ts``."""
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    certificate = x509.load_der_x509_certificate(key.certificate)
    (folder / "tsa.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "tsa.key").write_bytes(key.private.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    (folder / "serial").write_text("01\n")
    (folder / "tsa.cnf").write_text(
        f"[tsa]\ndefault_tsa = here\n[here]\nserial = {folder}/serial\nsigner_cert = {folder}/tsa.pem\n"
        f"signer_key = {folder}/tsa.key\nsigner_digest = sha256\ndefault_policy = 1.2.3.4.1\ndigests = sha256\n"
        "ess_cert_id_alg = sha256\ntsa_name = yes\nordering = no\n"
    )

    def answer(query: bytes) -> tuple[int, str, bytes]:
        (folder / "query").write_bytes(query)
        command = ["openssl", "ts", "-reply", "-config", "tsa.cnf", "-queryfile", "query", "-out", "reply"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
        return 200, REPLY, (folder / "reply").read_bytes()

    return answer


@contextmanager
def serve(answer: Answer) -> Iterator[str]:
    """The address of a server that answers so."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, kind, body = answer(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/tsa"
        server.shutdown()

"""PEM pairs: the same keys as in PKCS#12, and the same refusals."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from clinsafe.errors import KeyFileError
from clinsafe.reports.dsse import attest, check
from clinsafe.reports.keys import find_pin, load_key
from clinsafe.reports.pdfcheck import check_pdf
from clinsafe.reports.pemkeys import is_encrypted, is_pem, load_pem
from clinsafe.reports.sign import SigningKey, sign_pdf
from tests.reports.signing import DAY, NOW, World, certify, run

SECRET = b"correct horse battery staple"


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def write_key(path: Path, private: Any, secret: bytes | None = None, mode: int = 0o600) -> Path:
    """The private key alone, PKCS#8."""
    lock = serialization.BestAvailableEncryption(secret) if secret else serialization.NoEncryption()
    path.touch(mode=0o600)
    path.write_bytes(
        private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)
    )
    path.chmod(mode)
    return path


def write_certificates(path: Path, *keys: SigningKey) -> Path:
    """Their certificates, in this order."""
    held = [x509.load_der_x509_certificate(key.certificate) for key in keys]
    path.write_bytes(b"".join(one.public_bytes(serialization.Encoding.PEM) for one in held))
    return path


@pytest.mark.parametrize("secret", [None, SECRET])
@pytest.mark.parametrize("kind", ["issued", "rsa"])
def test_a_pair_signs(world: World, tmp_path: Path, kind: str, secret: bytes | None) -> None:
    """PDF and DSSE, encrypted or not, P-256 and RSA."""
    pytest.importorskip("weasyprint")
    made: SigningKey = getattr(world, kind)
    path = write_key(tmp_path / "key.pem", made.private, secret)
    assert is_pem(path)
    assert is_encrypted(path) is bool(secret)
    key = load_pem(path, write_certificates(tmp_path / "cert.pem", made), secret)
    assert key == made
    assert check_pdf(sign_pdf(world.unsigned, key, meaning="author"), [made.certificate]).valid
    envelope = attest({"a": b"b"}, key, predicate_type="x", predicate={})
    assert check(envelope, {"a": b"b"}, [x509.load_der_x509_certificate(made.certificate)]).valid


def test_the_chain_in_the_same_file(world: World, tmp_path: Path) -> None:
    """In any order; the certificate is the one of the key. Everything may lie in one file."""
    middle = certify("Intermediate", issuer=world.authority, authority=True)
    leaf = certify("L. Eaf", issuer=middle)
    path = write_key(tmp_path / "key.pem", leaf.private)
    key = load_pem(path, write_certificates(tmp_path / "cert.pem", middle, leaf), None)
    assert (key.name, key.chain) == ("L. Eaf", (middle.certificate,))
    both = tmp_path / "both.pem"
    both.touch(mode=0o600)
    both.write_bytes(path.read_bytes() + (tmp_path / "cert.pem").read_bytes())
    assert load_pem(both, None, None) == key


@pytest.mark.parametrize("form", ["traditional", "sec1"])
def test_openssls_older_form(world: World, tmp_path: Path, form: str) -> None:
    """``Proc-Type: 4,ENCRYPTED``, as ``openssl ec -aes256`` writes it."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed (Debian package openssl)")
    plain, path = write_key(tmp_path / "plain.pem", world.key.private), tmp_path / "key.pem"
    lock = ["-aes256", "-passout", f"pass:{SECRET.decode()}"] if form == "traditional" else []
    assert run("openssl", "ec", "-in", plain, "-out", path, *lock).returncode == 0
    path.chmod(0o600)
    certificate = write_certificates(tmp_path / "cert.pem", world.key)
    assert is_encrypted(path) is bool(lock)
    assert load_pem(path, certificate, SECRET).name == world.key.name


UNFIT: dict[str, tuple[Callable[[], SigningKey | Any], str]] = {
    "P-384": (lambda: ec.generate_private_key(ec.SECP384R1()), "ECDSA P-256 or RSA >= 2048"),
    "Ed25519": (ed25519.Ed25519PrivateKey.generate, "ECDSA P-256 or RSA >= 2048"),
    "RSA 1024": (lambda: rsa.generate_private_key(65537, 1024), "ECDSA P-256 or RSA >= 2048"),
    "no commitment": (lambda: certify("N", commitment=False), "contentCommitment"),
    "expired": (lambda: certify("E", days=(-9, -2)), "expired or is not valid yet"),
    "not yet valid": (lambda: certify("Y", days=(2, 9)), "expired or is not valid yet"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_a_key_that_cannot_sign(tmp_path: Path, case: str) -> None:
    """One line that names the file and what would be valid."""
    make, told = UNFIT[case]
    made = make()
    if isinstance(made, SigningKey):
        private, certificate = made.private, write_certificates(tmp_path / "cert.pem", made)
    else:
        private, certificate = made, self_signed(tmp_path / "cert.pem", made)
    path = write_key(tmp_path / "key.pem", private)
    with pytest.raises(KeyFileError, match=told) as caught:
        load_pem(path, certificate, None)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def self_signed(path: Path, private: Any) -> Path:
    """A certificate for a key of any kind."""
    from cryptography.hazmat.primitives import hashes

    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "K")])
    builder = (
        x509.CertificateBuilder(subject, subject, private.public_key(), x509.random_serial_number())
        .not_valid_before(NOW - DAY)
        .not_valid_after(NOW + DAY)
        .add_extension(x509.KeyUsage(True, True, *[False] * 7), critical=True)
    )
    digest = None if isinstance(private, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    path.write_bytes(builder.sign(private, digest).public_bytes(serialization.Encoding.PEM))
    return path


def test_files_that_are_no_pair(world: World, tmp_path: Path) -> None:
    """Others can read it, none there, no key, no certificate, another's certificate, too large."""
    path = write_key(tmp_path / "key.pem", world.key.private)
    good = write_certificates(tmp_path / "cert.pem", world.key)
    junk = tmp_path / "junk.pem"
    junk.touch(mode=0o600)
    junk.write_text("-----BEGIN PRIVATE KEY-----\njunk\n-----END PRIVATE KEY-----\n")
    large = tmp_path / "large.pem"
    large.write_bytes(b"x" * 1_000_001)
    for key, certificate, told in (
        (write_key(tmp_path / "open.pem", world.key.private, mode=0o644), good, "chmod 600"),
        (tmp_path / "no.pem", good, "no such key file"),
        (junk, good, "no private key"),
        (path, tmp_path / "no.pem", "cannot be read"),
        (path, junk, "no certificate"),
        (path, path, "no certificate"),
        (path, None, "no certificate"),
        (path, write_certificates(tmp_path / "other.pem", world.other), "none of its 1 certificates"),
        (path, large, "larger than"),
    ):
        with pytest.raises(KeyFileError, match=told) as caught:
            load_pem(key, certificate, None)
        assert "\n" not in str(caught.value)


def test_a_wrong_passphrase(world: World, tmp_path: Path) -> None:
    """It shows in no message and no traceback, and neither does the key."""
    path = write_key(tmp_path / "key.pem", world.key.private, SECRET)
    certificate = write_certificates(tmp_path / "cert.pem", world.key)
    for wrong, told in (
        (b"a wrong secret", "passphrase is wrong"),
        (None, "give its passphrase"),
        (b"", "passphrase"),
    ):
        with pytest.raises(KeyFileError, match=told) as caught:
            load_pem(path, certificate, wrong)
        assert "wrong secret" not in "".join(traceback.format_exception(caught.value))
        assert caught.value.__cause__ is None
    plain = write_key(tmp_path / "plain.pem", world.key.private)
    assert "BEGIN" not in repr(load_pem(plain, certificate, b"one that is not needed"))


def test_load_key_points_here(world: World, tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="certificate of a PEM key"):
        load_key(write_key(tmp_path / "key.pem", world.key.private), SECRET)


def test_a_pin_is_never_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File, environment, prompt; nothing that lies about."""
    monkeypatch.chdir(tmp_path)
    for name in ("audit.pass", "token audit.pass"):
        (tmp_path / name).touch(mode=0o600)
        (tmp_path / name).write_text("123456")
    given = tmp_path / "given"
    given.write_text("1\n2\n")
    environ = {"CLINSAFE_PASSPHRASE": "2"}
    assert find_pin("audit", file=given, environ=environ, prompt=None) == b"1"
    assert find_pin("audit", file=None, environ=environ, prompt=None) == b"2"
    assert (
        find_pin("audit", file=None, environ={}, prompt=lambda question: question) == b"PIN of token audit: "
    )
    for file, prompt in ((None, None), (None, lambda _: "")):
        with pytest.raises(KeyFileError, match="no PIN"):
            find_pin("audit", file=file, environ={}, prompt=prompt)
    with pytest.raises(KeyFileError, match="cannot be read"):
        find_pin("audit", file=tmp_path / "no", environ=environ, prompt=None)

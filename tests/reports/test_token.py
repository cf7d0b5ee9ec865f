"""Keys on a token, with SoftHSM (Debian package softhsm2) for one: real sessions, real signatures."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from clinsafe.errors import KeyFileError, MissingDependency
from clinsafe.reports.dsse import attest, check
from clinsafe.reports.pdfcheck import check_pdf
from clinsafe.reports.sign import sign_pdf
from clinsafe.reports.stamp import Stamp
from clinsafe.reports.token import TokenKey, open_token
from tests.reports.signing import World, certify, run

PIN = b"123456"
PLACES = (
    "/usr/lib/softhsm/libsofthsm2.so",
    "/usr/local/lib/softhsm/libsofthsm2.so",
    "/opt/homebrew/lib/softhsm/libsofthsm2.so",
)


class Token(World):
    """A SoftHSM token called "audit": keys "ec" and "rsa" with certificates, "bare" without."""

    def __init__(self, folder: Path, module: Path) -> None:
        self.folder, self.module = folder, module

    def open(self, label: str = "ec", pin: bytes = PIN, **options: Any) -> TokenKey:
        """Log in."""
        return open_token(self.module, "audit", label, pin, **options)

    def fill(self) -> None:
        """Make the token and put everything on it."""
        import pkcs11
        from pkcs11 import Attribute, ObjectClass

        run(
            "softhsm2-util",
            "--init-token",
            "--free",
            "--label",
            "audit",
            "--pin",
            PIN.decode(),
            "--so-pin",
            "87654321",
        )
        keys = {
            "ec": self.issued,
            "rsa": certify("R. Sa", issuer=self.authority, bits=2048),
            "bare": self.other,
        }
        for number, (label, key) in enumerate(keys.items(), 1):
            path = self.folder / label
            path.write_bytes(key.private.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ))  # fmt: skip
            done = run("softhsm2-util", "--import", path, "--token", "audit", "--label", label, "--id", f"0{number}",
                       "--pin", PIN.decode())  # fmt: skip
            assert done.returncode == 0, done.stderr
        held = {**keys, "root": self.authority, "stranger": self.key}
        del held["bare"]
        with (
            pkcs11.lib(str(self.module))
            .get_token(token_label="audit")
            .open(rw=True, user_pin=PIN.decode()) as session
        ):
            for number, (label, key) in enumerate(held.items(), 1):
                subject = x509.load_der_x509_certificate(key.certificate).subject
                session.create_object({
                    Attribute.CLASS: ObjectClass.CERTIFICATE,
                    Attribute.CERTIFICATE_TYPE: pkcs11.CertificateType.X_509,
                    Attribute.TOKEN: True,
                    Attribute.LABEL: label,
                    Attribute.ID: bytes([number if label in keys else 90 + number]),
                    Attribute.VALUE: key.certificate,
                    Attribute.SUBJECT: subject.public_bytes(),
                })  # fmt: skip


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Token]:
    pytest.importorskip("pkcs11")
    pytest.importorskip("weasyprint")
    module = next((Path(place) for place in PLACES if Path(place).is_file()), None)
    if module is None or shutil.which("softhsm2-util") is None:
        pytest.skip("SoftHSM is not installed (Debian package softhsm2)")
    folder = tmp_path_factory.mktemp("softhsm")
    (folder / "tokens").mkdir()
    (folder / "softhsm2.conf").write_text(
        f"directories.tokendir = {folder}/tokens\nobjectstore.backend = file\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOFTHSM2_CONF", str(folder / "softhsm2.conf"))  # before the library is loaded
        made = Token(folder, module)
        made.fill()
        yield made


@pytest.mark.server
@pytest.mark.parametrize("label", ["ec", "rsa"])
def test_a_token_signs(token: Token, label: str) -> None:
    """PDF with a stamp, and DSSE; the issuer's certificate comes from the token, no stranger's does."""
    key = token.open(label)
    root = [token.authority.certificate]
    document = sign_pdf(token.unsigned, key, meaning="approval", stamp=Stamp())
    found = check_pdf(document, root)
    assert found.valid
    assert found.signer == key.name
    assert key.chain == (token.authority.certificate,)
    envelope = attest({"a": b"b"}, key, predicate_type="x", predicate={})
    said = check(envelope, {"a": b"b"}, [x509.load_der_x509_certificate(der) for der in root])
    assert said.valid
    key.close()


@pytest.mark.server
def test_the_secret_stays_there(token: Token) -> None:
    """Neither PIN nor session shows, and there is nothing to export."""
    key = token.open()
    assert PIN.decode() not in repr(key)
    assert "ession" not in repr(key)
    assert not hasattr(key.private, "private_bytes")
    key.close()
    with pytest.raises(KeyFileError, match="did not sign") as caught:
        sign_pdf(token.unsigned, key, meaning="author")
    assert "\n" not in str(caught.value)


@pytest.mark.server
def test_a_certificate_from_a_file(token: Token) -> None:
    """For a token that holds none; another's is noticed before anything is signed."""
    own, other = (x509.load_der_x509_certificate(k.certificate) for k in (token.other, token.key))
    with pytest.raises(KeyFileError, match="holds no certificate with the id"):
        token.open("bare")
    key = token.open("bare", certificates=[own])
    assert check_pdf(sign_pdf(token.unsigned, key, meaning="author"), [token.other.certificate]).valid
    key.close()
    with pytest.raises(KeyFileError, match="not that of the key"):
        token.open("bare", certificates=[other])


@pytest.mark.server
def test_what_cannot_be_opened(token: Token) -> None:
    """One line each, without the PIN."""
    program = Path(sys.executable)
    for module, name, label, pin, told in (
        (token.module, "audit", "ec", b"999999", "PIN is wrong"),
        (token.module, "audit", "ec", b"1", "PIN is wrong"),
        (token.module, "audit", "ec", b"\xff\xff\xff\xff", "PIN is wrong"),
        (token.module, "audit", "nobody", PIN, "no private keys are called 'nobody'"),
        (token.module, "nowhere", "ec", PIN, "cannot be opened"),
        (program, "audit", "ec", PIN, "cannot be opened"),
        (token.folder / "no.so", "audit", "ec", PIN, "no such PKCS#11 library"),
    ):
        with pytest.raises(KeyFileError, match=told) as caught:
            open_token(module, name, label, pin)
        assert "\n" not in str(caught.value)
        assert pin.decode("latin-1") not in str(caught.value) or pin == b"1"


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error carries the line to run."""
    monkeypatch.setitem(sys.modules, "pkcs11", None)
    with pytest.raises(MissingDependency, match=r"pip install 'clinsafe\[pkcs11\]'"):
        open_token(tmp_path / "x.so", "audit", "ec", PIN)


def test_no_such_library(tmp_path: Path) -> None:
    pytest.importorskip("pkcs11")
    with pytest.raises(KeyFileError, match="no such PKCS#11 library"):
        open_token(tmp_path / "x.so", "audit", "ec", PIN)

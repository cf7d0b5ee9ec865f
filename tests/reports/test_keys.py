"""Keys: made safely, found in one order, refused with a line that says what would be valid."""

from __future__ import annotations

import os
import stat
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import pkcs12

from clinsafe.errors import KeyFileError, MissingDependency
from clinsafe.reports import keys
from clinsafe.reports.keys import (
    VARIABLE,
    SigningKey,
    default_folder,
    find_passphrase,
    load_key,
    make_development_key,
)
from clinsafe.reports.sign import DEVELOPMENT_ORGANISATION

SECRET = b"correct horse battery staple"
NOW = datetime.now(UTC)
REAL_ROUNDS = keys._KDF_ROUNDS


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Key stretching is slow on purpose; one test below looks at the real figure."""
    monkeypatch.setattr(keys, "_KDF_ROUNDS", 1000)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def write_p12(
    folder: Path,
    private: Any,
    *,
    commitment: bool | None = True,
    days: tuple[int, int] = (-1, 1),
    organisation: str = "Hospital",
    name: str = "A. Signer",
) -> Path:
    """A PKCS#12 file with a self-signed certificate; `commitment` None leaves the key usage out."""
    who = {x509.NameOID.COMMON_NAME: name, x509.NameOID.ORGANIZATION_NAME: organisation}
    subject = x509.Name([x509.NameAttribute(oid, value) for oid, value in who.items()])
    builder = (
        x509.CertificateBuilder(subject, subject, private.public_key(), x509.random_serial_number())
        .not_valid_before(NOW + timedelta(days=days[0]))
        .not_valid_after(NOW + timedelta(days=days[1]))
    )
    if commitment is not None:
        usage = x509.KeyUsage(True, commitment, False, False, False, False, False, False, False)
        builder = builder.add_extension(usage, critical=True)
    algorithm = None if isinstance(private, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    lock = serialization.BestAvailableEncryption(SECRET)
    data = pkcs12.serialize_key_and_certificates(b"k", private, builder.sign(private, algorithm), None, lock)
    path = folder / "signer.p12"
    path.touch(mode=0o600)
    path.write_bytes(data)
    return path


def p256() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


# ── a development key ──────────────────────────────────────────────────────────────────────────


def test_the_key_says_what_it_is(tmp_path: Path) -> None:
    """Its name marks it, and its certificate fits document signing and nothing else."""
    key = load_key(make_development_key(tmp_path / "keys", "A. Auditor", SECRET, days=10), SECRET)
    certificate = x509.load_pem_x509_certificate((tmp_path / "keys" / "development.pem").read_bytes())
    assert key.name == "DEVELOPMENT KEY - A. Auditor"
    assert key.development
    assert key.certificate == certificate.public_bytes(serialization.Encoding.DER)
    assert key.fingerprint == certificate.fingerprint(hashes.SHA256()).hex()
    assert key.not_after - key.not_before == timedelta(days=10)
    assert key.not_before < datetime.now(UTC)
    assert certificate.subject == certificate.issuer
    assert "proves nothing about who signed" in certificate.subject.rfc4514_string()
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert usage.critical
    assert usage.value.digital_signature
    assert usage.value.content_commitment
    assert not usage.value.key_cert_sign
    assert constraints.value.ca is False
    assert certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)


def test_modes_hold_under_any_umask(tmp_path: Path) -> None:
    """Folder 700, key 600, certificate 644, with the loosest and the tightest umask."""
    for umask in (0o000, 0o077):
        before = os.umask(umask)
        try:
            path = make_development_key(tmp_path / f"keys{umask}", "A", SECRET)
        finally:
            os.umask(before)
        assert [mode(path.parent), mode(path), mode(path.with_suffix(".pem"))] == [0o700, 0o600, 0o644]


def test_the_key_is_closed_from_its_first_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is created exclusively with mode 600, not created and closed later."""
    calls: list[tuple[str, int, int]] = []
    real = os.open

    def spy(path: Any, flags: int, mode: int = 0o777, **rest: Any) -> int:
        calls.append((Path(path).name, flags, mode))
        return real(path, flags, mode, **rest)

    monkeypatch.setattr(os, "open", spy)
    make_development_key(tmp_path / "keys", "A", SECRET)
    flags, first = next((flags, mode) for name, flags, mode in calls if name == "development.p12")
    assert flags & os.O_EXCL
    assert flags & os.O_CREAT
    assert first == 0o600


def test_the_passphrase_is_stretched(tmp_path: Path) -> None:
    """AES-256-CBC under PBKDF2, key and certificate both; the rounds are those of the setting."""
    data = make_development_key(tmp_path / "keys", "A", SECRET).read_bytes()
    aes_256_cbc, pbkdf2 = bytes.fromhex("060960864801650304012a"), bytes.fromhex("06092a864886f70d01050c")
    thousand = bytes.fromhex("020203e8")  # DER integer
    assert data.count(aes_256_cbc) == data.count(pbkdf2) == data.count(thousand) == 2
    assert REAL_ROUNDS >= 600_000


def test_a_key_is_not_overwritten(tmp_path: Path) -> None:
    """Unless forced; then it is a new key."""
    first = load_key(make_development_key(tmp_path / "keys", "A", SECRET), SECRET)
    with pytest.raises(KeyFileError, match="exists already"):
        make_development_key(tmp_path / "keys", "A", SECRET)
    second = load_key(make_development_key(tmp_path / "keys", "A", SECRET, force=True), SECRET)
    assert first.fingerprint != second.fingerprint


def test_no_key_in_a_git_work_tree(tmp_path: Path) -> None:
    """At any depth, through a link, and also where .git is a file (a worktree or a submodule)."""
    (tmp_path / "repository" / "deep" / "er").mkdir(parents=True)
    (tmp_path / "repository" / ".git").write_text("gitdir: elsewhere")
    (tmp_path / "link").symlink_to(tmp_path / "repository" / "deep")
    for folder in ("repository", "repository/deep/er", "link/new"):
        with pytest.raises(KeyFileError, match="git work tree"):
            make_development_key(tmp_path / folder, "A", SECRET)
    assert not list(tmp_path.rglob("*.p12"))


@pytest.mark.parametrize(
    ("name", "passphrase", "days", "told"),
    [
        ("A", b"", 1, "passphrase is empty"),
        ("", SECRET, 1, "1 to 46 bytes"),
        ("x" * 47, SECRET, 1, "1 to 46 bytes"),
        ("é" * 24, SECRET, 1, "1 to 46 bytes"),
        ("A\x1b[2J", SECRET, 1, "printable"),
        ("A", SECRET, 0, "1 to 3650"),
    ],
)
def test_no_such_key(tmp_path: Path, name: str, passphrase: bytes, days: int, told: str) -> None:
    """Refused before anything is written."""
    with pytest.raises(KeyFileError, match=told):
        make_development_key(tmp_path / "keys", name, passphrase, days=days)
    assert not (tmp_path / "keys").exists()


def test_an_open_or_unwritable_folder(tmp_path: Path) -> None:
    """A folder that was there before is refused, not changed."""
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o755)
    with pytest.raises(KeyFileError, match=f"chmod 700 {folder}"):
        make_development_key(folder, "A", SECRET)
    assert mode(folder) == 0o755
    assert not list(folder.iterdir())
    (tmp_path / "file").touch()
    with pytest.raises(KeyFileError, match="cannot be written"):
        make_development_key(tmp_path / "file", "A", SECRET)


def test_the_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The XDG one; a relative XDG_CONFIG_HOME counts as unset."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for value, expected in ((str(tmp_path / "c"), tmp_path / "c"), ("c", tmp_path / ".config")):
        monkeypatch.setenv("XDG_CONFIG_HOME", value)
        assert default_folder() == expected / "clinsafe" / "keys"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert default_folder() == tmp_path / ".config" / "clinsafe" / "keys"


# ── its passphrase ─────────────────────────────────────────────────────────────────────────────


def test_the_order_of_passphrase_sources(tmp_path: Path) -> None:
    """File, environment, file beside the key, prompt: removing the first found leaves the next."""
    key, given, beside = tmp_path / "k.p12", tmp_path / "given", tmp_path / "k.p12.pass"
    given.write_text("from the file\nsecond line\n")
    beside.touch(mode=0o600)
    beside.write_bytes(b"from beside\r\n")
    environ = {"CLINSAFE_PASSPHRASE": "from the environment"}
    asked: list[str] = []

    def prompt(question: str) -> str:
        asked.append(question)
        return "from the prompt"

    assert find_passphrase(key, file=given, environ=environ, prompt=prompt) == b"from the file"
    assert find_passphrase(key, file=None, environ=environ, prompt=prompt) == b"from the environment"
    assert find_passphrase(key, file=None, environ={}, prompt=prompt) == b"from beside"
    beside.unlink()
    assert not asked
    assert find_passphrase(key, file=None, environ={}, prompt=prompt) == b"from the prompt"
    assert asked == ["Passphrase of k.p12: "]


def test_no_passphrase_lists_the_four_ways(tmp_path: Path) -> None:
    """Also where a source is there but empty, which must not unlock an unprotected key by accident."""
    empty = tmp_path / "empty"
    empty.touch()

    def silent(_question: str) -> str:
        return ""

    unset = {"CLINSAFE_PASSPHRASE": ""}
    for file, environ, prompt in ((None, {}, None), (None, unset, silent), (empty, {}, None)):
        with pytest.raises(KeyFileError) as caught:
            find_passphrase(tmp_path / "k.p12", file=file, environ=environ, prompt=prompt)
        for way in ("passphrase file", "CLINSAFE_PASSPHRASE", "k.p12.pass (mode 600)", "prompt"):
            assert way in str(caught.value)


def test_an_open_passphrase_file_is_refused(tmp_path: Path) -> None:
    """With the command that mends it; a missing one that was asked for does not fall through."""
    beside = tmp_path / "k.p12.pass"
    beside.write_bytes(SECRET)
    beside.chmod(0o640)
    with pytest.raises(KeyFileError, match="chmod 600") as caught:
        find_passphrase(tmp_path / "k.p12", file=None, environ={}, prompt=None)
    assert SECRET.decode() not in str(caught.value)
    beside.chmod(0o400)
    assert find_passphrase(tmp_path / "k.p12", file=None, environ={}, prompt=None) == SECRET
    with pytest.raises(KeyFileError, match="cannot be read"):
        find_passphrase(tmp_path / "k.p12", file=tmp_path / "no", environ={VARIABLE: "x"}, prompt=None)


# ── loading ────────────────────────────────────────────────────────────────────────────────────


def test_p256_and_rsa_load(tmp_path: Path) -> None:
    """A key of an authority is no development key."""
    for private in (p256(), rsa.generate_private_key(65537, 2048)):
        key = load_key(write_p12(tmp_path, private), SECRET)
        assert (key.name, key.development, key.may_sign) == ("A. Signer", False, True)


def test_a_renamed_development_key_is_one(tmp_path: Path) -> None:
    """The organisation marks it, too."""
    path = write_p12(tmp_path, p256(), organisation=DEVELOPMENT_ORGANISATION)
    assert load_key(path, SECRET).development


def test_a_name_cannot_drive_the_terminal(tmp_path: Path) -> None:
    """A name is shown to readers, and whoever makes the certificate chooses it."""
    path = write_p12(tmp_path, p256(), name="A.\x1b[2J\nSigner")
    assert load_key(path, SECRET).name == "A.?[2J?Signer"


def test_the_key_never_shows(tmp_path: Path) -> None:
    """Neither private key nor passphrase in repr; the passphrase in no message, repr or traceback."""
    path = write_p12(tmp_path, p256())
    key = load_key(path, SECRET)
    assert "private" not in repr(key)
    assert "certificate" not in repr(key)
    for wrong in (b"a wrong secret", b"\xff\xfe wrong", b""):
        with pytest.raises(KeyFileError, match="passphrase is wrong") as caught:
            load_key(path, wrong)
        told = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
        assert "wrong secret" not in told
        assert repr(wrong) not in told
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


KINDS = "ECDSA P-256 or RSA >= 2048"
UNFIT: dict[str, tuple[Callable[[Path], Path], str]] = {
    "P-384": (lambda at: write_p12(at, ec.generate_private_key(ec.SECP384R1())), KINDS),
    "Ed25519": (lambda at: write_p12(at, ed25519.Ed25519PrivateKey.generate()), KINDS),
    "RSA 1024": (lambda at: write_p12(at, rsa.generate_private_key(65537, 1024)), KINDS),
    "no commitment": (lambda at: write_p12(at, p256(), commitment=False), "contentCommitment"),
    "no key usage": (lambda at: write_p12(at, p256(), commitment=None), "contentCommitment"),
    "expired": (lambda at: write_p12(at, p256(), days=(-9, -2)), "expired or is not valid yet"),
    "not yet valid": (lambda at: write_p12(at, p256(), days=(2, 9)), "expired or is not valid yet"),
    "missing": (lambda at: at / "no.p12", "no such key file"),
    "a folder": (lambda at: at, "no such key file"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_a_key_that_cannot_sign(tmp_path: Path, case: str) -> None:
    """One line that names the file and what would be valid."""
    make, told = UNFIT[case]
    path = make(tmp_path)
    with pytest.raises(KeyFileError, match=told) as caught:
        load_key(path, SECRET)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_key(tmp_path: Path) -> None:
    """PEM gets the line that converts it; a key that others can read, the one that closes it."""
    path = write_p12(tmp_path, p256())
    whole = path.read_bytes()
    path.chmod(0o640)
    with pytest.raises(KeyFileError, match=f"chmod 600 {path}"):
        load_key(path, SECRET)
    path.chmod(0o600)
    path.write_bytes(b"-----BEGIN PRIVATE KEY-----")
    with pytest.raises(KeyFileError, match="openssl pkcs12 -export"):
        load_key(path, SECRET)
    path.write_bytes(whole[:-40])
    with pytest.raises(KeyFileError, match="damaged"):
        load_key(path, SECRET)
    lock = serialization.BestAvailableEncryption(SECRET)
    bare = pkcs12.serialize_key_and_certificates(b"k", p256(), None, None, lock)
    path.write_bytes(bare)
    with pytest.raises(KeyFileError, match="holds no certificate"):
        load_key(path, SECRET)


def test_an_expired_key_can_be_read_for_its_own_time(tmp_path: Path) -> None:
    """`now` is the moment that counts; both ends of the validity belong to it."""
    path = write_p12(tmp_path, p256(), days=(-9, -2))
    key: SigningKey = load_key(path, SECRET, now=NOW - timedelta(days=5))
    assert load_key(path, SECRET, now=key.not_after) == key == load_key(path, SECRET, now=key.not_before)


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error carries the line to run."""
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization.pkcs12", None)
    monkeypatch.delattr(serialization, "pkcs12")
    with pytest.raises(MissingDependency, match=r"signing needs cryptography.*clinsafe\[audit\]"):
        load_key(tmp_path / "k.p12", SECRET)

"""Signing keys: make a development key, find its passphrase, load a PKCS#12 file; what any key must be.

A development key is self-signed and says so in its own name: it shows that a file has not changed since
it was signed, and nothing about who signed it. Key types: ECDSA P-256 and RSA >= 2048 bits; Ed25519 is
refused because poppler's pdfsig and OpenSSL's cms cannot check it inside a PDF.

Passphrases come from a file, the environment or a prompt, never from a command line (other users of the
machine can read that), and never appear in a message, a repr or an exception chain.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinsafe.errors import KeyFileError
from clinsafe.reports.sign import DEVELOPMENT_NAME, DEVELOPMENT_ORGANISATION, SigningKey, holder_of, needs

if TYPE_CHECKING:
    from cryptography import x509

__all__ = [
    "SigningKey", "default_folder", "find_passphrase", "find_pin", "fit", "keep_passphrase", "load_key",
    "make_development_key", "read_private",
]  # fmt: skip

VARIABLE = "CLINSAFE_PASSPHRASE"
_NAME_BYTES = 64 - len(DEVELOPMENT_NAME)  # RFC 5280 appendix A: a common name has at most 64
_KDF_ROUNDS = 600_000  # PBKDF2-HMAC-SHA256, the OWASP figure; about 0.25 s a load


def default_folder() -> Path:
    """``$XDG_CONFIG_HOME/clinsafe/keys``, or ``~/.config/clinsafe/keys`` where that is unset or relative."""
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))  # the XDG specification ignores relative paths
    return (base if base.is_absolute() else Path.home() / ".config") / "clinsafe" / "keys"


def make_development_key(
    folder: Path, name: str, passphrase: bytes, *, days: int = 365, force: bool = False
) -> Path:
    """Write ``development.p12`` (mode 600) and its public ``development.pem`` (644); returns the .p12.

    `folder` is made with mode 700. Raises KeyFileError for a folder inside a git work tree or open to
    others, a key that exists (without `force`), an empty passphrase, a name that does not fit, and
    `days` of validity outside 1 to 3650.
    """
    folder = folder.expanduser().resolve()
    key_file, public_file = folder / "development.p12", folder / "development.pem"
    tree = next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)
    if tree is not None:
        raise KeyFileError(f"{folder}: lies in the git work tree {tree}; name a folder outside any work tree")
    if not passphrase:
        raise KeyFileError(f"{key_file}: the passphrase is empty; give one of at least one character")
    if not 1 <= len(name.encode()) <= _NAME_BYTES or not name.isprintable():
        raise KeyFileError(f"{name!r} is no name for a key; give 1 to {_NAME_BYTES} bytes of printable text")
    if not 1 <= days <= 3650:
        raise KeyFileError(f"a validity of {days} days is not possible; give 1 to 3650")
    taken = [path for path in (key_file, public_file) if os.path.lexists(path)]
    if taken and not force:
        raise KeyFileError(f"{taken[0]}: exists already; name another folder, or overwrite it with force")
    private, public = _self_signed(name, passphrase, days)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        refuse_open(folder, 0o700)  # one that was there before is not ours to change
        for path in taken:
            path.unlink()
        for path, mode, data in ((key_file, 0o600, private), (public_file, 0o644, public)):
            _write_new(path, data, mode)
    except OSError as error:
        raise KeyFileError(f"{folder}: cannot be written ({error.strerror}); name another folder") from None
    return key_file


def _self_signed(name: str, passphrase: bytes, days: int) -> tuple[bytes, bytes]:
    """A new P-256 key: PKCS#12 (AES-256-CBC, PBKDF2) and the certificate as PEM."""
    with needs("signing"):
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import pkcs12

    private = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([
        x509.NameAttribute(x509.NameOID.COMMON_NAME, DEVELOPMENT_NAME + name),
        x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, DEVELOPMENT_ORGANISATION),
    ])  # fmt: skip
    usage = dict.fromkeys(("key_encipherment", "data_encipherment", "key_agreement", "key_cert_sign",
                           "crl_sign", "encipher_only", "decipher_only"), False)  # fmt: skip
    start = datetime.now(UTC) - timedelta(minutes=5)  # a reader's clock may run behind this one
    certificate = (
        x509.CertificateBuilder(subject, subject, private.public_key(), x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(digital_signature=True, content_commitment=True, **usage), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(private.public_key()), critical=False)
        .sign(private, hashes.SHA256())
    )
    encryption = (
        serialization.PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(_KDF_ROUNDS)
        .key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC)
        .hmac_hash(hashes.SHA256())
        .build(passphrase)
    )
    bundle = pkcs12.serialize_key_and_certificates(name.encode(), private, certificate, None, encryption)
    return bundle, certificate.public_bytes(serialization.Encoding.PEM)


def find_passphrase(
    key: Path, *, file: Path | None, environ: Mapping[str, str], prompt: Callable[[str], str] | None
) -> bytes:
    """The passphrase of `key`: first found of `file`, CLINSAFE_PASSPHRASE, ``<key>.pass``, `prompt`.

    A file counts up to its first line break. `prompt` gets the question and returns the answer. Raises
    KeyFileError if there is none, if a file cannot be read, or if others can read ``<key>.pass``.
    """
    beside, found = Path(f"{key}.pass"), b""
    if file is not None:  # it may be a mounted secret or a pipe, with a mode of its own
        found = _first_line(file)
    elif environ.get(VARIABLE):
        found = environ[VARIABLE].encode()
    elif beside.exists():
        refuse_open(beside, 0o600)
        found = _first_line(beside)
    elif prompt is not None:
        found = prompt(f"Passphrase of {key.name}: ").encode()
    if not found:
        raise KeyFileError(f"{key}: no passphrase; name a passphrase file, or set {VARIABLE}, or "
                           f"write it to {beside} (mode 600), or type it at the prompt")  # fmt: skip
    return found


def find_pin(
    token: str, *, file: Path | None, environ: Mapping[str, str], prompt: Callable[[str], str] | None
) -> bytes:
    """The PIN of a token, like `find_passphrase`, but never from a file that happens to lie somewhere.

    Raises KeyFileError if there is none; a token locks after a few wrong ones, so none is guessed.
    """
    if file is not None:
        found = _first_line(file)
    elif environ.get(VARIABLE):
        found = environ[VARIABLE].encode()
    else:
        found = prompt(f"PIN of token {token}: ").encode() if prompt is not None else b""
    if not found:
        raise KeyFileError(f"token {token!r}: no PIN; name a passphrase file, or set {VARIABLE}, or type it at "
                           "the prompt")  # fmt: skip
    return found


def _first_line(file: Path) -> bytes:
    try:
        return (file.read_bytes().splitlines() or [b""])[0]
    except OSError as error:
        raise KeyFileError(f"{file}: the passphrase file cannot be read ({error.strerror})") from None


def keep_passphrase(key: Path, passphrase: bytes) -> Path:
    """Keep a development key's passphrase in ``<key>.pass``, mode 600 from the first byte; returns that path.

    For development keys only: whoever can read the folder can then sign. Call it after the key was made, whose
    folder is private by then.
    """
    path = Path(f"{key}.pass")
    try:
        path.unlink(missing_ok=True)
        _write_new(path, passphrase + b"\n", 0o600)
    except OSError as error:
        raise KeyFileError(f"{path}: cannot be written ({error.strerror})") from None
    return path


def load_key(path: Path, passphrase: bytes, *, now: datetime | None = None) -> SigningKey:
    """Read a PKCS#12 file (.p12, .pfx); `now` (default: the clock) is when its certificate must be valid.

    Raises KeyFileError for: no such file, one that others can read or that is no PKCS#12, a wrong
    passphrase, no key or certificate inside, a key type or a certificate whose signatures checkers reject.
    """
    with needs("signing"):
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import pkcs12

    data = read_private(path)
    if not data.startswith(b"\x30"):  # PKCS#12 is a DER sequence
        raise KeyFileError(f"{path}: not a PKCS#12 file; give the certificate of a PEM key, too, or convert the "
                           "pair with 'openssl pkcs12 -export -inkey KEY.pem -in CERT.pem -out KEY.p12'")  # fmt: skip
    try:
        bundle = pkcs12.load_pkcs12(data, passphrase)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # TypeError: one byte above 127 in a passphrase
        raise KeyFileError(f"{path}: the passphrase is wrong, or the file is damaged") from None
    private, held = bundle.key, bundle.cert
    if private is None or held is None:
        raise KeyFileError(f"{path}: holds no {'private key' if private is None else 'certificate'}")
    others = [other.certificate for other in bundle.additional_certs]
    return SigningKey(**fit(str(path), held.certificate, others, now), private=private)  # type: ignore[arg-type]


def fit(
    where: str, certificate: x509.Certificate, others: Sequence[x509.Certificate], now: datetime | None
) -> dict[str, Any]:
    """The fields of a `SigningKey` but the private key, for a certificate whose signatures checkers accept.

    Args:
        where: what the messages name.
        certificate: the signer's.
        others: its issuers'.
        now: when it must be valid; default the clock.

    Raises:
        KeyFileError: neither ECDSA P-256 nor RSA >= 2048, not for signing documents, or not valid then.
    """
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import Encoding

    public = certificate.public_key()
    if not (
        (isinstance(public, ec.EllipticCurvePublicKey) and isinstance(public.curve, ec.SECP256R1))
        or (isinstance(public, rsa.RSAPublicKey) and public.key_size >= 2048)
    ):
        raise KeyFileError(f"{where}: a key of this type or size cannot sign; use ECDSA P-256 or RSA >= 2048")
    holder, moment = holder_of(certificate), now or datetime.now(UTC)
    if not holder.may_sign:
        raise KeyFileError(f"{where}: the certificate's key usage lacks contentCommitment (non-repudiation), "
                           "so checkers reject it; ask for one for signing documents")  # fmt: skip
    if not holder.not_before <= moment <= holder.not_after:
        raise KeyFileError(f"{where}: the certificate has expired or is not valid yet; it is valid from "
                           f"{holder.not_before:%Y-%m-%d} to {holder.not_after:%Y-%m-%d}")  # fmt: skip
    chain = tuple(other.public_bytes(Encoding.DER) for other in others)
    return {**vars(holder), "certificate": certificate.public_bytes(Encoding.DER), "chain": chain}


def read_private(path: Path) -> bytes:
    """A key file's bytes. Raises KeyFileError if there is none, or if others can read it."""
    if not path.is_file():
        raise KeyFileError(f"{path}: no such key file; name a .p12 or .pem file, or make a development key")
    refuse_open(path, 0o600)
    try:
        return path.read_bytes()
    except OSError as error:
        raise KeyFileError(f"{path}: cannot be read ({error.strerror})") from None


def _write_new(path: Path, data: bytes, mode: int) -> None:
    """Write a file that is not there yet, with this mode."""
    # O_EXCL with the mode: at no moment is there a key that others can read, or a link followed
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
        stream.write(data)
    path.chmod(mode)  # the umask may have taken rights from the public one


def refuse_open(path: Path, mode: int) -> None:
    """Raise KeyFileError if anyone but the owner has a right on `path`; Windows has no such bits."""
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise KeyFileError(f"{path}: others can open it; run: chmod {mode:o} {path}")

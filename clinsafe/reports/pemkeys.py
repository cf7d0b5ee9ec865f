"""A signing key as a PEM pair: the private key in one file, certificate and issuers in another or the same."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from clinsafe.errors import KeyFileError
from clinsafe.reports.keys import fit, read_private
from clinsafe.reports.sign import SigningKey, needs

LARGEST = 1_000_000  # bytes of a file of certificates


def is_pem(path: Path) -> bool:
    """Whether a file that can be read is PEM; False for any other."""
    try:
        with path.open("rb") as stream:
            return b"-----BEGIN " in stream.read(4096)
    except OSError:
        return False


def is_encrypted(path: Path) -> bool:
    """Whether the private key in a PEM file has a passphrase (PKCS#8, or the older form of OpenSSL)."""
    data = read_private(path)
    return b"BEGIN ENCRYPTED PRIVATE KEY" in data or b"Proc-Type: 4,ENCRYPTED" in data


def load_pem(
    key: Path, certificates: Path | None, passphrase: bytes | None, *, now: datetime | None = None
) -> SigningKey:
    """Read a PEM pair.

    Args:
        key: the private key, mode 600, encrypted or not.
        certificates: the signer's certificate and any issuers', in any order; default: they are in `key`.
        passphrase: None for a key without one.
        now: when the certificate must be valid; default the clock.

    Raises:
        KeyFileError: as `clinsafe.reports.keys.load_key`, and if no certificate is that of the key.
    """
    with needs("signing"):
        from cryptography import x509
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization

    data = read_private(key)
    if not is_encrypted(key):
        passphrase = None  # one that is set for another key does not make this one unusable
    try:
        private = serialization.load_pem_private_key(data, passphrase)
    except TypeError:  # the key is encrypted, and no passphrase came
        raise KeyFileError(f"{key}: the key is encrypted; give its passphrase") from None
    except (ValueError, UnsupportedAlgorithm):
        why = (
            "the passphrase is wrong, or the file is damaged" if passphrase else "holds no private key in PEM"
        )
        raise KeyFileError(f"{key}: {why}") from None
    source = certificates or key
    try:
        if certificates is not None and certificates.stat().st_size > LARGEST:
            raise KeyFileError(f"{source}: larger than {LARGEST:,} bytes, not a file of certificates")
        held = x509.load_pem_x509_certificates(data if certificates is None else certificates.read_bytes())
    except OSError as error:
        raise KeyFileError(f"{source}: cannot be read ({error.strerror})") from None
    except ValueError:
        raise KeyFileError(f"{source}: holds no certificate in PEM; name the file that does") from None
    public = private.public_key()
    own = next((one for one in held if one.public_key() == public), None)
    if own is None:
        raise KeyFileError(f"{source}: none of its {len(held)} certificates is that of the key {key}")
    others = [one for one in held if one != own]
    return SigningKey(**fit(str(key), own, others, now), private=private)  # type: ignore[arg-type]

"""A signing key that never leaves its token: a smart card, a USB key, an HSM, by PKCS#11.

pyHanko talks to the token. The key signs PDFs and, through an object with the ``sign`` of a private key, DSSE
envelopes. The session stays open until `TokenKey.close`, so that the PIN is asked for once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinsafe.errors import KeyFileError, MissingDependency
from clinsafe.reports.keys import fit
from clinsafe.reports.sign import SigningKey, apart, needs

if TYPE_CHECKING:
    from cryptography import x509

INSTALL = "pip install 'clinsafe[pkcs11]'"


@dataclass(frozen=True)
class TokenKey(SigningKey):
    """A `SigningKey` whose secret stays on the token; `private` can sign and nothing else."""

    signer: Any = field(default=None, repr=False, compare=False)
    session: Any = field(default=None, repr=False, compare=False)

    def pyhanko_signer(self) -> Any:
        """pyHanko's signer for this token."""
        return self.signer

    def close(self) -> None:
        """Log out of the token; the key cannot sign any more."""
        self.session.close()


class TokenEllipticKey:
    """ECDSA P-256 with SHA-256, as ``EllipticCurvePrivateKey.sign``; counted as one by `isinstance`."""

    def __init__(self, signer: Any) -> None:
        self._signer = signer

    def sign(self, data: bytes, _algorithm: object = None) -> bytes:
        """DER signature. Raises KeyFileError if the token fails."""
        return _sign(self._signer, data)


class TokenRsaKey:
    """RSA with SHA-256, as ``RSAPrivateKey.sign``: PSS where that padding is asked for, else PKCS#1 v1.5."""

    def __init__(self, signer: Any, pss: Any) -> None:
        self._signer, self._pss = signer, pss

    def sign(self, data: bytes, padding: Any, _algorithm: object = None) -> bytes:
        """The signature. Raises KeyFileError if the token fails, or cannot do PSS."""
        return _sign(self._pss if padding.name == "EMSA-PSS" else self._signer, data)


def _sign(signer: Any, data: bytes) -> bytes:
    def work() -> bytes:
        signature: bytes = asyncio.run(signer.async_sign_raw(data, "sha256"))
        return signature

    return apart(work)


def open_token(
    module: Path, token: str, label: str, pin: bytes, *,
    certificates: Sequence[x509.Certificate] = (), now: datetime | None = None,
) -> TokenKey:  # fmt: skip
    """Log in to a token.

    Args:
        module: the maker's PKCS#11 library.
        token: the token's label.
        label: that of the private key.
        pin: the user's.
        certificates: the signer's and any issuers', where they are not on the token.
        now: when the certificate must be valid; default the clock.

    Raises:
        MissingDependency: without the extra ``pkcs11``.
        KeyFileError: no such library, token or key, a wrong PIN, and as `clinsafe.reports.keys.load_key`.
    """
    where = f"token {token!r}"
    session = _log_in(module, token, pin, where)
    try:
        own, others = _certificates(session, label, certificates, where)
        fields = fit(where, own, others, now)
        signer, private = _signers(session, label, own, fields, where)
        if certificates:
            _refuse_stranger(own, private, where)
    except BaseException:
        session.close()
        raise
    return TokenKey(**fields, private=private, signer=signer, session=session)


def _log_in(module: Path, token: str, pin: bytes, where: str) -> Any:
    with needs("signing"):
        import pyhanko.sign  # noqa: F401 - apart from the next, whose absence has another cure
    try:
        import pkcs11
        from pyhanko.config.pkcs11 import TokenCriteria
        from pyhanko.sign.pkcs11 import open_pkcs11_session
    except ImportError as error:
        raise MissingDependency("a key on a token", "python-pkcs11", INSTALL) from error

    if not module.is_file():
        raise KeyFileError(
            f"{module}: no such PKCS#11 library; name the .so, .dylib or .dll of the token's maker"
        )
    try:
        secret = pin.decode()
        return open_pkcs11_session(str(module), token_criteria=TokenCriteria(label=token), user_pin=secret)
    except (pkcs11.exceptions.PinIncorrect, pkcs11.exceptions.PinLenRange, UnicodeDecodeError):
        raise KeyFileError(f"{where}: the PIN is wrong; a token locks after a few wrong ones") from None
    except pkcs11.exceptions.PinLocked:
        raise KeyFileError(
            f"{where}: locked after too many wrong PINs; its maker's tool unlocks it"
        ) from None
    except pkcs11.exceptions.PKCS11Error as error:
        raise KeyFileError(f"{where}: cannot be opened with {module} ({_why(error)})") from None


def _signers(
    session: Any, label: str, own: x509.Certificate, fields: Mapping[str, Any], where: str
) -> tuple[Any, Any]:
    """pyHanko's signer, and the object that stands for the private key."""
    import pkcs11
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from pyhanko.keys import load_certs_from_pemder_data
    from pyhanko.sign.pkcs11 import PKCS11Signer

    elliptic = isinstance(own.public_key(), ec.EllipticCurvePublicKey)

    class Signer(PKCS11Signer):
        async def async_sign_raw(self, data: bytes, digest_algorithm: str, dry_run: bool = False) -> bytes:
            try:
                found: bytes = await super().async_sign_raw(data, digest_algorithm, dry_run)
            except pkcs11.exceptions.PKCS11Error as error:
                raise KeyFileError(f"{where}: did not sign ({_why(error)}); is it still there?") from None
            return found

    def signer(*, pss: bool = False) -> Any:
        made: Any = Signer(
            session,
            signing_cert=next(iter(load_certs_from_pemder_data(fields["certificate"]))),
            ca_chain=[root for der in fields["chain"] for root in load_certs_from_pemder_data(der)],
            key_label=label,
            embed_roots=False,
            signature_mechanism=_pss() if pss else None,
            use_raw_mechanism=elliptic,  # hashed here: some tokens cannot hash
        )
        try:  # now, where a fault has its line
            apart(lambda: asyncio.run(made.ensure_objects_loaded()))
        except pkcs11.exceptions.PKCS11Error as error:
            raise KeyFileError(f"{where}: the key {label!r} cannot be used ({_why(error)})") from None
        return made

    if elliptic:
        ec.EllipticCurvePrivateKey.register(TokenEllipticKey)
        return signer(), TokenEllipticKey(signer())
    rsa.RSAPrivateKey.register(TokenRsaKey)
    return signer(), TokenRsaKey(signer(), signer(pss=True))


def _pss() -> Any:
    """RSA-PSS with SHA-256 and a salt as long as the digest, as DSSE envelopes are signed and checked."""
    from asn1crypto import algos

    digest = algos.DigestAlgorithm({"algorithm": "sha256"})
    mask = algos.MaskGenAlgorithm({"algorithm": "mgf1", "parameters": digest})
    parameters = {"hash_algorithm": digest, "mask_gen_algorithm": mask, "salt_length": 32}
    return algos.SignedDigestAlgorithm({"algorithm": "rsassa_pss", "parameters": parameters})


def _certificates(
    session: Any, label: str, given: Sequence[x509.Certificate], where: str
) -> tuple[x509.Certificate, list[x509.Certificate]]:
    """The certificate of the key called `label`, and its issuers', given or from the token."""
    import pkcs11
    from cryptography import x509

    attribute, kind = pkcs11.Attribute, pkcs11.ObjectClass
    try:
        keys = list(session.get_objects({attribute.CLASS: kind.PRIVATE_KEY, attribute.LABEL: label}))
        if len(keys) != 1:
            raise KeyFileError(f"{where}: {len(keys) or 'no'} private keys are called {label!r}, not one")
        identity = keys[0][attribute.ID]
        held = list(session.get_objects({attribute.CLASS: kind.CERTIFICATE}))
        found = [(one[attribute.ID], x509.load_der_x509_certificate(one[attribute.VALUE])) for one in held]
    except (pkcs11.exceptions.PKCS11Error, ValueError) as error:
        raise KeyFileError(f"{where}: its certificates cannot be read ({_why(error)})") from None
    own = given[0] if given else next((one for name, one in found if name == identity), None)
    if own is None:
        raise KeyFileError(f"{where}: holds no certificate with the id of the key {label!r}; name a file "
                           "with the certificate")  # fmt: skip
    pool, chain = [*given[1:], *(one for _, one in found)], [own]
    while issuer := next((o for o in pool if o.subject == chain[-1].issuer and o not in chain), None):
        chain.append(issuer)
    return own, chain[1:]


def _refuse_stranger(own: x509.Certificate, private: Any, where: str) -> None:
    """Raise KeyFileError if a certificate from a file is not that of the key; only a signature shows it."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding

    public: Any = own.public_key()
    probe, digest = b"clinsafe: does this certificate belong to this key?", hashes.SHA256()
    how = (
        (ec.ECDSA(digest),) if isinstance(public, ec.EllipticCurvePublicKey) else (padding.PKCS1v15(), digest)
    )
    try:
        public.verify(private.sign(probe, *how), probe, *how)
    except InvalidSignature:
        raise KeyFileError(
            f"{where}: the certificate given is not that of the key; name the right file"
        ) from None


def _why(error: Exception) -> str:
    """A token's error in one line; many have no words but their type."""
    return " ".join(f"{type(error).__name__} {error}".split())[:160]

"""A detached signature over whole files: an in-toto Statement v1 in a DSSE envelope.

The signature inside a PDF cannot cover its own container, so a few bytes there could change unseen. This
one covers the SHA-256 of the finished file and of anything beside it; other tools can check it, too. See
https://github.com/secure-systems-lab/dsse, https://github.com/in-toto/attestation, and RFC 8785.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from clinsafe.errors import ClinsafeError, ReportError
from clinsafe.reports.sign import SigningKey, holder_of, needs

if TYPE_CHECKING:
    from cryptography import x509

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
REQUIRED = {  # every fact a valid envelope needs -> the line a reader gets where it is False
    "intact": "The statement was changed after signing, or the signature is not by the key that it names.",
    "subjects_match": "The files are not those that were signed: {differences}.",
    "key_usage_ok": "The signer's certificate is not for signing documents (no key usage contentCommitment).",
    "within_validity": "The signer's certificate is valid {since:%Y-%m-%d} to {until:%Y-%m-%d}, not now.",
    "trusted": "The signer's certificate is not trusted: it is none of those given, nor issued by one.",
}


@dataclass(frozen=True)
class DsseCheck:
    """What was found; a fact that could not be established is False or "". For most see REQUIRED.

    `development`: signed with a development key, which proves nothing about who signed (not a problem).
    `signer`: the certificate's common name. `problems`: one plain line each.
    """

    intact: bool = False
    subjects_match: bool = False
    trusted: bool = False
    within_validity: bool = False
    key_usage_ok: bool = False
    development: bool = False
    signer: str = ""
    problems: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """No problem, and every required fact established."""
        return not self.problems and all(getattr(self, fact) for fact in REQUIRED)


def pae(payload: bytes, payload_type: bytes = PAYLOAD_TYPE.encode()) -> bytes:
    """The bytes that are signed: DSSE's pre-authentication encoding (lengths in bytes, decimal)."""
    return b"DSSEv1 %d %b %d %b" % (len(payload_type), payload_type, len(payload), payload)


def attest(
    subjects: Mapping[str, bytes], key: SigningKey, *, predicate_type: str, predicate: Mapping[str, Any]
) -> dict[str, Any]:
    """Sign a statement about files (name -> content): ECDSA P-256 or RSA-PSS, with SHA-256.

    Raises ReportError if there is no file, or if the predicate has a value that JSON cannot hold exactly
    (NaN, an integer beyond 2**53).
    """
    with needs("signing"):
        import rfc8785
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec, padding

    if not (subjects and predicate_type):
        raise ReportError("a statement needs at least one file and the URI of a predicate type")
    statement: Any = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in _digests(subjects)],
        "predicateType": predicate_type,
        "predicate": dict(predicate),
    }
    try:
        payload = rfc8785.dumps(statement)
    except ValueError as error:
        raise ReportError(f"the predicate is not JSON ({error}); use text and finite numbers") from error
    if isinstance(key.private, ec.EllipticCurvePrivateKey):
        signature = key.private.sign(pae(payload), ec.ECDSA(hashes.SHA256()))
    else:
        pss = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.DIGEST_LENGTH)
        signature = key.private.sign(pae(payload), pss, hashes.SHA256())
    certificate = x509.load_der_x509_certificate(key.certificate).public_bytes(serialization.Encoding.PEM)
    entry = {"keyid": key.fingerprint, "sig": _encode(signature), "cert": certificate.decode()}
    return {"payload": _encode(payload), "payloadType": PAYLOAD_TYPE, "signatures": [entry]}


def check(
    envelope: Mapping[str, Any], subjects: Mapping[str, bytes], trust: Sequence[x509.Certificate], *,
    now: datetime | None = None,
) -> DsseCheck:  # fmt: skip
    """Check an envelope against files (name -> content) and trusted certificates.

    A certificate is trusted if it equals a given one or a given authority issued it directly. `now`
    (default: the clock) is when it must be valid. A malformed envelope gives problems, never an exception.
    """
    facts: dict[str, Any] = {}
    problems: list[str] = []
    try:
        _examine(envelope, subjects, trust, (now or datetime.now(UTC)).astimezone(UTC), facts, problems)
    except ClinsafeError:  # MissingDependency
        raise
    except Exception as error:  # any JSON can be handed in: wrong types, bad base64, a broken certificate
        problems.append(f"No signed statement, or a damaged one; not checked ({type(error).__name__}).")
    return DsseCheck(**facts, problems=tuple(problems))


def _examine(
    envelope: Mapping[str, Any], subjects: Mapping[str, bytes], trust: Sequence[x509.Certificate],
    now: datetime, facts: dict[str, Any], problems: list[str],
) -> None:  # fmt: skip
    """Fill `facts` and `problems` step by step, so that an exception leaves what was established."""
    with needs("verifying"):
        import rfc8785
        from cryptography import x509

    entry, *more = envelope["signatures"]
    if more:
        problems.append(f"The envelope carries {1 + len(more)} signatures; it must carry exactly one.")
    holder = holder_of(certificate := x509.load_pem_x509_certificate(entry["cert"].encode()))
    payload, signature = _decode(envelope["payload"]), _decode(entry["sig"])
    facts.update(
        signer=holder.name, development=holder.development, key_usage_ok=holder.may_sign,
        within_validity=holder.not_before <= now <= holder.not_after,
        trusted=any(root == certificate or _issued(certificate, root, now) for root in trust),
        intact=_signed_by(certificate, signature, pae(payload, envelope["payloadType"].encode())),
    )  # fmt: skip
    if entry.get("keyid") not in (None, "", holder.fingerprint):
        problems.append("The envelope names another key than that of its certificate.")
    statement = json.loads(payload)
    if (envelope["payloadType"], statement["_type"]) != (PAYLOAD_TYPE, STATEMENT_TYPE):
        problems.append(f"The envelope holds no statement of type {STATEMENT_TYPE} ({PAYLOAD_TYPE}).")
    if rfc8785.dumps(statement) != payload:  # a name given twice, say, which readers take differently
        problems.append("The statement is not canonical JSON, so two programs may read it differently.")
    named = sorted((subject["name"], subject["digest"]["sha256"]) for subject in statement["subject"])
    given = _digests(subjects)
    facts["subjects_match"] = named == given != []
    differing = sorted({repr(name) for name, _ in set(named) ^ set(given)}) or ["none, or one twice"]
    shown = {"differences": ", ".join(differing), "since": holder.not_before, "until": holder.not_after}
    problems.extend(line.format(**shown) for fact, line in REQUIRED.items() if not facts[fact])


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _digests(subjects: Mapping[str, bytes]) -> list[tuple[str, str]]:
    return sorted((name, sha256(content).hexdigest()) for name, content in subjects.items())


def _signed_by(certificate: x509.Certificate, signature: bytes, message: bytes) -> bool:
    """ECDSA on P-256, RSA-PSS or RSA PKCS#1 v1.5 (other tools' habit), each with SHA-256."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

    key, digest = certificate.public_key(), hashes.SHA256()
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        with suppress(InvalidSignature):
            key.verify(signature, message, ec.ECDSA(digest))
            return True
    elif isinstance(key, rsa.RSAPublicKey) and key.key_size >= 2048:
        for scheme in (padding.PSS(padding.MGF1(digest), padding.PSS.DIGEST_LENGTH), padding.PKCS1v15()):
            with suppress(InvalidSignature):
                key.verify(signature, message, scheme, digest)
                return True
    return False


def _issued(certificate: x509.Certificate, root: x509.Certificate, now: datetime) -> bool:
    """True if `root` is an authority, valid at `now`, whose signature is on the certificate."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    with suppress(InvalidSignature, TypeError, ValueError, x509.ExtensionNotFound):
        certificate.verify_directly_issued_by(root)
        authority = root.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        usage = root.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
        return authority and usage and root.not_valid_before_utc <= now <= root.not_valid_after_utc
    return False


def _decode(text: str) -> bytes:
    data = base64.b64decode(text)
    if _encode(data) != text:  # other letters are skipped, and the last one can be spelt in several ways
        raise ValueError("not canonical base64")
    return data

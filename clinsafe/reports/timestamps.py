"""RFC 3161 timestamps: the time of a signature by another's clock (PAdES level B-T).

A timestamp lies beside the signature, not under it: whoever holds the file can take it off, and then the
signer's own clock is what is left. It is believed only if its authority is one that the reader trusts.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from clinsafe.errors import ClinsafeError, OfflineError, TimestampError, UsageError
from clinsafe.reports.sign import holder_of, needs

if TYPE_CHECKING:
    from pyhanko.sign.timestamps import TimeStamper
    from pyhanko.sign.validation import EmbeddedPdfSignature

TOLERANCE = timedelta(minutes=5)  # between the time that the signer claims and that of the authority
TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True)
class Timestamp:
    """What a signature's timestamp says.

    Attributes:
        time: UTC, as the authority gives it.
        authority: the common name on its certificate.
        intact: it is for this signature, and signed by the certificate that it names.
        trusted: the authority is one of those given, or issued by one, and its certificate is for timestamps
            and valid at `time` and now.
    """

    time: datetime
    authority: str
    intact: bool
    trusted: bool


def authority(url: str, *, offline: bool = False, timeout: float = TIMEOUT_SECONDS) -> TimeStamper:
    """The timestamp authority at `url`, asked when something is signed.

    Args:
        url: http or https; timestamps are signed, so that http is common and safe.
        offline: refuse an authority that is not on this machine.
        timeout: seconds that one answer may take.

    Raises:
        UsageError: not such an address, or one with a password in it.
        OfflineError: see `offline`.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError("the address of a timestamp authority is http://HOST/PATH or https://HOST/PATH")
    if parts.username or parts.password:
        raise UsageError(f"a password has no place in the address of {host}: others can read a command line")
    if offline and not _on_this_machine(host):
        raise OfflineError(f"a connection to {host} was refused: --offline is on")
    with needs("signing"):
        from pyhanko.sign.timestamps import HTTPTimeStamper
    found: TimeStamper = HTTPTimeStamper(url, timeout=timeout)
    return found


def _on_this_machine(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def checked(timestamper: TimeStamper, claimed: datetime) -> TimeStamper:
    """The same authority, with every answer examined before it goes into a file.

    The timestamper raises TimestampError for any fault: no answer in time, a refusal, no timestamp at all,
    one for something else or not signed by its own certificate, and a time that differs from `claimed` by more
    than TOLERANCE.
    """
    with needs("signing"):
        from pyhanko.sign.timestamps import TimeStamper
        from pyhanko.sign.validation.generic_cms import validate_tst_signed_data
        from pyhanko_certvalidator import ValidationContext

    where = urlsplit(getattr(timestamper, "url", "")).hostname or "the timestamp authority"
    kept = "nothing was signed, the report is kept as it is"

    class Checked(TimeStamper):
        async def async_timestamp(self, message_digest: bytes, md_algorithm: str) -> Any:
            try:
                token = await timestamper.async_timestamp(message_digest, md_algorithm)
                nobody = ValidationContext(trust_roots=[], allow_fetching=False)
                said = await validate_tst_signed_data(token["content"], nobody, lambda _: message_digest)
                good, time = said["intact"] and said["valid"], said["timestamp"]
            except ClinsafeError:
                raise
            except TimeoutError as error:
                raise TimestampError(f"{where} did not answer in time; {kept}") from error
            except OSError as error:  # pyHanko's own error is one, too
                why = "".join(c if c.isprintable() else "?" for c in str(error.__cause__ or error))[:160]
                raise TimestampError(f"{where} gave no timestamp ({why}); {kept}") from error
            except Exception as error:  # what is no timestamp makes the parsers raise a dozen kinds
                raise TimestampError(
                    f"{where} answered what is no timestamp ({type(error).__name__}); {kept}"
                ) from error
            if not good:
                raise TimestampError(f"{where} answered a timestamp that does not verify; {kept}")
            if abs(time - claimed) > TOLERANCE:
                raise TimestampError(
                    f"{where} says it is {time:%Y-%m-%d %H:%M:%S} UTC, the signature would claim "
                    f"{claimed:%Y-%m-%d %H:%M:%S}; set this machine's clock; {kept}"
                )
            return token

    found: TimeStamper = cast("Any", Checked)()
    return found


def read_timestamp(
    signature: EmbeddedPdfSignature, trust_tsa: Sequence[bytes], trust: Sequence[bytes], now: datetime
) -> Timestamp | None:
    """The signature's timestamp, or None where it has none. Run it outside an event loop.

    Args:
        signature: of pyHanko's reader.
        trust_tsa: certificates (DER) of authorities, or of their issuers.
        trust: those that are trusted to issue a signer's certificate may issue an authority's, too; being a
            trusted signer does not make one an authority.
        now: the moment of the check.

    Raises:
        ValueError, and what else parsers raise: more than one timestamp, or what is none.
    """
    from cryptography import x509
    from pyhanko.keys import load_certs_from_pemder_data
    from pyhanko.sign.validation.generic_cms import validate_tst_signed_data
    from pyhanko.sign.validation.status import TimestampSignatureStatus
    from pyhanko_certvalidator import ValidationContext

    unsigned = signature.signer_info["unsigned_attrs"]
    tokens = [
        value
        for attribute in (unsigned if unsigned.native else ())
        if attribute["type"].native == "signature_time_stamp_token"
        for value in attribute["values"]
    ]
    if not tokens:
        return None
    if len(tokens) > 1:
        raise ValueError("more than one timestamp")
    roots = [*trust_tsa, *filter(_is_authority, trust)]
    context = ValidationContext(
        trust_roots=[root for der in roots for root in load_certs_from_pemder_data(der)],
        allow_fetching=False,
        moment=now,
    )
    signed: bytes = signature.signer_info["signature"].native

    def imprint(algorithm: str) -> bytes:
        return hashlib.new(algorithm, signed).digest()

    facts = asyncio.run(validate_tst_signed_data(tokens[0]["content"], context, imprint))
    status = TimestampSignatureStatus(**facts)
    certificate = status.signing_cert.dump()
    holder = holder_of(x509.load_der_x509_certificate(certificate))
    time = status.timestamp.astimezone(UTC)
    known = status.trusted or certificate in trust_tsa
    return Timestamp(
        time=time,
        authority=holder.name,
        intact=bool(status.intact and status.valid),
        trusted=known
        and _for_timestamps(certificate)
        and all(holder.not_before <= moment <= holder.not_after for moment in (time, now)),
    )


def _is_authority(certificate: bytes) -> bool:
    """Whether a certificate may issue others."""
    from cryptography import x509

    with suppress(x509.ExtensionNotFound):
        found = x509.load_der_x509_certificate(certificate).extensions
        return found.get_extension_for_class(x509.BasicConstraints).value.ca
    return False


def _for_timestamps(certificate: bytes) -> bool:
    """RFC 3161, 2.3: the certificate is for timestamps and for nothing else."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    with suppress(x509.ExtensionNotFound):
        found = x509.load_der_x509_certificate(certificate).extensions
        usage = found.get_extension_for_class(x509.ExtendedKeyUsage)
        return usage.critical and list(usage.value) == [ExtendedKeyUsageOID.TIME_STAMPING]
    return False

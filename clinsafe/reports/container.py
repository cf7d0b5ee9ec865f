"""The container of a signature (CMS, RFC 5652) in its one spelling.

Much of it is signed by nobody, and parsers read it lazily: another version, another list of algorithms, another
spelling of the issuer's name pass unseen. Here every field is parsed as what it must be, and those outside the
signature have the one value that the standard, or the certificate, prescribes. The same holds for a timestamp inside.
"""

from __future__ import annotations

from typing import Any

from clinsafe.reports.der import is_der

TIMESTAMP = "signature_time_stamp_token"
_ALGORITHM = {"sha256_rsa", "sha256_ecdsa", "rsassa_pss"}  # how the signers of this package name theirs


def is_canonical(container: bytes) -> bool:
    """Whether `container` is one ContentInfo with a detached signature, spelt as a signing program writes it.

    Linear in its size. Says nothing of who signed what.
    """
    from asn1crypto import cms, tsp  # noqa: F401 - tsp tells cms what a timestamp is

    if not is_der(container):
        return False
    try:
        plain, typed = (cms.ContentInfo.load(container, strict=True) for _ in range(2))
        return (
            _is_plain(plain, "data")
            and plain["content"]["signer_infos"][0]["signature_algorithm"]["algorithm"].native in _ALGORITHM
            and _is_typed(typed)
        )
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError):  # another structure
        return False


def _is_typed(value: Any) -> bool:
    """Parse every part by its type, which raises ValueError for another; sets that a tag hides must be sorted.

    Not so the certificates: not every authority sorts those of a timestamp.
    """
    from asn1crypto import cms, core

    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, core.Choice):
            waiting.append(value.chosen)
        elif isinstance(value, core.Any):
            waiting.append(value.parsed)
        elif isinstance(value, core.Sequence | core.SequenceOf):  # sets are kinds of them
            contents = value.contents  # before its parts are parsed: then asking would encode them all again
            children = [value[index] for index in range(len(value))]
            fields = getattr(value, "_fields", ())
            if fields and len(children) > len(fields):
                return False  # a part more than its type knows, which the parser overlooks
            sorts = isinstance(value, core.SetOf) and not isinstance(value, cms.CertificateSet)
            if sorts and not _is_sorted(contents):
                return False
            waiting += children
        elif not isinstance(value, core.ParsableOctetString):
            _ = value.native
    return True


def _is_sorted(contents: bytes) -> bool:
    """Whether the parts of a set stand in the order of DER."""
    from asn1crypto import parser

    parts = []
    while contents:
        size = parser.peek(contents)
        parts.append(contents[:size])
        contents = contents[size:]
    return parts == sorted(parts)


def _is_plain(info: Any, content: str) -> bool:
    """One signer, and in every field outside the signature the value that follows from the others."""
    signed = info["content"]
    if info["content_type"].native != "signed_data" or len(signed["signer_infos"]) != 1:
        return False
    signer, inside = signed["signer_infos"][0], signed["encap_content_info"]
    ours = content == "data"
    unsigned = signer["unsigned_attrs"]
    return (
        inside["content_type"].native == content
        and signed["version"].native == ("v1" if ours else "v3")
        and signer["version"].native == "v1"
        and (not ours or _is_lean(signed, inside))
        and _same_algorithms(signed, signer, exactly=ours)
        and _names_signer(signed, signer)
        and len(unsigned) == bool(unsigned.dump())  # none, or one and not an empty list
        and all(_is_timestamp(attribute) for attribute in unsigned)
    )


def _is_lean(signed: Any, inside: Any) -> bool:
    """Nothing but certificates, in order: no content, no lists of revoked certificates. An authority may add some."""
    return (
        inside.contents == inside["content_type"].dump()
        and not signed["crls"].dump()
        and _is_sorted(signed["certificates"].contents)
    )


def _same_algorithms(signed: Any, signer: Any, *, exactly: bool) -> bool:
    """The list of digests is the signer's one; some authorities write it once with, once without an empty parameter."""
    listed, own = signed["digest_algorithms"], signer["digest_algorithm"]
    if len(listed) != 1:
        return False
    if exactly:
        return bool(listed[0].dump() == own.dump() and own["algorithm"].native == "sha256")
    return (
        bool(listed[0]["algorithm"].native == own["algorithm"].native) and not listed[0]["parameters"].native
    )


def _names_signer(signed: Any, signer: Any) -> bool:
    """By issuer and number, letter for letter as in a certificate that lies inside."""
    if signer["sid"].name != "issuer_and_serial_number":
        return False
    named = signer["sid"].chosen
    inside = [choice.chosen for choice in signed["certificates"] if choice.name == "certificate"]
    return len(inside) == len(signed["certificates"]) and any(
        certificate.issuer.dump() == named["issuer"].dump()
        and certificate["tbs_certificate"]["serial_number"].dump() == named["serial_number"].dump()
        for certificate in inside
    )


def _is_timestamp(attribute: Any) -> bool:
    values = attribute["values"]
    return attribute["type"].native == TIMESTAMP and len(values) == 1 and _is_plain(values[0], "tst_info")

"""The container of a signature: every field that nobody signs, spelt otherwise by hand, and every bit turned over."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from asn1crypto import algos, cms, core, parser

from clinsafe.reports.container import is_canonical
from clinsafe.reports.der import DEEPEST
from clinsafe.reports.pdfcheck import check_pdf
from clinsafe.reports.sign import SigningKey, sign_pdf
from tests.reports.signing import NOW, World, certify, gap_of
from tests.reports.tsa import certify_authority, stamper

pytest.importorskip("weasyprint")
Change = Callable[[Any], None]
FLIPS = 120


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def signed(world: World) -> dict[str, bytes]:
    """The same report, signed in each way."""

    def by(key: SigningKey, **settings: Any) -> bytes:
        return sign_pdf(world.unsigned, key, meaning="author", when=NOW, **settings)

    middle = certify("Intermediate", issuer=world.authority, authority=True)
    chained = replace(certify("L. Eaf", issuer=middle), chain=(middle.certificate,))
    clock = stamper(certify_authority("T. Authority", world.authority), NOW)
    return {
        "P-256": by(world.issued),
        "RSA": by(world.rsa),
        "intermediate": by(chained),
        "timestamp": by(world.issued, timestamper=clock),
    }


def trusted(world: World) -> list[bytes]:
    return [world.authority.certificate, world.rsa.certificate]


def container(document: bytes) -> bytes:
    start, end = gap_of(document)
    padded = bytes.fromhex(document[start + 1 : end - 1].decode())
    return padded[: parser.peek(padded)]


def put(document: bytes, content: bytes) -> bytes:
    """The document with another container, spelt as a signing program would."""
    start, end = gap_of(document)
    digits = content.hex().upper().encode()
    return document[: start + 1] + digits.ljust(end - start - 2, b"0") + document[end - 1 :]


def changed(content: bytes, change: Change) -> bytes:
    """A field set, and what lies around it written anew in DER."""
    info = cms.ContentInfo.load(content)
    signed = info["content"]
    signed["signer_infos"][0]["version"].native  # noqa: B018 - parsed, so that it is written anew
    change(signed)
    written: bytes = info.dump(force=True)
    return written


def token(signed: Any) -> Any:
    """What the timestamp inside signs."""
    return signed["signer_infos"][0]["unsigned_attrs"][0]["values"][0]["content"]


def more_digests(signed: Any) -> None:
    signed["digest_algorithms"].append(algos.DigestAlgorithm({"algorithm": "sha512"}))


def other_digest(signed: Any) -> None:
    signed["digest_algorithms"] = [algos.DigestAlgorithm({"algorithm": "sha512"})]


def no_digest(signed: Any) -> None:
    signed["digest_algorithms"] = []


def bare_digest(signed: Any) -> None:
    """Without the empty parameter, as some programs write it."""
    bare = algos.DigestAlgorithm.load(bytes.fromhex("300b0609608648016503040201"))
    signed["digest_algorithms"] = [bare]


def content_inside(signed: Any) -> None:
    signed["encap_content_info"]["content"] = b"All hazards PASS"


def empty_attributes(signed: Any) -> None:
    signed["signer_infos"][0]["unsigned_attrs"] = cms.CMSAttributes([])


def attribute(signed: Any) -> None:
    value = cms.CMSAttribute({"type": "1.2.3.4", "values": [core.Any(core.UTF8String("PASS"))]})
    signed["signer_infos"][0]["unsigned_attrs"] = cms.CMSAttributes([value])


def revoked(signed: Any) -> None:
    signed["crls"] = cms.RevocationInfoChoices([])


def generic_algorithm(signed: Any) -> None:
    signed["signer_infos"][0]["signature_algorithm"] = {"algorithm": "rsassa_pkcs1v15"}


def issuer_in_capitals(signed: Any) -> None:
    """A comparison by the standard folds the case of names."""
    names = signed["signer_infos"][0]["sid"].chosen
    name = names["issuer"].native["common_name"].upper()
    names["issuer"] = cms.Name.build({"common_name": name})


def version(place: Callable[[Any], Any], value: str) -> Change:
    def change(signed: Any) -> None:
        place(signed)["version"] = value

    return change


def signer(signed: Any) -> Any:
    return signed["signer_infos"][0]


OTHERWISE: list[tuple[str, str, Change]] = [
    *((f"version {value}", "P-256", version(lambda s: s, value)) for value in ("v0", "v2", "v3", "v5")),
    *((f"version {value} of the signer", "RSA", version(signer, value)) for value in ("v0", "v3")),
    ("one digest more", "P-256", more_digests),
    ("another digest", "P-256", other_digest),
    ("no digest", "RSA", no_digest),
    ("a digest without an empty parameter", "P-256", bare_digest),
    ("content inside", "P-256", content_inside),
    ("no revoked certificates, at length", "P-256", revoked),
    ("no attributes, at length", "P-256", empty_attributes),
    ("an attribute that nobody signed", "RSA", attribute),
    ("an algorithm without its digest", "RSA", generic_algorithm),
    ("the issuer in capitals", "P-256", issuer_in_capitals),
    ("version of the timestamp", "timestamp", version(token, "v1")),
    ("version of the timestamp's signer", "timestamp", version(lambda s: signer(token(s)), "v3")),
    ("another digest in the timestamp", "timestamp", lambda s: other_digest(token(s))),
]


def test_as_it_was_written(world: World, signed: dict[str, bytes]) -> None:
    """Every way to sign gives a container that is accepted, and that the tests' own rewriting leaves as it is."""
    for name, document in signed.items():
        assert is_canonical(container(document)), name
        found = check_pdf(document, trusted(world))
        assert found.valid, (name, found.problems)
        assert put(document, container(document)) == document
        assert changed(container(document), lambda _: None) == container(document)


@pytest.mark.parametrize(("name", "which", "change"), OTHERWISE, ids=[row[0] for row in OTHERWISE])
def test_a_field_that_nobody_signs(
    world: World, signed: dict[str, bytes], name: str, which: str, change: Change
) -> None:
    """DER all the same; the container is blamed, or something else before it."""
    del name
    content = changed(container(signed[which]), change)
    assert content != container(signed[which])
    assert not is_canonical(content)
    assert not check_pdf(put(signed[which], content), trusted(world)).valid


def test_most_of_them_pass_elsewhere(
    world: World, signed: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without this check; so the table is no table of what others find anyway."""
    monkeypatch.setattr("clinsafe.reports.pdfcheck.is_canonical", lambda _: True)
    passed = [
        name
        for name, which, change in OTHERWISE
        if check_pdf(put(signed[which], changed(container(signed[which]), change)), trusted(world)).valid
    ]
    assert len(passed) > len(OTHERWISE) // 2, passed
    monkeypatch.setattr("clinsafe.reports.pdfcheck.is_canonical", lambda _: False)
    assert not check_pdf(signed["P-256"], trusted(world)).valid


def test_a_tag_that_is_not_known(signed: dict[str, bytes]) -> None:
    """The timestamp under another number: a lazy parser leaves it out and says nothing."""
    content = container(signed["timestamp"])
    attributes = cms.ContentInfo.load(content)["content"]["signer_infos"][0]["unsigned_attrs"].dump()
    at = content.index(attributes)
    assert content[at] == 0xA1
    assert not is_canonical(content[:at] + b"\xa5" + content[at + 1 :])


@pytest.mark.parametrize("which", ["P-256", "RSA", "intermediate", "timestamp"])
def test_random_bits(world: World, signed: dict[str, bytes], which: str) -> None:
    """None that is turned over passes both this check and the signature's."""
    document, chance = signed[which], random.Random(20261130)
    content = container(document)
    for place in chance.sample(range(8 * len(content)), FLIPS):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        if is_canonical(bytes(flipped)):
            assert not check_pdf(put(document, bytes(flipped)), trusted(world)).valid, place


@pytest.mark.parametrize("junk", [b"", b"\x05\x00", b"\x30\x00", b"\x30\x03\x02\x01\x01", b"junk"])
def test_no_container_at_all(junk: bytes) -> None:
    assert not is_canonical(junk)


def test_nesting_costs_no_time(signed: dict[str, bytes]) -> None:
    """An attribute that is nested as deep as is read: encoding it again would not end."""
    value = b"\x05\x00"
    for _ in range(DEEPEST - 12):
        value = parser.emit(0, 1, 16, value)

    def nested(content: Any) -> None:
        attribute(content)
        content["signer_infos"][0]["unsigned_attrs"][0]["values"] = cms.SetOfAny([core.Any.load(value)])

    info = cms.ContentInfo.load(container(signed["P-256"]))
    nested(info["content"])
    content = info.dump()
    assert not is_canonical(content)  # or it would never come back

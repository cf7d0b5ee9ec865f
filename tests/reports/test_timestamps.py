"""RFC 3161 timestamps in a signed report: whose time counts, and what is broken."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from clinsafe.errors import KeyFileError
from clinsafe.reports.pdfcheck import check_pdf
from clinsafe.reports.sign import SigningKey, sign_pdf
from clinsafe.reports.timestamps import TOLERANCE
from tests.reports import tsa
from tests.reports.attacks import retitle
from tests.reports.signing import DAY, LATER, NOW, certify, gap_of, update
from tests.reports.timed import World, check, sign_unchecked

pytest.importorskip("weasyprint")


@pytest.fixture(scope="module")
def world() -> World:
    return World()


# ── whose time counts ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", ["pinned", "issued by a trusted authority", "issuer given"])
def test_a_trusted_timestamp(world: World, how: str) -> None:
    """The authority itself, or its issuer among the signers' issuers or among the authorities."""
    document = world.timed(world.issued, world.tsa)
    trust, tsas = {
        "pinned": ([world.issued], [world.tsa]),
        "issued by a trusted authority": ([world.authority], []),
        "issuer given": ([world.issued], [world.authority]),
    }[how]
    found = check(document, trust, tsas)
    assert found.valid
    assert (found.timestamp, found.timestamp_trusted, found.notes) == (NOW, True, ())


@pytest.mark.parametrize("issued", [True, False])
def test_a_timestamp_outlives_the_certificate(world: World, issued: bool) -> None:
    """Expired since, but valid at the authority's time: good; without that authority's word: not."""
    key, root = (world.issued, world.authority) if issued else (world.key, world.key)
    document = world.timed(key, world.tsa)
    assert check(document, [root], [world.tsa], LATER).valid
    for tsas in ([], [world.stranger]):
        found = check(document, [world.key, key], tsas, LATER)
        assert not found.valid
        assert not found.within_validity
    assert not check(world.by(key), [root], [world.tsa], LATER).within_validity


def test_a_certificate_not_valid_at_the_time_of_the_timestamp(world: World) -> None:
    """The signer's clock is set back to when the certificate was valid; the authority's is not."""
    key = certify("E. Xpired", days=(-9, -2))
    with pytest.raises(KeyFileError):
        sign_pdf(world.unsigned, key, meaning="author", when=NOW)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clinsafe.reports.timestamps.checked", lambda given, _: given)
        document = sign_pdf(
            world.unsigned, key, meaning="author", when=NOW - 5 * DAY, timestamper=tsa.stamper(world.tsa, NOW)
        )
    found = check(document, [key], [world.tsa])
    assert not found.within_validity
    assert any("minutes" in line for line in found.problems)


def test_an_unknown_authority_gives_no_credit(world: World) -> None:
    """It is said, and the rules are those of a signature without a timestamp."""
    found = check(world.stamped, [world.key])
    assert found.valid
    assert (found.timestamp, found.timestamp_trusted) == (NOW, False)
    assert len(found.notes) == 1
    assert "S. Tranger is not trusted" in found.notes[0]
    assert not check(world.stamped, [world.key], now=LATER).valid


@pytest.mark.parametrize(
    "build",
    [
        lambda w: tsa.certify_authority("Not for timestamps", usage=False),
        lambda w: tsa.certify_authority("Expired", days=(-90, -1)),
        lambda w: tsa.certify_authority("Too young", days=(1, 90)),
        lambda w: tsa.certify_authority("Issued by a signer", w.key),
    ],
)
def test_authorities_that_are_none(world: World, build: Callable[[World], SigningKey]) -> None:
    """Trusted by name, but its certificate is not for timestamps or not valid; or a signer made it himself."""
    by = build(world)
    found = check(world.timed(world.key, by), [world.key], [] if by.name.startswith("Issued") else [by])
    assert found.valid
    assert not found.timestamp_trusted
    assert len(found.notes) == 1


def test_a_trusted_signer_is_no_authority(world: World) -> None:
    """A certificate that is trusted to sign, and could make timestamps, does not vouch for its own time."""
    key = tsa.certify_authority("Both")
    found = check(world.timed(key, key), [key])
    assert not found.timestamp_trusted
    assert check(world.timed(key, key), [key], [key]).timestamp_trusted


def test_times_that_differ(world: World) -> None:
    """By more than five minutes either way is a problem, whoever the authority is."""
    for off, good in ((TOLERANCE, True), (-TOLERANCE, True), (TOLERANCE + timedelta(seconds=1), False),
                      (-TOLERANCE - timedelta(seconds=1), False)):  # fmt: skip
        document = world.timed(world.key, world.tsa, off)
        for tsas in ([world.tsa], []):
            found = check(document, [world.key], tsas, NOW + TOLERANCE)
            assert found.valid is good
            assert good or "differ by more than 5 minutes" in found.problems[0]


def test_a_timestamp_from_the_future(world: World) -> None:
    found = check(world.timed(world.key, world.tsa), [world.key], [world.tsa], NOW - DAY)
    assert "in the future" in " ".join(found.problems)


# ── broken ones ────────────────────────────────────────────────────────────────────────────────


def token_swapped(world: World) -> bytes:
    """The timestamp of another signature, by the same authority."""

    class Elsewhere:
        async def async_timestamp(self, digest: bytes, algorithm: str) -> Any:
            return await tsa.stamper(world.tsa, NOW).async_timestamp(
                hashlib.sha256(digest).digest(), algorithm
            )

        async def async_dummy_response(self, algorithm: str) -> Any:
            return await tsa.stamper(world.tsa, NOW).async_dummy_response(algorithm)

    return sign_unchecked(world.unsigned, world.key, Elsewhere())


def with_token(world: World, change: Callable[[bytes], bytes]) -> bytes:
    """The signed file with some bytes of its container changed, at the same length."""
    document = world.timed(world.key, world.tsa)
    start, end = gap_of(document)
    container = bytes.fromhex(document[start + 1 : end - 1].decode())
    changed = change(container)
    assert changed != container
    assert len(changed) == len(container)
    return document[: start + 1] + changed.hex().upper().encode() + document[end - 1 :]


def time_edited(world: World) -> bytes:
    """Another year in the timestamp."""
    year = f"{NOW:%Y%m%d%H}".encode()
    return with_token(world, lambda c: c.replace(year, b"2019" + year[4:], 1))


def imprint_edited(world: World) -> bytes:
    """The digest that was timestamped, where the timestamp keeps it."""

    def change(container: bytes) -> bytes:
        place = re.search(rb"\x60\x86\x48\x01\x65\x03\x04\x02\x01(?:\x05\x00)?\x04\x20", container[-3000:])
        assert place
        at = len(container) - 3000 + place.end()
        return container[:at] + bytes([container[at] ^ 1]) + container[at + 1 :]

    return with_token(world, change)


def two_tokens(world: World) -> bytes:
    """A second timestamp beside the first, in a container that has room for it."""
    from asn1crypto import cms

    class Roomy:
        async def async_timestamp(self, digest: bytes, algorithm: str) -> Any:
            return await tsa.stamper(world.tsa, NOW).async_timestamp(digest, algorithm)

        async def async_dummy_response(self, algorithm: str) -> Any:
            large = tsa.stamper(world.tsa, NOW)
            large.certs_to_embed = [tsa.stamper(w).tsa_cert for w in (world.stranger, world.tsa, world.rsa)]
            return await large.async_dummy_response(algorithm)

    document = sign_unchecked(world.unsigned, world.key, Roomy())
    start, end = gap_of(document)
    size = (end - start - 2) // 2
    container = cms.ContentInfo.load(bytes.fromhex(document[start + 1 : end - 1].decode()))
    values = container["content"]["signer_infos"][0]["unsigned_attrs"][0]["values"]
    values.append(values[0].copy())
    data: bytes = container.dump(force=True)
    assert len(data) <= size
    return document[: start + 1] + data.ljust(size, b"\0").hex().upper().encode() + document[end - 1 :]


@pytest.mark.parametrize("build", [token_swapped, time_edited, imprint_edited, two_tokens])
@pytest.mark.parametrize("trusted", [True, False])
def test_a_broken_timestamp(world: World, build: Callable[[World], bytes], trusted: bool) -> None:
    """It is a problem, and its time counts for nothing; the signature itself is not blamed."""
    found = check(build(world), [world.key], [world.tsa] if trusted else [])
    assert not found.valid
    assert not found.timestamp_trusted
    assert any("timestamp" in line for line in found.problems)
    assert found.intact


def test_a_timestamp_taken_off(world: World) -> None:
    """What lies beside the signature can be removed; the signer's clock is what is left."""
    from asn1crypto import cms

    document = world.timed(world.key, world.tsa)
    start, end = gap_of(document)
    size = (end - start - 2) // 2
    container = cms.ContentInfo.load(bytes.fromhex(document[start + 1 : end - 1].decode()))
    del container["content"]["signer_infos"][0]["unsigned_attrs"]
    data: bytes = container.dump(force=True)
    bare = document[: start + 1] + data.ljust(size, b"\0").hex().upper().encode() + document[end - 1 :]
    assert check(bare, [world.key], [world.tsa]).timestamp is None
    assert not check(bare, [world.key], [world.tsa], LATER).valid


def test_the_policy_stays_strict(world: World) -> None:
    """A good timestamp excuses nothing."""
    document = world.timed(world.key, world.tsa)
    assert not check(update(document, retitle), [world.key], [world.tsa]).valid
    assert not check(document + b"\n", [world.key], [world.tsa]).valid
    assert not check(document.replace(b"/Title", b"/Titlf", 1), [world.key], [world.tsa]).valid
    assert not check(document, [world.other], [world.tsa]).valid


def test_a_trusted_authority_that_is_no_certificate(world: World) -> None:
    with pytest.raises(KeyFileError, match="trusted certificate"):
        check_pdf(world.stamped, [], trust_tsa=[b"junk"])

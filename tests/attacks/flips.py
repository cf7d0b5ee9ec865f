"""Random bits: flips all over the signed ranges, and in the hole that the signature itself lies in.

A flip in the signed ranges must be found, each one. In the hole it need not change anything: a container has padding,
letters of two cases and fields that nobody signs, so that some other spellings are the same signature to most programs.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from clinsafe.reports.pdfcheck import check_pdf
from clinsafe.reports.sign import SigningKey, sign_pdf
from clinsafe.stats import Estimate, rate_of
from tests.attacks import judges
from tests.attacks.reports import World
from tests.reports.signing import gap_of

SEED = 20261130
HELPERS = 2  # other programs at a time
FRESH = 60
RANGES, HOLE = 650, 200  # flips


@dataclass(frozen=True)
class Campaign:
    """One row: how many of `n` altered files each judge still takes for good (None: it did not run).

    Our count is that of `check_pdf` alone, without what the record and the pages would add: an upper limit.
    pdfsig's is "valid", trusted or whole or not; OpenSSL's is a verified signature over the ranges that are named.
    """

    name: str
    n: int
    ours: int
    pdfsig: int | None
    openssl: int | None
    why: str


def flip(document: bytes, places: Sequence[int], chance: random.Random) -> bytes:
    """One bit at one of `places` turned over."""
    place = chance.choice(places)
    bit = 1 << chance.randrange(8)
    return document[:place] + bytes([document[place] ^ bit]) + document[place + 1 :]


def inside(document: bytes) -> list[int]:
    """Every place in the hole between the signed ranges."""
    return list(range(*gap_of(document)))


def outside(document: bytes) -> list[int]:
    """Every place in the signed ranges."""
    start, end = gap_of(document)
    return [*range(start), *range(end, len(document))]


def campaigns(world: World, ranges: int = RANGES, hole: int = HOLE) -> list[Campaign]:
    """All three; takes about a minute."""
    why = "Padding, the case of letters, and fields that nobody signs; one spelling is accepted."
    return [
        campaign(
            world,
            "bit flips in the signed ranges",
            world.signed,
            outside,
            ranges,
            "Every byte of them is hashed.",
        ),
        campaign(world, "bit flips in the container", world.signed, inside, hole, why),
        campaign(world, "bit flips in the container, with a timestamp", world.timed, inside, hole, why),
    ]


def campaign(
    world: World, name: str, document: bytes, where: Callable[[bytes], list[int]], n: int, why: str
) -> Campaign:
    """`n` files that differ from `document` in one bit, seeded, judged by all."""
    chance, places = random.Random(SEED), where(document)
    files = [flip(document, places, chance) for _ in range(n)]
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(HELPERS) as pool:
        others = Others(Path(scratch), [world.root])
        told = pool.map(others.count, enumerate(files))
        ours = sum(check_pdf(file, [world.root.certificate]).valid for file in files)
        pairs = list(told)
    pdfsig = sum(pair[0] for pair in pairs) if others.store else None
    openssl = sum(pair[1] for pair in pairs) if others.openssl else None
    return Campaign(name, n, ours, pdfsig, openssl, why)


class Others:
    """pdfsig and OpenSSL over many files, with one certificate store."""

    def __init__(self, folder: Path, trust: Sequence[SigningKey]) -> None:
        self.folder, self.trust = folder, trust
        self.store = judges.nss_store(folder, trust) if judges.installed("pdfsig", "certutil") else ""
        self.openssl = judges.installed("openssl")

    def count(self, numbered: tuple[int, bytes]) -> tuple[bool, bool]:
        """Whether pdfsig says "valid", and whether OpenSSL verifies."""
        number, document = numbered
        path = self.folder / f"{number}.pdf"
        path.write_bytes(document)
        said = judges.pdfsig_with(self.store, path).says if self.store else ""
        verified = self.openssl and judges.openssl(path, self.trust).accepted
        path.unlink()
        return re.match("valid", said) is not None, bool(verified)


def false_alarms(world: World, n: int = FRESH) -> int:
    """How many of `n` fresh signatures of an untouched report `check_pdf` objects to; every second is RSA."""
    trust = [world.root.certificate]
    keys = [world.signer, world.rsa]
    signed = (sign_pdf(world.unsigned, keys[i % 2], meaning="author") for i in range(n))
    return sum(not check_pdf(document, trust).valid for document in signed)


def share(k: int, n: int) -> str:
    """``0 of 650 [0.0, 0.6 %]``: the exact 95 % interval."""
    found = rate_of(k, n)
    assert isinstance(found, Estimate)
    assert found.low is not None
    assert found.high is not None
    return f"{k} of {n} [{100 * found.low:.1f}, {100 * found.high:.1f} %]"

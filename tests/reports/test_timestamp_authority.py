"""Asking an authority for a timestamp, over HTTP on this machine: every fault is one line, and nothing is signed."""

from __future__ import annotations

import hashlib
import shutil
import socket
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from clinsafe.errors import OfflineError, TimestampError, UsageError
from clinsafe.reports.sign import sign_pdf
from clinsafe.reports.timestamps import authority
from tests.reports import tsa
from tests.reports.signing import DAY, NOW, run, write_pem
from tests.reports.timed import World, check

pytest.importorskip("weasyprint")


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def test_over_http(world: World) -> None:
    """From a server, by the clock."""
    with tsa.serve(tsa.honest(world.tsa)) as url:
        document = sign_pdf(world.unsigned, world.issued, meaning="review", timestamper=authority(url))
    found = check(document, [world.authority], now=None)
    assert found.valid
    assert found.timestamp_trusted
    assert document.startswith(world.unsigned)


def test_openssl_agrees(world: World, tmp_path: Path) -> None:
    """Its own authority's timestamps pass here, and it verifies ours."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed (Debian package openssl)")
    write_pem(tmp_path / "root.pem", world.authority)
    for name, answer in (("its", tsa.by_openssl(world.tsa, tmp_path)), ("ours", tsa.honest(world.tsa))):
        with tsa.serve(answer) as url:
            document = sign_pdf(world.unsigned, world.key, meaning="review", timestamper=authority(url))
        found = check(document, [world.key], [world.authority], None)
        assert found.valid, found.problems
        assert found.timestamp_trusted
        token, signature = token_of(document)
        (tmp_path / name).write_bytes(token)
        for digest, code in ((hashlib.sha256(signature).hexdigest(), 0), ("00" * 32, 1)):
            done = run("openssl", "ts", "-verify", "-token_in", "-in", tmp_path / name, "-digest", digest,
                       "-CAfile", tmp_path / "root.pem", "-untrusted", tmp_path / "tsa.pem")  # fmt: skip
            assert done.returncode == code, done.stderr


def token_of(document: bytes) -> tuple[bytes, bytes]:
    """The timestamp (DER) and the value that it is for."""
    from pyhanko.pdf_utils.reader import PdfFileReader

    signer: Any = PdfFileReader(BytesIO(document)).embedded_signatures[0].signer_info
    return signer["unsigned_attrs"][0]["values"][0].dump(), signer["signature"].native


def slow(_query: bytes) -> tuple[int, str, bytes]:
    time.sleep(3)
    return 200, tsa.REPLY, b""


FAULTS: dict[str, Callable[[World], tsa.Answer]] = {
    "slow": lambda w: slow,
    "an error": lambda w: lambda _: (500, "text/plain", b"no"),
    "not found": lambda w: lambda _: (404, "text/html", b"<html>"),
    "a web page": lambda w: lambda _: (200, "text/html", b"<html>"),
    "rubbish": lambda w: lambda _: (200, tsa.REPLY, b"rubbish"),
    "nothing": lambda w: lambda _: (200, tsa.REPLY, b""),
    "other DER": lambda w: lambda _: (200, tsa.REPLY, w.key.certificate),
    "a refusal": lambda w: lambda _: (200, tsa.REPLY, bytes.fromhex("30053003020102")),
    "an old answer": lambda w: replayed(w),
    "altered": lambda w: altered(w),
    "another clock": lambda w: tsa.honest(w.tsa, NOW - DAY),
}


def replayed(world: World) -> tsa.Answer:
    """The same answer for every query."""
    kept: list[tuple[int, str, bytes]] = []
    inner = tsa.honest(world.tsa)

    def answer(query: bytes) -> tuple[int, str, bytes]:
        kept.append(inner(query))
        return kept[0]

    return answer


def altered(world: World) -> tsa.Answer:
    """The last byte of the signature turned over."""
    inner = tsa.honest(world.tsa)

    def answer(query: bytes) -> tuple[int, str, bytes]:
        status, kind, body = inner(query)
        return status, kind, body[:-1] + bytes([body[-1] ^ 1])

    return answer


@pytest.mark.parametrize("fault", FAULTS)
def test_an_authority_that_fails(world: World, fault: str) -> None:
    """One line that names it and says that nothing was signed."""
    with (
        tsa.serve(FAULTS[fault](world)) as url,
        pytest.raises(TimestampError, match=r"127\.0\.0\.1.*nothing was signed") as caught,
    ):
        sign_pdf(world.unsigned, world.key, meaning="author", timestamper=authority(url, timeout=1))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert caught.value.exit_code == 2


def test_nobody_there(world: World) -> None:
    with socket.socket() as taken:  # bound, not listening
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/"
        with pytest.raises(TimestampError, match="gave no timestamp"):
            sign_pdf(world.unsigned, world.key, meaning="author", timestamper=authority(url))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "tsa.example",
        "ftp://tsa.example/",
        "http://",
        "http:///x",
        "file:///x",
        "http://[x/",
        "http://a:b/",
    ],
)
def test_no_address(url: str) -> None:
    with pytest.raises(UsageError, match="http://HOST/PATH"):
        authority(url)


def test_no_password_on_a_command_line() -> None:
    """Not repeated, either."""
    with pytest.raises(UsageError, match="password has no place") as caught:
        authority("https://me:geheim@tsa.example/")
    assert "geheim" not in str(caught.value)


def test_offline() -> None:
    """Refused before anything is asked; an authority on this machine is not off it."""
    for url in ("http://tsa.example/", "https://192.0.2.7/", "http://localhost.example/"):
        with pytest.raises(OfflineError, match="--offline"):
            authority(url, offline=True)
    for url in ("http://127.0.0.1:9/", "http://localhost/", "http://[::1]/"):
        assert authority(url, offline=True)

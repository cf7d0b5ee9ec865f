"""Signatures judged by programs that are not ours: poppler over NSS, and OpenSSL."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from clinsafe.reports.pdfcheck import check_pdf
from clinsafe.reports.sign import SigningKey
from tests.reports.attacks import overlay
from tests.reports.signing import World, gap_of, run, update, write_pem

pytest.importorskip("weasyprint")


@pytest.fixture(scope="module")
def world() -> World:
    return World()


# ── other programs ─────────────────────────────────────────────────────────────────────────────

Sample = tuple[Callable[[World], bytes], Callable[[World], SigningKey]]
SAMPLES: dict[str, Sample] = {  # the document, and the certificate that the reader trusts
    "untouched": (lambda w: w.by(w.issued), lambda w: w.authority),
    "untouched, RSA": (lambda w: w.by(w.rsa), lambda w: w.rsa),
    "untouched, development key": (lambda w: w.signed, lambda w: w.key),
    "another signer": (lambda w: w.by(w.other), lambda w: w.authority),
    "bit flipped": (lambda w: w.by(w.issued).replace(b"/Title", b"/Titlf", 1), lambda w: w.authority),
    "page painted over": (lambda w: update(w.by(w.issued), overlay), lambda w: w.authority),
}


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES)
def test_pdfsig_agrees(world: World, tmp_path: Path, sample: str) -> None:
    """poppler's checker over NSS reads the same facts."""
    for tool, package in (("pdfsig", "poppler-utils"), ("certutil", "libnss3-tools")):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed (Debian package {package})")
    build, trusted = SAMPLES[sample]
    document, root = build(world), trusted(world)
    write_pem(tmp_path / "root.pem", root)
    (tmp_path / "report.pdf").write_bytes(document)
    store = f"sql:{tmp_path}"
    run("certutil", "-d", store, "-N", "--empty-password")
    added = run("certutil", "-d", store, "-A", "-n", "root", "-t", "CT,C,C", "-i", tmp_path / "root.pem")
    assert added.returncode == 0, added.stderr
    told = run("pdfsig", "-nssdir", store, tmp_path / "report.pdf").stdout
    found = check_pdf(document, [root.certificate])
    assert ("Signature is Valid" in told) is found.intact
    assert (
        "Total document signed" in told and "Not total document signed" not in told
    ) is found.covers_whole_file
    # NSS takes authorities as roots only: a self-signed signer's certificate, pinned, stays unknown to it
    if found.intact:
        assert ("Certificate is Trusted" in told) is (found.trusted and root is world.authority)


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES)
def test_openssl_agrees(world: World, tmp_path: Path, sample: str) -> None:
    """The container is a CMS signature over the two signed pieces; OpenSSL knows no PDF, so no "whole"."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed (Debian package openssl)")
    build, trusted = SAMPLES[sample]
    document, root = build(world), trusted(world)
    write_pem(tmp_path / "root.pem", root)
    start, end = gap_of(document)
    length = int(re.search(rb"/ByteRange\s*\[\s*0\s+\d+\s+\d+\s+(\d+)", document)[1])  # type: ignore[index]
    (tmp_path / "content").write_bytes(document[:start] + document[end : end + length])
    (tmp_path / "signature").write_bytes(bytes.fromhex(document[start + 1 : end - 1].decode()))
    done = run("openssl", "cms", "-verify", "-inform", "DER", "-in", tmp_path / "signature", "-content",
               tmp_path / "content", "-binary", "-CAfile", tmp_path / "root.pem", "-purpose", "any", "-out",
               "/dev/null")  # fmt: skip
    found = check_pdf(document, [root.certificate])
    assert (done.returncode == 0) is (found.intact and found.trusted), done.stderr

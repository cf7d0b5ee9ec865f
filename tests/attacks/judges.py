"""Three judges of one file: our verification, poppler's pdfsig over NSS, and OpenSSL's cms.

Each gets a path and whom the reader trusts, and gives a `Verdict`. A program that is not installed has run nothing:
its verdict is neither yes nor no.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from clinsafe.errors import ReportError
from clinsafe.reports import pages
from clinsafe.reports import verify as verification
from clinsafe.reports.sign import SigningKey
from tests.reports.signing import write_pem

NOT_RUN = "not run"
PACKAGES = {"pdfsig": "poppler-utils", "certutil": "libnss3-tools", "openssl": "openssl"}
PATIENCE = 60  # seconds
LONGEST = 150  # letters of a reason in the table


@dataclass(frozen=True)
class Verdict:
    """What a judge makes of a file; `accepted` is None where it did not run.

    `facts` is our own `Verification`, where there is one.
    """

    accepted: bool | None
    says: str
    facts: verification.Verification | None = None


TOO_LARGE = Verdict(False, "not asked, too large")
Judge = Callable[[Path, Sequence[SigningKey]], Verdict]
"""A file, and the certificates that are trusted to sign or to issue."""


def ours(path: Path, trust: Sequence[SigningKey]) -> Verdict:
    """``clinsafe report verify``, in this process."""
    with tempfile.TemporaryDirectory() as scratch:
        given = [_write(Path(scratch), key) for key in trust]
        try:
            facts = verification.verify(path, given)
        except ReportError as error:
            return Verdict(False, _plain(f"refused: {error}", path))
    if facts.accepted:
        return Verdict(True, "accepted", facts)
    if facts.valid:
        missing = f" by {', '.join(facts.missing_roles)}" if facts.missing_roles else ""
        return Verdict(False, facts.verdict.partition(":")[0] + missing, facts)
    return Verdict(False, _plain(f"INVALID: {facts.problems[0]}", path), facts)


def pdfsig(path: Path, trust: Sequence[SigningKey]) -> Verdict:
    """poppler; accepted means what a careful reader of its output wants: valid, trusted, and the whole file."""
    if not installed("pdfsig", "certutil"):
        return Verdict(None, NOT_RUN)
    if path.stat().st_size > verification.LARGEST_FILE:
        return TOO_LARGE
    with tempfile.TemporaryDirectory() as scratch:
        store = nss_store(Path(scratch), trust)
        return pdfsig_with(store, path)


def pdfsig_with(store: str, path: Path) -> Verdict:
    """`pdfsig` with a certificate store that is there already."""
    try:
        told = _run("pdfsig", "-nssdir", store, path).stdout
    except subprocess.TimeoutExpired:
        return Verdict(False, "did not end")
    signatures = told.split("Signature #")[1:]
    if not signatures:
        return Verdict(
            False, "no signature" if "does not contain any signatures" in told else "cannot be read"
        )
    said = [_one_signature(part) for part in signatures]
    good = all(line == "valid, trusted, whole file" for line in said)
    return Verdict(good, "; ".join(said))


def openssl(path: Path, trust: Sequence[SigningKey]) -> Verdict:
    """The containers as CMS signatures over their signed ranges: OpenSSL knows no PDF, so no "whole file"."""
    if not installed("openssl"):
        return Verdict(None, NOT_RUN)
    if path.stat().st_size > verification.LARGEST_FILE:
        return TOO_LARGE
    found = list(_containers(path))
    if not found:
        return Verdict(False, "no signature")
    said = [_cms(content, container, trust) for content, container in found]
    return Verdict(all(line == "verifies" for line in said), "; ".join(said))


JUDGES: dict[str, Judge] = {"clinsafe": ours, "pdfsig": pdfsig, "openssl cms": openssl}


@contextmanager
def shared() -> Iterator[None]:
    """While it is open, what follows from a record alone is computed once a record: most attacks leave it as it is."""
    names = (
        (verification, "from_bytes"),
        (verification, "differences"),
        (verification, "incomplete"),
        (pages, "html"),
    )
    patches = [patch.object(module, name, _memo(getattr(module, name))) for module, name in names]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


def _memo(function: Callable[..., Any]) -> Callable[..., Any]:
    """Remembers by value where the argument is bytes or text, else by identity (and keeps it: no id comes twice)."""
    kept: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    def remembered(*given: Any, **named: Any) -> Any:
        plain = (a if isinstance(a, bytes | str) else id(a) for a in given if type(a).__name__ != "Content")
        key = (*plain, *sorted(named.items()))
        if key not in kept:
            kept[key] = given, function(*given, **named)
        return kept[key][1]

    return remembered


def installed(*programs: str) -> bool:
    return all(shutil.which(program) for program in programs)


def nss_store(folder: Path, trust: Sequence[SigningKey]) -> str:
    """A certificate store for pdfsig that takes `trust` as authorities; returns its name."""
    store = f"sql:{folder}"
    _run("certutil", "-d", store, "-N", "--empty-password").check_returncode()
    for number, key in enumerate(trust):
        pem = folder / f"{number}.pem"
        write_pem(pem, key)
        _run(
            "certutil", "-d", store, "-A", "-n", f"trusted {number}", "-t", "CT,C,C", "-i", pem
        ).check_returncode()
    return store


def _one_signature(told: str) -> str:
    """One signature's block of pdfsig's output in a few words."""

    def after(label: str) -> str:
        found = re.search(rf"{label}: (.*)", told)
        return found[1].strip(" .").lower() if found else "not said"

    signature = after("Signature Validation").replace("signature is ", "")
    if signature != "valid":
        return signature
    certificate = after("Certificate Validation").replace("certificate is ", "").replace("certificate ", "")
    whole = "NOT the whole file" if "Not total document" in told else "whole file"
    return f"{signature}, {certificate}, {whole}"


def _containers(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Signed ranges and DER of every signature, found without a PDF library."""
    document = path.read_bytes()
    for match in re.finditer(rb"/ByteRange\s*\[\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s*\]", document):
        first, size, second, rest = map(int, match.groups())
        gap = document[first + size : second].strip(b"<>")
        try:
            container = bytes.fromhex(gap.decode("ascii"))
        except ValueError:
            container = b""
        yield document[first : first + size] + document[second : second + rest], container


def _cms(content: bytes, container: bytes, trust: Sequence[SigningKey]) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "content").write_bytes(content)
        (folder / "signature").write_bytes(container)
        parts = []
        for key in trust:
            write_pem(folder / "one.pem", key)
            parts.append((folder / "one.pem").read_bytes())
        (folder / "trust.pem").write_bytes(b"".join(parts))
        done = _run(
            "openssl", "cms", "-verify", "-inform", "DER", "-in", folder / "signature", "-content",
            folder / "content", "-binary", "-CAfile", folder / "trust.pem", "-purpose", "any", "-out", "/dev/null",
        )  # fmt: skip
    if done.returncode == 0:
        return "verifies"
    if found := re.search(r"Verify error: ?(.*)", done.stderr):
        return found[1].strip().lower()
    known = {"content verify error": "content differs", "verification failure": "content differs"}
    lowered = done.stderr.lower()
    return next((said for words, said in known.items() if words in lowered), "cannot be read")


def _plain(text: str, path: Path) -> str:
    """The same words each time: no path, no moment, no name of an exception."""
    text = text.replace(str(path), "FILE").replace(path.name, "FILE")
    text = re.sub(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d)?", "(date)", text)
    text = re.sub(r" \([A-Z]\w*\)\.?$", "", text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _write(folder: Path, key: SigningKey) -> Path:
    path = folder / f"{key.fingerprint}.pem"
    write_pem(path, key)
    return path


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, errors="replace", check=False,
        timeout=PATIENCE,
    )  # fmt: skip

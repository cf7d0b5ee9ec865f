"""Adding an approval: what is refused, two at once, a full disk, and that OpenSSL agrees."""

from __future__ import annotations

import base64
import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from clinsafe.errors import ClinsafeError, MissingDependency, ReportError, UsageError
from clinsafe.reports import approvals as module
from clinsafe.reports import countersign
from clinsafe.reports.approvals import (
    MOST_LINES,
    approvals_path,
    check_approvals,
    examine,
)
from clinsafe.reports.pdfcheck import PdfCheck
from clinsafe.reports.sign import SigningKey
from tests.reports.approving import (
    ATTACKS,
    DAY,
    EVERYONE,
    MINUTE,
    NOW,
    World,
    add,
    certify,
    ders,
    page,
    quick,
    text,
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


@pytest.fixture(autouse=True)
def _looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "check_pdf", quick)
    monkeypatch.setattr(countersign, "check_pdf", quick)


@pytest.fixture
def report(world: World, tmp_path: Path) -> Path:
    path = tmp_path / "report.pdf"
    path.write_bytes(world.report)
    return path


# ── adding ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"role": ""}, "role"),
        ({"role": "  \t"}, "role"),
        ({"name": ""}, "name"),
        ({"name": "A\nB"}, "name"),
        ({"name": "A\x1b[31m"}, "name"),
        ({"role": "x" * 201}, "role"),
        ({"comment": "x" * 2001}, "comment"),
        ({"meaning": "fun"}, "meaning.*author.*review.*approval.*responsibility"),
    ],
)
def test_texts_that_do_not_fit(world: World, report: Path, settings: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        add(report, world, world.officer, **settings)
    assert not approvals_path(report).exists()


@pytest.mark.parametrize(
    ("document", "trust", "told"),
    [
        (lambda w: page(200), lambda w: w.all, "signature"),
        (lambda w: w.report + b"%", lambda w: w.all, "cover"),
        (lambda w: w.report[:-100], lambda w: w.all, "damaged"),
        (lambda w: w.report, lambda w: [w.officer], "not trusted"),
        (lambda w: w.report, lambda w: [], "not trusted"),
        (lambda w: b"PK", lambda w: w.all, "not a PDF"),
    ],
)
def test_only_a_whole_signed_report_is_approved(
    world: World, report: Path, document: Callable[[World], bytes],
    trust: Callable[[World], list[SigningKey]], told: str,
) -> None:  # fmt: skip
    report.write_bytes(document(world))
    with pytest.raises(ReportError, match=told):
        add(report, world, world.officer, trust=ders(trust(world)))
    assert not approvals_path(report).exists()


BROKEN = [
    "role edited, first line", "middle line removed", "lines swapped", "last line cut off", "no JSON", "empty",
    "last line break missing", "last line replayed", "a line of 100 MB", "deep nesting", "line spelt otherwise",
]  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_nothing_is_added_to_a_broken_chain(world: World, report: Path, name: str) -> None:
    before = next(attack for attack in ATTACKS if attack.name == name).build(world)
    approvals_path(report).write_bytes(before)
    with pytest.raises(ReportError, match=r"approvals.jsonl") as error:
        add(report, world, world.officer)
    assert len(str(error.value)) < 600
    assert approvals_path(report).read_bytes() == before
    assert len(list(report.parent.iterdir())) == 2


def test_nothing_is_added_to_those_of_another_report(world: World, report: Path) -> None:
    approvals_path(report).write_bytes(text(world.lines))
    report.write_bytes(world.other_report)
    with pytest.raises(ReportError, match="another report"):
        add(report, world, world.officer)
    assert approvals_path(report).read_bytes() == text(world.lines)


def test_what_would_not_hold_is_not_written(world: World, report: Path) -> None:
    """A time in the future or before the report; a certificate that is expired or not for documents."""
    add(report, world, world.reviewer, when=NOW - 9 * MINUTE)
    before = approvals_path(report).read_bytes()
    for key, when in (
        (world.officer, NOW + 60 * MINUTE),
        (world.officer, NOW - 61 * MINUTE - DAY),
        (world.officer, NOW - 20 * MINUTE),
        (certify("Expired", days=(-9, -1)), NOW),
        (world.silent, NOW),
    ):
        with pytest.raises(ReportError, match="would not hold"):
            add(report, world, key, when=when)
    assert approvals_path(report).read_bytes() == before


def test_no_more_than_can_be_read(world: World, report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one that would be read is taken, the next is refused."""
    assert MOST_LINES >= 50
    monkeypatch.setattr(module, "MOST_LINES", 2)
    add(report, world, world.officer)
    add(report, world, world.manager)
    with pytest.raises(ReportError, match="larger than 2 lines"):
        add(report, world, world.reviewer)
    assert len(check_approvals(report, ders(world.all)).entries) == 2


def test_six_people_at_once(world: World, report: Path) -> None:
    """Every one of them stands there, in one chain."""
    with ThreadPoolExecutor(6) as pool:
        done = [pool.submit(add, report, world, world.officer, f"role {n}") for n in range(6)]
        for future in done:
            future.result()
    found = check_approvals(report, ders(world.all))
    assert found.valid, found.all_problems
    assert sorted(found.roles()) == [f"role {n}" for n in range(6)]
    assert len(list(report.parent.iterdir())) == 2


def test_a_lock_that_stays(world: World, report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is named, and not taken away: someone may be writing."""
    monkeypatch.setattr(countersign, "PATIENCE", 0.2)
    lock = Path(f"{approvals_path(report)}.lock")
    lock.touch()
    with pytest.raises(ReportError, match=r"jsonl\.lock.*delete"):
        add(report, world, world.officer)
    assert lock.exists()
    assert not approvals_path(report).exists()


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_loses_nothing(
    world: World, report: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    """Nor does Ctrl-C; and nothing is left behind."""
    add(report, world, world.officer)
    before = approvals_path(report).read_bytes()

    def fail(*_: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(*((os, "fsync", fail) if step == "fsync" else (Path, "replace", fail)))
        with pytest.raises(ReportError if isinstance(error, OSError) else KeyboardInterrupt):
            add(report, world, world.manager)
    assert approvals_path(report).read_bytes() == before
    assert len(list(report.parent.iterdir())) == 2
    add(report, world, world.manager)
    assert check_approvals(report, ders(world.all)).valid


@pytest.mark.skipif(sys.platform == "win32", reason="no modes there")
def test_the_files_mode_is_kept(world: World, report: Path) -> None:
    """A second approver must be able to read what the first one wrote."""
    path = add(report, world, world.officer)
    assert path.stat().st_mode & 0o044 == 0o044 & ~_umask()
    path.chmod(0o664)
    assert add(report, world, world.manager).stat().st_mode & 0o777 == 0o664


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_without_the_extra(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing package is no verdict about the file."""
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(MissingDependency, match=r"verifying needs cryptography.*clinsafe\[verify\]"):
        examine(b"{}\n", b"", [], PdfCheck(), NOW)
    assert issubclass(MissingDependency, ClinsafeError)


# ── another program ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", [0, 2], ids=["P-256", "RSA"])
def test_openssl_agrees(world: World, tmp_path: Path, number: int) -> None:
    """A line's signature verifies over the encoded payload and over no other, with nothing of ours but the file."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed (Debian package openssl)")
    envelope = json.loads(world.lines[number])
    entry, payload = envelope["signatures"][0], base64.b64decode(envelope["payload"])
    (tmp_path / "cert.pem").write_text(entry["cert"])
    (tmp_path / "signature").write_bytes(base64.b64decode(entry["sig"]))
    public = run("openssl", "x509", "-in", tmp_path / "cert.pem", "-pubkey", "-noout")
    (tmp_path / "key.pem").write_text(public.stdout)
    pss = ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:digest"] if number else []
    other = payload.replace(EVERYONE[number].encode(), b"Chief")
    assert other != payload
    for content, agreed in ((payload, True), (other, False)):
        kind = envelope["payloadType"].encode()
        encoded = b" ".join([b"DSSEv1", str(len(kind)).encode(), kind, str(len(content)).encode(), content])
        (tmp_path / "content").write_bytes(encoded)
        done = run("openssl", "dgst", "-sha256", *pss, "-verify", tmp_path / "key.pem",
                   "-signature", tmp_path / "signature", tmp_path / "content")  # fmt: skip
        assert (done.returncode == 0) is agreed, done.stderr
    assert json.loads(payload)["subject"][0]["digest"]["sha256"] == sha256(world.report).hexdigest()


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, timeout=99
    )

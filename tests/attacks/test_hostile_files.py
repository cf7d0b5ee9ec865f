"""What no report is, through the real command line: one line, the right exit code, and nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from clinsafe.reports.keys import make_development_key
from tests.attacks.reports import World
from tests.attacks.table import SPARSE
from tests.attacks.tricks import encrypted
from tests.cli.test_cli import inside
from tests.reports.signing import write_pem

pytest.importorskip("weasyprint")
pytestmark = pytest.mark.slow  # starts a dozen processes, some of which render a report
VALID, INVALID, REFUSED = 0, 1, 2


@dataclass(frozen=True)
class Hostile:
    """A file, and the exit code that belongs to it."""

    build: Callable[[World], bytes]
    code: int


FILES = {
    "untouched": Hostile(lambda w: w.signed, VALID),
    "end cut off": Hostile(lambda w: w.signed[:-2000], INVALID),
    "half": Hostile(lambda w: w.signed[: len(w.signed) // 2], REFUSED),
    "a header alone": Hostile(lambda w: w.signed[:9], REFUSED),
    "unsigned": Hostile(lambda w: w.unsigned, INVALID),
    "encrypted": Hostile(lambda w: encrypted(w.unsigned), INVALID),
    "a zip file": Hostile(lambda w: b"PK\x03\x04 a zip file", REFUSED),
    "empty": Hostile(lambda w: b"", REFUSED),
}

ALONE = {"untouched", "end cut off", "half"}
"""Verified by a process of its own: one file for each exit code."""


@pytest.fixture(scope="module")
def world(shared_renders: None, tmp_path_factory: pytest.TempPathFactory) -> World:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        made = World(tmp_path_factory.mktemp("hostile"))
        assert made.signed
        write_pem(made.folder / "root.pem", made.root)
        return made


def run(
    *arguments: object, before: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    command = [*before, sys.executable, "-m", "clinsafe", "report", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=280, env=os.environ | environment,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def one_line(done: subprocess.CompletedProcess[str], code: int) -> str:
    """The line that a user gets: on stderr where the command refuses, else the last one of the verdict."""
    assert "Traceback" not in done.stdout + done.stderr
    assert done.returncode == code, done.stdout + done.stderr
    lines = (done.stderr if code == REFUSED else done.stdout).strip().splitlines()
    if code == REFUSED:
        assert len(lines) == 1, done.stderr
    else:
        assert done.stderr == ""
    return lines[-1]


@pytest.fixture(scope="module")
def answers(world: World) -> dict[str, subprocess.CompletedProcess[str]]:
    """Every file verified, one of each exit code by a process of its own; none is changed by it.

    The others meet the same entry point here, where pages that were drawn for `world` are not drawn again.
    """
    paths = {}
    for number, (name, hostile) in enumerate(FILES.items()):
        paths[name] = world.folder / f"{number}.pdf"
        paths[name].write_bytes(hostile.build(world))
    before = {path: path.read_bytes() for path in paths.values()}
    root = world.folder / "root.pem"
    with ThreadPoolExecutor(2) as pool:
        jobs = {n: pool.submit(run, "verify", paths[n], "--trust", root) for n in ALONE}
        done = {name: job.result() for name, job in jobs.items()}
    for name in paths.keys() - ALONE:
        done[name] = inside("report", "verify", paths[name], "--trust", root, cwd=world.folder)
    assert {path: path.read_bytes() for path in paths.values()} == before
    return done


@pytest.mark.parametrize("name", FILES)
def test_the_exit_code_and_one_line(answers: dict[str, subprocess.CompletedProcess[str]], name: str) -> None:
    line = one_line(answers[name], FILES[name].code)
    if FILES[name].code == INVALID:
        assert line.startswith("INVALID: ")
    if FILES[name].code == VALID:
        assert line.startswith("VALID: ")


def test_a_file_of_500_mb_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.pdf"
    with path.open("wb") as stream:
        stream.truncate(SPARSE)
    assert "larger than" in one_line(run("verify", path), REFUSED)
    assert path.stat().st_size == SPARSE


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert "not a file" in one_line(run("verify", tmp_path), REFUSED)


def test_facts_that_cannot_be_written_are_refused_before_anything_else(world: World, tmp_path: Path) -> None:
    """Also as root, which may write everywhere unless that is taken away."""
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    before: tuple[str, ...] = ()
    if os.access(locked, os.W_OK):
        if shutil.which("setpriv") is None:
            pytest.skip("root may write everywhere, and setpriv (util-linux) is not installed")
        before = (
            "setpriv",
            "--bounding-set",
            "-dac_override,-dac_read_search",
            "--inh-caps",
            "-dac_override",
        )
    report = tmp_path / "report.pdf"
    report.write_bytes(world.signed)
    given = ("verify", report, "--trust", world.folder / "root.pem", "--json")
    assert "may not be written" in one_line(run(*given, locked / "facts.json", before=before), REFUSED)
    assert "is a folder" in one_line(run(*given, locked, before=before), REFUSED)
    assert list(locked.iterdir()) == []
    assert report.read_bytes() == world.signed


def test_a_wrong_passphrase_signs_nothing(world: World, tmp_path: Path) -> None:
    key = make_development_key(tmp_path / "keys", "Ada", b"correct horse")
    secret, report, out = tmp_path / "secret", tmp_path / "report.pdf", tmp_path / "signed.pdf"
    secret.write_text("battery staple\n")
    report.write_bytes(world.unsigned)
    out.write_bytes(b"what was there")
    given = ("sign", report, "--out", out, "--meaning", "author", "--key", key, "--force")
    line = one_line(run(*given, "--passphrase-file", secret), REFUSED)
    assert "passphrase is wrong" in line
    assert "battery" not in line
    assert out.read_bytes() == b"what was there"
    assert report.read_bytes() == world.unsigned
    assert "passphrase is wrong" in one_line(run(*given, CLINSAFE_PASSPHRASE="battery staple"), REFUSED)
    assert out.read_bytes() == b"what was there"


@pytest.mark.parametrize("command", ["sign", "render"])
def test_what_is_no_report_is_not_signed_or_rendered(tmp_path: Path, command: str) -> None:
    junk, out = tmp_path / "junk.pdf", tmp_path / "out.pdf"
    junk.write_bytes(b"PK\x03\x04 a zip file")
    more = ("--meaning", "author") if command == "sign" else ()
    one_line(run(command, junk, "--out", out, *more), REFUSED)
    assert not out.exists()
    assert junk.read_bytes() == b"PK\x03\x04 a zip file"

"""A private PostgreSQL for the tests marked ``server``: a cluster of its own, on a free port of this machine."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

PASSWORD = "s3cr3t-of-the-test"


def _binaries() -> Path | None:
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    return places[-1].parent if places else None


def _missing(why: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(f"{why}; CI has to have it")
    pytest.skip(why)


class Cluster:
    """Start, stop and address of one server."""

    def __init__(self, binaries: Path, folder: Path, port: int, user: str | None) -> None:
        self._bin, self.folder, self.port, self._user = binaries, folder, port, user

    def run(self, program: str, *arguments: str) -> None:
        command = [str(self._bin / program), *arguments]
        if self._user:  # PostgreSQL refuses to run as root
            command = ["runuser", "-u", self._user, "--", *command]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=self.folder, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr + done.stdout

    def start(self) -> None:
        options = f"-p {self.port} -h 127.0.0.1 -k {self.folder} -c fsync=off"
        self.run(
            "pg_ctl",
            "-D",
            str(self.folder / "data"),
            "-l",
            str(self.folder / "out"),
            "-w",
            "-o",
            options,
            "start",
        )

    def stop(self) -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-m", "immediate", "stop")

    def url(self, base: str, password: str = PASSWORD) -> str:
        return f"postgresql://clinsafe:{password}@127.0.0.1:{self.port}/{base}"

    def base(self, name: str) -> str:
        """Address of a new, empty database."""
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'create database "{name}"')
        return self.url(name)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A running server; skipped where PostgreSQL is not installed, and a failure in CI."""
    binaries = _binaries()
    if binaries is None:
        _missing("PostgreSQL is not installed (apt-get install postgresql)")
    try:
        import psycopg  # noqa: F401
    except ImportError:
        _missing("psycopg is not installed (pip install 'clinsafe[postgres]')")
    assert binaries is not None
    folder = Path(
        tempfile.mkdtemp(prefix="clinsafe-pg-")
    )  # not in pytest's folder, which another user cannot enter
    user = None
    if os.geteuid() == 0:
        user = "postgres"
        owner = pwd.getpwnam(user)
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    made = Cluster(binaries, folder, port, user)
    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    made.run("initdb", "-D", str(folder / "data"), "-U", "clinsafe", "-A", "scram-sha-256", f"--pwfile={secret}",
             "-E", "UTF8", "--no-sync")  # fmt: skip
    made.start()
    yield made
    made.stop()
    shutil.rmtree(folder, ignore_errors=True)

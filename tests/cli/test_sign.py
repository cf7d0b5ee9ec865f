"""``clinsafe report sign`` and the opening of keys, as a user types it; errors as the handler of the CLI sees them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from clinsafe.cli.sign import Means, open_key, sign
from clinsafe.errors import (
    ClinsafeError,
    KeyFileError,
    OfflineError,
    OutputExists,
    ReportError,
    TimestampError,
    UsageError,
)
from clinsafe.reports.keys import VARIABLE, default_folder, load_key, make_development_key
from clinsafe.reports.pdfcheck import check_pdf
from clinsafe.reports.sign import REASONS, SigningKey
from tests.reports import tsa
from tests.reports.signing import World
from tests.reports.test_pem_keys import write_certificates, write_key

pytest.importorskip("weasyprint")
SECRET = "correct horse"
app = typer.Typer()
app.command("sign")(sign)


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def p12(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_development_key(tmp_path_factory.mktemp("key") / "keys", "Ada", SECRET.encode())


@pytest.fixture
def home(world: World, p12: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an unsigned report; the passphrase of the key is in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, SECRET)
    (tmp_path / "report.pdf").write_bytes(world.unsigned)
    return tmp_path


def type_in(*arguments: object) -> Any:
    """The command's result; a clinsafe error is raised, as the handler would meet it."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, ClinsafeError):
        raise result.exception
    return result


def ask(*more: object) -> list[object]:
    return ["report.pdf", "--out", "signed.pdf", "--meaning", "approval", *more]


def test_the_meanings_are_those_of_the_signature() -> None:
    assert [meaning.value for meaning in Means] == list(REASONS)


def test_sign(home: Path, p12: Path) -> None:
    """Visible, with name and place; the report is the first revision, and stays as it was."""
    before = (home / "report.pdf").read_bytes()
    done = type_in(*ask("--key", p12, "--name", "Ada Lovelace", "--location", "London"))
    assert done.exit_code == 0, done.output
    found = check_pdf((home / "signed.pdf").read_bytes(), [load_key(p12, SECRET.encode()).certificate])
    assert found.valid
    assert found.printed[:2] == ("Ada Lovelace", REASONS["approval"])
    assert "London" in " ".join(found.printed)
    assert found.first_revision == before == (home / "report.pdf").read_bytes()
    assert "DEVELOPMENT" in done.output
    assert SECRET not in done.output


def test_the_development_key_is_the_default(home: Path, p12: Path) -> None:
    """From the configuration folder; without one, the line says what to do."""
    with pytest.raises(KeyFileError, match="make a development key"):
        type_in(*ask())
    make_development_key(default_folder(), "Grace", SECRET.encode())
    assert "Grace" in type_in(*ask("--no-stamp")).output
    assert check_pdf((home / "signed.pdf").read_bytes(), []).printed == ()


@pytest.mark.parametrize("secret", [None, SECRET.encode()])
def test_a_pem_pair(home: Path, world: World, secret: bytes | None) -> None:
    key = write_key(home / "key.pem", world.issued.private, secret)
    certificate = write_certificates(home / "cert.pem", world.issued)
    done = type_in(*ask("--key", key, "--certificate", certificate))
    assert done.exit_code == 0, done.output
    assert "DEVELOPMENT" not in done.output
    assert check_pdf((home / "signed.pdf").read_bytes(), [world.authority.certificate]).valid


def test_without_the_packages_of_the_stamp(home: Path, p12: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It signs, invisibly, and says so."""
    monkeypatch.setattr("clinsafe.reports.stamp.can_stamp", lambda: False)
    done = type_in(*ask("--key", p12))
    assert done.exit_code == 0
    assert "invisible" in done.output
    assert check_pdf((home / "signed.pdf").read_bytes(), []).signed


def test_a_timestamp(home: Path, p12: Path, world: World) -> None:
    """Over HTTP; a failing authority leaves the report alone and writes nothing."""
    authority = tsa.certify_authority("T. Authority")
    with tsa.serve(tsa.honest(authority)) as url:
        assert type_in(*ask("--key", p12, "--timestamp-url", url, "--offline")).exit_code == 0
    found = check_pdf(
        (home / "signed.pdf").read_bytes(),
        [load_key(p12, SECRET.encode()).certificate],
        trust_tsa=[authority.certificate],
    )
    assert found.valid
    assert found.timestamp_trusted
    (home / "signed.pdf").unlink()
    with (
        tsa.serve(lambda _: (500, "text/plain", b"")) as url,
        pytest.raises(TimestampError, match="nothing was signed"),
    ):
        type_in(*ask("--key", p12, "--timestamp-url", url))
    with pytest.raises(OfflineError):
        type_in(*ask("--key", p12, "--timestamp-url", "http://tsa.example/", "--offline"))
    assert not (home / "signed.pdf").exists()
    assert (home / "report.pdf").read_bytes() == world.unsigned


def test_nothing_is_overwritten(home: Path, p12: Path) -> None:
    (home / "signed.pdf").write_text("mine")
    with pytest.raises(OutputExists):
        type_in(*ask("--key", p12))
    assert (home / "signed.pdf").read_text() == "mine"
    assert type_in(*ask("--key", p12, "--force")).exit_code == 0


def test_a_place_that_cannot_be_written_is_one_line(
    home: Path, p12: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No folder, a folder in the way, a full disk: nothing half-written, and the unsigned report stays."""
    arguments = list(ask("--key", p12))
    before = (home / "report.pdf").read_bytes()
    place = arguments.index("--out") + 1
    for out in (home / "nowhere" / "signed.pdf", home):
        with pytest.raises(UsageError):
            type_in(*arguments[:place], out, *arguments[place + 1 :], "--force")

    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UsageError, match="No space left"):
        type_in(*arguments)
    assert not (home / "signed.pdf").exists()
    assert (home / "report.pdf").read_bytes() == before


def no_report(home: Path) -> None:
    (home / "report.pdf").write_bytes(b"%PDF-1.7\n")


def signed_already(home: Path) -> None:
    key = load_key(make_development_key(home / "k", "B", SECRET.encode()), SECRET.encode())
    from clinsafe.reports.sign import sign_pdf

    (home / "report.pdf").write_bytes(sign_pdf((home / "report.pdf").read_bytes(), key, meaning="author"))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (no_report, "cannot be read"),
        (lambda home: (home / "report.pdf").unlink(), "cannot be read"),
        (signed_already, "signature field already"),
    ],
)
def test_what_is_no_unsigned_report(home: Path, p12: Path, change: Callable[[Path], None], told: str) -> None:
    change(home)
    with pytest.raises(ReportError, match=told):
        type_in(*ask("--key", p12))
    assert not (home / "signed.pdf").exists()


@pytest.mark.parametrize("missing", ["--out", "--meaning"])
def test_what_must_be_said(home: Path, missing: str) -> None:
    """Where it goes and what it means: never guessed."""
    arguments = ask()
    place = arguments.index(missing)
    assert type_in(*arguments[:place], *arguments[place + 2 :]).exit_code == 2
    assert type_in("report.pdf", "--out", "x.pdf", "--meaning", "fun").exit_code == 2


# ── opening keys ───────────────────────────────────────────────────────────────────────────────


def test_a_passphrase_that_another_key_needs(home: Path, world: World) -> None:
    """An unencrypted PEM key opens whatever the environment holds, and asks for nothing."""
    key = write_key(home / "key.pem", world.key.private)
    opened: SigningKey = open_key(key, write_certificates(home / "cert.pem", world.key))
    assert opened == world.key


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"certificate": Path("cert.pem")}, "give --key KEY.pem"),
        ({"path": Path("k.p12"), "certificate": Path("cert.pem")}, "leave --certificate out"),
        ({"pkcs11_module": Path("x.so")}, "add --pkcs11-token, --pkcs11-key"),
        ({"pkcs11_token": "audit", "pkcs11_key": "ec"}, "add --pkcs11-module"),
        (
            {"path": Path("k"), "pkcs11_module": Path("x.so"), "pkcs11_token": "t", "pkcs11_key": "k"},
            "give one of them",
        ),
    ],
)
def test_options_that_make_no_sense(home: Path, options: dict[str, Any], told: str) -> None:
    (home / "k.p12").touch(mode=0o600)
    (home / "k.p12").write_bytes(b"\x30\x00")
    with pytest.raises(UsageError, match=told):
        open_key(**options)


def test_a_token(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The PIN comes from the environment; a certificate file is read first."""
    pytest.importorskip("pkcs11")
    token = {"pkcs11_module": home / "no.so", "pkcs11_token": "audit", "pkcs11_key": "ec"}
    with pytest.raises(KeyFileError, match="no such PKCS#11 library"):
        open_key(**token)  # type: ignore[arg-type]
    for path, told in ((home / "no.pem", "cannot be read"), (home / "report.pdf", "no certificate")):
        with pytest.raises(KeyFileError, match=told):
            open_key(certificate=path, **token)  # type: ignore[arg-type]
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(KeyFileError, match="no PIN"):
        open_key(**token)  # type: ignore[arg-type]

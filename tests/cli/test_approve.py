"""`clinsafe report approve` as a user types it: what is shown, what is refused, and in how many lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from clinsafe.cli.approve import approve, summary
from clinsafe.errors import ClinsafeError, KeyFileError, ReportError, UsageError
from clinsafe.reports.approvals import Approvals, approvals_path, check_approvals
from clinsafe.reports.countersign import add_approval
from clinsafe.reports.keys import keep_passphrase, load_key, make_development_key
from clinsafe.reports.sign import sign_pdf
from tests.reports.signing import render

GOLDEN = Path(__file__).parents[1] / "golden" / "evidence-1.json"
PASSPHRASE = b"a secret that is never shown"
app = typer.Typer()
app.command("approve")(approve)
app.command("other")(lambda: None)  # with one command alone Typer drops its name


@pytest.fixture(scope="module")
def audited(signing_key: Any) -> bytes:
    """A signed report: one empty page with a real record inside."""
    return sign_pdf(render(GOLDEN.read_bytes()), signing_key, meaning="author")


@pytest.fixture
def report(audited: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "report.pdf"
    path.write_bytes(audited)
    return path


@pytest.fixture
def auditor(signing_key: Any, tmp_path: Path) -> Path:
    """The auditor's certificate, as it is handed to an approver."""
    path = tmp_path / "auditor.der"
    path.write_bytes(signing_key.certificate)
    return path


def key_of(folder: Path, name: str) -> Path:
    """A key file with its passphrase beside it."""
    path = make_development_key(folder, name, PASSPHRASE)
    keep_passphrase(path, PASSPHRASE)
    return path


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["approve", *map(str, arguments)])
    if isinstance(done.exception, ClinsafeError):
        raise done.exception
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    return done.exit_code, done.output


def sentence(text: str) -> str:
    return " ".join(text.split())


def test_two_people_approve(report: Path, auditor: Path, tmp_path: Path) -> None:
    """Each sees who has signed; what is piped has lines of at most 80 columns where it is prose."""
    first, second = key_of(tmp_path / "a", "Ada"), key_of(tmp_path / "b", "Bo")
    options = ("--trust", auditor, "--trust", first.with_suffix(".pem"))
    code, shown = run(report, "--role", "Clinical safety officer", "--name", "Ada L.", "--key", first, *options,
                      "--comment", "with :warning: [red]thresholds[/red]")  # fmt: skip
    assert code == 0, shown
    assert "audit verdict HELD" in shown
    assert "signed: Clinical safety officer: Ada L., approval" in sentence(shown)
    assert '"with :warning: [red]thresholds[/red]"' in sentence(shown)
    assert "the report names no roles that must sign" in sentence(shown)
    assert "DEVELOPMENT key" in sentence(shown)
    code, shown = run(report, "--role", "Reviewer", "--name", "Bo", "--key", second, *options,
                      "--meaning", "review")  # fmt: skip
    assert code == 0, shown
    assert sentence(shown).count("signed: ") == 2
    assert "Reviewer: Bo, review" in sentence(shown)
    assert "NOT COUNTED" not in shown
    prose = [line for line in shown.splitlines() if "SHA-256" not in line and str(tmp_path) not in line]
    assert max(map(len, prose)) <= 80
    assert PASSPHRASE.decode() not in shown
    entries = [json.loads(line) for line in approvals_path(report).read_bytes().splitlines()]
    assert len(entries) == 2
    certificates = [load_key(path, PASSPHRASE).certificate for path in (first, second)]
    assert check_approvals(report, certificates).roles() == ["Clinical safety officer", "Reviewer"]


def test_your_own_key_is_found_and_trusted(report: Path, signing_key: Any) -> None:
    """Without --key the development key signs; without --trust only its own reports are known."""
    from clinsafe.reports.keys import default_folder

    with pytest.raises(KeyFileError, match="report key"):
        run(report, "--role", "r", "--name", "n")
    own = key_of(default_folder(), "Own")
    with pytest.raises(ReportError, match="not trusted"):
        run(report, "--role", "r", "--name", "n")
    (own.with_suffix(".pem")).write_bytes(signing_key.certificate)
    code, shown = run(report, "--role", "r", "--name", "n")
    assert code == 0, shown
    assert "NOT COUNTED" not in shown


def test_who_is_missing(report: Path, auditor: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Roles that the record names are looked for."""
    from clinsafe.reports import evidence

    read = evidence.from_bytes

    def with_roles(data: bytes, name: str = "evidence.json") -> evidence.Evidence:
        found = read(data, name)
        found.declaration.required_roles[:] = ["reviewer ", "Quality manager"]
        return found

    monkeypatch.setattr(evidence, "from_bytes", with_roles)
    key = key_of(tmp_path / "a", "Ada")
    arguments = (report, "--name", "Ada", "--key", key, "--trust", auditor)
    assert "missing: Quality manager" in run(*arguments, "--role", "Reviewer")[1]
    assert "missing: nobody" in run(*arguments, "--role", "quality manager")[1]


def test_an_untrusted_approval_is_said(report: Path, auditor: Path, tmp_path: Path, signing_key: Any) -> None:
    """It stands there, not counted, with its reason."""
    stranger = load_key(key_of(tmp_path / "s", "Stranger"), PASSPHRASE)
    add_approval(report, stranger, name="S", role="Boss", meaning="approval", trust=[signing_key.certificate])
    shown = run(report, "--role", "r", "--name", "n", "--key", key_of(tmp_path / "a", "Ada"),
                "--trust", auditor)[1]  # fmt: skip
    assert "NOT COUNTED: Boss: S" in sentence(shown)
    assert "problem: Boss (S): The signer's certificate is not trusted" in sentence(shown)


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        (("--role", ""), UsageError, "role"),
        (("--meaning", "fun"), UsageError, "author, review, approval, responsibility"),
        (("--key", "nowhere.p12"), KeyFileError, "no such key file"),
        (("--trust", "nowhere.pem"), ReportError, "nowhere.pem"),
    ],
)
def test_bad_input_adds_nothing(
    report: Path,
    auditor: Path,
    tmp_path: Path,
    options: tuple[str, ...],
    error: type[ClinsafeError],
    told: str,
) -> None:
    usual = ("--role", "r", "--name", "n", "--key", key_of(tmp_path / "a", "Ada"), "--trust", auditor)
    with pytest.raises(error, match=told):
        run(report, *usual, *options)
    assert not approvals_path(report).exists()


def test_no_report_and_a_wrong_passphrase(report: Path, auditor: Path, tmp_path: Path) -> None:
    key = key_of(tmp_path / "a", "Ada")
    usual = ("--role", "r", "--name", "n", "--key", key, "--trust", auditor)
    wrong = tmp_path / "wrong"
    wrong.write_text("wrong")
    with pytest.raises(KeyFileError, match="passphrase is wrong"):
        run(report, *usual, "--passphrase-file", wrong)
    report.write_bytes(b"no PDF")
    with pytest.raises(ReportError, match="cannot be read"):
        run(report, *usual)
    assert not approvals_path(report).exists()


def test_the_summary_of_nothing() -> None:
    """Nobody is never everybody."""
    lines = summary(Approvals((), ()), ["Reviewer"])
    assert lines == ["signed: nobody yet", "missing: Reviewer"]
    damaged = summary(Approvals((), ("Line 1 is cut off.",)), [])
    assert "problem: Line 1 is cut off." in damaged

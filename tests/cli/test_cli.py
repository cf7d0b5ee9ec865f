"""The commands as a user types them: one line for every fault, exit codes 0, 1, 2, nothing lost."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import pytest

from clinsafe.cli.app import main
from tests.conftest import INTERRUPTIBLE, write_few_clauses, write_small

ROOT = Path(__file__).parents[2]


def run(*arguments: str, cwd: Path, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "clinsafe", *map(str, arguments)],
        cwd=cwd,
        env=os.environ | {"PYTHONWARNINGS": "ignore"} | environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def inside(*arguments: object, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """As `run`, in this process: the entry point with arguments, folder and streams of its own; only imports are saved.

    For many faults in a row. What ends otherwise than by `sys.exit` leaves a traceback and exit code 1, as there.
    """
    given = io.StringIO(stdin)
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors=e) for e in ("strict", "backslashreplace"))
    code: object = 0
    with (
        pytest.MonkeyPatch.context() as patch, chdir(cwd), redirect_stdout(out), redirect_stderr(err),
        warnings.catch_warnings(),
    ):  # fmt: skip
        warnings.simplefilter("ignore")
        patch.setattr(sys, "argv", ["clinsafe", *map(str, arguments)])
        patch.setattr(sys, "stdin", given)
        patch.setattr(sys.modules["__main__"], "__package__", "")  # click names the program after it
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            traceback.print_exc()
            code = 1
    for stream in (out, err):
        stream.seek(0)
    assert isinstance(code, int)
    return subprocess.CompletedProcess([], code, out.read(), err.read())


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """The error: exit 2, one line on stderr, no traceback."""
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("clinsafe: ")]
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.fixture(scope="module")
def audited(tmp_path_factory, few):
    """A signed audit of a fake on a small suite, made by typing the commands."""
    home = tmp_path_factory.mktemp("home")
    write_small(home / "small", few)
    environment = {"XDG_CONFIG_HOME": str(home / "config")}
    key = run("report", "key", "--generate-passphrase", "--name", "Ada", cwd=home, **environment)
    assert key.returncode == 0, key.stderr
    done = run("audit", "-m", "fake:words", "--out", "run", "--content", "small", "--json", "figures.json",
               "--operator", "Ada L.", cwd=home, **environment)  # fmt: skip
    return home, environment, key, done


def test_an_audit_ends_with_the_verdict_and_the_report(audited):
    home, _, _, done = audited
    assert done.returncode == 1, done.stderr  # held
    assert done.stdout.splitlines()[-1] == "6 hazards held; report at run/report.pdf"
    assert (home / "run" / "report.pdf").read_bytes().startswith(b"%PDF")
    assert {p.name for p in (home / "run").iterdir()} == {
        "report.pdf", "report.html", "evidence.json", "evidence.dsse.json", "run.json",
    }  # fmt: skip
    assert json.loads((home / "figures.json").read_text())["suite.all.inversion"]["n"] == 18


def test_the_table_fits_80_columns_and_a_pipe_gets_no_colour(audited):
    done = audited[3]
    assert "\x1b" not in done.stdout
    table = done.stdout[: done.stdout.index("signed by")]
    assert max(map(len, table.splitlines())) <= 80
    assert re.search(
        r"negation +3 +\d+ \[\d+, \d+\] +\d+ \[\d+, \d+\] +\d+ \[\d+, \d+\] +(FAIL|INCONCLUSIVE)", table
    )


def test_the_key_is_private_marked_and_outside_the_project(audited):
    home = audited[0]
    folder = home / "config" / "clinsafe" / "keys"
    assert folder.stat().st_mode & 0o777 == 0o700
    for name in ("development.p12", "development.p12.pass"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600
    passphrase = (folder / "development.p12.pass").read_text().strip()
    assert len(passphrase) >= 20
    for file in (home / "run").iterdir():
        assert passphrase.encode() not in file.read_bytes()
    assert passphrase not in audited[2].stdout + audited[2].stderr + audited[3].stdout + audited[3].stderr


@pytest.mark.slow
def test_verify_says_valid_with_the_development_mark(audited):
    home, environment, _, _ = audited
    done = run("report", "verify", "run/report.pdf", "--json", "facts.json", cwd=home, **environment)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1].startswith("VALID: signed by DEVELOPMENT KEY - Ada")
    facts = json.loads((home / "facts.json").read_text())
    assert facts["rerender"] == "IDENTICAL"
    assert facts["problems"] == []
    side = run("report", "verify", "run/evidence.json", cwd=home, **environment)
    assert side.returncode == 0, side.stdout


@pytest.mark.slow
def test_verify_says_invalid_with_the_reason_and_exit_1(audited, shared_renders, tmp_path, monkeypatch):
    home, environment, _, _ = audited
    monkeypatch.setenv("XDG_CONFIG_HOME", environment["XDG_CONFIG_HOME"])
    data = (home / "run" / "report.pdf").read_bytes()
    (tmp_path / "bad.pdf").write_bytes(data + b" ")
    done = inside("report", "verify", tmp_path / "bad.pdf", cwd=home)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("INVALID: ")
    (tmp_path / "good.pdf").write_bytes(data)  # not all that is verified in this way is invalid
    shutil.copy(home / "run" / "evidence.dsse.json", tmp_path)
    assert inside("report", "verify", tmp_path / "good.pdf", cwd=home).returncode == 0


def test_the_same_folder_again_is_refused_and_forced(audited):
    home, environment, _, _ = audited
    arguments = ("audit", "-m", "fake:words", "--out", "run", "--content", "small", "--no-sign")
    assert "exists" in one_line(run(*arguments, cwd=home, **environment))
    before = (home / "run" / "report.pdf").read_bytes()
    assert (home / "run" / "report.pdf").read_bytes() == before


def test_a_strangers_record_cannot_drive_the_terminal(audited, tmp_path):
    home, environment, _, _ = audited
    plain = json.loads((home / "run" / "evidence.json").read_text())
    plain["assessments"][0]["held"] = ["\x1b[2J\x1b[HVALID: signed by Hospital\nline two"]
    (tmp_path / "evidence.json").write_text(json.dumps(plain))
    done = run("report", "verify", tmp_path / "evidence.json", cwd=home, **environment)
    assert done.returncode == 1
    assert "\x1b" not in done.stdout + done.stderr
    assert not any(line.startswith("VALID") for line in done.stdout.splitlines())


@pytest.mark.slow
def test_the_pdf_can_be_made_again_from_the_evidence(audited, shared_renders):
    """By another process than the audit's; `shared_renders` keeps nothing that the audit drew, which ran outside."""
    home = audited[0]
    done = inside("report", "render", "run/evidence.json", "--out", "again.pdf", cwd=home)
    assert done.returncode == 0, done.stderr
    signed = (home / "run" / "report.pdf").read_bytes()
    assert signed.startswith((home / "again.pdf").read_bytes())
    assert "exists" in one_line(
        inside("report", "render", "run/evidence.json", "--out", "again.pdf", cwd=home)
    )


def test_another_wrong_passphrase_stops_before_anything_is_computed(audited):
    home, environment, _, _ = audited
    done = run(
        "audit", "-m", "fake:words", "--out", "wrong", cwd=home, CLINSAFE_PASSPHRASE="wrong", **environment
    )
    assert "passphrase" in one_line(done)
    assert not (home / "wrong").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("audit", "-m", "no-such-model"), "minilm"),
        (("audit", "-m", "nobody/no-such", "--offline"), "local cache"),
        (("audit", "-m", "fake:none"), "constant, hash, words"),
        (("audit", "-m", "fake:words", "--protocol", "strict"), "checklist, paper, skill"),
        (("audit", "-m", "fake:words", "--hazard", "laterality"), "negation, numerical"),
        (("audit", "-m", "fake:words", "--content", "nowhere"), "not a directory"),
        (("audit", "-m", "fake:words", "--key", "nowhere.p12"), "nowhere.p12"),
        (("audit", "-m", "fake:words", "--out", "/proc/nothing/run"), "/proc/nothing"),
        (("audit", "-m", ""), "minilm"),
        (("audit", "-m", "fake:words", "--json", "nowhere/x.json"), "its folder is not there"),
        (("audit", "-m", "fake:words", "--operator", "\udcff"), "operator"),
        (("report", "verify", "/dev/null"), "not a file"),
        (("suite", "show", "neg-999"), "neg-001"),
        (("suite", "list", "--split", "train"), "dev, test"),
        (("report", "verify", "nowhere.pdf"), "cannot be read"),
        (("report", "render", "nowhere.json", "--out", "x.pdf"), "cannot be read"),
        (("report", "key"), "CLINSAFE_PASSPHRASE"),
        (("report", "key", "--folder", str(ROOT / "tests" / "keys"), "--generate-passphrase"), "git"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(arguments, words, tmp_path):
    assert words in one_line(inside(*arguments, cwd=tmp_path))


def test_a_malformed_and_a_duplicate_record_name_file_line_and_field(overlay, tmp_path, suite):
    name = "benchmarks/clinsafeembed/negation.jsonl"
    root = overlay(name, lambda text: text.replace('"split": "dev"', '"split": "train"', 1))
    message = one_line(inside("suite", "list", "--content", root, cwd=tmp_path))
    assert re.search(r"negation\.jsonl:\d+: split: ", message)
    root = overlay(
        name, lambda text: text.replace('"split": "train"', '"split": "dev"').replace("neg-002", "neg-001")
    )
    message = one_line(run("suite", "list", "--content", root, cwd=tmp_path))
    assert re.search(r"negation\.jsonl:2: id: 'neg-001' is already used in .*negation\.jsonl:1", message)


def test_typing_nonsense_gets_usage_and_exit_2(tmp_path):
    for arguments in (("audit",), ("fly",), ("audit", "-m", "minilm", "--batch-size", "0")):
        done = inside(*arguments, cwd=tmp_path)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


def test_suite_list_and_show_print_what_a_clinician_can_read(tmp_path, suite):
    done = run("suite", "show", "neg-001", cwd=tmp_path)
    assert done.returncode == 0
    case = next(c for c in suite if c.id == "neg-001")
    flat = " ".join(done.stdout.split())
    for text in (case.a, case.b, case.a_same, case.b_same, case.harm):
        assert " ".join(text.split()) in flat
    listed = run("suite", "list", "--hazard", "temporal", cwd=tmp_path)
    assert listed.stdout.count("tmp-") == 48
    assert max(map(len, listed.stdout.splitlines())) <= 80


def test_suite_validate_passes_on_the_shipped_suite(tmp_path):
    done = run("suite", "validate", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "keeps every rule" in done.stdout


def test_doctor_names_what_is_there_and_how_to_mend_what_is_not(tmp_path):
    done = run("doctor", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert re.search(r"ok +pango +\d", done.stdout)
    assert "fix: clinsafe report key" in done.stdout


def test_help_is_light_and_every_command_has_one(tmp_path):
    probe = "import sys, clinsafe.cli.app; print(sorted(m for m in sys.modules if '.' not in m))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    heavy = {"torch", "numpy", "scipy", "pydantic", "yaml", "jinja2", "sentence_transformers", "weasyprint",
             "pyhanko", "cryptography", "matplotlib", "rich", "rapidfuzz"}  # fmt: skip
    assert not heavy & set(eval(done.stdout))
    for command in (
        ("audit", "--help"),
        ("suite", "--help"),
        ("report", "verify", "--help"),
        ("doctor", "--help"),
    ):
        shown = inside(*command, cwd=tmp_path)
        assert shown.returncode == 0
        assert f"Usage: clinsafe {' '.join(command[:-1])}" in shown.stdout
    shown = run("--help", cwd=tmp_path)
    assert shown.returncode == 0
    assert "Usage: clinsafe" in shown.stdout or "Usage: python -m clinsafe" in shown.stdout
    assert run("--version", cwd=tmp_path).stdout.startswith("clinsafe 0.")


@pytest.mark.parametrize("no_colour", [True, False])
def test_no_colour_is_respected_on_a_terminal(tmp_path, no_colour):
    master, slave = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    environment |= {"TERM": "xterm-256color"} | ({"NO_COLOR": "1"} if no_colour else {})
    command = [sys.executable, "-m", "clinsafe", "suite", "paper38"]
    process = subprocess.Popen(
        command, stdout=slave, stderr=slave, stdin=slave, env=environment, cwd=tmp_path
    )
    os.close(slave)
    shown = b""
    with suppress(OSError):  # Linux says EIO when the other side has closed
        while block := os.read(master, 65536):
            shown += block
    os.close(master)
    assert process.wait(timeout=60) == 0
    assert bool(re.search(rb"\x1b\[[0-9;]*3[0-7]m", shown)) != no_colour


@pytest.mark.slow
def test_ctrl_c_during_the_real_model_resumes_with_the_same_command(tmp_path):
    command = [
        *INTERRUPTIBLE,
        "-m",
        "clinsafe",
        "audit",
        "-m",
        "minilm",
        "--offline",
        "--no-sign",
        "--batch-size",
        "4",
        "--content",
        str(write_few_clauses(tmp_path / "content")),
        *("--hazard", "negation"),
    ]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("runs/*/partial/*.npy")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "run the same command again to continue" in stderr
    assert "Traceback" not in stderr
    (folder,) = tmp_path.glob("runs/*")
    kept = len(list((folder / "partial").glob("*.npy")))
    assert 0 < kept < 4  # chunks of 64 for more than 192 texts
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240)
    assert again.returncode == 1, again.stderr
    assert list(tmp_path.glob("runs/*")) == [folder]
    assert (folder / "report.pdf").is_file()

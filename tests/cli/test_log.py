"""``clinsafe log``: what a safety officer and a script see, from opening a log to its attacks."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clinsafe.cli import sign
from clinsafe.cli.log import app
from clinsafe.errors import ClinsafeError, KeyFileError, UsageError
from clinsafe.oversight.jsonl import JsonlLog
from clinsafe.oversight.keys import default_file, load_key
from clinsafe.oversight.records import record_of
from clinsafe.oversight.sql import SqlLog
from clinsafe.reports.keys import default_folder, make_development_key
from tests.oversight.kit import NOON, answer, chained, decision


def run(*arguments, code=0):
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == code, done.output
    return done.output


def refused(*arguments):
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert isinstance(done.exception, ClinsafeError), done.output
    return done.exception


@pytest.fixture
def mine(signing_key, monkeypatch):
    """This user's signing key, opened without the quarter of a second that its passphrase takes, and trusted."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    default_folder().mkdir(parents=True, mode=0o700)
    certificate = x509.load_der_x509_certificate(signing_key.certificate)
    (default_folder() / "development.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    usual = sign.open_key
    monkeypatch.setattr(sign, "open_key", lambda path, *more: usual(path, *more) if path else signing_key)


@pytest.fixture
def log(tmp_path, mine):
    path = tmp_path / "log.jsonl"
    run("init", path)
    fill(path, 5)
    return path


def fill(path, n):
    writer = JsonlLog(path, load_key(default_file()), sync=False)
    for number in range(n):
        writer.append(decision(number))


def test_init_makes_the_key_once_and_the_log_once(tmp_path):
    with pytest.raises(KeyFileError):
        load_key(default_file())
    first = run("init", tmp_path / "a.jsonl")
    assert "made key" in first
    assert "keep a copy" in first
    assert stat.S_IMODE(default_file().stat().st_mode) == 0o600
    assert "with key" in run("init", tmp_path / "b.jsonl")
    assert isinstance(refused("init", tmp_path / "a.jsonl"), UsageError)
    for name in "ab":
        assert "intact" in run("verify", tmp_path / f"{name}.jsonl")


def test_an_intact_log_says_what_it_cannot_know(log):
    said = run("verify", log)
    assert said.splitlines()[-1] == "intact"
    assert "6 intact" in said
    assert "not known: without a checkpoint, a cut tail cannot be seen" in " ".join(said.split())


def test_an_altered_record_is_named_and_the_exit_code_is_1(log, tmp_path):
    log.write_bytes(log.read_bytes().replace(b'"n":2', b'"n":3', 1))
    out = tmp_path / "facts.json"
    said = run("verify", log, "--json", out, code=1)
    assert said.splitlines()[-1].startswith("ALTERED: record 4 (line 4): changed")
    facts = json.loads(out.read_text())
    assert facts["intact"] is False
    assert (facts["faults"][0]["record"], facts["faults"][0]["kind"], facts["records"]) == (4, "changed", 3)
    assert run("checkpoint", log, code=1).startswith("ALTERED, nothing signed")
    assert not Path(f"{log}.checkpoints").exists()


def test_a_checkpoint_covers_the_log_and_shows_a_cut_tail(log, tmp_path):
    said = run("checkpoint", log)
    assert "checkpoint of record 7 signed by DEVELOPMENT KEY - Test Author" in said
    fill(log, 3)
    out = tmp_path / "facts.json"
    said = " ".join(run("verify", log, "--json", out).split())
    assert "of record 7" in said
    assert "DEVELOPMENT key proves nothing" in said
    assert "more than the 3 that are here" in said
    facts = json.loads(out.read_text())
    assert facts["intact"] is True
    assert [one["record"] for one in facts["checkpoints"]] == [7]
    assert len(facts["not_known"]) == 2
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:7]))
    assert run("verify", log)  # behind the checkpoint: what "not known" said
    log.write_bytes(b"".join(lines[:6]))
    assert "record 7" in run("verify", log, code=1).splitlines()[-1]
    assert "truncated" in run("verify", log, "--checkpoint", only(log), code=1)
    assert run("verify", log, "--no-checkpoints")


def only(log):
    (path,) = Path(f"{log}.checkpoints").iterdir()
    return path


def test_a_log_written_anew_with_its_own_key_is_seen(log):
    run("checkpoint", log)
    key = load_key(default_file())
    log_id = next(JsonlLog(log, key).rows()).record["log_id"]
    log.write_bytes(b"".join(row.line.encode() + b"\n" for row in chained(9, key, log_id)))
    assert "rewritten" in run("verify", log, code=1)
    whole = chained(9, key, log_id)[-1]
    JsonlLog(log, key).append({"event": "checkpoint"})
    assert "rewritten" in run("verify", log, code=1)
    said = run("verify", log, "--no-checkpoints")  # the chain alone holds, and what was left out is said
    assert said.splitlines()[-1] == "intact"
    assert f"checkpoint of record {whole.seq + 1}, which was not compared" in " ".join(said.split())


@pytest.mark.parametrize("attack", ["taken away", "signature removed", "statement changed", "signed by a stranger",
                                    "older one in its place"])  # fmt: skip
def test_a_checkpoint_cannot_be_replaced(log, tmp_path, attack):
    run("checkpoint", log)
    older = only(log)
    fill(log, 2)
    run("checkpoint", log)
    newest = next(path for path in older.parent.iterdir() if path != older)
    found = json.loads(newest.read_text())
    if attack == "taken away":
        newest.unlink()
    elif attack == "older one in its place":
        shutil.copy(older, newest)
    elif attack == "signature removed":
        newest.write_text(json.dumps(found | {"signature": ""}))
    elif attack == "statement changed":
        found["statement"]["mac"] = "0" * 64
        newest.write_text(json.dumps(found))
    else:
        make_development_key(tmp_path / "strange", "Test Officer", b"x")
        (tmp_path / "pass").write_text("x")
        trusted = default_folder() / "development.pem"
        run("checkpoint", log, "--sign-key", tmp_path / "strange" / "development.p12", "--passphrase-file",
            tmp_path / "pass", "--trust", trusted, "--trust", tmp_path / "strange" / "development.pem")  # fmt: skip
    said = run("verify", log, code=1)
    assert "checkpoint invalid" in said or "checkpoint missing" in said


def test_checkpoints_can_lie_elsewhere(log, tmp_path):
    run("checkpoint", log, "--checkpoints", tmp_path / "disk")
    assert run("verify", log, "--checkpoints", tmp_path / "disk")
    said = run("verify", log, code=1)
    assert "none was given" in said
    assert said.splitlines()[-1].startswith("NOT COMPLETE: record 7")
    assert isinstance(refused("verify", log, "--checkpoints", tmp_path / "none"), UsageError)
    assert isinstance(refused("verify", log, "--checkpoint", tmp_path / "none.json"), UsageError)
    assert isinstance(refused("verify", log, "--no-checkpoints", "--checkpoints", tmp_path), UsageError)


def test_another_log_is_told_by_its_id(log, tmp_path):
    run("init", tmp_path / "other.jsonl")
    mine = run("verify", log).split("id ")[1].split()[0]
    assert run("verify", log, "--id", mine)
    assert "other log" in run("verify", tmp_path / "other.jsonl", "--id", mine, code=1)


def test_a_changed_key_is_found_beside_the_old_one(log, monkeypatch):
    new = default_file().with_name("log-2.key")
    assert "key changed" in run("rotate", "--to", new, log)
    assert run("verify", log)
    assert "resumed" in run("show", log)
    fill_error = refused("rotate", "--to", new, log)
    assert "log verify" in str(fill_error) or "used in this log" in str(fill_error)
    monkeypatch.setenv("CLINSAFE_LOG_KEY", str(new))
    run("checkpoint", log)
    assert run("verify", log)
    assert "wrong key" in run("verify", log, "--key", default_file(), code=1)
    assert "intact" in run("verify", log, "--key", new, "--key", default_file())


def test_a_torn_end_is_recovered(log):
    whole = log.read_bytes()
    log.write_bytes(whole[:-9])
    assert "unreadable" in run("verify", log, code=1)
    assert "torn end is at" in run("recover", log)
    assert run("verify", log)
    assert "nothing was torn" in run("recover", log)


def test_show_prints_decisions_and_marks_what_is_not_genuine(log):
    key = load_key(default_file())
    JsonlLog(log, key).append(record_of(answer(), digest=key.digest, now=NOON))
    said = run("show", log, "--last", 2)
    assert len(said.splitlines()) == 2
    assert "3 passages: 1 flag, 1 escalate, 1 withhold; review: escalated" in said
    assert json.loads(run("show", log, "--last", 1, "--full"))["record"]["event"] == "decision"
    log.write_bytes(log.read_bytes().replace(b"flag", b"keep", 1))
    assert "line 7: NOT GENUINE" in run("show", log)


def test_a_database_is_named_by_the_environment_or_a_file(tmp_path, mine, monkeypatch):
    url = f"sqlite:///{tmp_path}/log.db"
    monkeypatch.setenv("CLINSAFE_LOG_URL", url)
    run("init")
    base = SqlLog(url, load_key(default_file()))
    base.append(decision(1))
    base.close()
    assert "2 intact" in run("verify")
    (tmp_path / "url").write_text(url + "\n")
    assert "2 intact" in run("verify", f"url-file:{tmp_path}/url")
    monkeypatch.setenv("OTHER", url)
    assert "2 intact" in run("verify", "env:OTHER")
    assert "--checkpoints" in str(refused("checkpoint"))
    run("checkpoint", "--checkpoints", tmp_path / "points")
    assert run("verify", "--checkpoints", tmp_path / "points")
    assert "nothing to recover" in str(refused("recover"))


def test_an_address_on_the_command_line_is_refused_and_a_missing_one_told(log, tmp_path, monkeypatch):
    monkeypatch.delenv("CLINSAFE_LOG_URL", raising=False)
    said = refused("verify", "postgresql://user:s3cr3t@host/base")
    assert "command line" in str(said)
    assert "s3cr3t" not in str(said)
    monkeypatch.setenv("CLINSAFE_LOG_URL", "nonsense://user:s3cr3t@host")
    said = refused("verify")
    assert "s3cr3t" not in str(said)
    for place in ("env:NOT_SET", f"url-file:{tmp_path}/none", tmp_path / "none.jsonl"):
        assert isinstance(refused("verify", place), UsageError)

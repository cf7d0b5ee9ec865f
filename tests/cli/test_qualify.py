"""``clinsafe qualify`` as a command: exit codes, what it prints, what it refuses."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from clinsafe.cli.qualify import qualify
from clinsafe.errors import ClinsafeError, OutputExists, ReportError, UsageError
from clinsafe.reports import pdf
from clinsafe.workflows import qualify as workflow
from clinsafe.workflows.qualify_bench import Found


@pytest.fixture(autouse=True)
def _no_pdf(monkeypatch):
    monkeypatch.setattr(pdf, "render", lambda *_: b"%PDF-1.7 stand-in")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The command in an empty folder, with instruments that pass except those named."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments, failing=(), code=0):
        instruments = {
            check: (
                lambda _, bad=check in failing: (
                    Found("seen", "fail", "broken") if bad else Found("seen", "pass")
                )
            )
            for check in workflow.INSTRUMENTS
        }
        monkeypatch.setattr(workflow, "INSTRUMENTS", instruments)
        app = typer.Typer()
        app.command()(qualify)
        done = CliRunner().invoke(app, list(map(str, arguments)))
        if isinstance(done.exception, ClinsafeError):
            raise done.exception
        assert done.exit_code == code, done.output
        return done.output

    return call


def test_all_passed_is_zero_and_says_where_the_record_is(run, tmp_path):
    text = run("--out", "q", "--json", "facts.json")
    assert "QUALIFIED" in text
    assert "q/qualification.pdf" in text
    assert "unsigned" in text
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert facts["verdict"] == "QUALIFIED"
    assert set(facts["checks"].values()) == {"pass"}
    assert len(facts["record_sha256"]) == 64


def test_one_failed_check_is_one_and_is_named(run, tmp_path):
    text = run("--out", "q", "--json", "facts.json", failing=["OQ-05"], code=1)
    assert "NOT QUALIFIED, 1 deviation" in text
    assert "broken" in text
    assert json.loads((tmp_path / "facts.json").read_text())["checks"]["OQ-05"] == "fail"


def test_the_default_folder_is_a_new_one_each_time(run, tmp_path):
    run()
    run()
    assert len(list((tmp_path / "runs").glob("qualification-*/qualification.json"))) == 2


def test_a_taken_folder_and_a_missing_one_for_json_are_said_first(run, tmp_path):
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / "mine").touch()
    with pytest.raises(OutputExists):
        run("--out", "q")
    with pytest.raises(UsageError, match="make it first"):
        run("--json", "nowhere/facts.json")
    assert not (tmp_path / "runs").exists()


def test_trust_without_a_file_to_check_is_refused(run):
    with pytest.raises(UsageError, match="--check"):
        run("--trust", "some.pem")


def test_a_key_signs_and_check_says_so(run, tmp_path, monkeypatch):
    from clinsafe.reports.keys import make_development_key

    monkeypatch.setattr("clinsafe.reports.sign.sign_pdf", lambda document, *_, **__: document)
    key = make_development_key(tmp_path / "keys", "QA", b"secret words")
    (tmp_path / "words").write_text("secret words")
    (tmp_path / "words").chmod(0o600)
    text = run("--out", "q", "--key", key, "--passphrase-file", "words")
    assert "signed by DEVELOPMENT KEY - QA" in text
    assert "secret words" not in text
    record = tmp_path / "q" / "qualification.json"
    assert "VALID" in run("--check", record, "--trust", key.with_suffix(".pem"), "--json", "facts.json")
    assert json.loads((tmp_path / "facts.json").read_text())["recorded_verdict"] == "QUALIFIED"
    record.write_bytes(record.read_bytes().replace(b'"not stated"', b'"somebody"'))
    assert "INVALID" in run("--check", record, "--trust", key.with_suffix(".pem"), code=1)


def test_a_file_that_is_no_record_is_an_input_error(run, tmp_path):
    (tmp_path / "x.pdf").write_bytes(b"%PDF-1.7 nothing")
    for name in ("x.pdf", "not-there.pdf"):
        with pytest.raises(ReportError):
            run("--check", name)

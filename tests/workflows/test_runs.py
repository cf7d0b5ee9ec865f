"""Run folders: nothing is overwritten by accident, an interrupted run is found again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from clinsafe.errors import OutputExists
from clinsafe.workflows.runs import open_run

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _released():
    """Locks go with the process; here many runs share one."""
    yield
    while OPEN:
        OPEN.pop().close()


OPEN = []


def start(out: Path | None, fingerprint: str = "f", *, force: bool = False, base: Path = Path("runs")):
    run = open_run(out, model="org/My Model!", fingerprint=fingerprint, force=force, base=base, now=NOW)
    OPEN.append(run)
    return run


def test_the_default_folder_names_model_and_time(tmp_path):
    run = start(None, base=tmp_path)
    assert run.path == tmp_path / "my-model-20261130T120000Z"
    assert run.store.is_dir()


def test_an_unfinished_run_with_the_same_fingerprint_is_continued(tmp_path):
    first = start(None, base=tmp_path)
    first.close()
    again = start(None, base=tmp_path)
    assert again.path == first.path
    assert again.resumed
    assert again.started == first.started


def test_another_fingerprint_or_a_finished_run_starts_anew(tmp_path):
    first = start(None, base=tmp_path)
    other = start(None, "g", base=tmp_path)
    assert other.path != first.path
    first.finish()
    assert not first.store.exists()
    assert start(None, base=tmp_path).path not in (first.path, other.path)


def test_a_folder_that_holds_something_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(OutputExists, match="--force"):
        start(tmp_path)


def test_force_replaces_what_an_audit_wrote_and_nothing_else(tmp_path):
    run = start(tmp_path / "run")
    run.write("evidence.json", "old")
    run.finish()
    (run.path / "notes.txt").write_text("mine")
    again = start(run.path, force=True)
    assert (
        run.path / "evidence.json"
    ).read_text() == "old"  # until there is a new one, or the run is finished
    again.finish()
    assert (run.path / "notes.txt").read_text() == "mine"
    assert not (run.path / "evidence.json").exists()


def test_force_never_touches_a_folder_that_no_audit_made(tmp_path):
    (tmp_path / "partial").mkdir()
    (tmp_path / "partial" / "my.txt").write_text("mine")
    with pytest.raises(OutputExists):
        start(tmp_path, force=True)
    assert (tmp_path / "partial" / "my.txt").read_text() == "mine"


def test_two_audits_at_once_never_share_a_folder(tmp_path):
    first = start(None, base=tmp_path)
    second = start(None, base=tmp_path)  # the same command, while the first one runs
    assert second.path != first.path
    with pytest.raises(OutputExists, match="another audit is writing"):
        start(first.path)


def test_force_does_not_turn_a_file_into_a_folder(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(OutputExists):
        start(file, force=True)


def test_a_damaged_state_file_is_not_resumed(tmp_path):
    run = start(tmp_path / "run")
    (run.path / "run.json").write_text("{")
    with pytest.raises(OutputExists):
        start(tmp_path / "run")


def test_an_empty_folder_may_be_used(tmp_path):
    assert start(tmp_path).path == tmp_path

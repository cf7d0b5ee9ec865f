"""What commands print: prose fits 80 columns in a pipe, counts and zeros read right, Ctrl-C has a line."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
from pathlib import Path

import pytest

from clinsafe.checklist.script import Category, Side
from clinsafe.cli import audit, verdict
from clinsafe.cli.compare import points_text
from clinsafe.cli.console import counted, out, prose
from clinsafe.errors import ClinsafeError
from clinsafe.paired import Difference
from clinsafe.reports import pdf
from clinsafe.workflows.audit import run_audit
from tests.conftest import INTERRUPTIBLE

LONG = "the report could not be made because " + "a library of the system is not there and " * 4
PLACE = "/srv/" + "very-long-folder-name/" * 6 + "report.pdf"


@pytest.fixture
def audited(small_suite, tmp_path, monkeypatch):
    """One hazard of a fake, without a PDF."""
    monkeypatch.setattr(pdf, "render", lambda *_: b"%PDF-1.7 stand-in")
    return run_audit("fake:words", hazards=["negation"], overlay=small_suite, out=tmp_path / "run")


def test_prose_is_wrapped_between_words_and_no_path_is_cut(capsys):
    prose(out(), f"note: {LONG} see {PLACE} [bold]")
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert printed.split() == f"note: {LONG} see {PLACE} [bold]".split()
    assert max(len(line) for line in lines if PLACE not in line) <= 80


def test_notes_are_wrapped_and_the_lines_to_act_on_are_not(audited, capsys):
    verdict.show(dataclasses.replace(audited, notes=[LONG], html=Path(PLACE), pdf=None))
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"1 hazard held; report at {PLACE}"
    assert max(map(len, lines[:-1])) <= 80
    flat = " ".join(" ".join(lines).split())
    assert " ".join(LONG.split()) in flat
    assert "not released: entity_swap, hedging, numerical, quantifier, temporal not measured" in flat


def test_a_count_of_one_has_no_plural(audited, capsys):
    assert [counted(n, "hazard") for n in (0, 1, 2)] == ["0 hazards", "1 hazard", "2 hazards"]
    evidence = audited.evidence
    record = evidence.systems[0]
    lost = record.cases[0].model_copy(update={"scores": None, "not_measured": "the model failed"})
    for number, words in ((1, "1 case not measured"), (2, "2 cases not measured")):
        cases = [lost] * number + list(record.cases[number:])
        changed = evidence.model_copy(
            update={"systems": [record.model_copy(update={"cases": cases}), *evidence.systems[1:]]}
        )
        twice = dataclasses.replace(audited, evidence=changed)
        verdict.show(twice)
        assert words in capsys.readouterr().out


def test_what_rounds_to_nothing_has_no_minus():
    side = Side(-0.0001, 0, 3)
    assert verdict._cells(Category("negation", side, side, 3, 0)) == ["0.000", "0%"] * 2
    assert points_text(Difference(-0.001, -0.04, 0.0, 100, 1, 0, 1.0)) == "+0 [-4, +0]"


# ── Ctrl-C ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("place", ["clinsafe.workflows.audit.run_audit", "clinsafe.cli.sign.key_or_none"])
def test_ctrl_c_before_anything_is_computed_says_so(place, monkeypatch, tmp_path):
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(place, stop)
    with pytest.raises(ClinsafeError, match="stopped before anything was computed") as caught:
        audit.audit(["fake:words"])
    assert caught.value.exit_code == 130


def test_ctrl_c_in_a_real_process_is_one_line_and_130(tmp_path):
    """The settings file is a pipe that never ends: the process waits for it when the signal comes."""
    os.mkfifo(tmp_path / "settings.yaml")
    process = subprocess.Popen(
        [*INTERRUPTIBLE, "-m", "clinsafe", "audit", "--config", "settings.yaml"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with (tmp_path / "settings.yaml").open("w"):  # opens when the process has begun to read
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr.splitlines() == ["clinsafe: stopped before anything was computed"]
    assert stdout == ""
    assert [p.name for p in tmp_path.iterdir()] == ["settings.yaml"]

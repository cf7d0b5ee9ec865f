"""``clinsafe report export``: every table and the SOUP list, whole or not at all."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
import typer
from typer.testing import CliRunner

from clinsafe.cli.export import SOUP_FILE, contents, export
from clinsafe.errors import OutputExists, ReportError, UsageError
from clinsafe.reports.evidence import load
from clinsafe.reports.soup import SoupItem
from clinsafe.reports.tables import Table

GOLDEN = Path(__file__).parent.parent / "golden" / "evidence-1.json"
NAMES = {"risks.csv", "risks.md", "trace.csv", "trace.md"}


@pytest.fixture(autouse=True)
def _stand_ins(monkeypatch):
    """This is about the files, not about what stands in them."""
    module = ModuleType("clinsafe.reports.trace")
    module.tables = lambda evidence: [
        Table("trace", "Trace matrix", ("hazard", "≥"), (("negation", evidence.created),)),
        Table("risks", "Risks", ("a",), (("=1",),), "a note"),
    ]
    monkeypatch.setitem(sys.modules, "clinsafe.reports.trace", module)
    # Deriving every figure again takes seconds, and has tests of its own.
    monkeypatch.setattr("clinsafe.reports.differences.differences", lambda evidence: [])


def run(*arguments):
    """The command, on its own; errors are raised as they reach the one place that prints them."""
    app = typer.Typer()
    app.command()(export)
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_every_table_is_written_twice(tmp_path):
    done = run(GOLDEN, "--out", tmp_path / "new" / "out")
    out = tmp_path / "new" / "out"
    assert done.exit_code == 0
    assert names(out) >= NAMES
    data = (out / "trace.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbf")
    assert next(csv.reader(data.decode("utf-8-sig").splitlines())) == ["hazard", "≥"]
    assert (out / "risks.csv").read_bytes().endswith(b"a\r\n'=1\r\n")
    assert "Note: a note" in (out / "risks.md").read_text(encoding="utf-8")


def test_a_run_folder_will_do(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "evidence.json").write_bytes(GOLDEN.read_bytes())
    assert run(tmp_path / "run", "-o", tmp_path / "out").exit_code == 0
    assert names(tmp_path / "out") >= NAMES


def test_a_report_will_do(tmp_path, monkeypatch):
    from clinsafe.reports import pdfcheck

    monkeypatch.setattr(pdfcheck, "attachment", lambda data: GOLDEN.read_bytes())
    (tmp_path / "report.pdf").write_bytes(b"%PDF-1.7")
    assert run(tmp_path / "report.pdf", "-o", tmp_path / "out").exit_code == 0
    assert names(tmp_path / "out") >= NAMES


def test_the_soup_list_is_written_where_the_record_has_one(monkeypatch):
    class WithSoup:
        def __init__(self, soup):
            self.soup = soup

        def __getattr__(self, name):
            return getattr(record, name)

    record = load(GOLDEN)
    monkeypatch.setattr("clinsafe.reports.evidence.to_bytes", lambda evidence: b"{}")
    listed = json.loads(contents(WithSoup([SoupItem(name="numpy", kind="library")]))[SOUP_FILE])
    assert {c["name"] for c in listed["components"]} == {"numpy", *(s.identity.name for s in record.subjects)}
    assert set(contents(WithSoup([]))) == NAMES  # a list of nothing would say that there is nothing


def test_files_that_are_there_are_kept(tmp_path):
    (tmp_path / "trace.md").write_text("mine")
    (tmp_path / "other.txt").write_text("mine too")
    with pytest.raises(OutputExists, match=r"trace\.md.*--force"):
        run(GOLDEN, "-o", tmp_path)
    assert names(tmp_path) == {"trace.md", "other.txt"}
    assert (tmp_path / "trace.md").read_text() == "mine"
    run(GOLDEN, "-o", tmp_path, "--force")
    assert "Trace matrix" in (tmp_path / "trace.md").read_text(encoding="utf-8")
    assert (tmp_path / "other.txt").read_text() == "mine too"


def test_nothing_is_half_written(tmp_path):
    (tmp_path / "trace.md").mkdir()  # the last file cannot be written
    with pytest.raises(UsageError, match=r"trace\.md"):
        run(GOLDEN, "-o", tmp_path, "--force")
    assert all(path.stat().st_size for path in tmp_path.iterdir() if path.is_file())
    assert not [name for name in names(tmp_path) if name.endswith(".tmp")]


def test_a_record_that_does_not_add_up_is_not_exported(tmp_path, monkeypatch):
    fault = "bert: suite.all.auroc is missing"
    monkeypatch.setattr("clinsafe.reports.differences.differences", lambda evidence: [fault])
    with pytest.raises(ReportError, match=fault):
        run(GOLDEN, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("bad", ["missing.json", "text.json"])
def test_what_is_no_record_is_said(tmp_path, bad):
    (tmp_path / "text.json").write_text("hello")
    with pytest.raises(ReportError, match=bad):
        run(tmp_path / bad, "-o", tmp_path / "out")


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UsageError, match="folder"):
        run(GOLDEN, "-o", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"

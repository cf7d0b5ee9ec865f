"""``clinsafe rag reproduce``: what it prints and writes, and what it refuses in one line."""

from __future__ import annotations

import gzip
import json

import pytest
import typer
from typer.testing import CliRunner

from clinsafe.cli import rag_reproduce
from clinsafe.errors import ContentError, OutputExists, UsageError

for _name in ("usearch", "bm25s", "filelock"):
    pytest.importorskip(_name)

app = typer.Typer()
app.command()(rag_reproduce.reproduce)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Both data sets, five records each."""
    folder = tmp_path_factory.mktemp("data")
    pub = [
        {"id": f"{n}", "question": f"Does drug{n} help?", "contexts": [f"Drug{n} did not help in trial{n}."],
         "long_answer": f"drug{n} is of no use", "final_decision": "no" if n % 2 else "yes"}
        for n in range(5)
    ]  # fmt: skip
    med = [
        {"id": f"m{n}", "question": f"What is disease{n}?", "qtype": "information", "condition": f"c{n}",
         "focus": f"disease{n}", "answer": f"disease{n} is rare"}
        for n in range(5)
    ]  # fmt: skip
    for name, rows in (("pubmedqa_pqal", pub), ("medquad_ghr", med)):
        with gzip.open(folder / f"{name}.jsonl.gz", "wt") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in rows)
    return folder


@pytest.fixture
def fakes(monkeypatch):
    """Models without weights."""
    from clinsafe.adapters.reference import FakeEncoder

    monkeypatch.setattr(rag_reproduce, "_encoder", lambda spec, _offline: FakeEncoder("words"))


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


QUICK = ("-m", "fake:words", "--no-sign", "--no-pdf", "--no-filters", "--judge", "none", "--offline")


def test_it_prints_published_beside_measured_in_80_columns_and_writes_the_record(files, fakes, tmp_path):
    out, flat = tmp_path / "out", tmp_path / "table.json"
    done = run("ragx", "--data", files, "--out", out, "--json", flat, "--limit", 3, *QUICK)
    assert done.exit_code == 0, (done.output, done.exception)
    assert max(len(line) for line in done.output.splitlines() if str(tmp_path) not in line) <= 80
    for said in (
        "PubMedQA",
        "MedQuAD-GHR",
        "BM25 (paper)",
        "by source",
        "passages at random",
        "not possible",
        "Why figures",
    ):
        assert said in done.output
    record = json.loads((out / "report" / "rag.json").read_bytes())
    assert len(record["systems"]) == 8
    assert {len(system["items"]) for system in record["systems"]} == {3}
    table = json.loads(flat.read_text())
    assert len(table["published"]) == 14
    assert all(line["figures"]["hit"]["n"] == 3 for line in table["measured"])
    refused = run("ragx", "--data", files, "--out", out, *QUICK)
    assert isinstance(refused.exception, OutputExists)


@pytest.mark.parametrize(
    "arguments",
    [("cue",), ("ragx", "--dataset", "nih"), ("ragx", "-m", "a", "-m", "a"), ("ragx", "--judge", "openai:x")],
    ids=["paper", "data set", "model twice", "judge"],
)
def test_bad_input_is_one_line_and_exit_2(files, tmp_path, arguments):
    done = run(*arguments, "--data", files, "--out", tmp_path / "out")
    assert isinstance(done.exception, UsageError)
    assert done.exception.exit_code == 2
    assert "\n" not in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_data_that_are_not_there_or_not_what_they_should_be_are_refused(files, fakes, tmp_path, monkeypatch):
    monkeypatch.delenv("CLINSAFE_DATA", raising=False)
    assert isinstance(run("ragx").exception, UsageError)
    assert isinstance(run("ragx", "--data", tmp_path / "none").exception, UsageError)
    assert isinstance(run("ragx", "--data", tmp_path).exception, UsageError)
    (tmp_path / "pubmedqa_pqal.jsonl").write_text('{"id": "1", "question": 3}\n')
    done = run("ragx", "--dataset", "pubmedqa", "--data", tmp_path)
    assert isinstance(done.exception, (ContentError, UsageError))


def test_a_folder_of_something_else_is_left_alone(files, fakes, tmp_path):
    (tmp_path / "letter.txt").write_text("mine")
    done = run("ragx", "--data", files, "--out", tmp_path, *QUICK)
    assert isinstance(done.exception, OutputExists)
    assert [one.name for one in tmp_path.iterdir()] == ["letter.txt"]

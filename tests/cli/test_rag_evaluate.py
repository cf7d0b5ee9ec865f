"""``clinsafe rag evaluate``: what is printed and written, which flags fit, and what is refused in one line."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from clinsafe.cli.app import app
from clinsafe.errors import ClinsafeError
from tests.workflows.test_rag_evaluate import READERS, planted, trace, written

PLAIN = ["--model", "none", "--filter", "none", "--no-sign", "--no-pdf", "--offline"]
HUMANS = ["--judge", "recorded", "--graded-by", READERS]


def run(*arguments):
    return CliRunner().invoke(app, ["rag", "evaluate", *map(str, arguments)])


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    return written(tmp_path_factory.mktemp("traces") / "ward.jsonl", [*planted(), "{half\n"])


@pytest.fixture(scope="module")
def done(traces, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "out"
    return out, run(traces, *PLAIN, *HUMANS, "--out", out, "--json", out.parent / "flat.json")


def test_it_prints_what_matters_in_80_columns_and_writes_the_record(done):
    out, result = done
    assert result.exit_code == 0, result.output
    assert max(map(len, result.output.splitlines())) <= 80 + len(str(out))
    for words in ("100 questions", "1 line left out", "72/100", "54/100", "40/100", READERS):
        assert words in result.output
    record = json.loads((out / "rag.json").read_text())
    assert record["record"] == "clinsafe rag evaluation"
    assert record["judge"]["declared"] == READERS
    assert not (out / "partial").exists()
    assert (out / "rag.html").is_file()


def test_the_flat_mapping_holds_every_figure(done):
    out, _ = done
    flat = json.loads((out.parent / "flat.json").read_text())
    assert flat == json.loads((out / "rag.json").read_text())["systems"][0]["figures"]


def test_two_systems_stand_in_one_record_and_their_keys_apart(traces, tmp_path):
    other = written(tmp_path / "other.jsonl", planted())
    result = run(traces, other, *PLAIN, "--judge", "none", "--label", "a", "--label", "b b", "--out", tmp_path / "run",
                 "--json", tmp_path / "flat.json")  # fmt: skip
    assert result.exit_code == 0, result.output
    flat = json.loads((tmp_path / "flat.json").read_text())
    found = {key.rpartition("system=")[2].partition(",")[0] for key in flat}
    assert len(found) == 2
    assert all("system=" in key for key in flat)


def test_a_dry_run_counts_and_writes_nothing(traces, tmp_path):
    result = run(traces, *PLAIN, "--dry-run", "--out", tmp_path / "run")
    assert result.exit_code == 0
    assert "100 questions, 1 bad lines" in result.output
    assert not (tmp_path / "run").exists()


def test_a_dry_run_of_an_endpoint_counts_its_calls_and_asks_nobody(traces):
    result = run(
        traces, "--model", "none", "--judge", "openai:m", "--judge-url", "http://127.0.0.1:9/v1", "--dry-run"
    )
    assert result.exit_code == 0, result.output
    assert "calls of about" in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--format", "csv"], "csv"),
        (["--threshold", "cosine"], "NAME=VALUE"),
        (["--threshold", "cosine=2"], "cosine"),
        (["--threshold", "cosine=nan"], "cosine"),
        (["--normalise", "agess"], "agess"),
        (["--label", "a", "--label", "b"], "--label"),
        (["--graded-by", "me", "--judge", "local"], "--judge recorded"),
        (["--grader", "me", "--judge", "none"], "--judge recorded"),
        (["--judge", "oracle"], "oracle"),
        (["--judge", "openai:m"], "--judge-url"),
        (["--judge", "recorded", "--judge-audit", "judge.json"], "--judge-audit"),
    ],
)
def test_what_does_not_fit_is_one_line_that_says_what_would(traces, tmp_path, arguments, words):
    result = run(traces, *PLAIN, "--judge", "none", *arguments, "--out", tmp_path / "run")
    assert isinstance(result.exception, ClinsafeError)
    assert result.exception.exit_code == 2
    assert words in str(result.exception)
    assert "\n" not in str(result.exception)


def test_what_is_not_there_is_said(tmp_path):
    for path in (tmp_path / "none.jsonl", tmp_path):
        result = run(path, *PLAIN, "--judge", "none")
        assert isinstance(result.exception, ClinsafeError)
        assert str(path) in str(result.exception)


def test_a_taken_folder_is_kept(traces, done):
    out, _ = done
    before = (out / "rag.json").read_bytes()
    result = run(written(out.parent / "t.jsonl", [trace(0)]), *PLAIN, "--judge", "none", "--out", out)
    assert isinstance(result.exception, ClinsafeError)
    assert "--force" in str(result.exception)
    assert (out / "rag.json").read_bytes() == before


def test_two_runs_are_compared_and_what_got_worse_is_said(traces, done, tmp_path):
    out, _ = done
    rows = [row | {"retrieved": []} for row in planted()]
    later = tmp_path / "later"
    assert run(written(tmp_path / "ward.jsonl", rows), *PLAIN, *HUMANS, "--out", later).exit_code == 0
    result = CliRunner().invoke(app, ["compare", str(out), str(later)])
    assert result.exit_code == 1, result.output
    assert "WORSE" in result.output
    same = CliRunner().invoke(app, ["compare", str(out), str(out)])
    assert same.exit_code == 0, same.output


def test_questions_without_ids_are_not_paired_by_their_lines_unless_asked(tmp_path):
    rows = [
        {"question": f"Is it {n}?", "answer": "No.", "contexts": ["It is."], "reference": "it is"}
        for n in range(12)
    ]
    one, other = written(tmp_path / "a.jsonl", rows), written(tmp_path / "b.jsonl", rows[::-1])
    for path in (one, other):
        assert run(path, *PLAIN, "--judge", "none", "--out", tmp_path / path.stem).exit_code == 0
    pair = ["compare", str(tmp_path / "a"), str(tmp_path / "b")]
    refused = CliRunner().invoke(app, pair)
    assert "--by-line" in str(refused.exception)
    assert CliRunner().invoke(app, [*pair, "--by-line"]).exit_code == 0

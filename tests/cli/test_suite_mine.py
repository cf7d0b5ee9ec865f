"""`suite mine` and `suite review` as a user runs them, on a small corpus of real text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clinsafe.benchmarks.mined import load_mined
from clinsafe.benchmarks.ordinary import PUBMEDQA, rows
from clinsafe.cli.suite import app
from clinsafe.errors import UsageError
from clinsafe.text.parse import Parser
from tests.tiers import mined, write_mined

RUN = CliRunner()
LAYOUT = "id=id,text=contexts+long_answer"


@pytest.fixture(scope="module")
def corpus(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty abstracts, one broken line and one without text."""
    if Parser().pipeline() is None:
        pytest.skip("no English spaCy pipeline is installed")
    path = tmp_path_factory.mktemp("corpus") / "abstracts.jsonl"
    lines = [json.dumps(row) for row, _ in zip(rows(data / PUBMEDQA), range(60), strict=False)]
    path.write_text("\n".join([*lines[:30], "{broken", '{"id": "x", "contexts": []}', *lines[30:]]) + "\n")
    return path


def mine(out: Path, corpus: Path, *more: str) -> str:
    line = [
        "mine",
        "--out",
        str(out),
        "--corpus",
        str(corpus),
        "--layout",
        LAYOUT,
        "--licence",
        "MIT",
        "--workers",
        "1",
    ]
    done = RUN.invoke(app, [*line, "--dev", "3", "--test", "6", *more], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.slow
@pytest.mark.data
def test_a_corpus_of_ones_own_gives_a_suite_whatever_way_it_is_mined(corpus, tmp_path):
    said = mine(tmp_path / "one.jsonl", corpus)
    card, cases = load_mined(tmp_path / "one.jsonl")
    assert "INCONCLUSIVE" in said
    assert {case.hazard for case in cases} == set(card.counts)
    assert {case.tier for case in cases} == {"generated"}
    clusters = [(case.hazard, case.cluster) for case in cases]
    assert len(set(clusters)) == len(clusters)
    dev, test = ({case.cluster for case in cases if case.split == split} for split in ("dev", "test"))
    assert not dev & test
    assert card.sources[0].licence == "MIT"
    assert card.sources[0].documents == 60
    for shard in ("0/2", "1/2"):
        assert f"shard {shard} is done" in mine(
            tmp_path / "two.jsonl", corpus, "--work", str(tmp_path / "work"), "--shard", shard
        )
    mine(tmp_path / "two.jsonl", corpus, "--work", str(tmp_path / "work"))
    assert (tmp_path / "two.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()
    other = mine(tmp_path / "three.jsonl", corpus, "--work", str(tmp_path / "other"), "--seed", "5")
    assert "three.jsonl" in other
    assert (tmp_path / "three.jsonl").read_bytes() != (tmp_path / "one.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["mine", "--out", "x/y.jsonl"], "its folder is not there"),
        (["mine", "--hazard", "laterality", "--corpus", "x.jsonl"], "no hazard is called 'laterality'"),
        (["mine", "--shard", "2/2", "--corpus", "x.jsonl"], "give i/n"),
        (["review", "x.jsonl", "--reader", " "], "--reader is empty"),
        (["review", "x.jsonl", "--reader", "me"], "suite mine"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(arguments, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=told):
        RUN.invoke(app, arguments, catch_exceptions=False)


def test_the_recipe_says_where_it_looks_for_its_corpora(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CLINSAFE_DATA", raising=False)
    with pytest.raises(UsageError, match="--data or CLINSAFE_DATA"):
        RUN.invoke(app, ["mine"], catch_exceptions=False)
    with pytest.raises(UsageError, match=r"pubmedqa.*not there; it is PubMedQA"):
        RUN.invoke(app, ["mine", "--data", str(tmp_path)], catch_exceptions=False)


def test_a_person_reads_in_the_terminal_stops_and_goes_on(few, tmp_path):
    suite = write_mined(tmp_path, mined(few))
    line = ["review", str(suite), "--reader", "ward pharmacist", "--hazard", "negation", "-n", "2"]
    first = RUN.invoke(app, line, input="contradict\nnothing\nz\ns\nstop\n", catch_exceptions=False)
    assert first.exit_code == 0, first.output
    assert "0/0" in first.output
    kept = [json.loads(row) for row in (tmp_path / "mined.jsonl.answers.jsonl").read_text().splitlines()]
    assert [row["label"] for row in kept].count(None) == len(kept) - 2
    second = RUN.invoke(app, line, input="n\n" * 10, catch_exceptions=False)
    assert "1 of 4" in second.output
    assert "95 %" in second.output
    card, _ = load_mined(suite)
    assert card.reviews[-1].reader == "ward pharmacist"
    assert card.reviews[-1].hazards["negation"].read == 2


def test_a_sheet_can_be_filled_elsewhere(few, tmp_path):
    suite, sheet = write_mined(tmp_path, mined(few)), tmp_path / "sheet.jsonl"
    line = ["review", str(suite), "--reader", "me", "--answers", str(sheet)]
    RUN.invoke(app, [*line, "--sheet"], catch_exceptions=False)
    rows = [json.loads(row) | {"label": "nonsense"} for row in sheet.read_text().splitlines()]
    sheet.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = RUN.invoke(app, line, catch_exceptions=False)
    assert "is nonsense" in done.output
    assert all(one.accepted == 0 for one in load_mined(suite)[0].reviews[-1].hazards.values())


def test_another_reader_does_not_get_the_answers_of_the_first(few, tmp_path):
    suite = write_mined(tmp_path, mined(few))
    line = ["review", str(suite), "--hazard", "negation", "-n", "1", "--reader"]
    RUN.invoke(app, [*line, "first"], input="c\n" * 3, catch_exceptions=False)
    with pytest.raises(UsageError, match="answered by 'first', not by 'second'"):
        RUN.invoke(app, [*line, "second"], catch_exceptions=False)


def test_one_hazard_read_again_keeps_the_others(few, tmp_path):
    suite = write_mined(tmp_path, mined(few))
    for hazard in ("negation", "hedging"):
        line = ["review", str(suite), "--hazard", hazard, "-n", "1", "--reader", "me"]
        line += ["--answers", str(tmp_path / f"{hazard}.jsonl")]
        RUN.invoke(app, line, input="c\n" * 3, catch_exceptions=False)
    assert set(load_mined(suite)[0].reviews[-1].hazards) == {"negation", "hedging"}


@pytest.mark.parametrize("out", ["notes.jsonl", "folder/mined.jsonl", "other.txt"])
def test_nothing_of_the_users_is_written_over(tmp_path, monkeypatch, out):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in ("notes.jsonl", "other.txt", "folder/a.txt"):
        (tmp_path / name).write_text('{"id": "1", "text": "x"}')
    corpus = "folder" if out.startswith("folder") else "notes.jsonl"
    with pytest.raises(UsageError, match="name another --out"):
        RUN.invoke(app, ["mine", "--corpus", corpus, "--out", out], catch_exceptions=False)
    assert (tmp_path / "notes.jsonl").read_text() == '{"id": "1", "text": "x"}'
    with pytest.raises(UsageError, match="--licence"):
        RUN.invoke(app, ["mine", "--corpus", corpus, "--licence", ""], catch_exceptions=False)

"""``clinsafe guard bench``: figures with n, no text of the test split, and rows that a useless filter cannot win."""

from __future__ import annotations

import gzip
import json

import pytest
from typer.testing import CliRunner

from clinsafe.benchmarks.suite import load_suite
from clinsafe.cli.app import app
from clinsafe.content import Content
from clinsafe.errors import MissingDependency

ROWS = (
    ("c1", "negation", "There is a headache.", "There is no headache.", "conflict"),
    ("c2", "negation", "There is a headache.", "She has a headache.", "safe"),
    ("c3", "numerical", "Warfarin 5 mg daily.", "Warfarin 50 mg daily.", "conflict"),
    ("c4", "numerical", "Warfarin 5 mg daily.", "Warfarin 5 mg once daily.", "safe"),
)
CASES = [dict(zip(("id", "category", "query", "passage", "label"), row, strict=True)) for row in ROWS]


def run(*arguments):
    return CliRunner().invoke(app, ["guard", "bench", *map(str, arguments)])


@pytest.fixture
def cases(tmp_path):
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in CASES))
    return path


def measured(path):
    return {key: (row.get("k"), row["n"]) for key, row in json.loads(path.read_text()).items()}


def test_cases_of_a_user_are_measured_and_every_miss_and_alarm_is_listed(cases, tmp_path):
    out = tmp_path / "out.json"
    done = run("--cases", cases, "--json", out, "--no-baselines")
    assert done.exit_code == 0, done.output
    found = measured(out)
    assert found["cases.all.recall"] == (2, 2)
    assert found["cases.all.false_alarm"] == (0, 2)
    assert found["cases.numerical.recall"] == (1, 1)
    assert "without numerical" in done.output
    assert "2 conflicts, 2 cases without one" in done.output


@pytest.mark.parametrize(
    ("stack", "recall", "alarms"),
    [("disabled", (0, 2), (0, 2)), ("always", (2, 2), (2, 2)), ("never", (0, 2), (0, 2))],
)
def test_a_stack_that_looks_at_nothing_shows_it(cases, tmp_path, stack, recall, alarms):
    out = tmp_path / "out.json"
    done = run("--cases", cases, "--json", out, "--no-baselines", "--stack", stack)
    found = measured(out)
    assert (found["cases.all.recall"], found["cases.all.false_alarm"]) == (recall, alarms)
    assert ("MISS" in done.output) == (recall == (0, 2))
    assert ("ALARM" in done.output) == (alarms == (2, 2))


def test_the_suite_is_measured_by_split_and_no_word_of_the_test_split_is_shown(tmp_path, small_suite):
    out, listing = tmp_path / "out.json", tmp_path / "list.txt"
    done = run("--stack", "never", "--no-baselines", "--unrelated", 0, "--content", small_suite, "--json", out,
               "--list", listing)  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads(out.read_text())
    splits = {key.split("split=")[1].split(",")[0] for key in found if "split=" in key}
    assert splits <= {"dev", "test"}
    assert "not_measured" in found["guard.all.false_alarm.unrelated"]
    assert "not measured" in done.output
    shown = done.output + listing.read_text()
    cases = load_suite(Content(small_suite))
    for case in cases:
        assert case.id in shown
        words = " ".join(case.a.split()[:6])
        assert (words in shown) == (case.split == "dev"), case.id


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--stack", "best"), "no stack is called 'best'"),
        (("--split", "train"), "it is dev or test"),
        (("--cases", "missing.jsonl"), "no such file"),
        (("--data", "no/such/folder", "--stack", "never"), "no such folder"),
    ],
)
def test_bad_input_is_one_line(arguments, said):
    done = run(*arguments)
    assert said in str(done.exception)


@pytest.mark.data
def test_flags_on_ordinary_text_are_counted_by_filter(tmp_path, data):
    out = tmp_path / "out.json"
    done = run("--ordinary", 3, "--stack", "always", "--data", data, "--json", out)
    assert done.exit_code == 0, done.output
    k, n = measured(out)["ordinary.all.flagged"]
    assert k == n > 3


@pytest.mark.data
@pytest.mark.slow
def test_unrelated_pairs_and_the_naive_stack_on_real_text(tmp_path, data):
    out = tmp_path / "out.json"
    done = run("--split", "dev", "--unrelated", 40, "--data", data, "--json", out)
    assert done.exit_code == 0, done.output
    found = measured(out)
    assert found["guard.all.false_alarm.unrelated"][1] == 40
    assert found["guard.all.recall@split=dev"][1] == 104
    for row in ("naive", "disabled", "always", "never"):
        assert f"\n{row} " in done.output
    assert max(map(len, done.output.splitlines())) <= 80


@pytest.mark.data
def test_speed_is_reported_in_milliseconds_and_as_a_ratio(tmp_path, data, monkeypatch):
    monkeypatch.setattr("clinsafe.workflows.guard_speed.ROUNDS", 2)
    out = tmp_path / "out.json"
    done = run("--speed", "--stack", "never", "--data", data, "--json", out)
    assert done.exit_code == 0, done.output
    names = ("stored_ms", "stored_p99_ms", "unstored_ms", "spacy_ms", "ratio")
    assert set(json.loads(out.read_text())) == {f"guard_speed.all.{name}" for name in names}
    assert "2 queries" in done.output


def test_a_baseline_that_cannot_be_had_loses_nothing_that_was_measured(cases, tmp_path, monkeypatch):
    def missing():
        raise MissingDependency("the naive stack", "quantulum3", "pip install 'clinsafe[quantulum]'")

    monkeypatch.setattr("clinsafe.mitigations.naive.load_stack", missing)
    out = tmp_path / "out.json"
    done = run("--cases", cases, "--stack", "never", "--json", out)
    assert done.exit_code == 0, done.output
    assert "the naive stack: not measured" in " ".join(done.output.split())
    assert "\nalways " in done.output
    assert measured(out)["cases.all.recall"] == (0, 2)


def test_pairs_that_could_not_be_checked_are_said_and_counted_against_the_stack(cases, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError

    monkeypatch.setattr("clinsafe.mitigations.dummies.Constant.compare", fail)
    out = tmp_path / "out.json"
    done = run("--cases", cases, "--stack", "never", "--no-baselines", "--json", out)
    found = measured(out)
    assert found["cases.all.recall"] == (0, 2)
    assert found["cases.all.false_alarm"] == (2, 2)
    assert found["cases.all.unchecked"] == (4, 4)
    assert "4 of 4 pairs were not fully checked" in done.output


@pytest.mark.data
@pytest.mark.slow
def test_the_negex_kit_is_measured_with_both_engines(tmp_path, data):
    short = tmp_path / "kit.jsonl.gz"
    with gzip.open(data / "negex_annotations.jsonl.gz", "rt") as kit, gzip.open(short, "wt") as out:
        out.writelines(line for line, _ in zip(kit, range(300), strict=False))
    out = tmp_path / "out.json"
    done = run("--negex", short, "--json", out)
    assert done.exit_code == 0, done.output
    found = json.loads(out.read_text())
    ours, stock = found["negex.negation.f1_negated"], found["negex.negation.f1_negated@engine=negspacy"]
    assert ours["n"] == stock["n"] < 300
    assert ours["value"] > stock["value"]

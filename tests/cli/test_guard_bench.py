"""``clinsafe guard bench``: figures with n, no text of the test split, and rows that a useless filter cannot win."""

from __future__ import annotations

import gzip
import json
import re

import pytest
from typer.testing import CliRunner

from clinsafe.benchmarks.mined import load_mined
from clinsafe.benchmarks.suite import load_suite
from clinsafe.cli.app import app
from clinsafe.content import Content
from clinsafe.errors import MissingDependency
from clinsafe.protocols import Fact, Finding, Span
from tests.tiers import mined, write_mined

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


@pytest.fixture
def mined_file(few, tmp_path):
    return write_mined(tmp_path, mined(few))


def bench(path, *arguments):
    return run("--suite", path, "--no-baselines", "--unrelated", 0, *arguments)


def test_a_mined_suite_has_keys_of_its_own_and_says_its_tier_and_sources(mined_file, tmp_path):
    out, listing = tmp_path / "out.json", tmp_path / "list.txt"
    done = bench(mined_file, "--stack", "always", "--json", out, "--list", listing)
    assert done.exit_code == 0, done.output
    found = measured(out)
    assert {key.partition(".")[0] for key in found} == {"generated"}
    cases = load_mined(mined_file, split="test")[1]
    novel = [case for case in cases if case.novel]
    assert found["generated.all.recall@split=test"] == (len(cases), len(cases))
    assert found["generated.all.recall@split=test,novel=yes"] == (len(novel), len(novel))
    assert found["generated.negation.clusters@split=test"][1] == sum(c.hazard == "negation" for c in cases)
    assert "generated.negation.recall.plain_form@split=test" in found
    said = " ".join(done.output.split())
    assert "tier generated: mined.jsonl, Quads mined for a test, version mined-7" in said
    assert "PubMedQA, github.com/pubmedqa (MIT)" in said
    assert "Bounds hold for this tier's sampling frame, not your hospital" in said
    assert "Written suite" not in done.output
    assert max(map(len, done.output.splitlines())) <= 80


def test_of_mined_test_cases_only_ids_are_shown(mined_file, tmp_path):
    listing = tmp_path / "list.txt"
    done = bench(mined_file, "--stack", "never", "--list", listing)
    shown = done.output + listing.read_text()
    for case in load_mined(mined_file)[1]:
        assert f"{case.id} " in shown
        words = " ".join(case.a.split()[:6])
        assert (words in shown) == (case.split == "dev"), case.id


def test_both_tiers_stand_side_by_side_and_are_never_summed(mined_file, small_suite, tmp_path):
    out = tmp_path / "out.json"
    done = bench(
        mined_file, "--both", "--content", small_suite, "--stack", "never", "--json", out, "--split", "test"
    )
    assert done.exit_code == 0, done.output
    found = measured(out)
    n, m = len(load_suite(Content(small_suite), split="test")), len(load_mined(mined_file, split="test")[1])
    assert found["guard.all.recall@split=test"] == (0, n)
    assert found["generated.all.recall@split=test"] == (0, m)
    assert not re.search(rf"[ /]{n + m}\b", done.output)
    header = next(line for line in done.output.splitlines() if "written" in line and "generated" in line)
    assert header.split() == ["hazard", "n", "written", "n", "generated"]
    assert max(map(len, done.output.splitlines())) <= 80


@pytest.mark.parametrize("stack", ["always", "never", "disabled"])
def test_no_useless_stack_and_no_small_suite_passes_the_gates(stack, mined_file, tmp_path):
    out = tmp_path / "out.json"
    done = bench(mined_file, "--gate", "--stack", stack, "--json", out)
    assert done.exit_code == 1, done.output
    assert "INCONCLUSIVE" in done.output
    assert "test clusters, 400 are needed" in " ".join(done.output.split())
    assert "PASS" not in done.output
    assert out.is_file()
    assert max(map(len, done.output.splitlines())) <= 80


def small_gates(text):
    """Limits that three cases a hazard can meet."""
    for strict, easy in (
        ("clusters: 400", "clusters: 1"),
        ("at_least: 0.90", "at_least: 0.01"),
        ("at_most: 0.05", "at_most: 0.99"),
        ("at_most: 0.01, fewest: 1000", "at_most: 0.99, fewest: 1"),
    ):
        assert strict in text
        text = text.replace(strict, easy)
    return text


@pytest.fixture
def text_data(tmp_path):
    """Data files of a few texts."""
    folder = tmp_path / "data"
    folder.mkdir()
    says = [f"Text number {n} says something of its own. It is about {n}." for n in range(40)]
    articles = [{"id": f"p{n}", "contexts": [text]} for n, text in enumerate(says[:20])]
    answers = [{"condition": f"c{n}", "answer": text} for n, text in enumerate(says[20:])]
    rows = {"pubmedqa_pqal.jsonl.gz": articles, "medquad_ghr.jsonl.gz": answers}
    for name, lines in rows.items():
        with gzip.open(folder / name, "wt") as stream:
            stream.writelines(json.dumps(line) + "\n" for line in lines)
    return folder


class Knowing:
    """A filter of one hazard that knows the pairs that conflict; both sides are told apart by their text."""

    def __init__(self, hazard, pairs):
        self.hazard, self.pairs = hazard, pairs

    def read(self, reading, /):
        return [Fact(self.hazard, Span(0, 1), {"text": reading.text})]

    def compare(self, query, passage, /):
        if (query[0].normal["text"], passage[0].normal["text"]) not in self.pairs:
            return []
        span = Span(0, 1)
        return [
            Finding(self.hazard, "conflict", "contradiction", "high", 1.0, span, span, "x", "y", "", "r", "s")
        ]


def test_a_stack_that_knows_passes_and_one_miss_too_many_holds(
    mined_file, overlay, text_data, tmp_path, monkeypatch
):
    from clinsafe.mitigations.stack import Stack
    from clinsafe.text import Reader

    cases = load_mined(mined_file)[1]
    pairs = {pair for c in cases for pair in ((c.a, c.b), (c.b, c.a))}

    def stack(known):
        filters = {h: Knowing(h, known) for h in dict.fromkeys(c.hazard for c in cases)}
        return lambda *_, **__: Stack(filters, Reader(Content(), ""), 10.0)

    root = overlay("checklist/gates.yaml", small_gates)
    arguments = ("--suite", mined_file, "--gate", "--no-baselines", "--content", root, "--data", text_data)
    out = tmp_path / "out.json"
    monkeypatch.setattr("clinsafe.workflows.guard_bench.build_stack", stack(pairs))
    done = run(*arguments, "--unrelated", 15, "--json", out)
    assert done.exit_code == 0, done.output
    assert done.output.count(" PASS") == 6
    assert measured(out)["generated.negation.false_alarm.unrelated"] == (0, 15)
    assert measured(out)["generated.all.false_alarm.unrelated"] == (0, 15)
    monkeypatch.setattr("clinsafe.workflows.guard_bench.build_stack", stack(set()))
    assert run(*arguments, "--unrelated", 15).exit_code == 1


def test_a_wish_for_more_unrelated_pairs_than_there_are_says_how_many(text_data, mined_file):
    done = run(
        "--suite", mined_file, "--no-baselines", "--stack", "never", "--unrelated", 500, "--data", text_data
    )
    assert done.exit_code == 0, done.output
    assert "500 unrelated pairs were asked for; the data yield 20" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--both",), "name that with --suite"),
        (("--gate", "--split", "dev"), "leave --split dev out"),
        (("--suite", "missing.jsonl"), "no such file"),
    ],
)
def test_options_that_do_not_go_together_are_one_line(arguments, said):
    assert said in str(run("--stack", "never", *arguments).exception)


def test_the_written_suite_is_gated_too_and_too_small(small_suite):
    done = run("--gate", "--stack", "never", "--no-baselines", "--unrelated", 0, "--content", small_suite)
    assert done.exit_code == 1
    assert "Written suite: gates" in done.output
    assert "tier written" in done.output

"""What filters are worth: every figure against a count made by hand."""

from __future__ import annotations

import gzip
import hashlib
import json

import pytest

from clinsafe.benchmarks.filter_cases import load_cases
from clinsafe.benchmarks.filters import Outcome, Pair, figures, judge_all, suite_pairs
from clinsafe.benchmarks.negex_kit import load_kit, negex_figures
from clinsafe.errors import ContentError, UsageError
from clinsafe.protocols import MetricKey
from clinsafe.stats import NotMeasured


def outcome(case, role, hazard="negation", subtype="plain_not", split="test", **said):
    return Outcome(Pair(case, hazard, subtype, split, role, "q", "p"), said)


OUTCOMES = [
    # The first case is caught by its own filter, and a paraphrase raises an alarm
    outcome("1", "conflict", negation=True, numerical=False),
    outcome("1", "reverse", negation=False, numerical=False),
    outcome("1", "same_a", negation=False, numerical=False),
    outcome("1", "same_b", negation=False, numerical=True),
    # The second is missed by negation, caught by another filter
    outcome("2", "conflict", subtype="resolved", negation=False, numerical=True),
    outcome("2", "reverse", subtype="resolved", negation=True, numerical=False),
    outcome("2", "same_a", subtype="resolved", negation=False, numerical=False),
    outcome("2", "same_b", subtype="resolved", negation=False, numerical=False),
    # In the third a filter failed, on the conflict and on a paraphrase
    outcome("3", "conflict", hazard="numerical", subtype="tenfold", negation=False, numerical=None),
    outcome("3", "reverse", hazard="numerical", subtype="tenfold", negation=False, numerical=True),
    outcome("3", "same_a", hazard="numerical", subtype="tenfold", negation=False, numerical=None),
    outcome("3", "same_b", hazard="numerical", subtype="tenfold", negation=False, numerical=False),
    # another split is counted by itself
    outcome("4", "conflict", split="dev", negation=True, numerical=False),
    outcome("4", "same_a", split="dev", negation=False, numerical=False),
]


@pytest.mark.parametrize(
    ("key", "names", "k", "n"),
    [
        ("g.all.recall@split=test", None, 2, 3),
        ("g.negation.recall@split=test", None, 2, 2),
        ("g.negation.own_recall@split=test", None, 1, 2),
        ("g.negation.recall.resolved@split=test", None, 1, 1),
        ("g.numerical.recall@split=test", None, 0, 1),  # unchecked is not caught
        ("g.all.recall_reverse@split=test", None, 2, 3),
        ("g.all.false_alarm@split=test", None, 2, 3),  # by case; unchecked counts
        ("g.negation.false_alarm@split=test", None, 1, 2),
        ("g.all.unchecked@split=test", None, 2, 12),
        ("g.all.recall@split=dev", None, 1, 1),
        ("g.all.recall@split=test", ["negation"], 1, 3),
        ("g.all.false_alarm@split=test", ["negation"], 0, 3),
        ("g.all.recall@split=test", [], 0, 3),
    ],
)
def test_recall_and_false_alarms_are_what_a_hand_counts(key, names, k, n):
    figure = figures(OUTCOMES, "g", names)[key]
    assert (figure.k, figure.n) == (k, n)
    assert "Clopper-Pearson" in figure.method


def test_every_pair_is_judged_once_and_in_order():
    seen = []

    def judge(query, passage):
        seen.append((query, passage))
        return {"f": True}, ("because",)

    pairs = [Pair(str(n), "negation", "", "", "safe", f"q{n}", f"p{n}") for n in range(3)]
    steps = []
    found = judge_all(pairs, judge, lambda *step: steps.append(step[1:]))
    assert seen == [("q0", "p0"), ("q1", "p1"), ("q2", "p2")]
    assert [(one.alarmed(), one.why) for one in found] == [(True, ("because",))] * 3
    assert steps == [(1, 3), (2, 3), (3, 3)]


GOOD = {
    "id": "x",
    "category": "negation",
    "query": "q",
    "passage": "p",
    "label": "conflict",
    "note": "left alone",
}


def written(tmp_path, *rows):
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


def test_cases_of_a_user_are_read(tmp_path):
    (pair, safe) = load_cases(written(tmp_path, GOOD, {**GOOD, "id": "y", "label": "safe"}))
    assert pair.conflicting
    assert not safe.conflicting
    assert (pair.case, pair.hazard, pair.query) == ("x", "negation", "q")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({**GOOD, "label": "maybe"}, r"cases\.jsonl:2: label: .*'conflict' or 'safe'"),
        ({**GOOD, "query": ""}, r"cases\.jsonl:2: query"),
        ({k: v for k, v in GOOD.items() if k != "passage"}, r"cases\.jsonl:2: passage"),
        (GOOD, r"cases\.jsonl:2: id: 'x' is given twice"),
        ("not json", r"cases\.jsonl:2: not a JSON object"),
    ],
)
def test_a_broken_case_is_told_by_file_line_and_field(tmp_path, row, said):
    with pytest.raises(ContentError, match=said):
        load_cases(written(tmp_path, GOOD, row))


def test_a_missing_file_of_cases_is_one_line(tmp_path):
    with pytest.raises(UsageError, match="no such file"):
        load_cases(tmp_path / "none.jsonl")


def kit(tmp_path, rows):
    path = tmp_path / "kit.jsonl.gz"
    with gzip.open(path, "wt") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def test_the_negex_kit_is_split_by_hash_and_scored_by_hand(tmp_path):
    rows = [
        {"id": f"n-{n}", "concept": "x", "sentence": s, "negation": "negated" if "no" in s else "affirmed"}
        for n, s in enumerate(["no x", "no x", "no x", "x", "x", "x"])
    ]
    read = load_kit(kit(tmp_path, rows))
    for row in read:
        assert row.claim == (int(hashlib.sha256(row.id.encode()).hexdigest(), 16) % 3 != 0)
    answers = iter([True, True, False, True, None, False])
    found = negex_figures(read, lambda *_: next(answers), "engine=e")
    assert (found["negex.negation.precision@engine=e"].k, found["negex.negation.precision@engine=e"].n) == (
        2,
        3,
    )
    assert (found["negex.negation.recall@engine=e"].k, found["negex.negation.recall@engine=e"].n) == (2, 3)
    assert found["negex.negation.f1_negated@engine=e"].value == pytest.approx(2 / 3)
    assert found["negex.negation.not_found@engine=e"].k == 1


def test_a_judge_that_negates_nothing_or_everything_scores_low(tmp_path):
    row = {"concept": "x", "sentence": "s"}
    rows = [{**row, "id": str(n), "negation": "negated" if n < 2 else "affirmed"} for n in range(10)]
    read = load_kit(kit(tmp_path, rows))

    def f1(part, answer):
        return negex_figures(part, lambda *_: answer)["negex.negation.f1_negated"]

    assert f1(read, False).value == 0
    assert f1(read, True).value == pytest.approx(4 / 12)
    assert isinstance(f1([], True), NotMeasured)


def test_what_is_no_kit_is_one_line(tmp_path):
    with pytest.raises(ContentError, match="needs id, concept, sentence and negation"):
        load_kit(kit(tmp_path, [{"id": "1"}]))
    (tmp_path / "plain.gz").write_text("not gzip")
    with pytest.raises(ContentError, match="not a gzipped"):
        load_kit(tmp_path / "plain.gz")


def generated(case, role, novel, family, cluster, said):
    return Outcome(
        Pair(case, "negation", "x", "test", role, "q", "p", cluster, family, novel), {"negation": said}
    )


MINED = [
    generated("1", "conflict", True, "neg-void-of", "doc1", True),
    generated("1", "same_a", True, "neg-void-of", "doc1", True),
    generated("2", "conflict", True, "neg-void-of", "doc2", False),
    generated("2", "same_a", True, "neg-void-of", "doc2", False),
    generated("3", "conflict", False, "neg-not", "doc2", True),
    generated("3", "same_a", False, "neg-not", "doc2", False),
]


@pytest.mark.parametrize(
    ("key", "k", "n"),
    [
        ("generated.negation.recall@split=test", 2, 3),
        ("generated.negation.recall@split=test,novel=yes", 1, 2),
        ("generated.negation.recall@split=test,novel=no", 1, 1),
        ("generated.all.recall@split=test,novel=yes", 1, 2),
        ("generated.negation.false_alarm@split=test,novel=yes", 1, 2),
        ("generated.negation.false_alarm@split=test,novel=no", 0, 1),
        ("generated.negation.recall@split=test,family=neg-void-of", 1, 2),
        ("generated.negation.false_alarm@split=test,family=neg-not", 0, 1),
    ],
)
def test_mined_cases_are_counted_by_novelty_and_family(key, k, n):
    figure = figures(MINED, "generated")[key]
    assert (figure.k, figure.n) == (k, n)


def test_sources_are_counted_once_and_every_key_is_one():
    found = figures(MINED, "generated")
    assert found["generated.negation.clusters@split=test"].value == 2  # three cases
    for key in found:
        assert str(MetricKey.parse(key)) == key
    assert not any("novel" in key or "family" in key or "clusters" in key for key in figures(OUTCOMES, "g"))


@pytest.mark.parametrize(
    ("slug", "name"), [("drug-drug", "drug_drug"), ("5mg-dose", "n5mg_dose"), ("plain_not", "plain_not")]
)
def test_a_subtype_fits_the_grammar_of_keys(few, slug, name):
    case = few[0].model_copy(update={"subtype": slug})
    pairs = suite_pairs([case])
    assert {pair.subtype for pair in pairs} == {name}
    assert {pair.cluster for pair in pairs} == {case.cluster}
    assert MetricKey.parse(f"generated.negation.recall.{name}@split=test").subtype == name

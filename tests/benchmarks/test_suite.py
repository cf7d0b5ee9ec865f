"""The shipped suite keeps its card's promises, and a validator that is broken would not notice what ours does."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from clinsafe.adapters.lexical import TokenJaccard
from clinsafe.benchmarks.page import pages
from clinsafe.benchmarks.paper38 import load_paper38
from clinsafe.benchmarks.second_reader import kappa, pair_hash
from clinsafe.benchmarks.suite import SENTENCES, by_hazard, edit_distance, load_card, load_suite, split_hash
from clinsafe.benchmarks.validate import validate
from clinsafe.checklist.hazards import load_hazards
from clinsafe.content import Content
from clinsafe.errors import ContentError, UsageError

ROOT = Path(__file__).parents[2]
FOLDER = "benchmarks/clinsafeembed"


def test_the_shipped_suite_keeps_every_rule():
    assert validate(Content(), TokenJaccard()).problems == []


def test_counts_are_those_of_the_design(suite):
    assert Counter(c.hazard for c in suite) == {
        "negation": 56, "numerical": 52, "temporal": 48, "entity_swap": 54, "hedging": 50, "quantifier": 52,
    }  # fmt: skip
    assert len({c.specialty for c in suite}) >= 15
    assert Counter(c.factor for c in suite)[10] >= 14
    assert Counter(c.factor for c in suite)[100] >= 8


def test_the_frozen_split_is_one_third_dev(suite):
    assert split_hash(suite, "test") == load_card(Content()).test_split_sha256
    for group in by_hazard(suite).values():
        assert sum(c.split == "dev" for c in group) == round(len(group) / 3)


def rewrite(overlay, hazard: str, change):
    """An overlay in which one hazard's cases were changed."""

    def edit(text: str) -> str:
        rows = [json.loads(line) for line in text.splitlines()]
        change(rows)
        return "\n".join(json.dumps(r, ensure_ascii=False) for r in rows) + "\n"

    return Content(overlay(f"{FOLDER}/{hazard}.jsonl", edit))


def drop_one(rows):
    rows.pop()


def swap_split(rows):
    for row in rows:
        row["split"] = {"dev": "test", "test": "dev"}[row["split"]]


def reword_a_test_sentence(rows):
    row = next(r for r in rows if r["split"] == "test")
    row["b_same"] = row["b_same"].rstrip(".") + ", as noted."


def unknown_specialty(rows):
    rows[0]["specialty"] = "astrology"


def unknown_genre(rows):
    rows[0]["genre"] = "poem"


def a_factor_where_none_belongs(rows):
    rows[0]["factor"] = 10.0


def a_template_mill(rows):
    rows[1]["a"] = rows[0]["a"] + " Again."


def the_same_sentence_twice(rows):
    rows[1]["a_same"] = rows[0]["a_same"].upper()


def only_small_edits_contradict(rows):
    for row in rows:
        row["b"] = row["a"] + " Not"


def lazy_paraphrases(rows):
    for row in rows:
        row["a_same"] = row["a"].rsplit(" ", 1)[0] + " indeed"


def obvious_from_the_words(rows):
    for row in rows:
        row["a_same"], row["b_same"] = row["a"] + " Yes", row["b"] + " Yes"


BREAKS = [
    (drop_one, "has 7 cases, the card says 8"),
    (swap_split, "dev cases of 56"),
    (reword_a_test_sentence, "not the frozen one"),
    (reword_a_test_sentence, "changed since the second reader"),
    (unknown_specialty, "'astrology' is not on the card"),
    (unknown_genre, "'poem' is not on the card"),
    (a_factor_where_none_belongs, "factor belongs to numerical"),
    (a_template_mill, "lemma Jaccard"),
    (the_same_sentence_twice, "the same sentence as"),
    (only_small_edits_contradict, "balanced"),
    (lazy_paraphrases, "single-word swap"),
    (obvious_from_the_words, "word overlap has AUROC"),
]


@pytest.mark.parametrize(("change", "words"), BREAKS, ids=[f"{c.__name__}: {w}" for c, w in BREAKS])
def test_every_broken_rule_is_named(overlay, change, words):
    problems = validate(rewrite(overlay, "negation", change), TokenJaccard()).problems
    assert any(words in problem for problem in problems), problems[:5]


def test_a_second_reader_who_disagrees_is_heard(overlay):
    def disagree(text: str) -> str:
        rows = [json.loads(line) for line in text.splitlines()]
        for row in rows[:30]:
            row["label"] = "neither"
        return "\n".join(map(json.dumps, rows)) + "\n"

    result = validate(Content(overlay(f"{FOLDER}/second_reader.jsonl", disagree)), TokenJaccard())
    assert len(result.problems) == 30
    assert "agreement 906/936" in dict(result.facts)["second reader, blind"]


@pytest.mark.parametrize("answer", ["contradiction", "same", "neither"])
def test_a_reader_who_always_says_the_same_has_no_kappa(overlay, answer):
    def always(text: str) -> str:
        rows = [json.loads(line) | {"label": answer} for line in text.splitlines()]
        return "\n".join(map(json.dumps, rows)) + "\n"

    result = validate(Content(overlay(f"{FOLDER}/second_reader.jsonl", always)), TokenJaccard())
    assert "κ = 0.000" in dict(result.facts)["second reader, blind"]
    assert result.problems


def test_kappa_by_hand():
    """Cohen's own example: observed 0.7, expected 0.5, kappa 0.4."""
    assert kappa(Counter({("y", "y"): 20, ("y", "n"): 5, ("n", "y"): 10, ("n", "n"): 15})) == pytest.approx(
        0.4
    )


def test_edit_distance_counts_words():
    assert edit_distance("No fever today", "no Fever, today.") == 0
    assert edit_distance("has fever", "has no fever") == 1


def test_four_sentences_must_differ(overlay):
    def copy(rows):
        rows[0]["b_same"] = rows[0]["b"]

    with pytest.raises(ContentError, match="must all differ"):
        load_suite(rewrite(overlay, "negation", copy))


def test_pages_for_clinicians_are_up_to_date_and_complete(suite):
    content = Content()
    made = pages(content, {h.id: h for h in load_hazards(content)})
    for name, text in made.items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, (
            f"run: clinsafe suite page ({name})"
        )
    everything = "\n".join(made.values())
    for case in suite:
        assert all(getattr(case, name) in everything for name in SENTENCES)
        assert pair_hash(case, "a|b") != pair_hash(case, "a|a_same")
    assert len(made["suite.md"].split()) < 2900  # about ten minutes for somebody who knows the words


def test_paper38_is_the_papers_and_says_what_is_wrong():
    found = load_paper38(Content())
    assert Counter(p.hazard for p in found) == {
        "negation": 7, "numerical": 7, "temporal": 6, "entity_swap": 6, "hedging": 6, "quantifier": 6,
    }  # fmt: skip
    assert all(p.remark for p in found if not p.contradiction)
    assert sum(not p.contradiction for p in found) == 7


def test_minilm_gives_the_papers_pairs_the_means_that_were_measured_before(minilm):
    """An independent measurement of the same weights (mean cosine per hazard, three decimals)."""
    expected = {"negation": 0.894, "numerical": 0.880, "temporal": 0.780, "entity_swap": 0.886,
                "hedging": 0.842, "quantifier": 0.887}  # fmt: skip
    for hazard, value in expected.items():
        found = [p for p in load_paper38(Content()) if p.hazard == hazard]
        left, right = minilm.encode([p.a for p in found]), minilm.encode([p.b for p in found])
        assert (left * right).sum(1).mean() == pytest.approx(value, abs=6e-4)


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        ({"hazards": []}, "empty list"),
        ({"hazards": ()}, "empty list"),
        ({"hazards": "negation"}, "'negation'"),
        ({"hazards": [""]}, "no hazard is called ''"),
        ({"split": ""}, "dev, test"),
    ],
)
def test_a_selection_that_selects_nothing_is_refused_and_never_means_all(suite, selection, words):
    with pytest.raises(UsageError, match=words) as caught:
        load_suite(Content(), **selection)
    if "hazards" in selection:
        assert "negation, numerical" in str(caught.value)
    assert load_suite(Content(), hazards=None) == suite

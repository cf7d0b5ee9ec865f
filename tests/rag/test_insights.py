"""Table IV from rules: the paper's case reads as in the paper, and nothing fires that its interval does not prove."""

from __future__ import annotations

import pytest

from clinsafe.content import Content, packaged_root
from clinsafe.errors import ContentError
from clinsafe.rag.insights import FILE, Rule, insights, load_rules
from clinsafe.rag.metrics import METRICS
from clinsafe.stats import Estimate, NotMeasured, mean, rate_of

RULES = load_rules(Content())
# Adherence of 59 answers with the paper's mean of 0.84, and its ten low ones.
ADHERENCE = [0.97] * 49 + [0.2] * 10
TABLE_IV = {
    "cue.all.effective_use": rate_of(29, 59), "cue.all.lucky_guess": rate_of(20, 59),
    "cue.all.information_blindness": rate_of(5, 59), "cue.all.correct_rejection": rate_of(5, 59),
    "retrieval.all.redundancy.r1_2": rate_of(13, 59), "retrieval.all.exclusive_hit.r2": rate_of(4, 59),
    "generation.all.adherence": mean(ADHERENCE),
}  # fmt: skip


def rows(figures, rules=RULES):
    return {row.key: row for row in insights(figures, rules)}


@pytest.mark.parametrize(
    ("key", "value", "interpretation", "insight"),
    [
        (
            "cue.all.effective_use",
            "49.2 %",
            "only truly grounded success",
            "49.2 % of the answers rest on evidence",
        ),
        ("cue.all.lucky_guess", "33.9 %", "without evidence support", "retriever coverage"),
        ("cue.all.information_blindness", "8.5 %", "the generator missed the answer", "generation prompt"),
        ("retrieval.all.redundancy.r1_2", "22.0 %", "Significant overlap between the top ranks", "MMR"),
        (
            "retrieval.all.exclusive_hit.r2",
            "6.8 %",
            "rarely provides unique information",
            "diverse re-ranking",
        ),
        ("generation.all.adherence", "0.84", "highly faithful to the context", "No action"),
    ],
)
def test_the_papers_figures_have_the_papers_interpretation(key, value, interpretation, insight):
    row = rows(TABLE_IV)[key]
    assert row.state == "found"
    assert row.value == value
    assert interpretation in row.interpretation
    assert insight in row.insight
    assert row.figure is TABLE_IV[key]


def test_lucky_guesses_weigh_more_than_blindness():
    found = rows(TABLE_IV)
    assert found["cue.all.lucky_guess"].severity == "danger"
    assert found["cue.all.information_blindness"].severity == "warning"
    assert found["generation.all.adherence"].severity == "good"


def test_a_good_system_has_no_warning():
    good = {
        "cue.all.effective_use": rate_of(590, 600), "cue.all.lucky_guess": rate_of(2, 600),
        "cue.all.information_blindness": rate_of(3, 600), "retrieval.all.redundancy.r1_2": rate_of(9, 600),
        "retrieval.all.dangerous.any": rate_of(0, 600), "generation.negation.contradicts": rate_of(0, 600),
    }  # fmt: skip
    found = rows(good)
    assert {found[key].severity for key in good} == {"good"}
    assert {found[key].state for key in good} == {"found"}


@pytest.mark.parametrize("figure", [rate_of(0, 59), rate_of(1, 59), rate_of(1, 1), rate_of(0, 1)])
def test_a_value_on_one_side_with_an_interval_across_the_limit_is_inconclusive(figure):
    """0 of 59 lies under 1 %, and 5 % is still possible."""
    for key in ("retrieval.all.dangerous.any", "generation.negation.contradicts"):
        row = rows({key: figure})[key]
        if figure.lower >= 0.01:  # 1 of 1 does prove one percent
            assert row.state == "found"
            continue
        assert row.state == "inconclusive"
        assert "INCONCLUSIVE" in row.interpretation
        assert str(figure.n) in row.interpretation
        assert row.severity == "note"


def test_a_figure_without_an_interval_is_inconclusive():
    row = rows({"generation.all.adherence": Estimate(1.0, None, None, 5, "mean; no interval")})
    assert row["generation.all.adherence"].state == "inconclusive"


def test_what_was_not_measured_has_its_own_row_with_the_reason():
    found = rows({"cue.all.lucky_guess": NotMeasured("judge local has not earned a CUE: kappa 0.31")})
    row = found["cue.all.lucky_guess"]
    assert (row.state, row.value, row.severity) == ("not measured", "not measured", "note")
    assert "kappa 0.31" in row.interpretation
    assert found["retrieval.all.no_hit"].state == "not measured"  # no such figure at all


def test_rules_for_hazards_give_a_row_to_each_that_has_no_rule_of_its_own():
    own = Rule(
        metric="generation.hedging.contradicts",
        at_least=0.5,
        severity="note",
        interpretation="Own.",
        insight="Own.",
    )
    figures = {f"generation.{h}.contradicts": rate_of(60, 100) for h in ("negation", "hedging")}
    figures |= {
        "generation.negation.contradicts@task=mcq": rate_of(1, 2),
        "suite.negation.inversion": rate_of(1, 2),
    }
    found = [row for row in insights(figures, [*RULES, own]) if "contradicts" in row.key]
    assert [row.key for row in found] == ["generation.negation.contradicts", "generation.hedging.contradicts"]
    assert found[1].interpretation == "Own."


def test_the_first_rule_that_is_proven_wins():
    key = "cue.all.lucky_guess"
    assert rows({key: rate_of(60, 100)})[key].severity == "danger"
    some = rows({key: rate_of(12, 100)})[key]  # over 10 %, which is not proven; over 2 % is
    assert (some.state, some.severity) == ("found", "warning")


def test_each_metric_that_the_issue_names_has_rules_for_good_and_bad():
    known = {metric.key for metric in METRICS}
    named = {
        "retrieval.all.dangerous.only", "retrieval.all.dangerous.any", "cue.all.accuracy_gap",
        "cue.all.attribution_error",
        "retrieval.all.no_hit", "retrieval.all.covered", "generation.{hazard}.contradicts", "generation.all.abstained",
    }  # fmt: skip
    assert named <= {rule.metric for rule in RULES}
    assert named <= known
    for metric in {rule.metric for rule in RULES}:
        mine = [rule for rule in RULES if rule.metric == metric]
        assert any(rule.at_least is not None for rule in mine), metric
        assert any(rule.below is not None for rule in mine), metric


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("metric: cue.all.lucky_guess", "metric: cue.all.luck", "luck"),
        ("at_least: 0.90", "at_least: nan", "at_least"),
        ("at_least: 0.90", "above: 0.90", "above"),
        ("at_least: 0.90", "at_least: 0.90\n    below: 0.2", "exactly one"),
        ("severity: good", "severity: fine", "severity"),
        ("{value} of the answers", "{values} of the answers", "value"),
        ("insight: No action.", "insight: ' '  #", "empty"),
    ],
)
def test_a_wrong_rule_is_refused_with_its_line(overlay, old, new, told):
    root = overlay(FILE, lambda text: text.replace(old, new, 1))
    assert (root / FILE).read_text("utf-8") != (packaged_root() / FILE).read_text("utf-8")
    with pytest.raises(ContentError, match=told) as caught:
        load_rules(Content(root))
    assert caught.value.line

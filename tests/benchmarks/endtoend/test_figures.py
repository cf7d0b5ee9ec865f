"""The figures tell a guard from guards that look at nothing, and no total mixes what must be apart."""

from __future__ import annotations

import pytest

from clinsafe.benchmarks.endtoend import figures as f
from clinsafe.benchmarks.endtoend.dummies import DUMMIES
from clinsafe.benchmarks.endtoend.outcomes import Outcome, Setting, State, not_measured, observe, unguarded
from clinsafe.benchmarks.endtoend.search import Found
from clinsafe.protocols import MetricKey, Passage
from clinsafe.stats import Estimate, NotMeasured
from tests.benchmarks.endtoend import kit


def run(guards, corpus="mixed", k=4):
    """Every query of the small world, its contradicting passage first."""
    found = []
    for number in range(len(kit.WORLD)):
        task = kit.task(number)
        right, wrong = Passage("r", task.query.true), Passage("w", task.query.false)
        others = [Passage(f"o{n}", f"ordinary {n}") for n in range(3)]
        passages = tuple([*([wrong] if corpus == "mixed" else []), right, *others][:k])
        got = Found(passages, 2, 1)
        for arm, guard in guards.items():
            setting = Setting(system="bm25", k=k, corpus=corpus, arm=arm)
            asked = task.query.row.query
            answer = unguarded(asked, passages) if guard is None else guard.check(asked, passages)
            found.append(observe(task, got, answer, setting, ("r", "w")))
    return found


@pytest.fixture(scope="module")
def table():
    guards = {"before": None, "after": kit.Oracle(misses=["hedging"])}
    guards |= {name: make() for name, make in DUMMIES.items()}
    return f.figures([*run(guards), *run(guards, "control")])


def at(table, metric, arm="after", hazard="all", corpus="mixed", form=None):
    figure = table[f.key(hazard, metric, Setting(system="bm25", k=4, corpus=corpus, arm=arm), form)]
    return figure.value if isinstance(figure, Estimate) else None


ROWS = {  # arm: dangerous, flagged, suppressed, right flagged, right shown, others flagged (the last three: control)
    "after": (1 / 6, 5 / 6, 0, 0, 1, 0),
    "disabled": (1, 0, 0, 0, 1, 0),
    "always_flag": (0, 1, 0, 1, 1, 1),
    "always_withhold": (0, 0, 1, 1, 0, 1),
}
METRICS = ("dangerous", "flagged", "suppressed", "right_flagged", "right_shown", "distractor_flagged.share")


@pytest.mark.parametrize("arm", ROWS)
def test_every_guard_has_a_row_of_its_own(table, arm):
    corpora = ["mixed"] * 3 + ["control"] * 3
    found = [at(table, metric, arm, corpus=corpus) for metric, corpus in zip(METRICS, corpora, strict=True)]
    assert found == pytest.approx(ROWS[arm])


def test_the_rows_of_the_real_guard_and_of_each_dummy_differ_where_it_matters():
    better = {
        "dangerous": -1,
        "flagged": 1,
        "right_flagged": -1,
        "right_shown": 1,
        "distractor_flagged.share": -1,
    }
    for name in DUMMIES:
        beats = [
            metric
            for metric, sign in better.items()
            if sign * ROWS["after"][METRICS.index(metric)] > sign * ROWS[name][METRICS.index(metric)]
        ]
        assert beats, name


def test_before_has_no_figures_of_a_guard(table):
    names = {MetricKey.parse(key).metric for key in table if "arm=before" in key}
    assert names == {"right_found", "reached", "dangerous"}
    assert at(table, "dangerous", "before") == 1


def test_a_control_has_no_figures_of_the_contradiction(table):
    names = {MetricKey.parse(key).metric for key in table if "corpus=control" in key}
    assert not names & {"reached", "dangerous", "flagged", "suppressed", "unchecked"}


def test_every_key_is_a_key_and_every_rate_names_n_and_method(table):
    for name, figure in table.items():
        assert MetricKey.parse(name).area == "endtoend"
        assert isinstance(figure, NotMeasured) or (figure.n and figure.method)
    one = table[f.key("all", "dangerous", Setting(system="bm25", k=4, corpus="mixed", arm="after"))]
    assert (one.k, one.n) == (1, 6)
    assert "Clopper" in one.method


def test_by_hazard_and_by_form(table):
    assert at(table, "dangerous", hazard="hedging") == 1
    assert at(table, "dangerous", hazard="negation") == 0
    assert at(table, "flagged.own", hazard="negation") == 1
    assert at(table, "dangerous", form="claim") == 1 / 2
    assert at(table, "dangerous", form="question") == 0
    assert at(table, "dangerous", hazard="negation", form="question") is None  # there is none: not a zero


def state(**said):
    return State(retrieved=1, rank=1, **said)


def simple(query="q1", form="claim", arm="after", corpus="control", **said):
    row = {"query": query, "hazard": "negation", "form": form, "answer": "other", "system": "bm25", "k": 4}
    return Outcome(**row, arm=arm, corpus=corpus, **said)


def test_the_true_passage_may_be_marked_where_the_premise_is_false():
    marked = state(action="flag", via="finding")
    found = f.figures([simple("a", right=state()), simple("b", "false_premise", right=marked)])
    assert at(found, "right_flagged", corpus="control") == 0
    assert at(found, "right_flagged", corpus="control", form="false_premise") == 1


def test_a_contradiction_that_was_not_found_by_the_retriever_is_no_success_of_the_guard():
    marked = state(action="flag", via="other")
    found = f.figures([simple("a", corpus="mixed"), simple("b", corpus="mixed", wrong=marked)])
    figure = found[f.key("all", "flagged", Setting(system="bm25", k=4, corpus="mixed", arm="after"))]
    assert (figure.k, figure.n) == (1, 1)


def test_what_was_not_checked_is_counted_apart():
    lost = state(action="flag", via="unchecked", unchecked=True)
    found = f.figures([simple("a", corpus="mixed", wrong=lost)])
    assert (at(found, "unchecked"), at(found, "flagged"), at(found, "dangerous")) == (1, 0, 1)
    assert at(found, "partly_unchecked") == 1


def test_stances_are_held_against_the_answer():
    asked = {"form": "question", "corpus": "mixed"}
    outcomes = [
        simple("a", **asked, right=state(stance="denies")).model_copy(update={"answer": "denies"}),
        simple("b", **asked, right=state(stance="silent")).model_copy(update={"answer": "affirms"}),
        simple("c", **asked, right=state(stance="affirms")),
    ]
    figure = f.figures(outcomes)[
        f.key("all", "stance", Setting(system="bm25", k=4, corpus="mixed", arm="after"))
    ]
    assert (figure.k, figure.n) == (1, 2)


def test_the_change_is_paired_and_has_its_p():
    before = [simple(f"q{n}", arm="before", corpus="mixed", wrong=state()) for n in range(10)]
    after = [
        simple(f"q{n}", corpus="mixed", wrong=state(action="flag", via="finding") if n < 8 else state())
        for n in range(10)
    ]
    found = f.figures([*after, *reversed(before)])
    setting = Setting(system="bm25", k=4, corpus="mixed", arm="after")
    change = found[f.key("all", "dangerous.change", setting)]
    assert (change.value, change.n) == (-0.8, 10)
    assert change.low < -0.8 < change.high < 0
    p = found[f.key("all", "dangerous.p", setting)]
    assert p.value == pytest.approx(2 * 0.5**8)
    assert "8 only before, 0 only after" in p.method
    assert found[f.key("all", "dangerous.p_holm", setting)].value == p.value


def test_queries_that_were_not_searched_are_in_no_figure_and_are_counted():
    lost = not_measured(kit.task(), Setting(system="bm25", k=4, corpus="mixed", arm="after"), "no vector")
    found = f.figures([simple("q1", corpus="mixed"), lost])
    assert found[f.key("all", "reached", Setting(system="bm25", k=4, corpus="mixed", arm="after"))].n == 1
    assert f.unmeasured([lost, simple()]) == {"bm25": 1}

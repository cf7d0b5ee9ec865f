"""Generated answers: what is a repetition, and what is none."""

from __future__ import annotations

import pytest

from clinsafe.benchmarks.endtoend import answers as a
from clinsafe.stats import NotMeasured
from tests.benchmarks.endtoend import kit

QUERY = kit.query()
SAID = {  # what the answer says -> (conflict with the true sentence, with the edited one)
    "the contradiction": (True, False),
    "the truth": (False, True),
    "both sides": (True, True),
    "something else": (False, False),
    "unread": (None, None),
    "half read": (True, None),
}


def conflicts(sentence, answer):
    true, false = SAID[answer]
    return true if sentence == QUERY.true else false


def row(said, arm="before", query=QUERY):
    return a.judged(query, arm, f"prompt {arm}", said, conflicts)


@pytest.mark.parametrize(("said", "repeats"), [(said, said == "the contradiction") for said in SAID])
def test_a_repetition_contradicts_the_truth_and_agrees_with_the_edit(said, repeats):
    found = row(said)
    assert found.repeats is repeats
    assert found.judged == ("read" not in said)
    assert found.prompt == a.digest("prompt before")


@pytest.mark.parametrize(
    "said", ["CANNOT ANSWER", "cannot answer.", '"CANNOT ANSWER": the passages disagree']
)
def test_an_abstention_is_not_compared(said):
    assert row(said).status == "abstained"


def test_the_two_prompts_differ_in_the_context_alone():
    before, after = (a.prompt_of("Why?", text) for text in ("plain", "[CONFLICT] plain"))
    assert after.replace("[CONFLICT] ", "") == before
    assert "Why?" in before
    assert a.ABSTAIN in before


def figures(rows):
    return {
        name.split("@")[0].removeprefix("endtoend.all.") + "/" + name.split("arm=")[1].split(",")[0]: figure
        for name, figure in a.figures(rows, "minilm", 5).items()
        if name.startswith("endtoend.all.") and "form=" not in name
    }


def test_rates_leave_failures_out_and_count_them():
    rows = [
        row("the contradiction"),
        row("the truth"),
        row("unread"),
        row("CANNOT ANSWER"),
        a.missing(QUERY, "before", "p", "EndpointBusy"),
        a.missing(QUERY, "before", "p", "used up", asked=False),
    ]
    found = figures(rows)
    counts = {name: (one.k, one.n) for name, one in found.items() if not isinstance(one, NotMeasured)}
    assert counts == {
        "answer_repeats/before": (1, 2),
        "answer_conflict/before": (1, 2),
        "answer_abstained/before": (1, 5),
        "answer_unchecked/before": (1, 5),
        "answer_failed/before": (1, 5),
    }


def test_the_change_is_of_queries_answered_in_both_arms():
    ids = [QUERY.row.model_copy(update={"id": f"e2e-{n}"}) for n in range(4)]
    many = [type(QUERY)(one, QUERY.document, QUERY.true, QUERY.false) for one in ids]
    rows = [row("the contradiction", "before", one) for one in many]
    rows += [row("the truth", "after", many[0]), row("CANNOT ANSWER", "after", many[1])]
    rows += [row("the contradiction", "after", many[2]), a.missing(many[3], "after", "p", "BadAnswer")]
    found = figures(rows)
    change = found["answer_repeats.change/after"]
    assert (change.n, change.value) == (3, pytest.approx(-2 / 3))
    assert "2 only before, 0 only after" in found["answer_repeats.p/after"].method

"""Figures from records: each over the questions that have its value, whatever else is missing and in whatever order."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.errors import UsageError
from clinsafe.protocols import MetricKey
from clinsafe.rag.figures import figures
from clinsafe.rag.metrics import metric_of
from clinsafe.rag.settings import Settings
from clinsafe.rag.standing import NOT_AUDITED, Declared
from clinsafe.rag.values import ItemRecord
from clinsafe.stats import Estimate, NotMeasured, mean, rate_of

SETTINGS, HUMANS = Settings(), Declared("two readers", 12)


def records(n=12):
    chosen = random.Random(4)
    for number in range(n):
        hit = float(number % 3 > 0)
        values = {
            "hit": hit, "safe_hit": hit, "contexts": 3.0, "hit_at.1": hit, "hit_at.2": 0.0, "hit_at.3": 0.0,
            "rr": round(chosen.random(), 3), "token_f1": round(chosen.random(), 3),
            "adherence": round(chosen.random(), 3),
            "correct": float(number % 2), "answer_relevancy": 0.5,
        }  # fmt: skip
        yield ItemRecord(
            id=f"q{number}", values=values, slices={"task": "mcq" if number % 4 else "extraction"}
        )


def close(a, b):
    """Equal but for the last bits of a bootstrap, which depend on how many columns were multiplied at once."""
    if isinstance(a, NotMeasured) or isinstance(b, NotMeasured):
        return a == b
    ends = [(getattr(a, end), getattr(b, end)) for end in ("value", "low", "high", "lower", "upper")]
    return (a.n, a.k, a.method) == (b.n, b.k, b.method) and all(
        x == y or (None not in (x, y) and x == pytest.approx(y, abs=1e-12)) for x, y in ends
    )


def test_shares_are_exact_means_are_bootstrapped_and_all_name_n():
    rows = list(records())
    found = figures(rows, SETTINGS, HUMANS)
    assert found["retrieval.all.hit"] == rate_of(8, 12)
    assert found["retrieval.all.no_hit"] == rate_of(4, 12)
    ordered = sorted(rows, key=lambda row: row.id)
    assert close(found["retrieval.all.mrr"], mean([row.values["rr"] for row in ordered]))
    for key, figure in found.items():
        assert metric_of(key).meaning
        assert str(MetricKey.parse(key)) == key
        assert figure.n >= 0
        if isinstance(figure, NotMeasured):
            assert figure.reason


def test_the_order_of_the_records_changes_nothing():
    rows = list(records(40))
    shuffled = random.Random(1).sample(rows, len(rows))
    assert figures(rows, SETTINGS, HUMANS) == figures(iter(shuffled), SETTINGS, HUMANS)


def test_slices_have_their_own_n_and_a_small_one_its_exact_interval():
    found = figures(records(), SETTINGS, HUMANS)
    small = found["retrieval.all.hit@task=extraction"]
    assert (small.n, found["retrieval.all.hit@task=mcq"].n) == (3, 9)
    assert small.low is not None
    few = found["retrieval.all.mrr@task=extraction"]
    assert isinstance(few, Estimate)
    assert few.low is None  # too few for a bootstrap, and the value is there
    assert {MetricKey.parse(key)._replace(slice=None) for key in found if "@" in key} == {
        MetricKey.parse(key) for key in found if "@" not in key
    }


@pytest.mark.parametrize("name", ["correct", "adherence", "rr", "hit_at.1", "hit"])
def test_a_missing_value_takes_its_question_out_of_its_own_figures_alone(name):
    rows = list(records(30))
    holed = []
    for number, row in enumerate(rows):
        values = dict(row.values)
        missing = {}
        if number % 2:
            del values[name]
            missing = {name: "the judge did not answer"}
        holed.append(ItemRecord(id=row.id, slices=row.slices, values=values, missing=missing))
    whole, found = figures(rows, SETTINGS, HUMANS), figures(holed, SETTINGS, HUMANS)
    for key, figure in whole.items():
        if name not in metric_of(key).sources:
            assert close(found[key], figure), key
        elif isinstance(found[key], Estimate) and not key.startswith("cue.all.unscored"):
            assert found[key].n <= figure.n
    kept = [row.values[name] for row in holed if name in row.values]
    key = {"correct": "generation.all.correct", "adherence": "generation.all.adherence", "rr": "retrieval.all.mrr",
           "hit_at.1": "retrieval.all.hit_at.r1", "hit": "retrieval.all.hit"}[name]  # fmt: skip
    assert found[key].n == 15
    assert found[key].value == pytest.approx(sum(kept) / 15)


def test_nothing_measured_is_never_a_zero_and_gives_the_records_reason():
    none = [
        ItemRecord(id=f"q{i}", values={}, missing={"hit": "no reference", "rr": "nobody graded"})
        for i in range(3)
    ]
    for rows in (none, []):
        found = figures(rows, SETTINGS, HUMANS)
        unscored = found.pop("cue.all.unscored")
        assert all(isinstance(figure, NotMeasured) for figure in found.values())
        assert (unscored.n, getattr(unscored, "k", None)) == ((3, 3) if rows else (0, None))
    assert "no reference" in figures(none, SETTINGS, HUMANS)["retrieval.all.hit"].reason
    assert "nobody graded" in figures(none, SETTINGS, HUMANS)["retrieval.all.mrr"].reason
    assert "token_f1" in figures(none, SETTINGS, HUMANS)["generation.all.token_f1"].reason
    unseen = [ItemRecord(id="a", values={"hit": 1, "safe_hit": 1})]
    assert "conflict" in figures(unseen, SETTINGS, HUMANS)["retrieval.all.dangerous.any"].reason
    unchecked = [
        ItemRecord(id="a", values={"hit": 0, "conflict.negation": 0}),
        ItemRecord(id="b", values={"hit": 1}, missing={"conflict.negation": "the filter did not look"}),
    ]
    assert "did not look" in figures(unchecked, SETTINGS, HUMANS)["retrieval.negation.dangerous.any"].reason
    no_hits = [ItemRecord(id="a", values={"hit": 0, "safe_hit": 0})]
    assert "hit" in figures(no_hits, SETTINGS, HUMANS)["retrieval.all.dangerous.only"].reason


def test_without_a_standing_cue_is_not_measured_and_hits_are():
    earned, found = figures(records(), SETTINGS, HUMANS), figures(records(), SETTINGS, NOT_AUDITED)
    for key, figure in found.items():
        needs = metric_of(key).judged == "standing"
        if needs:
            assert isinstance(figure, NotMeasured)
            assert figure.reason == NOT_AUDITED.reason
        elif not metric_of(key).judged:
            assert figure == earned[key]
    assert found["cue.all.effective_use"].n == 12  # what could be used, once the judge is audited
    assert isinstance(found["cue.all.accuracy_gap"], Estimate)
    assert "unaudited" in found["generation.all.adherence"].method
    assert "two readers" in earned["cue.all.effective_use"].method
    assert found["generation.all.adherence"].value == earned["generation.all.adherence"].value


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"hit": 0.5}, "0 or 1"), ({"adherence": 7.0}, "0 to 1"), ({"correct": -1.0}, "0 or 1"),
        ({"semantic": 1.5}, "0 to 1"),
        ({"rr": 1e300}, "0 to 1"), ({"conflict.negation": 2.0}, "0 or 1"), ({"overlap.1_2": 9.0}, "-1 to 1"),
    ],
)  # fmt: skip
def test_a_number_out_of_its_range_is_refused_and_never_averaged(values, told):
    rows = [
        ItemRecord(id="good", values={"hit_at.2": 1, **dict.fromkeys(values, 0.0)}),
        ItemRecord(id="bad", values=values),
    ]
    with pytest.raises(UsageError, match=told) as caught:
        figures(rows, SETTINGS, HUMANS)
    assert "'bad'" in str(caught.value)


def test_two_records_of_one_question_are_refused():
    rows = [ItemRecord(id="same", values={"hit": 1}), ItemRecord(id="same", values={"hit": 0})]
    with pytest.raises(UsageError, match="same"):
        figures(rows, SETTINGS, HUMANS)


@settings(max_examples=15)
@given(st.lists(st.sampled_from([None, 0.0, 0.5, 1.0]), min_size=1, max_size=25))
def test_a_mean_is_that_of_the_values_there_are(values):
    rows = [
        ItemRecord(id=f"{number:03d}", values={} if value is None else {"rouge_l": value})
        for number, value in enumerate(values)
    ]
    kept = [value for value in values if value is not None]
    figure = figures(rows, SETTINGS, HUMANS)["generation.all.rouge_l"]
    assert figure.n == len(kept)
    if kept:
        assert figure.value == pytest.approx(sum(kept) / len(kept))

"""The catalogue: complete, unambiguous, and each figure of it explained."""

from __future__ import annotations

import pytest

from clinsafe.errors import UsageError
from clinsafe.protocols import MetricKey
from clinsafe.rag.metrics import METRICS, expand, metric_of, template_of

KEYS = (
    "retrieval.all.hit retrieval.all.no_hit retrieval.all.safe_hit retrieval.all.recall "
    "retrieval.all.precision retrieval.all.map retrieval.all.mrr retrieval.all.ndcg retrieval.all.covered "
    "retrieval.all.context_relevancy retrieval.all.mrr.cascade retrieval.all.map.cascade "
    "retrieval.all.hit_at.r1 retrieval.all.exclusive_hit.r2 retrieval.all.redundancy.r1_2 "
    "retrieval.all.overlap.r2_3 retrieval.all.level.substring retrieval.all.level.tokens "
    "retrieval.all.level.cosine retrieval.all.dangerous.only retrieval.all.dangerous.any "
    "retrieval.negation.dangerous.any generation.all.exact generation.all.fuzzy generation.all.rouge_l "
    "generation.all.token_f1 generation.all.semantic generation.all.list_f1 generation.all.answer_relevancy "
    "generation.all.adherence generation.all.correct generation.all.safe_correct generation.all.mcq "
    "generation.all.abstained generation.entity_swap.contradicts cue.all.effective_use "
    "cue.all.information_blindness cue.all.lucky_guess cue.all.correct_rejection cue.all.effective_use.safe "
    "cue.all.information_blindness.safe cue.all.lucky_guess.safe cue.all.correct_rejection.safe "
    "cue.all.table.h1a1c1 cue.all.table.h0a0c0 cue.all.accuracy_gap cue.all.accuracy_gap.safe "
    "cue.all.ungrounded_correct cue.all.ungrounded_correct.safe cue.all.attribution_error "
    "cue.all.attribution_error.safe cue.all.unscored "
)


def test_every_agreed_figure_is_made_of_records():
    made = {metric.key for metric in expand(3, ["negation", "entity_swap"])}
    assert set(KEYS.split()) <= made
    for key in made:
        assert str(MetricKey.parse(key)) == key
        assert metric_of(key).key == key
        assert template_of(f"{key}@task=mcq") in {metric.key for metric in METRICS}


def test_each_says_what_it_is():
    for metric in expand(2, ["negation"]):
        assert metric.sources
        assert "{" not in metric.key + "".join(
            source for source in metric.sources if source != "conflict.{any}"
        )
        assert "{" not in metric.name + metric.meaning + metric.of
        assert metric.meaning.endswith(".")
        assert metric.low < metric.high
        assert metric.source
    assert len({metric.key for metric in METRICS}) == len(METRICS)


def test_good_and_bad_are_told_apart():
    assert metric_of("retrieval.all.hit").better == "higher"
    assert metric_of("retrieval.all.no_hit").better == "lower"
    assert metric_of("retrieval.all.dangerous.any").better == "lower"
    assert metric_of("judge.all.false_support@instrument=local,on=answers").better == "lower"
    assert metric_of("cue.all.table.h0a1c1").better == "neither"


def test_a_hazard_and_all_are_told_apart():
    assert template_of("retrieval.all.dangerous.any") == "retrieval.all.dangerous.any"
    assert metric_of("retrieval.negation.dangerous.any").sources == ("hit", "conflict.negation")


@pytest.mark.parametrize(
    "key", ["retrieval.all.nothing", "hit", "", "retrieval.all.hit_at.r0", "cue.all.table.h2a0c0"]
)
def test_an_unknown_figure_is_refused(key):
    with pytest.raises(UsageError):
        metric_of(key)

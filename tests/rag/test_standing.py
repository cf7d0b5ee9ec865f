"""A judge earns a CUE by its measured agreement; a broken one does not."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from clinsafe.errors import UsageError
from clinsafe.rag.standing import NOT_AUDITED, Declared, Standing
from clinsafe.stats import Estimate, NotMeasured, rate_of

HAZARDS = ("negation", "numerical", "temporal", "entity_swap", "hedging", "quantifier")


def kappa(value, lower, n=240):
    return Estimate(value, lower - 0.02, value + 0.1, n, "kappa", lower=lower, upper=value + 0.08)


GOOD = Standing("local", kappa(0.8, 0.71), rate_of(4, 120), 240, HAZARDS, HAZARDS)


def test_all_conditions_met_is_earned_and_names_the_judge():
    assert GOOD.earned
    assert GOOD.reason == ""
    assert "local" in GOOD.word
    assert "240" in GOOD.word
    assert replace(GOOD, kappa=kappa(0.7, 0.6)).earned  # the limit itself
    assert not replace(GOOD, provisional=True).earned
    assert "provisional" in replace(GOOD, provisional=True).reason


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"kappa": kappa(0.9, 0.59)}, ("kappa", "0.90", "0.59")),
        ({"false_support": rate_of(9, 120)}, ("false support", "0.07", "120")),
        ({"n": 199}, ("199", "200")), ({"hazards": HAZARDS[:5]}, ("quantifier",)), ({"hazards": ()}, HAZARDS),
        ({"required": ()}, ("hazards",)), ({"kappa": NotMeasured("one class alone")}, ("one class alone",)),
        ({"kappa": Estimate(1.0, None, None, 240, "kappa")}, ("kappa",)),
        ({"kappa": Estimate(0.9, math.nan, math.nan, 240, "", lower=math.nan, upper=math.nan)}, ("kappa",)),
        ({"false_support": NotMeasured("none judged")}, ("none judged",)),
    ],
)  # fmt: skip
def test_one_condition_short_is_not_earned_and_its_numbers_are_told(change, told):
    standing = replace(GOOD, **change)
    assert not standing.earned
    for words in ("local", *told):
        assert words in standing.reason


@pytest.mark.parametrize(
    ("name", "agreement", "false_support", "n"),
    [
        ("always yes", kappa(0.0, 0.0), rate_of(120, 120), 240),
        ("always no", kappa(0.0, 0.0), rate_of(0, 120), 240),
        ("disabled", NotMeasured("no labelled answer was judged"), NotMeasured("none"), 0),
    ],
)
def test_a_judge_that_says_always_the_same_or_nothing_earns_nothing(name, agreement, false_support, n):
    assert not Standing(name, agreement, false_support, n, HAZARDS, HAZARDS).earned
    assert not NOT_AUDITED.earned
    assert "audited" in NOT_AUDITED.reason


def test_human_readers_are_believed_and_named():
    humans = Declared("Dr A and Dr B", 120)
    assert humans.earned
    assert "Dr A and Dr B" in humans.word
    assert "120" in humans.word
    for name, n in (("", 3), (" ", 3), ("x", -1)):
        with pytest.raises(UsageError):
            Declared(name, n)

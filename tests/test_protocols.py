"""Metric keys are parsed back to what made them; built-ins satisfy their protocols."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.adapters.lexical import TokenJaccard
from clinsafe.adapters.reference import FakeEncoder
from clinsafe.protocols import Encoder, MetricKey, PairScorer
from tests.strategies import names


@given(names, names, names, st.none() | names, st.none() | names.map(lambda n: f"{n}=balanced"))
def test_keys_round_trip(area, hazard, metric, subtype, slice_):
    key = MetricKey(area, hazard, metric, subtype, slice_)
    assert MetricKey.parse(str(key)) == key


@pytest.mark.parametrize(
    "text", ["", "suite", "suite.negation", "Suite.negation.auroc", "a.b.c@d", "a.b.c.d.e", "a.b.c@d=e f"]
)
def test_anything_else_is_refused_with_the_grammar(text):
    with pytest.raises(ValueError, match=r"area\.hazard\.metric"):
        MetricKey.parse(text)


def test_builtins_satisfy_their_protocols():
    assert isinstance(FakeEncoder("hash"), Encoder)
    assert isinstance(TokenJaccard(), PairScorer)

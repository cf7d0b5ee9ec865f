"""Going through a few facts and looking them up in an index find the same ones."""

from __future__ import annotations

import random

import pytest

from clinsafe.mitigations.bounds import TooMuchToCompare, within_bounds
from clinsafe.mitigations.index import FEW, WALKS, Effort, Index
from clinsafe.protocols import Fact, Span


def fact(at=0, rule="r", **keys):
    return Fact(
        "negation", Span(at, at + 1), {name: frozenset(value) for name, value in keys.items()}, "", rule
    )


def some(seed, count):
    draw = random.Random(seed)
    return [
        fact(at, a_keys=draw.sample("abcdefgh", 3), b_keys=draw.sample("abcdefgh", draw.randint(0, 3)))
        for at in range(count)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_what_has_the_keys_is_found_on_the_first_question_and_on_the_hundredth(seed):
    facts = some(seed, 30)
    index = Index(facts)
    draw = random.Random(seed)
    for _ in range(3 * WALKS):
        one, other = (frozenset(draw.sample("abcdefgh", draw.randint(1, 4))) for _ in range(2))
        a, b = ({at for at, f in enumerate(facts) if keys & f.normal[field]}
                for field, keys in (("a_keys", one), ("b_keys", other)))  # fmt: skip
        alike = {at for at, f in enumerate(facts) if len(one & f.normal["a_keys"]) >= 2}
        assert index.having("a_keys", one) == a
        assert a & b <= index.with_all(("a_keys", one), ("b_keys", other)) <= a | b
        assert alike <= index.sharing("a_keys", one, 2) <= a
        assert index.sharing("a_keys", one, 0) == a


def test_many_facts_are_looked_up_from_the_first_question_on():
    index = Index([fact(at, a_keys="a") for at in range(FEW + 1)] + [fact(FEW + 1, a_keys="b")])
    assert index.having("a_keys", frozenset("b")) == {FEW + 1}
    assert index.having("a_keys", frozenset("c")) == set()


def test_every_fact_that_is_looked_at_counts():
    index = Index([fact(at, a_keys="a") for at in range(5)])
    with pytest.raises(TooMuchToCompare):
        list(index.at(index.having("a_keys", frozenset("a")), Effort(4)))


def test_of_facts_that_say_the_same_the_first_is_compared():
    told = [fact(0, keys="a", x_keys="x"), fact(1, keys="a", x_keys="y"), fact(2, keys="a", x_keys="x"),
            fact(3, keys="b", x_keys="x"), fact(4, rule="s", keys="a", x_keys="x"),
            fact(5, keys="a", x_keys="y")]  # fmt: skip
    seen = []
    within_bounds(told, told[:1], lambda one, other: seen.append((one, other)) or [])
    assert [f.span.start for f in seen[0][0]] == [0, 1, 3, 4]

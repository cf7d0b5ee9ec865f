"""How the work of the entity-swap filter grows, and what it says where it does not look at everything."""

from __future__ import annotations

import pytest

from clinsafe.mitigations.bounds import TooMuchToCompare
from clinsafe.mitigations.filters.entity_swap import load
from clinsafe.mitigations.stack import Stack
from clinsafe.text import Reader
from tests.mitigations.work_kit import work

FILTER, READER = load(), Reader(model="")
STACK = Stack({"entity_swap": FILTER}, READER, seconds=0)


def facts(text):
    return FILTER.read(READER.read(text))


def compare(query, passage):
    return STACK.compare(STACK.read(query), STACK.read(passage))


def names(count, side=""):
    return [f"{side}xylo{chr(97 + at % 26)}{chr(97 + at // 26)}itis" for at in range(count)]


@pytest.mark.parametrize(
    "unit",
    ["1234567890 ", "Na 140 mmol/L, ", "([", "a", "caused by ", "that which drug caused ", ") ",
     "aspirin caused rash and ", "not aspirin, ", "since aspirin was high, ", "it caused "],
)  # fmt: skip
def test_reading_is_linear(unit):
    """Four times the text is four times the work."""
    short, long = (READER.read((unit * size)[:size]) for size in (2_500, 10_000))
    FILTER.read(short), FILTER.read(long)  # words are remembered
    assert work(lambda: FILTER.read(long)) < 5 * work(lambda: FILTER.read(short)) + 500


@pytest.mark.parametrize(
    "unit",
    ["caused by ", "that which drug caused ", "who caused ", "aspirin caused rash and ", "not aspirin, ",
     "it caused ", "his mother has asthma and ", "give aspirin but ", "positive warfarin ", "rather stopped "],
)  # fmt: skip
def test_the_work_on_one_sentence_grows_with_its_length(unit):
    """Four times the sentence may take four times the work, with room for what begins only later, not sixteen."""
    short, long = (READER.read((unit * size)[:size]) for size in (500, 2000))
    FILTER.read(short), FILTER.read(long)  # words are remembered
    assert len(long.sentences) == 1
    assert work(lambda: FILTER.read(long)) < 8 * work(lambda: FILTER.read(short))


@pytest.mark.parametrize("sides", ["ab", "aa"])
@pytest.mark.parametrize(
    "told", ["Aspirin is used for {}.", "Aspirin caused {}.", "His mother has {}.", "He has {}."]
)
def test_many_statements_of_one_thing_are_compared_in_linear_work(told, sides):
    works = []
    for count in (50, 200):
        one, other = (facts(" ".join(map(told.format, names(count, side)))) for side in sides)
        assert len(one) >= count
        works.append(work(lambda one=one, other=other: FILTER.compare(one, other)))
    assert works[1] < 6 * works[0]


def test_what_stands_far_behind_is_compared_too():
    passage = (
        f"{' '.join(f'{name} exceeds ferritin.' for name in names(400))} The seizure provoked the hypoxia."
    )
    assert compare("Hypoxia provoked the seizure.", passage).conflict
    assert not compare("The seizure provoked the hypoxia.", passage).conflict


@pytest.mark.parametrize(
    "told",
    ["The lodger kept the landlord awake in room {}.", "Sepsis caused ileus in bay {}."],
    ids=["order", "edge"],
)
def test_more_than_is_compared_is_unchecked_and_never_safe(told):
    one, other = (" ".join(told.format(f"{at}{side}") for at in range(300)) for side in "ab")
    found = compare(one, other)
    assert not found.conflict
    assert not found.safe
    assert found.unchecked == {"entity_swap": "compare: failed with TooMuchToCompare"}
    with pytest.raises(TooMuchToCompare):
        FILTER.compare(facts(one), facts(other))
    turned = compare(f"Hypoxia provoked the seizure. {one}", f"The seizure provoked the hypoxia. {other}")
    assert turned.conflict  # it stands whatever else is said
    assert not turned.unchecked

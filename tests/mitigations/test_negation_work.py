"""How the work of the negation filter grows, and what it says where it does not look at everything."""

from __future__ import annotations

import pytest

from tests.mitigations.negation_kit import compare, load_once, stack
from tests.mitigations.work_kit import work


@pytest.mark.parametrize(
    "unit",
    [
        "no ", "not deny ", "rash and ", "untouched by ", "no test ", "if no fever ", "- no ", "allergic to a ",
        "rule out ", "but tender ", "neither a nor b ",
    ],
)  # fmt: skip
def test_the_work_on_one_sentence_grows_with_its_length(unit: str) -> None:
    """Four times the sentence may take four times the work, with room for what begins only later, not sixteen."""
    one, reader = load_once(), stack().reader
    short, long = (reader.read((unit * size)[:size]) for size in (500, 2000))
    one.read(short), one.read(long)  # words are remembered
    assert len(long.sentences) == 1
    assert work(lambda: one.read(long)) < 8 * work(lambda: one.read(short))


@pytest.mark.parametrize(
    "text",
    [
        "no " * 6000, "no a, " * 3000, "not deny " * 2000, "rash and " * 2000, "without pain, " * 1400,
        "resolved " * 2000, "- negative " * 1800, "1234567890 " * 1800, "a" * 20_000, "(" * 20_000,
        "K 4.1 mmol/L, Na 140\n" * 900, "previous " * 2000, "if " * 6000, "that " * 4000, "of the " * 3000,
    ],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_long_texts_take_linear_work(text: str) -> None:
    """Four times the text is four times the work; a comparison of whatever length is bounded."""
    one, reader = load_once(), stack().reader
    short, long = reader.read(text[:2500]), reader.read(text[:10_000])
    one.read(short), one.read(long)  # words are remembered
    assert work(lambda: one.read(long)) < 5 * work(lambda: one.read(short)) + 500
    facts = one.read(reader.read(text))
    assert work(lambda: one.compare(facts, facts)) < 2_000_000


def sites(texts: str, count: int) -> str:
    """The same said of many places."""
    return " ".join(texts.format(f"xylo{chr(97 + at % 26)}{chr(97 + at // 26)}") for at in range(count))


def test_what_stands_far_behind_is_compared_too() -> None:
    passage = f"{sites('There is no pain in the {0} zone.', 60)} There is no stridor. There is a loud bruit."
    assert compare("There is stridor.", passage).conflict
    assert compare("There is no bruit.", passage).conflict
    assert not compare("There is no stridor.", passage).conflict


def test_more_than_is_compared_is_unchecked_and_never_safe() -> None:
    one = sites("There is no pain in the {0} zone.", 300)
    other = sites("There is no pain in the {0}zone.", 300)
    found = compare(one, other)
    assert not found.conflict
    assert found.unchecked == {"negation": "compare: failed with TooMuchToCompare"}
    assert compare(
        f"There is no fever. {one}", f"There is a fever. {other}"
    ).conflict  # it stands all the same


def test_what_is_said_again_and_again_is_compared_once() -> None:
    assert compare("There is no pain. " * 500, "There is no pain. " * 500).safe

"""How a corpus is cut does not depend on who works on it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.errors import UsageError
from clinsafe.scale.parts import Cut, Shard, corpus_identity, parts
from tests.scale.conftest import write


def refuse(record):
    raise AssertionError(str(record))


def test_parts_are_full_but_for_the_last_and_keep_the_order(tmp_path):
    corpus = write(tmp_path / "n.jsonl", ["a b c d e"] * 5)
    found = list(parts(corpus, Cut(words=2, overlap=0, part=4, batch=3), refuse))
    assert [len(part.rows) for part in found] == [4, 4, 4, 3]
    assert [row.id for part in found for row in part.rows] == [
        f"d{d}#{n}" for d in range(5) for n in range(3)
    ]
    assert [(at, len(rows)) for at, rows in found[0].batches(3)] == [(0, 3), (3, 1)]


@given(st.integers(1, 50).flatmap(lambda of: st.tuples(st.just(of), st.integers(0, 500))))
def test_each_part_belongs_to_exactly_one_shard(given):
    of, part = given
    assert sum(Shard(index, of).has(part) for index in range(of)) == 1


@pytest.mark.parametrize("given", ["", "1", "1/1", "2/2", "-1/2", "0/0", "a/b", "0/2/3", "１/٢"])
def test_a_shard_of_another_form_is_one_line(given):
    with pytest.raises(UsageError, match="i from 0 to n-1"):
        Shard.parse(given)


def test_a_shard_is_read():
    assert Shard.parse("3/16") == Shard(3, 16)


@pytest.mark.parametrize(
    "given", [{"words": 0}, {"words": 5, "overlap": 5}, {"part": 0}, {"part": 8, "batch": 9}]
)
def test_a_cut_that_makes_no_sense_is_one_line(given):
    with pytest.raises(UsageError):
        Cut(**({"batch": 1} | given))


def test_the_identity_is_that_of_names_and_contents_and_not_of_the_place(tmp_path):
    for folder, name, text in (
        ("a", "x.txt", "1"),
        ("b", "x.txt", "1"),
        ("c", "y.txt", "1"),
        ("d", "x.txt", "2"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    one, same, renamed, changed = (corpus_identity(tmp_path / folder) for folder in "abcd")
    assert one == same
    assert len({one["sha256"], renamed["sha256"], changed["sha256"]}) == 3

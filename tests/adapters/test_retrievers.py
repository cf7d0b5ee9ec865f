"""Whatever a retriever returns, nothing of it is lost and nothing looks safer than it is."""

from __future__ import annotations

import datetime
from collections import namedtuple
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.adapters.retrievers import passages, retrieved
from clinsafe.protocols import Passage


@pytest.mark.parametrize(
    "item",
    [
        "a text",
        Passage("7", "a text"),
        {"id": 7, "text": "a text"},
        {"_id": "7", "page_content": "a text"},
        {"id": "7", "content": "a text", "meta": {}},
        ("a text", 0.5),
        [Passage("7", "a text"), 0.5],
        ({"text": "a text"}, None),
        SimpleNamespace(page_content="a text", metadata={}, id=None),
        SimpleNamespace(content="a text", meta={}, id="7"),
        SimpleNamespace(node=SimpleNamespace(get_content=lambda: "a text", metadata={}, id_="7"), score=0.5),
        namedtuple("Hit", "text score")("a text", 0.5),
    ],
)
def test_every_shape_is_read(item):
    found, notes = passages([item])
    assert [p.text for p in found] == ["a text"]
    assert found[0].id
    assert notes == []


def test_ids_scores_sources_and_metadata_are_taken_along():
    row = {
        "id": 7,
        "text": "t",
        "score": "0.5",
        "metadata": {"source": "BNF", "year": 2020, "tags": ["x"], 3: True},
    }
    (passage,), _ = passages([row])
    assert passage == Passage(
        "7", "t", 0.5, "BNF", {"source": "BNF", "year": "2020", "tags": "['x']", "3": "True"}
    )
    (dated,), _ = passages(
        [{"text": "t", "date": datetime.date(2020, 1, 2), "subject_id": 4, "embedding": [0.1]}]
    )
    assert dated.metadata == {"date": "2020-01-02", "subject_id": "4"}


def test_an_unknown_subject_is_no_subject():
    nat = type("NaTType", (), {"__str__": lambda self: "NaT"})()
    rows = [{"text": "t", "metadata": {"subject_id": unknown}} for unknown in (None, float("nan"), nat)]
    assert [dict(p.metadata) for p in passages(rows)[0]] == [{}, {}, {}]


def test_a_passage_without_an_id_gets_a_stable_one_of_its_own():
    first, second = passages(["one text", "another text"])[0]
    assert first.id.startswith("unnamed-")
    assert first.id != second.id
    assert passages(["another text", "one text"])[0][1].id == first.id
    assert passages([{"id": "", "text": "one text"}])[0][0].id == first.id


def test_equal_ids_are_told_apart_and_told():
    found, notes = passages([Passage("7", "one"), Passage("7", "two"), Passage("7~2", "three")])
    assert [p.text for p in found] == ["one", "two", "three"]
    assert len({p.id for p in found}) == 3
    assert found[0].id == "7"
    assert found[2].id == "7~2"  # an id that was given is never taken from its owner
    assert len(notes) == 1
    assert "different text" in notes[0]


def test_duplicates_are_kept_and_told():
    found, notes = passages(["same", "same"])
    assert [p.text for p in found] == ["same", "same"]
    assert found[0].id != found[1].id
    assert "2 times" in notes[0]


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_no_number_is_left_out_and_told(score):
    found, notes = passages([("one", 0.9), ("two", score), ("three", 0.1)])
    assert [p.score for p in found] == [0.9, None, 0.1]
    assert len(notes) == 1
    assert "NaN or infinite" in notes[0]


def test_passages_out_of_order_stay_where_they_are():
    found, notes = passages([("one", 0.1), ("two", 0.9)])
    assert [p.text for p in found] == ["one", "two"]
    assert "order" in notes[0]
    assert passages([("one", 0.9), ("two", 0.9), "three", ("four", 0.1)])[1] == []


class Table:
    columns = ("text", "id")

    def __iter__(self):
        return iter(self.columns)


@pytest.mark.parametrize("raw", [None, 3, object(), b"bytes", {"answer": 1}, Table()])
def test_what_is_no_list_is_an_answer_without_passages_and_a_note(raw):
    found, notes = passages(raw)
    assert found == []
    assert len(notes) == 1


class Odd:
    @property
    def text(self):
        raise RuntimeError("not loaded")


@pytest.mark.parametrize("odd", [3, None, {"id": 1}, ("a", "b"), {"text": 5}, b"x", Odd(), (0.5, "text")])
def test_items_that_are_no_passages_are_told_and_the_others_kept(odd):
    found, notes = passages(["one", odd, "two"])
    assert [p.text for p in found] == ["one", "two"]
    assert notes[0].startswith("1 of 3 items")


def test_a_list_inside_a_mapping_and_a_single_document_are_read():
    assert [p.text for p in passages({"documents": ["one", "two"]})[0]] == ["one", "two"]
    found, notes = passages("one text")
    assert [p.text for p in found] == ["one text"]
    assert "not a list" in notes[0]


def test_notes_never_quote_text():
    rows = [
        "CANARY",
        "CANARY",
        {"text": "CANARY", "id": "7", "score": float("nan")},
        {"CANARY": 1},
        ("CANARY", "CANARY"),
    ]
    assert "CANARY" not in " ".join(passages(rows)[1])


ITEM = st.one_of(
    st.text(),
    st.none(),
    st.integers(),
    st.builds(Passage, st.sampled_from(["a", "a~2", "b", ""]), st.text(), st.none() | st.floats()),
    st.dictionaries(
        st.sampled_from(["text", "id", "score", "metadata"]), st.text() | st.none() | st.floats()
    ),
    st.tuples(st.text(), st.floats()),
)


@given(st.lists(ITEM))
def test_reading_again_changes_nothing_and_nothing_is_lost(raw):
    found = retrieved(raw)
    left_out = sum(int(note.split()[0]) for note in found.notes if "are no passages" in note)
    assert len(found.passages) + left_out == len(raw)
    assert len({p.id for p in found.passages}) == len(found.passages)
    assert retrieved(found.passages).passages == found.passages
    assert all(item in raw or item != item for item in found.items)

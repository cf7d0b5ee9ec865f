"""The collection: a query sees its two passages and ordinary text, and nothing that gives the answer away."""

from __future__ import annotations

import pytest

from clinsafe.benchmarks.endtoend.corpus import build
from clinsafe.benchmarks.endtoend.neighbours import pair_of
from tests.benchmarks.endtoend import kit


@pytest.fixture(scope="module")
def collection(queries, texts):
    return build(queries, texts)


def seen(collection, task, *, control=False):
    mask = collection.seen(task, control=control)
    return [passage for passage, shown in zip(collection.passages, mask, strict=True) if shown]


def test_both_passages_hold_their_sentence_and_other_neighbours(queries):
    sides = set()
    for query in queries:
        right, wrong = pair_of(query)
        assert query.true in right
        assert query.true not in wrong
        assert query.false in wrong
        assert query.false not in right
        assert 55 <= len(right.split()) <= 90
        assert 55 <= len(wrong.split()) <= 90
        sides.add(right.startswith(query.true) or "letter" in right)
    assert sides == {True, False}, "which passage has what follows must not always be the same"


def test_a_sentence_without_neighbours_is_its_own_passage():
    query = kit.query()
    alone = type(query)(query.row.model_copy(update={"source": query.row.source.model_copy(
        update={"start": 0, "end": len(query.true)})}), query.true, query.true, query.false)  # fmt: skip
    assert pair_of(alone) == (query.true, query.false)


def test_long_neighbours_are_cut():
    query = kit.query()
    source = query.row.source
    endless = "x " * 500
    text = endless + query.true + " " + endless
    at = text.index(query.true)
    row = query.row.model_copy(
        update={"source": source.model_copy(update={"start": at, "end": at + len(query.true)})}
    )
    for passage in pair_of(type(query)(row, text, query.true, query.false)):
        assert len(passage.split()) == 80


def test_a_query_sees_its_own_passages_alone_and_never_its_sentence_elsewhere(collection):
    for task in collection.tasks:
        shown = seen(collection, task)
        own = {collection.passages[task.right].id, collection.passages[task.wrong].id}
        made = {p.id for p in collection.passages[collection.ordinary :]}
        assert {p.id for p in shown} & made == own
        holding = [p for p in shown if task.query.true in p.text]
        assert [p.id for p in holding] == [collection.passages[task.right].id]
        # nor a half of it, cut at a passage's end
        head = task.query.true.split()[0]
        assert not [p for p in shown if p.id not in own and head in p.text.split()]
        assert task.hidden


def test_a_control_has_the_same_text_without_the_contradiction(collection):
    for task in collection.tasks:
        with_it, without = seen(collection, task), seen(collection, task, control=True)
        assert [p for p in with_it if p not in without] == [collection.passages[task.wrong]]


def test_ids_and_sources_give_nothing_away(collection):
    for task in collection.tasks:
        right, wrong = collection.passages[task.right], collection.passages[task.wrong]
        assert right.source == wrong.source
        assert right.metadata == wrong.metadata
        assert len(right.id) == len(wrong.id) == len(collection.passages[0].id)


def test_a_text_that_stands_in_several_documents_is_one_passage_and_hidden_in_all(queries, texts):
    twice = dict(texts) | {("medquad", "copy"): texts["medquad", "d1"]}
    found = build(queries, twice)
    assert len({p.id for p in found.passages}) == len(found.passages)
    assert found.ordinary == build(queries, texts).ordinary
    shifted = dict(texts) | {("medquad", "copy"): f"{'before ' * 70}{queries[1].true} after"}
    found = build(queries, shifted)
    task = found.tasks[1]
    assert [p for p in seen(found, task) if "Velantine" in p.text] == [
        found.passages[task.right],
        found.passages[task.wrong],
    ]


def test_a_sample_is_always_the_same_and_keeps_the_queries_own_documents(queries, texts):
    whole = build(queries, texts)
    few, again = (build(queries, texts, 14) for _ in range(2))
    assert few == again
    assert (few.ordinary, few.offered) == (14, whole.ordinary)
    own = {p.id for p in whole.passages[: whole.ordinary] if "plain" not in p.text}
    assert own <= {p.id for p in few.passages[: few.ordinary]}
    assert build(queries, texts, 10_000) == whole

"""Columns and groups, with what other people's files hold for names."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clinsafe.errors import UsageError
from clinsafe.protocols import MetricKey
from clinsafe.rag.slices import MOST_GROUPS, collect
from clinsafe.rag.values import ItemRecord


def row(number, values=(), missing=(), **slices):
    return ItemRecord(id=f"q{number:04d}", values=dict(values), missing=dict(missing), slices=slices)


def test_columns_stand_in_the_order_of_ids_with_nan_for_what_is_not_there():
    columns = collect([row(2, {"a": 2}), row(0, {"b": 5}, {"a": "why"}), row(1, {"a": 1})])
    assert columns.ids == ("q0000", "q0001", "q0002")
    assert np.array_equal(columns.get("a"), [math.nan, 1, 2], equal_nan=True)
    assert np.array_equal(columns.get("b"), [5, math.nan, math.nan], equal_nan=True)
    assert np.isnan(columns.get("nobody")).all()
    assert columns.why(["a"]) == "why"
    assert columns.why(["b"]) == ""
    part = columns.take(np.array([0, 2]))
    assert (part.ids, len(part)) == (("q0000", "q0002"), 2)
    assert part.get("a")[1] == 2


def test_the_most_frequent_reason_is_told():
    columns = collect(row(i, (), {"a": "rare" if i == 3 else "often"}) for i in range(5))
    assert columns.why(["a"]) == "often"
    assert columns.why(["a"], np.array([3])) == "rare"


def test_groups_become_parts_of_metric_keys_and_none_are_merged():
    named = ["type 2", "type_2", "type\x002", "", "é/1.0", "a" * 300, "=,@"]
    columns = collect(row(i, {"hit": 1}, (), **{"Sub Type!": name}) for i, name in enumerate(named))
    (group,) = columns.groups
    assert group.name == "sub_type_"
    assert len(set(group.values)) == len(named)
    assert "type_2" in group.values
    seen = []
    for where, rows in group.rows():
        assert MetricKey.parse(f"retrieval.all.hit@{where}").slice == where
        seen += rows.tolist()
    assert sorted(seen) == list(range(len(named)))
    plain = group.values.index("type_2")
    assert np.flatnonzero(group.codes == plain).tolist() == [1]


def test_a_question_without_a_slice_is_in_none_of_its_groups():
    columns = collect([row(0, {}, (), task="mcq"), row(1), row(2, {}, (), task="extraction"), row(3)])
    assert columns.groups[0].values == ("extraction", "mcq")
    assert columns.groups[0].codes.tolist() == [1, -1, 0, -1]


def test_a_slice_that_names_questions_is_left_out_and_said():
    columns = collect(row(i, {}, (), document=f"d{i}", task="mcq") for i in range(MOST_GROUPS + 1))
    assert [group.name for group in columns.groups] == ["task"]
    assert columns.left_out == {"document": MOST_GROUPS + 1}


def test_one_id_twice_and_a_value_that_is_also_missing_are_refused():
    with pytest.raises(UsageError, match="twice"):
        collect([row(1), row(2), row(1)])
    with pytest.raises(UsageError, match="q0001"):
        collect([row(1, {"a": 1}, {"a": "why"})])


def test_no_records_are_no_columns():
    columns = collect([])
    assert len(columns) == 0
    assert columns.get("hit").shape == (0,)
    assert columns.groups == ()

"""Records as columns, and the groups into which they fall.

A figure reads one value of all questions, a record holds all values of one question. Columns are numpy arrays in the
order of the question ids, so that no figure hangs on the order in which records came; what has no number is NaN here,
and only here.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from clinsafe.errors import UsageError
from clinsafe.rag.values import ItemRecord
from clinsafe.stats import Array

Codes: TypeAlias = NDArray[np.int32]
MOST_GROUPS = 50
"""A slice with more values than this names questions and does not group them; it is left out, and said so."""


@dataclass(frozen=True, slots=True)
class Group:
    """One slice name with its values, both as a metric key can hold them."""

    name: str
    values: tuple[str, ...]
    codes: Codes = field(repr=False)
    """Per question the place of its value, -1 where it has none."""

    def rows(self) -> Iterable[tuple[str, NDArray[np.intp]]]:
        """``name=value`` and the rows that have it."""
        for code, value in enumerate(self.values):
            yield f"{self.name}={value}", np.flatnonzero(self.codes == code)


@dataclass(frozen=True, slots=True)
class Columns:
    """All records of a run.

    Attributes:
        ids: of the questions, rising.
        values: name -> one number a question, NaN where there is none.
        reasons: name -> per question why there is none: a place in `words`, 0 where nothing is said.
        words: the reasons.
        groups: by slice name.
        left_out: slice name -> how many values it has, where they are too many to be groups.
    """

    ids: tuple[str, ...]
    values: Mapping[str, Array] = field(repr=False)
    reasons: Mapping[str, Codes] = field(repr=False)
    words: tuple[str, ...] = ("",)
    groups: tuple[Group, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    def get(self, name: str) -> Array:
        """One value of all questions; NaN throughout where nobody measured it."""
        found = self.values.get(name)
        return np.full(len(self.ids), np.nan) if found is None else found

    def ends(self, prefix: str) -> list[str]:
        """What follows the prefix in the names of values and of reasons, sorted."""
        names = {*self.values, *self.reasons}
        return sorted(name[len(prefix) :] for name in names if name.startswith(prefix))

    def why(self, names: Sequence[str], rows: NDArray[np.intp] | None = None) -> str:
        """The most frequent reason why these have no number, "" where none is given."""
        told: Counter[int] = Counter()
        for name in names:
            codes = self.reasons.get(name)
            if codes is not None:
                told.update((codes if rows is None else codes[rows]).tolist())
        del told[0]
        if not told:
            return ""
        return self.words[min(told, key=lambda code: (-told[code], self.words[code]))]

    def take(self, rows: NDArray[np.intp]) -> Columns:
        """Some of the questions."""
        groups = tuple(Group(one.name, one.values, one.codes[rows]) for one in self.groups)
        return Columns(
            tuple(self.ids[row] for row in rows.tolist()),
            {name: column[rows] for name, column in self.values.items()},
            {name: codes[rows] for name, codes in self.reasons.items()},
            self.words,
            groups,
            self.left_out,
        )


def collect(records: Iterable[ItemRecord]) -> Columns:
    """Columns of records, which are read once and not kept.

    Raises:
        UsageError: two records have one id, or a value of a record also has a reason why it is missing.
    """
    ids: list[str] = []
    values: dict[str, array[float]] = {}
    reasons: dict[str, array[int]] = {}
    words: dict[str, int] = {"": 0}
    raw: dict[str, array[int]] = {}
    told: dict[str, dict[str, int]] = {}
    for row, record in enumerate(records):
        ids.append(record.id)
        for name, value in record.values.items():
            _grown(values, name, "d", row, np.nan).append(value)
        for name, why in record.missing.items():
            if name in record.values:
                raise UsageError(f"record {_shown(record.id)}: {name} has a value and a reason to have none")
            _grown(reasons, name, "i", row, 0).append(words.setdefault(why or "not measured", len(words)))
        for name, value_of in record.slices.items():
            seen = told.setdefault(name, {})
            _grown(raw, name, "i", row, -1).append(seen.setdefault(value_of, len(seen)))
    order = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.intp)
    ordered = tuple(ids[row] for row in order.tolist())
    if twice := next((a for a, b in pairwise(ordered) if a == b), None):
        raise UsageError(f"record {_shown(twice)}: its id stands twice; each question is one record")
    n = len(ids)
    groups, left_out = _groups({name: _dense(column, n, -1)[order] for name, column in raw.items()}, told)
    return Columns(
        ordered,
        {name: _dense(column, n, np.nan)[order] for name, column in values.items()},
        {name: _dense(column, n, 0)[order] for name, column in reasons.items()},
        tuple(words),
        groups,
        left_out,
    )


def _grown(columns: dict[str, Any], name: str, kind: str, rows: int, fill: float) -> Any:
    """The column of a name, an `array.array` as long as the rows before this one."""
    column = columns.get(name)
    if column is None:
        column = columns[name] = array(kind)
    if lacks := rows - len(column):
        column.extend([fill] * lacks)
    return column


def _dense(column: Any, n: int, fill: float) -> Any:
    whole = np.full(n, fill, dtype=np.float64 if column.typecode == "d" else np.int32)
    whole[: len(column)] = column
    return whole


def _groups(
    raw: Mapping[str, Codes], told: Mapping[str, Mapping[str, int]]
) -> tuple[tuple[Group, ...], dict[str, int]]:
    found, left_out = [], {}
    for name, safe in _plain(raw, r"[^a-z0-9_]", "s_", lower=True).items():
        values = told[name]
        if len(values) > MOST_GROUPS:
            left_out[safe] = len(values)
            continue
        plain = _plain(values, r"[^\w.\-/]", "")
        ranked = sorted(plain.values())
        places = np.array([ranked.index(plain[value]) for value in values] + [-1], dtype=np.int32)
        found.append(Group(safe, tuple(ranked), places[raw[name]]))  # the code -1 takes the last place
    return tuple(sorted(found, key=lambda one: one.name)), left_out


def _plain(texts: Iterable[str], wrong: str, start: str, lower: bool = False) -> dict[str, str]:
    """Each text as a part of a metric key; texts that would become the same are numbered and never merged."""

    def plainly(text: str) -> str:
        base = re.sub(wrong, "_", text.lower() if lower else text)[:80] or "_"
        return start + base if start and not re.match(r"[a-z]", base) else base

    found: dict[str, str] = {}
    taken: set[str] = set()
    for text in sorted(
        texts, key=lambda one: (plainly(one) != one, one)
    ):  # who needs no change keeps its name
        base = plainly(text)
        plain, number = base, 2
        while plain in taken:
            plain, number = f"{base}_{number}", number + 1
        taken.add(plain)
        found[text] = plain
    return found


def _shown(text: str) -> str:
    return repr(text[:60])

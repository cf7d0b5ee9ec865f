"""No text is encoded twice, memory is bounded, a second run reads the disk, and what is no vector is refused."""

from __future__ import annotations

import sqlite3
import threading

import numpy as np
import pytest

from clinsafe.adapters.reference import FakeEncoder
from clinsafe.errors import ModelError
from clinsafe.protocols import Encoder, ModelIdentity
from clinsafe.rag.vectors import FILE, CachedEncoder, unit_rows


class Counting(FakeEncoder):
    """The words fake, which notes what it is asked."""

    def __init__(self, revision: str = "") -> None:
        super().__init__("words")
        self.identity = ModelIdentity("counting", revision)
        self.calls: list[list[str]] = []

    def encode(self, texts, /):
        self.calls.append(list(texts))
        return super().encode(texts)


class Giving:
    """Gives one array, whatever it is asked."""

    identity = ModelIdentity("odd/model")

    def __init__(self, rows) -> None:
        self.rows = rows

    def encode(self, texts, /):
        return self.rows


def test_one_call_for_a_batch_and_none_for_what_is_known():
    inner = Counting()
    cached = CachedEncoder(inner)
    assert isinstance(cached, Encoder)
    rows = cached.encode(["a b", "c", "a b"])
    assert inner.calls == [["a b", "c"]]
    assert np.array_equal(rows, FakeEncoder("words").encode(["a b", "c", "a b"]))
    again = cached.encode(["c", "d", "a b"])
    assert inner.calls[1:] == [["d"]]
    assert np.array_equal(again[[0, 2]], rows[[1, 0]])
    assert (cached.encoded, len(cached)) == (3, 3)
    assert cached.encode([]).shape == (0, 64)


def test_memory_is_bounded_and_the_longest_unused_goes_first():
    inner = Counting()
    cached = CachedEncoder(inner, capacity=2)
    assert cached.encode(["a", "b", "c", "d"]).shape == (4, 64)
    assert len(cached) == 2
    cached.encode(["c"])
    cached.encode(["e"])
    inner.calls.clear()
    cached.encode(["c", "e"])
    assert inner.calls == []
    cached.encode(["d"])
    assert inner.calls == [["d"]]
    nothing = CachedEncoder(Counting(), capacity=0)
    assert nothing.encode(["a", "a"]).shape == (2, 64)
    assert len(nothing) == 0


def test_callers_cannot_change_what_is_kept():
    cached = CachedEncoder(Counting())
    cached.encode(["a"])[:] = 0
    assert np.linalg.norm(cached.encode(["a"])) == pytest.approx(1)


def test_a_second_run_encodes_nothing_and_another_model_everything(tmp_path):
    first = CachedEncoder(Counting(), folder=tmp_path / "new")
    rows = first.encode(["a", "b c"])
    first.close()
    second = CachedEncoder(Counting(), folder=tmp_path / "new")
    assert np.array_equal(second.encode(["b c", "a"]), rows[[1, 0]])
    assert second.encoded == 0
    other = CachedEncoder(Counting("2"), folder=tmp_path / "new")
    other.encode(["a"])
    assert other.encoded == 1
    assert (tmp_path / "new" / FILE).stat().st_mode & 0o077 == 0


def test_a_file_that_is_none_is_done_without(tmp_path):
    (tmp_path / FILE).write_bytes(b"no database at all" * 100)
    cached = CachedEncoder(Counting(), folder=tmp_path)
    assert cached.encode(["a"]).shape == (1, 64)
    blocked = CachedEncoder(Counting(), folder=tmp_path / FILE)
    assert blocked.encode(["a"]).shape == (1, 64)


@pytest.mark.parametrize(
    "blob", [b"", b"abc", np.full(64, np.nan, "<f4").tobytes(), np.zeros(64, "<f4").tobytes(), "text"]
)
def test_damaged_rows_are_made_again(tmp_path, blob):
    first = CachedEncoder(Counting(), folder=tmp_path)
    rows = first.encode(["a"])
    first.close()
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute("UPDATE vectors SET row = ?", (blob,))
    connection.close()
    second = CachedEncoder(Counting(), folder=tmp_path)
    assert np.array_equal(second.encode(["a"]), rows)
    assert second.encoded == 1


@pytest.mark.parametrize(
    "rows",
    [
        np.full((2, 4), np.nan),
        np.array([[1, 0], [np.inf, 0]]),
        np.array([[1.0, 0], [0, 0]]),
        np.ones((1, 4)),
        np.ones(2),
        np.ones((2, 0)),
    ],
)
def test_what_is_no_vector_is_one_line_without_the_texts(rows):
    for encode in (lambda texts: unit_rows(Giving(rows), texts), CachedEncoder(Giving(rows)).encode):
        with pytest.raises(ModelError, match="odd/model") as error:
            encode(["secret words", "b"])
        assert "secret" not in str(error.value)
        assert "\n" not in str(error.value)


def test_rows_of_another_length_become_unit_rows():
    assert np.linalg.norm(unit_rows(Giving([[3.0, 4.0]]), ["a"])) == pytest.approx(1)


def test_another_number_of_dimensions_is_refused():
    inner = Giving(np.eye(1, 4))
    cached = CachedEncoder(inner)
    cached.encode(["a"])
    inner.rows = np.eye(1, 5)
    with pytest.raises(ModelError, match="dimensions"):
        cached.encode(["b"])


def test_half_a_character_is_encoded_as_something():
    inner = Counting()
    CachedEncoder(inner).encode(["a \ud800 b"])
    assert inner.calls == [["a ? b"]]


def test_several_threads_get_what_one_gets(tmp_path):
    cached = CachedEncoder(Counting(), capacity=3, folder=tmp_path)
    texts = [f"word{number % 7}" for number in range(40)]
    expected, found = FakeEncoder("words").encode(texts), []
    workers = [threading.Thread(target=lambda: found.append(cached.encode(texts))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 4
    assert all(np.array_equal(rows, expected) for rows in found)
    assert cached.encoded == 7

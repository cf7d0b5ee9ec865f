"""A file of questions: what is good is kept, what is bad is told by line and field, and never quoted."""

from __future__ import annotations

import gzip
import json
from itertools import islice

import pytest

from clinsafe.errors import ContentError, UsageError
from clinsafe.rag.question import Question
from clinsafe.rag.questions import read_questions
from clinsafe.rag.trace import BadLine

WHOLE = {
    "id": "q1", "question": "Is it safe?", "references": ["yes", "yes", "It is."], "expected": "yes",
    "options": {"yes": "yes", "no": "no"}, "task": "mcq", "documents": ["d1"], "slices": {"intent": "dose"},
}  # fmt: skip


def write(path, *rows):
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def test_all_fields(tmp_path):
    (found,) = read_questions(write(tmp_path / "q.jsonl", WHOLE))
    assert found == Question(
        "q1",
        "Is it safe?",
        ("yes", "It is."),
        {"yes": "yes", "no": "no"},
        "yes",
        "mcq",
        ("d1",),
        {"intent": "dose"},
    )


@pytest.mark.parametrize(
    ("row", "field", "value"),
    [
        ({"id": 7, "question": "?"}, "id", "7"),
        ({"id": "a", "question": "?"}, "documents", None),
        ({"id": "a", "question": "?", "relevant": []}, "documents", ()),
        ({"id": "a", "question": "?", "reference": "x", "references": ["y"]}, "references", ("x", "y")),
        ({"id": "a", "question": "?", "references": "y"}, "references", ("y",)),
        ({"id": "a", "question": "?", "options": ["yes", "no"]}, "options", {"yes": "yes", "no": "no"}),
    ],
)
def test_other_ways_to_say_it(tmp_path, row, field, value):
    (found,) = read_questions(write(tmp_path / "q.jsonl", row))
    assert getattr(found, field) == value


CANARY = "Mr Canary"
BAD = [
    ({"question": CANARY}, "id"),
    ({"id": "", "question": CANARY}, "id"),
    ({"id": "n" * 201, "question": CANARY}, "id"),
    ({"id": True, "question": CANARY}, "id"),
    ({"id": "b"}, "question"),
    ({"id": "b", "question": "  \n"}, "question"),
    ({"id": "b", "question": None}, "question"),
    ({"id": "b", "question": CANARY, "answr": "x"}, "answr"),
    ({"id": "b", "question": CANARY, "task": "essay"}, "task"),
    ({"id": "b", "question": CANARY, "task": "mcq"}, ""),
    ({"id": "b", "question": CANARY, "options": {"A": "x"}}, "options"),
    ({"id": "b", "question": CANARY, "options": ["x", "x"]}, "options"),
    ({"id": "b", "question": CANARY, "options": ["x", "y"], "expected": "z"}, ""),
    ({"id": "b", "question": CANARY, "documents": [], "relevant": []}, ""),
    ({"id": "b", "question": CANARY, "documents": "d1"}, "documents"),
    ({"id": "b", "question": CANARY, "slices": {"a": 1}}, "slices.a"),
    ({"id": "good1", "question": CANARY}, "id"),
    (b'{"id": "b", "question": "\\ud800 Mr Canary"}', "question"),
    (b'{"id": "b", "id": "c", "question": "Mr Canary"}', "id"),
    (b'{"id": "b", "question": "Mr Canary', ""),
    (b"[1]", ""),
    (b"\xff\xfe Mr Canary", ""),
    (b"[" * 100_000, ""),
]


@pytest.mark.parametrize(("row", "field"), BAD)
def test_a_bad_line_is_told_and_the_good_ones_are_kept(tmp_path, row, field):
    good = [{"id": f"good{n}", "question": "?"} for n in (1, 2)]
    first, bad, last = read_questions(write(tmp_path / "q.jsonl", good[0], row, good[1]))
    assert (first.id, last.id) == ("good1", "good2")
    assert isinstance(bad, BadLine)
    assert bad.number == 2
    assert bad.field in (field, field.partition(".")[0])
    assert CANARY not in str(bad)
    assert "\n" not in str(bad)


def test_the_file_is_not_read_ahead(tmp_path):
    path = write(tmp_path / "q.jsonl.gz", b"")
    with gzip.open(path, "wb") as stream:
        for number in range(5_000):
            stream.write(b'{"id": %d, "question": "?"}\n' % number)
        stream.write(b"x" * 200_000)
    path.write_bytes(path.read_bytes()[:-150])  # the end is not there
    assert [one.id for one in islice(read_questions(path), 3)] == ["0", "1", "2"]
    with pytest.raises(ContentError):
        list(read_questions(path))


def test_a_path_that_is_none_is_one_line(tmp_path):
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "q.csv").write_text("id,question")
    (tmp_path / "bin.jsonl").write_bytes(b"\0" * 100)
    for path in ("gone.jsonl", "", "q.csv", "empty.jsonl", "bin.jsonl"):
        with pytest.raises(UsageError) as caught:
            list(read_questions(tmp_path / path))
        assert "\n" not in str(caught.value)

"""Files as they are found: a bad line is named with its field and spoils nothing, and nothing of it is quoted."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import pytest

from clinsafe.errors import UsageError
from clinsafe.rag.formats import BadLine, read_items
from clinsafe.rag.item import Item

GOOD = {"question": "q?", "answer": "a", "contexts": ["one"]}
SECRET = "Jane Roe has a secret"


@pytest.fixture
def between(tmp_path):
    """Read a line that stands between two good ones: ours must be the only bad one."""

    def run(line, **options):
        path = tmp_path / "t.jsonl"
        good = [json.dumps({**GOOD, "id": name}).encode() for name in "ab"]
        path.write_bytes(good[0] + b"\n" + line + b"\n" + good[1] + b"\n")
        found = list(read_items(path, **options))
        assert [one.id for one in found if isinstance(one, Item)] in (
            ["a", "b"],
            ["a", "line-2", "b"],
            ["a", "x", "b"],
        )
        return [one for one in found if isinstance(one, BadLine)]

    return run


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"contexts": 5}, "contexts"),
        ({"contexts": ["x", 5]}, "contexts.1"),
        ({"contexts": [{"score": 1}]}, "contexts.0"),
        ({"contexts": [{"text": "x", "id": "a\x00b"}]}, "contexts.0.id"),
        ({"contexts": [{"text": "x", "id": {}}]}, "contexts.0.id"),
        ({"context": ["other"]}, "context"),
        ({"question": [SECRET]}, "question"),
        ({"answer": {"text": SECRET}}, "answer"),
        ({"answer": True}, "answer"),
        ({"id": f"{SECRET}\n"[:4] + "\x07b"}, "id"),
        ({"id": "x" * 201}, "id"),
        ({"id": 1.5}, "id"),
        ({"id": True}, "id"),
        ({"id": "\u202e"}, "id"),
        ({"relevance": {SECRET: "high"}}, "relevance.0"),
        ({"relevance": {"d": float("nan")}}, "relevance.0"),
        ({"relevance": {"d": -1}}, "relevance.0"),
        ({"relevance": [SECRET]}, "relevance"),
        ({"eligible": "d"}, "eligible"),
        ({"options": {"A": 1}}, "options.0"),
        ({"reference": {"x": SECRET}}, "reference"),
    ],
)
def test_a_wrong_field_is_named(between, change, field):
    (bad,) = between(json.dumps({**GOOD, **change}).encode())
    assert (bad.number, bad.field) == (2, field)
    assert "Jane" not in str(bad)


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[1]",
        b'"Jane"',
        b"null",
        b"\xff\xfe\x00",
        b'{"Jane": \xff}',
        b'{"question": "q",}',
        b'{"question": "q"},',
        b"[" * 100_000,
        b'{"question": "Jane", "question": "b"}',
        b'{"question": ' + b"9" * 5000 + b"}",
        b"\x00" * 10,
        b'{"Jane Roe": 1}',
    ],
)
def test_a_line_that_is_no_row_is_not_quoted(between, line):
    (bad,) = between(line)
    assert bad.number == 2
    assert "Jane" not in str(bad)


@pytest.mark.parametrize(
    "change",
    [
        {"contexts": [{"text": "x", "score": float("inf")}]},
        {"answer": "lone \ud800 surrogate"},
        {"metadata": "no object"},
        {"metadata": {"deep": {"er": 1}}},
        {"answer": "\x00 control \x1b"},
        {"question": "x\u2028y"},
    ],
)
def test_what_is_odd_but_harmless_is_read(between, change):
    assert between(json.dumps({**GOOD, **change}).encode()) == []


def test_texts_can_be_written_again(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({**GOOD, "answer": "a\ud800", "contexts": ["\udfff"]}), encoding="utf-8")
    (item,) = read_items(path)
    (item.answer + item.contexts[0].text).encode()


def test_an_id_that_was_there_before_is_refused(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps({**GOOD, "id": n}) for n in (1, 2, 1, "1")), encoding="utf-8")
    found = list(read_items(path))
    assert [(one.number, one.field) for one in found if isinstance(one, BadLine)] == [(3, "id"), (4, "id")]


def test_mark_and_line_ends_of_windows(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join([json.dumps(GOOD).encode()] * 2) + b"\r\n\r\n")
    assert [one.id for one in read_items(path)] == ["line-1", "line-2"]


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_an_empty_file_has_no_items(tmp_path, content):
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)
    reader = read_items(path)
    assert list(reader) == []
    assert reader.detected is None


def test_a_binary_file_is_bad_lines_and_no_traceback(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(bytes(range(256)) * 20)
    found = list(read_items(path))
    assert found
    assert all(isinstance(one, BadLine) for one in found)


def test_a_line_without_end_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("clinsafe.rag.formats.lines.LONGEST", 1000)
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(GOOD) + "\n" + "x" * 10_500 + "\n" + json.dumps(GOOD) + "\n", encoding="utf-8")
    first, long, last = read_items(path)
    assert (first.line, last.line) == (1, 3)
    assert long.number == 2


def test_compressed_files_and_damaged_ones(tmp_path):
    path = tmp_path / "t.jsonl.gz"
    lines = b"".join(json.dumps({**GOOD, "answer": str(hash(str(n)))}).encode() + b"\n" for n in range(300))
    path.write_bytes(gzip.compress(lines))
    assert len(list(read_items(path))) == 300
    path.write_bytes(gzip.compress(lines)[:-400])
    *good, bad = read_items(path)
    assert all(isinstance(one, Item) for one in good)
    assert isinstance(bad, BadLine)
    assert "damaged" in bad.why


def test_arrays_and_reports(tmp_path, monkeypatch):
    path = tmp_path / "t.json"
    rows = [{**GOOD, "id": n} for n in range(3)]
    for text in (
        json.dumps(rows),
        json.dumps(rows, indent=1),
        json.dumps({"results": rows}),
        json.dumps({"results": rows}, indent=2),
    ):
        path.write_text(text, encoding="utf-8")
        assert [one.id for one in read_items(path)] == ["0", "1", "2"]
    path.write_text(json.dumps([*rows, 5]), encoding="utf-8")
    assert [one.number for one in read_items(path) if isinstance(one, BadLine)] == [4]
    path.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + ",\n]", encoding="utf-8")
    (bad,) = read_items(path)
    assert bad.number == 5
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")  # JSON Lines, named .json
    assert len(list(read_items(path))) == 3
    monkeypatch.setattr("clinsafe.rag.formats.lines.WHOLE", 50)
    path.write_text(json.dumps(rows), encoding="utf-8")
    with pytest.raises(UsageError, match="JSON Lines"):
        list(read_items(path))


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "t.jsonl"
    row = json.dumps({**GOOD, "contexts": ["word " * 100] * 10})
    with path.open("w", encoding="utf-8") as stream:
        for _ in range(600):
            stream.write(row + "\n")
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_items(path)) == 600
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < path.stat().st_size / 3

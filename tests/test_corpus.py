"""Reading corpora: what is a document, what is none, and what is said about it."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.corpus import Document, Layout, corpus_files, read_corpus, windows
from clinsafe.errors import ContentError, UsageError

SECRET = "Mrs Canary Featherstone"


def written(path, *rows):
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    data = b"".join(line + b"\n" for line in lines)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def read(path, layout=Layout()):  # noqa: B008
    bad = []
    return list(read_corpus(path, layout, bad.append)), bad


# ── what is read ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["notes.jsonl", "notes.ndjson", "notes.jsonl.gz", "NOTES.JSONL"])
def test_json_lines_with_ids_numbers_and_a_line_without_one(tmp_path, name):
    path = written(
        tmp_path / name, {"id": "a", "text": "one"}, b"", {"id": 7, "text": "two"}, {"text": "three"}
    )
    documents, bad = read(path)
    assert [(d.id, d.text, d.cluster) for d in documents] == [
        ("a", "one", "a"),
        ("7", "two", "7"),
        (f"{name}:4", "three", f"{name}:4"),
    ]
    assert not bad


def test_fields_are_joined_lists_too_and_short_columns_are_kept(tmp_path):
    row = {"pmid": 3, "q": "Why?", "contexts": ["A.", "", "B."], "year": 2011, "long": "x" * 300, "from": "j"}
    path = written(tmp_path / "n.jsonl", row)
    (document,), _ = read(path, Layout(id="pmid", text=("q", "contexts"), cluster="from"))
    assert document == Document("3", "Why?\n\nA.\n\nB.", "j", {"year": "2011"})


def test_a_folder_is_read_in_the_order_of_its_paths_and_hidden_files_are_left(tmp_path):
    for name in ("b.md", "sub/a.txt", "a.txt", ".hidden.txt", ".git/x.txt", "c.pdf"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"text of {name}")
    documents, _ = read(tmp_path)
    assert [d.id for d in documents] == ["a.txt", "b.md", "sub/a.txt"]
    assert documents[2].text == "text of sub/a.txt"


def test_a_folder_of_parts_is_one_corpus(tmp_path):
    written(tmp_path / "part-2.jsonl", {"text": "two"})
    written(tmp_path / "part-1.jsonl", {"text": "one"})
    documents, _ = read(tmp_path)
    assert [d.id for d in documents] == ["part-1.jsonl:1", "part-2.jsonl:1"]
    assert [name for _, name in corpus_files(tmp_path)] == ["part-1.jsonl", "part-2.jsonl"]


def test_parquet_gives_what_json_lines_give(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    rows = [{"id": f"{n}", "text": f"note {n}", "from": n % 3, "vector": [0.0, 1.0]} for n in range(1000)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "n.parquet", row_group_size=300)
    layout = Layout(cluster="from")
    assert read(tmp_path / "n.parquet", layout) == read(written(tmp_path / "n.jsonl", *rows), layout)


def test_a_byte_order_mark_is_no_fault(tmp_path):
    path = written(tmp_path / "n.jsonl", b"\xef\xbb\xbf" + json.dumps({"id": "a", "text": "x"}).encode())
    assert [d.id for d in read(path)[0]] == ["a"]


# ── what is none ───────────────────────────────────────────────────────────────────────────────

BAD = {
    "not JSON": (b'{"id": "x", "text": "' + SECRET.encode(), None, "not JSON"),
    "no object": (b'["' + SECRET.encode() + b'"]', None, "not a JSON object"),
    "not UTF-8": (b'{"id": "x", "text": "\xff ' + SECRET.encode() + b'"}', None, "not UTF-8"),
    "a field twice": ({}, None, ""),
    "empty text": ({"id": "x", "text": " \n"}, "text", "is empty"),
    "no text": ({"id": "x", "body": SECRET}, "text", "the record has: id, body"),
    "text of another kind": ({"id": "x", "text": {"a": SECRET}}, "text", "must be text"),
    "id of another kind": ({"id": ["x"], "text": SECRET}, "id", "must be text or a whole number"),
    "true is no id": ({"id": True, "text": SECRET}, "id", "must be text or a whole number"),
    "id twice": ({"id": "a", "text": SECRET}, "id", "was there before"),
    "half a character": ({"id": "x", "text": SECRET + "\ud800"}, "text", "half a character"),
    "nested too deeply": (b'{"id": "x", "text": ' + b"[" * 100_000, None, "not JSON"),
    "a number too long": (b'{"id": ' + b"1" * 5000 + b', "text": "a"}', None, "not JSON"),
}
BAD["a field twice"] = (
    b'{"id": "x", "text": "a", "text": "' + SECRET.encode() + b'"}',
    "text",
    "given twice",
)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_record_is_told_with_its_place_and_without_its_text_and_the_rest_is_read(tmp_path, name):
    row, field, said = BAD[name]
    path = written(tmp_path / "n.jsonl", {"id": "a", "text": "one"}, row, {"id": "b", "text": "two"})
    documents, (bad,) = read(path)
    assert [d.id for d in documents] == ["a", "b"]
    assert (bad.path, bad.line, bad.field) == (path, 2, field)
    assert said in str(bad)
    assert str(bad).startswith(f"{path}:2: ")
    assert SECRET not in str(bad)
    assert "\n" not in str(bad)
    with pytest.raises((ContentError, UsageError), match=r"n\.jsonl:2"):
        list(read_corpus(path))


def test_a_named_cluster_must_be_there_else_one_source_would_pass_for_many(tmp_path):
    path = written(tmp_path / "n.jsonl", {"id": "a", "text": "x", "c": "s"}, {"id": "b", "text": "y"})
    documents, (bad,) = read(path, Layout(cluster="c"))
    assert [d.cluster for d in documents] == ["s"]
    assert (bad.line, bad.field) == (2, "c")


def test_a_text_file_that_is_empty_or_not_utf8_is_a_bad_record(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"")
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe")
    (tmp_path / "c.txt").write_text("text")
    documents, bad = read(tmp_path)
    assert [d.id for d in documents] == ["c.txt"]
    assert [(record.path.name, record.line) for record in bad] == [("a.txt", None), ("b.txt", None)]


def test_a_parquet_row_that_is_not_utf8_is_a_bad_record(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    raw = pa.array([b"one", b"\xff", b"two"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    pq.write_table(pa.table({"id": ["a", "b", "c"], "text": text}), tmp_path / "n.parquet")
    documents, (bad,) = read(tmp_path / "n.parquet")
    assert [d.id for d in documents] == ["a", "c"]
    assert bad.line == 2


# ── what is no corpus ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("gone.jsonl", None, "no such file"),
        ("n.pdf", b"%PDF", "not a corpus by its name"),
        ("n.jsonl", b"", "the file is empty"),
        ("n.jsonl", b"\n\n", "holds no document"),
        ("n.jsonl", '{"text": "Fieber"}'.encode("utf-16"), "not UTF-8"),
        ("n.jsonl", b"PK\x03\x04\x00\x00", "binary"),
        ("n.jsonl", b'{"text": "na\xefve"}\n{"text": "caf\xe9"}\n', "none of its 2 records can be read"),
        ("n.parquet", b"PAR1 but not really", "not a Parquet file"),
        ("n.jsonl.gz", b"", "the file is empty"),
    ],
)
def test_what_is_no_corpus_is_one_line(tmp_path, name, data, said):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError, match=said):
        read(tmp_path / name)


def test_an_empty_folder_is_no_corpus(tmp_path):
    with pytest.raises(UsageError, match="no file in this folder"):
        read(tmp_path)


def test_a_gzip_file_that_breaks_off_is_never_taken_for_a_shorter_corpus(tmp_path):
    path = written(tmp_path / "n.jsonl.gz", *({"id": n, "text": f"note {n * n}"} for n in range(5000)))
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(ContentError, match="breaks off"):
        read(path)


def test_parquet_without_the_column_names_those_there_are(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"note": ["x"]}), tmp_path / "n.parquet")
    with pytest.raises(UsageError, match=r"no column 'text'; there are: note"):
        read(tmp_path / "n.parquet")


def test_a_large_corpus_does_not_stay_in_memory(tmp_path):
    rows = ({"id": n, "text": f"{n} " + "word " * 200} for n in range(8_000))
    path = written(tmp_path / "n.jsonl", *rows)
    assert path.stat().st_size > 8_000_000
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_corpus(path)) == 8_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000


@pytest.mark.parametrize("given", ["text", "text=", "body=x", "id=a,id=b", "text=a+", ""])
def test_a_layout_of_another_form_is_one_line(given):
    with pytest.raises(UsageError, match="layout"):
        Layout.parse(given)


def test_a_layout_is_read_from_one_word():
    assert Layout.parse("text=q+contexts, cluster=src") == Layout("id", ("q", "contexts"), "src")
    assert Layout.parse("id=pmid") == Layout(id="pmid")


# ── windows ────────────────────────────────────────────────────────────────────────────────────


def test_windows_overlap_and_end_with_the_document():
    document = Document("d", " ".join(f"w{n}" for n in range(10)), "c")
    found = list(windows(document, words=4, overlap=1))
    assert [w.text for w in found] == ["w0 w1 w2 w3", "w3 w4 w5 w6", "w6 w7 w8 w9"]
    assert [w.id for w in found] == ["d#0", "d#1", "d#2"]
    assert {(w.document, w.cluster) for w in found} == {("d", "c")}


@given(
    st.text(alphabet="ab \n\u2003é", max_size=80),
    st.integers(1, 6).flatmap(lambda w: st.tuples(st.just(w), st.integers(0, w - 1))),
)
def test_windows_lose_no_word_and_their_offsets_hold(text, size):
    words, overlap = size
    found = list(windows(Document("d", text, "d"), words, overlap))
    assert all(text[w.start : w.end] == w.text for w in found)
    assert all(len(w.text.split()) <= words for w in found)
    covered = {n for w in found for n in range(w.start, w.end)}
    assert all(letter.isspace() for n, letter in enumerate(text) if n not in covered)
    assert len({w.id for w in found}) == len(found)
    if len(text.split()) > words:
        new = [set(range(b.start, b.end)) - set(range(a.start, a.end)) for a, b in pairwise(found)]
        assert all(new)


@pytest.mark.parametrize(("words", "overlap"), [(0, 0), (5, 5), (5, -1)])
def test_windows_that_would_never_end_are_refused(words, overlap):
    with pytest.raises(UsageError, match="overlap less than words"):
        list(windows(Document("d", "a b", "d"), words, overlap))

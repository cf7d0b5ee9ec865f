"""Markdown, HTML and PDF as documents: their text, nothing fetched or run, and what is none is a bad record."""

from __future__ import annotations

import sys
import time

import pytest

from clinsafe.corpus import Layout, files, pages, read_corpus
from clinsafe.corpus.pages import front_matter, html_text, mended
from clinsafe.errors import ContentError, MissingDependency, UsageError

SECRET = "Mrs Canary Featherstone"


def read(path, layout=Layout()):  # noqa: B008
    bad = []
    return list(read_corpus(path, layout, bad.append)), bad


def one(tmp_path, name, data):
    """What a folder gives that holds this file and one good text."""
    (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    (tmp_path / "good.txt").write_text("good")
    documents, bad = read(tmp_path)
    assert "good.txt" in [d.id for d in documents]
    return [d for d in documents if d.id == name], bad


def pdf(*texts):
    """A PDF with a page for each text, a line for each line of it."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for text in texts:
        lines = " T* ".join(f"({line}) Tj" for line in text.split("\n"))
        stream = f"BT /F1 12 Tf 14 TL 50 700 Td {lines} ET"
        kids.append(len(objects) + 1)
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {len(objects) + 2} 0 R "
            "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects[1] = f"<< /Type /Pages /Count {len(kids)} /Kids [{' '.join(f'{k} 0 R' for k in kids)}] >>"
    data, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    tail = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    return data + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{tail}".encode()


# ── Markdown ───────────────────────────────────────────────────────────────────────────────────


def test_front_matter_becomes_fields_and_the_rest_stays_as_it_is(tmp_path):
    text = (
        "---\ntitle: Sepsis\ndate: 2020-01-02\nanswer: no\ntags: [a, b]\nid: other\n---\n# Head\n\n* a *b*\n"
    )
    (found,), _ = one(tmp_path, "a.md", text)
    assert found.id == "a.md"
    assert found.text == "# Head\n\n* a *b*\n"
    assert found.fields == {"title": "Sepsis", "date": "2020-01-02", "answer": "no"}


@pytest.mark.parametrize(
    "text",
    [
        "no front",
        "---\nrule above\n---\ntext",
        "---\n[unclosed\n---\ntext",
        "---\ntitle: x\n",
        "text\n---\ntitle: x\n---\n",
        "---\n" + "a: " + "[" * 4_000 + "\n---\ntext",
    ],
)
def test_what_only_looks_like_front_matter_stays_in_the_text(text):
    assert front_matter(text) == (text, {})


def test_front_matter_can_name_the_cluster_and_never_the_text(tmp_path):
    (tmp_path / "a.md").write_text("---\nsource: ward\ntext: other\nmore: other\n---\nbody")
    (found,), _ = read(tmp_path, Layout(text=("text", "more"), cluster="source"))
    assert (found.text, found.cluster) == ("body", "ward")


# ── HTML ───────────────────────────────────────────────────────────────────────────────────────

PAGE = """<!DOCTYPE html><html><head><title>Dosing
 guide</title><style>p {}</style><script>var dose = 9;</script></head><body>
<nav><a href="/">Home</a></nav><!-- hidden -->
<h1>Aspirin</h1><p>Give <b>75</b>&nbsp;mg<br>once &lt; daily.</p><script>alert(1)</script>
<ul><li>with food</li><li><p>not in children</p></li></ul>
<table><tr><th>Age</th><th>Dose</th></tr><tr><td>65</td><td>75 mg</td></tr></table>
<noscript>enable scripts</noscript>after</body></html>"""


def test_headings_lists_and_cells_stay_and_scripts_styles_and_navigation_go(tmp_path):
    pytest.importorskip("lxml")
    (found,), bad = one(tmp_path, "a.html", PAGE)
    assert found.text == (
        "Aspirin\nGive 75 mg\nonce < daily.\n- with food\n- not in children\nAge | Dose\n65 | 75 mg\nafter"
    )
    assert found.fields == {"title": "Dosing guide"}
    assert not bad


def test_nothing_is_fetched_and_no_file_is_read(tmp_path):
    pytest.importorskip("lxml")
    (tmp_path / "secret").write_text(SECRET)
    page = (
        f'<?xml version="1.0"?><!DOCTYPE html [<!ENTITY x SYSTEM "{(tmp_path / "secret").as_uri()}">]>'
        f'<html><head><base href="http://127.0.0.1:9/"></head><body><p>one &x; two</p>'
        f'<iframe src="{(tmp_path / "secret").as_uri()}">frame</iframe><img src="http://127.0.0.1:9/x"></body></html>'
    )
    (found,), _ = one(tmp_path, "a.xhtml", page)
    assert SECRET not in found.text
    assert "one" in found.text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("<p>naïve ≥ 5</p>".encode(), "naïve ≥ 5"),
        (b"\xef\xbb\xbf<p>x</p>", "x"),
        ('<meta charset="latin-1"><p>naïve</p>'.encode("latin-1"), "naïve"),
        ('<meta charset="windows-1252"><p>≥ – x</p>'.encode("cp1252", "replace"), "? – x"),
        (b"plain words", "plain words"),
        (b"<ul><li><li><p>a<li><ul><li>b</ul><li></ul>c<ul><li></ul>", "- a\n- - b\n- c"),
        (b"<p>5 < 7 & 8 > 2</p>", "5 < 7 & 8 > 2"),
        (b"<p>open <b>never <i>closed", "open never closed"),
    ],
)
def test_pages_as_they_are_written(data, text):
    pytest.importorskip("lxml")
    assert html_text(data)[0] == text


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"<!-- only this -->", "is empty"),
        (b"<html><head><title>t</title></head><script>x</script></html>", "is empty"),
        ("<p>naïve</p>".encode("latin-1"), "not UTF-8"),
        (b'<meta charset="no-such"><p>na\xefve</p>', "not UTF-8"),
        ("<p>x</p>".encode("utf-16"), "not UTF-8"),
        (b"\x7fELF\0\0" + SECRET.encode(), "not UTF-8"),
    ],
)
def test_a_page_without_text_is_a_bad_record(tmp_path, data, said):
    pytest.importorskip("lxml")
    found, (bad,) = one(tmp_path, "a.html", data)
    assert not found
    assert said in str(bad)
    assert SECRET not in str(bad)


def test_a_page_nested_without_end_is_read_in_no_time():
    pytest.importorskip("lxml")
    begun = time.perf_counter()
    html_text(b"<div>" * 50_000 + b"deep" + b"</div>" * 50_000)
    assert html_text(b"<p>word</p>" * 50_000)[0].count("word") == 50_000
    assert time.perf_counter() - begun < 5


# ── PDF ────────────────────────────────────────────────────────────────────────────────────────


def test_the_pages_of_a_pdf_are_one_document(tmp_path):
    pytest.importorskip("pypdfium2")
    (found,), bad = one(tmp_path, "guide.pdf", pdf("Give aspirin\nonce daily.", "Page two."))
    assert found.text == "Give aspirin\nonce daily.\n\nPage two."
    assert not bad


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "damaged, or no PDF"),
        (b"%PDF-1.7 " + SECRET.encode(), "damaged, or no PDF"),
        (b"PK\x03\x04 a zip file", "damaged, or no PDF"),
        (pdf("", ""), "holds no text"),
    ],
)
def test_a_pdf_without_text_is_a_bad_record(tmp_path, data, said):
    pytest.importorskip("pypdfium2")
    found, (bad,) = one(tmp_path, "a.pdf", data)
    assert not found
    assert said in str(bad)
    assert "\n" not in str(bad)
    assert SECRET not in str(bad)
    with pytest.raises(ContentError, match=r"a\.pdf"):
        list(read_corpus(tmp_path))


def test_an_encrypted_pdf_says_so(tmp_path):
    pytest.importorskip("pypdfium2")
    from io import BytesIO

    pyhanko = pytest.importorskip("pyhanko.pdf_utils.writer")
    from pyhanko.pdf_utils.reader import PdfFileReader

    made = pyhanko.copy_into_new_writer(PdfFileReader(BytesIO(pdf(SECRET))))
    made.encrypt(owner_pass="owner", user_pass="user")
    stream = BytesIO()
    made.write(stream)
    found, (bad,) = one(tmp_path, "a.pdf", stream.getvalue())
    assert not found
    assert "encrypted" in str(bad)


def test_a_pdf_cut_short_gives_its_whole_text_or_none(tmp_path):
    pytest.importorskip("pypdfium2")
    whole = pdf("Do not give aspirin.")
    for cut in range(0, len(whole), 97):
        found, bad = one(tmp_path, "a.pdf", whole[:cut])
        assert len(found) + len(bad) == 1
        assert not found or found[0].text == "Do not give aspirin."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("treat\ufffe\nment", "treatment"),
        ("treat\x02\r\nment", "treatment"),
        ("5\ufffe\n10 mg", "5-10 mg"),
        ("COVID\ufffe\n19", "COVID-19"),
        ("a\r\nb\rc\0", "a\nb\nc"),
    ],
)
def test_a_hyphen_at_a_line_s_end_never_joins_numbers(text, said):
    assert mended(text) == said


# ── sizes, binaries, missing packages ──────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.pdf"])
def test_a_file_that_is_too_large_is_not_even_opened(tmp_path, name, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_PDF", files.LONGEST)
    with (tmp_path / name).open("wb") as stream:
        stream.truncate(200 << 20)  # a hole: nothing is written
    (tmp_path / "good.txt").write_text("good")
    begun = time.perf_counter()
    documents, (bad,) = read(tmp_path)
    assert time.perf_counter() - begun < 1
    assert [d.id for d in documents] == ["good.txt"]
    assert "larger than 64 MB" in str(bad)


def test_a_pdf_with_too_much_text_or_too_many_pages_is_a_bad_record(tmp_path, monkeypatch):
    pytest.importorskip("pypdfium2")
    data = pdf(*["page"] * 5)
    monkeypatch.setattr(files, "LONGEST", 20)
    monkeypatch.setattr(files, "LONGEST_PDF", len(data))
    assert "more than 20 characters" in str(one(tmp_path, "a.pdf", data)[1][0])
    monkeypatch.setattr(pages, "MOST_PAGES", 4)
    assert "more than 4 pages" in str(one(tmp_path, "a.pdf", data)[1][0])


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.markdown"])
def test_a_binary_file_with_the_name_of_a_text_is_a_bad_record(tmp_path, name):
    found, (bad,) = one(tmp_path, name, b"abc\0\1\2" + SECRET.encode())
    assert not found
    assert "not UTF-8 text" in str(bad)
    assert SECRET not in str(bad)
    with pytest.raises(UsageError, match="not UTF-8"):
        list(read_corpus(tmp_path))


@pytest.mark.parametrize(("name", "package"), [("a.html", "lxml"), ("a.pdf", "pypdfium2")])
def test_a_missing_package_is_named_with_its_fix(tmp_path, monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"<p>x</p>")
    with pytest.raises(MissingDependency, match=rf"{package}.*pip install"):
        read(tmp_path)

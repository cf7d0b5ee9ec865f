"""Tables for spreadsheets and pages: nothing is lost, and nothing that a stranger wrote is obeyed."""

from __future__ import annotations

import csv
import html
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from clinsafe.reports.tables import BOM, FORMULA_STARTS, Table, neutral, to_csv, to_markdown

NUMBERS = ("-0.12", "+3", "-1e-05", "-12 %", "-0.12 [-0.20, -0.04]", "0.9", "-7%")
FORMULAS = ("=1+1", "+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1",
            "-0.12 [-0.20, =1]", "-1-1", "--1", "-0.12\n")  # fmt: skip
# Everything that means something to a reader of CSV or of Markdown, and some that means nothing.
words = st.text(
    st.sampled_from("abß≥ 0,;\"'|\\`*_~#[]()<>&!:$@=+-\n\r\t\v\x00\x1c\x85\u2028-"), max_size=12
) | st.text(max_size=8)


@st.composite
def tables(draw):
    width = draw(st.integers(1, 4))
    row = st.tuples(*[words] * width)
    return Table("made-up", draw(words), draw(row), tuple(draw(st.lists(row, max_size=4))), draw(words))


def read_back(table):
    return [tuple(row) for row in csv.reader(io.StringIO(to_csv(table), newline=""))]


@given(tables())
def test_csv_reads_back_cell_by_cell(table):
    assert read_back(table) == [tuple(map(neutral, row)) for row in (table.columns, *table.rows)]


@given(words)
def test_no_cell_starts_a_formula_and_nothing_but_an_apostrophe_is_added(cell):
    kept = neutral(cell)
    assert kept in (cell, f"'{cell}")
    assert not kept.startswith(FORMULA_STARTS) or re.fullmatch(r"[-+0-9.eE%, \[\]]+", kept)


@pytest.mark.parametrize("cell", NUMBERS)
def test_figures_stay_figures(cell):
    assert neutral(cell) == cell


@pytest.mark.parametrize("cell", FORMULAS)
def test_formulas_are_shown_not_run(cell):
    assert neutral(cell) == f"'{cell}"


def test_csv_is_rfc_4180_and_excel_sees_unicode():
    table = Table("t", "T", ("ID", "a,b"), (('say "≥"', "x\ny"),))
    assert to_csv(table) == 'ID,"a,b"\r\n"say ""≥""","x\ny"\r\n'
    assert (BOM + "≥").encode().decode("utf-8-sig") == "≥"


def parts(text):
    """(cells of each table row, HTML) as a reader of GitHub's tables sees them."""
    page = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    return [re.findall(r"<t[hd]>(.*?)</t[hd]>", row, re.DOTALL) for row in rows], page


def squeezed(text):
    """Without the white space and control characters that no reader of Markdown keeps; NUL becomes U+FFFD there."""
    return re.sub(r"[\s\x00-\x1f\x7f]+", "", text)


@given(tables())
def test_every_line_of_a_markdown_table_has_the_same_number_of_cells(table):
    lines = [line for line in re.split(r"\r\n|\r|\n", to_markdown(table)) if line.startswith("|")]
    assert len(lines) == len(table.rows) + 2
    assert {line.count("|") for line in lines} == {len(table.columns) + 1}


@given(tables())
def test_markdown_shows_what_was_written_and_obeys_nothing(table):
    rows, page = parts(to_markdown(table))
    assert [len(row) for row in rows] == [len(table.columns)] * (len(table.rows) + 1)
    shown = [[squeezed(html.unescape(cell.replace("<br>", ""))) for cell in row] for row in rows]
    assert shown == [[squeezed(cell) for cell in row] for row in (table.columns, *table.rows)]
    assert set(re.findall(r"<(\w+)", page)) <= {"h2", "p", "table", "thead", "tbody", "tr", "th", "td", "br"}


@pytest.mark.parametrize(
    "cell",
    [
        "[a](https://example.org)",
        "![a](https://example.org/a.png)",
        "[a][b]",
        "<img src=x>",
        "`a`",
        "\\|",
        "__0__",
        "_a_",
    ],
)
def test_a_link_or_picture_is_shown_as_it_was_written(cell):
    rows, page = parts(to_markdown(Table("t", "T", ("x",), ((cell,),))))
    assert html.unescape(rows[1][0]) == cell
    assert not re.search(r"<(a|img|code)\b", page)


@pytest.mark.parametrize("between", ["\r\n", "\n", "\r", "\v", "\f", "\x85", "\u2028", "\u2029"])
def test_lines_stay_lines(between):
    rows, _ = parts(to_markdown(Table("t", "T", ("x",), ((f"a{between}b",),))))
    assert rows[1] == ["a<br>b"]


def test_markdown_has_heading_and_note():
    rows, page = parts(to_markdown(Table("t", "A | B", ("x",), (("1",),), "- not a list")))
    assert rows == [["x"], ["1"]]
    assert "<h2>A | B</h2>" in page
    assert "<p>Note: - not a list</p>" in page


@pytest.mark.parametrize(
    ("name", "columns", "rows", "words"),
    [
        ("../x", ("a",), (), "id"),
        ("", ("a",), (), "id"),
        ("Con.csv", ("a",), (), "id"),
        ("t", (), (), "no column"),
        ("t", ("a", "b"), (("1", "2"), ("1",)), "row 2"),
        ("t", ("a",), (("1", "2"),), "2 cells"),
    ],
)
def test_a_table_that_would_lose_a_cell_or_leave_its_folder_is_refused(name, columns, rows, words):
    with pytest.raises(ValueError, match=words):
        Table(name, "T", columns, rows)

"""Tables for other programs: CSV for spreadsheets and scripts, Markdown for pages and issues.

A cell may hold what a stranger wrote (the name of a model): in a spreadsheet it must not become a formula, in Markdown
no picture, no hidden link and no other column.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass

BOM = "\ufeff"
"""Put before CSV text that goes into a file. Excel takes a file without it for the code page of the country and shows
"≥" as "â‰¥"; the price is that a script reads it as ``utf-8-sig``."""

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_N = r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?"
_NUMBER = re.compile(rf"{_N} ?%?( \[{_N}, {_N}\])?", re.ASCII)
_BREAK = re.compile(r"\r\n|[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Table:
    """Text, ready to be read: every figure is formatted already.

    Attributes:
        id: names the files that it is written to: lower case, digits, ``-`` and ``_``.
        title: the heading.
        columns: one or more.
        rows: as many cells each as there are columns.
        note: what has to be known beside it, or "".

    Raises:
        ValueError: the id is no file name, there is no column, or a row has more or fewer cells.
    """

    id: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise ValueError(f"table id {self.id!r:.80} must be lower-case letters, digits, - and _")
        if not self.columns:
            raise ValueError(f"table {self.id} has no column")
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table {self.id}: row {number} has {len(row)} cells, there are {len(self.columns)} columns"
                )


def to_csv(table: Table) -> str:
    """RFC 4180: a header line, lines that end in CRLF, quotes where needed; columns and rows only, no title or note.

    A cell that a spreadsheet would run as a formula gets an apostrophe before it, numbers and estimates
    (``-0.12 [-0.20, -0.04]``) do not. Write it to a file with `BOM` before it and without newline translation.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerows([neutral(cell) for cell in row] for row in (table.columns, *table.rows))
    return text.getvalue()


def neutral(cell: str) -> str:
    """`cell`, with an apostrophe before it where a spreadsheet would take it for a formula."""
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) and not _NUMBER.fullmatch(cell) else cell


def to_markdown(table: Table) -> str:
    """Heading, table and note in GitHub's Markdown. Every line of the table has the same number of cells.

    Pipes and HTML become entities and line breaks ``<br>``; emphasis, code and links are shown, not obeyed.
    """
    lines = [table.columns, ("---",) * len(table.columns)]
    lines += [tuple(escaped(cell) for cell in row) for row in table.rows]
    lines[0] = tuple(escaped(name) for name in table.columns)
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    note = (
        f"\n\nNote: {escaped(table.note)}" if table.note else ""
    )  # the word keeps "1." or "-" from being a list
    return f"## {escaped(table.title)}\n\n{body}{note}\n"


def escaped(text: str) -> str:
    """`text` on one line, as a reader of Markdown will see it again. White space at the ends is not kept."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"[\\`*~#]|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[])", r"\\\g<0>", text)
    # An entity, not \|: readers disagree about a backslash before one.
    text = _BREAK.sub("<br>", text.replace("|", "&#124;").strip())
    return re.sub(r"[\x00-\x1f\x7f]", " ", text).strip()

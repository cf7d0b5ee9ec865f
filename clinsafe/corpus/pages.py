"""Text out of Markdown, HTML and PDF. Nothing is fetched, no script runs, no entity of another file is read."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from clinsafe.corpus.faults import NOT_TEXT, Fault
from clinsafe.errors import MissingDependency

INSTALL = "pip install 'clinsafe[rag]'"
DROPPED = {
    "script",
    "style",
    "nav",
    "noscript",
    "template",
    "head",
    "svg",
    "iframe",
    "object",
    "select",
    "button",
}
BLOCKS = {
    "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html", "legend",
    "li", "main", "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
}  # fmt: skip
CELLS = {"td", "th"}
MOST_FRONT = 16 << 10  # characters of front matter
MOST_PAGES = 20_000
PASSWORD, SECURITY = 4, 5  # pdfium's FPDF_ERR_PASSWORD and FPDF_ERR_SECURITY
_FRONT = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_SOFT = re.compile("[\ufffe\u0002]\\s*")  # what pdfium writes for a hyphen at the end of a line

Found: TypeAlias = tuple[str, dict[str, str]]
"""Text and fields of a document."""


def front_matter(text: str) -> Found:
    """A Markdown text without its front matter, whose top-level values become fields; the rest stays as it is.

    What looks like front matter and is none (no mapping, not YAML) stays in the text.
    """
    import yaml

    match = _FRONT.match(text[: MOST_FRONT + 10])
    if match is None:
        return text, {}
    try:
        fields = yaml.load(match[1], Loader=yaml.BaseLoader)  # noqa: S506 - plain strings, no objects
    except (yaml.YAMLError, RecursionError, ValueError):
        return text, {}
    if not isinstance(fields, dict):
        return text, {}
    kept = {key: value for key, value in fields.items() if isinstance(key, str) and isinstance(value, str)}
    return text[match.end() :], kept


def html_text(data: bytes) -> Found | Fault:
    """The text of a page: a line each for headings, paragraphs and list items, `` | `` between the cells of a table.

    Scripts, styles and navigation are left out; the page's title becomes the field ``title``.

    Raises:
        MissingDependency: without lxml.
    """
    try:
        from lxml import etree, html
    except ImportError as error:
        raise MissingDependency("an HTML corpus", "lxml", INSTALL) from error
    decoded = _decoded(data)
    if decoded is None:
        return Fault(None, f"{NOT_TEXT}, and the page names no encoding that fits")
    if not decoded.strip():
        return "", {}
    parser = html.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = html.document_fromstring(decoded.encode("utf-8", "replace"), parser=parser)
    except (etree.LxmlError, ValueError):
        return "", {}  # nothing but comments: an empty text, which reading calls a bad record
    title = next((found.text for found in root.iter("title") if found.text), "")
    return _tidy("".join(_pieces(etree.iterwalk(root, events=("start", "end"))))), (
        {"title": " ".join(title.split())} if title.strip() else {}
    )


def _decoded(data: bytes) -> str | None:
    """UTF-8 where it is that, else what the page itself says."""
    named = _CHARSET.search(data[:4096])
    for name in ("utf-8-sig", named[1].decode("ascii", "replace") if named else ""):
        try:
            if codecs.lookup(name).name not in ("utf-16", "utf-32", "utf-7"):
                return data.decode(name)
        except (LookupError, ValueError):
            continue
    return None


def _pieces(walk: Any) -> Iterator[str]:
    """Text in the order of the page. A loop and no recursion: pages may be nested as deeply as their author likes."""
    for event, element in walk:
        tag = element.tag if isinstance(element.tag, str) else ""
        if event == "start":
            if tag in DROPPED or not tag:
                walk.skip_subtree()
                continue
            if tag == "br" or tag in BLOCKS:
                yield "\n"
            if tag == "li":
                yield "- "
            if tag in CELLS and element.getprevious() is not None:
                yield " | "
            yield _line(element.text)
        else:
            if tag in BLOCKS:
                yield "\n"
            yield _line(element.tail)


def _line(text: str | None) -> str:
    return re.sub(r"\s+", " ", text) if text else ""


def _tidy(text: str) -> str:
    """No blanks at line ends, no second blank in a row, no empty line; a bullet stands before its text."""
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return re.sub(r"^-\n(?:-\n)*", "- ", "\n".join(filter(None, lines)), flags=re.MULTILINE).removesuffix(
        "\n-"
    )


def pdf_text(file: Path, longest: int) -> Found | Fault:
    """The text of a PDF, page by page, with an empty line between pages.

    Args:
        file: it is read from disk as pages are asked for.
        longest: characters; a text that grows longer is no document.

    Raises:
        MissingDependency: without pypdfium2.
    """
    try:
        import pypdfium2
    except ImportError as error:
        raise MissingDependency("a PDF corpus", "pypdfium2", INSTALL) from error
    try:
        with pypdfium2.PdfDocument(file) as opened:
            if len(opened) > MOST_PAGES:
                return Fault(None, f"has more than {MOST_PAGES:,} pages")
            text = _within(_pdf_pages(opened), longest)
    except pypdfium2.PdfiumError as error:
        locked = getattr(error, "err_code", None) in (PASSWORD, SECURITY)
        return Fault(
            None, "is encrypted; save it without a password" if locked else "is damaged, or no PDF at all"
        )
    except (OSError, ValueError):
        return Fault(None, "cannot be read as a PDF")
    if text is None:
        return Fault(None, f"holds more than {longest:,} characters of text")
    if not text.strip():
        return Fault(None, "holds no text, only pictures of it perhaps; run it through OCR first")
    return text, {}


def _pdf_pages(opened: Any) -> Iterator[str]:
    for number in range(len(opened)):
        page = opened[number]
        try:
            found = page.get_textpage()
            try:
                yield mended(found.get_text_bounded())
            finally:
                found.close()
        finally:
            page.close()


def mended(text: str) -> str:
    """A page's text with plain line ends; a word that was hyphenated at a line's end is whole again.

    A hyphen that does not stand between two letters is kept: ``5-`` and ``10 mg`` must not become ``510 mg``.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")

    def joined(match: re.Match[str]) -> str:
        before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
        return "" if before.isalpha() and after.islower() else "-"

    return _SOFT.sub(joined, text).strip()


def _within(pages: Iterable[str], longest: int) -> str | None:
    """The pages joined; None where that is too long."""
    kept, size = [], 0
    for page in pages:
        size += len(page) + 2
        if size > longest:
            return None
        if page:
            kept.append(page)
    return "\n\n".join(kept)

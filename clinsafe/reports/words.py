"""Do the pages say what the record says? For readers who lack the renderer that made them."""

from __future__ import annotations

import re
from html import unescape

from clinsafe.errors import MissingDependency


def missing_words(page: str, document: bytes) -> list[str]:
    """Texts of the HTML that the PDF does not hold, in order; letters and digits only, wherever lines break.

    Args:
        page: the report's HTML.
        document: the PDF made from it.
    """
    shown = _squeeze(_pdf_text(document))
    body = re.sub(r"<head>.*?</head>|<svg .*?</svg>", " ", page, flags=re.DOTALL)
    texts = [unescape(t).strip() for t in re.findall(r">([^<>]+)<", body)]
    return [text for text in texts if _squeeze(text) and not _found(text, shown)]


def _found(text: str, shown: str) -> bool:
    """Whole, or in its sentences: a page may end inside a long paragraph, and its foot then stands between."""
    if _squeeze(text) in shown:
        return True
    words = [w for w in map(_squeeze, text.split()) if w]
    return len(words) > LONG and all(w in shown for w in words)


LONG = 12


def _squeeze(text: str) -> str:
    return re.sub(r"\W+", "", text)


def _pdf_text(document: bytes) -> str:
    try:
        import pypdfium2
    except ImportError as error:
        raise MissingDependency("reading the pages", "pypdfium2", "pip install 'clinsafe[verify]'") from error
    with pypdfium2.PdfDocument(document) as pages:
        return " ".join(page.get_textpage().get_text_range() for page in pages)

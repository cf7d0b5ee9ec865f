"""Do the pages say what the record says? For readers who lack the renderer that made them."""

from __future__ import annotations

import re
from html import unescape

from clinsafe.errors import MissingDependency

NOT_IN_THE_FLOW = r"<head>.*?</head>|<svg .*?</svg>|<div class=.watermark.*?</div>"


def missing_words(page: str, document: bytes) -> list[str]:
    """Texts of the HTML that the PDF does not hold, in order; letters and digits only, wherever lines break.

    Args:
        page: the report's HTML.
        document: the PDF made from it.
    """
    shown = _squeeze(_pdf_text(document))
    body = re.sub(NOT_IN_THE_FLOW, " ", page, flags=re.DOTALL)
    texts = [unescape(t).strip() for t in re.findall(r">([^<>]+)<", body)]
    missing, place = [], 0
    for text in texts:
        after = _after(text, shown, place)
        if after is None:
            missing.append(text)
        else:
            place = after
    return missing


def _after(text: str, shown: str, place: int) -> int | None:
    """Where `text` ends in `shown`, looked for from `place` on: cells that changed places are not found."""
    whole = _squeeze(text)
    found = shown.find(whole, place)
    if found >= 0:
        return found + len(whole)
    # a page may end inside a paragraph, and its foot then stands between two of its words
    for word in filter(None, map(_squeeze, text.split())):
        found = shown.find(word, place)
        if found < 0 or len(text.split()) <= LONG:
            return None
        place = found + len(word)
    return place


LONG = 12  # words; no cell with a figure in it is longer


def _squeeze(text: str) -> str:
    return re.sub(r"\W+", "", text).casefold()  # the style sheet writes some words in capitals


def _pdf_text(document: bytes) -> str:
    try:
        import pypdfium2
    except ImportError as error:
        raise MissingDependency("reading the pages", "pypdfium2", "pip install 'clinsafe[verify]'") from error
    with pypdfium2.PdfDocument(document) as pages:
        return " ".join(page.get_textpage().get_text_range() for page in pages)

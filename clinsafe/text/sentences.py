"""Lines, bullets, section headers and sentences: clinical notes are split by their layout before their grammar."""

from __future__ import annotations

import re
from typing import NamedTuple

from clinsafe.text.context import HEADINGS, KIN

_BULLET = re.compile(r"[ ]*(?:(?:[*•]+|[-+>])[ ]+(?!\d)|\(?\d{1,2}[.)][ ]+(?=[^\W\d])|\(?[a-h][.)][ ]+)")
_HEADER = re.compile(r"[ ]*([A-Z][A-Za-z/&' ]{1,40}?)[ ]*:(?=[ ]|$)")
_END = re.compile(r"(?<![.!?])[.!?]++[\"')\]]*+(?=\s+[\"'(\[]?[^\W_]|\s*$)")
_TITLE_WORDS = "dr mr mrs ms prof st vs eg e.g i.e ie"
_TITLES = frozenset(_TITLE_WORDS.split())  # a name or the other half follows, in any case
_SHORTENED = """
approx ca no nos fig al inc pt pts resp temp max min ref dept ext hr hrs wt ht tab tabs cap caps inj staph strep spp
jan feb mar apr jun jul aug sep sept oct nov dec
"""
_SHORT = frozenset(
    _SHORTENED.split()
)  # shortened words: the sentence goes on where a small letter or a digit follows
_LAST_WORD = re.compile(r"([^\W\d_](?:[\w.]*[^\W_])?)$")
_INITIAL = re.compile(r"(?:^|\b(?:dr|mr|mrs|ms|prof)\.? |\b[A-Z]\.? ?)$", re.IGNORECASE)
_SENTENCE_LIMIT = 2000  # characters; a longer run without an end is cut at a space


class Piece(NamedTuple):
    """One sentence: a range of the cleaned text, its section header, whether it is a list item."""

    start: int
    end: int
    section: str
    bullet: bool


def split(text: str) -> list[Piece]:
    """Sentences of a cleaned text, in order. Linear in its length."""
    pieces: list[Piece] = []
    section = ""
    for start, end in _lines(text):
        bullet = _BULLET.match(text, start, end)
        begin = bullet.end() if bullet else start
        section = _section(text, begin, end, section, bullet is not None)
        pieces += [Piece(a, b, section, bullet is not None) for a, b in _sentences(text, begin, end)]
    return pieces


def _section(text: str, begin: int, end: int, section: str, bullet: bool) -> str:
    """The section that a line stands in: its own header ("Plan: …", "Family history"), else the one before."""
    header = _HEADER.match(text, begin, end)
    named = header.group(1).strip().lower() if header else text[begin : min(end, begin + 40)].strip().lower()
    if named in KIN and "family" in section:
        return f"{section.partition(':')[0]}: {named}"
    if (header and not bullet) or named in HEADINGS:
        return named
    return section


def _lines(text: str) -> list[tuple[int, int]]:
    """Line ranges; a hard-wrapped line (no end mark, next one goes on in lower case) is joined to the next."""
    lines: list[tuple[int, int]] = []
    at = 0
    for line in text.split("\n"):
        start, end = at, at + len(line)
        at = end + 1
        if not line.strip():
            lines.append((-1, -1))
        elif lines and lines[-1][0] >= 0 and _wrapped(text, lines[-1], line):
            lines[-1] = (lines[-1][0], end)
        else:
            lines.append((start, end))
    return [line for line in lines if line[0] >= 0]


def _wrapped(text: str, before: tuple[int, int], line: str) -> bool:
    start, end = before
    last = text[max(start, end - 400) : end].rstrip()[-1:]
    return (
        end - start > 40 and last not in ".!?:;" and line.lstrip()[:1].islower() and not _BULLET.match(line)
    )


def _sentences(text: str, start: int, end: int) -> list[tuple[int, int]]:
    found = []
    begin = start
    for match in _END.finditer(text, start, end):
        if match.end() < begin or (match.group() == "." and _goes_on(text, begin, match.start())):
            continue
        found.append((begin, match.end()))
        begin = match.end()
    if text[begin:end].strip():
        found.append((begin, end))
    return [part for a, b in found for part in _cut(text, a, b)]


def _goes_on(text: str, begin: int, dot: int) -> bool:
    """Whether the full stop at `dot` belongs to a shortened word, and the sentence goes on after it."""
    last = _LAST_WORD.search(text, max(begin, dot - 20), dot)
    if last is None:
        return False
    word = last.group(1).lower()
    following = text[dot + 1 : dot + 12].lstrip()[:1]
    if word in _TITLES:
        return True
    if len(word) == 1 and following.isupper():
        return _INITIAL.search(text, max(begin, last.start() - 6), last.start()) is not None
    return (
        not following.isupper()
        and (word in _SHORT or len(word) == 1 or "." in word)
        and (word not in ("no", "min", "max") or following.isdigit())
    )


def _cut(text: str, start: int, end: int) -> list[tuple[int, int]]:
    parts = []
    while text[start : start + 1].isspace() and start < end:
        start += 1
    while end - start > _SENTENCE_LIMIT:
        space = text.rfind(" ", start + _SENTENCE_LIMIT // 2, start + _SENTENCE_LIMIT)
        stop = space if space > 0 else start + _SENTENCE_LIMIT
        parts.append((start, stop))
        start = stop
    if start < end:
        parts.append((start, end))
    return parts

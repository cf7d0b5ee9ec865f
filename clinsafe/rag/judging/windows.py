"""Claims of an answer, and the runs of sentences in contexts that they are held against."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clinsafe.text.clean import clean
from clinsafe.text.sentences import Piece, split

LONGEST = 200_000  # characters of one text that are read
_WORD = re.compile(r"[^\W_]")
_TAKEN_BACK = re.compile(
    r"^\W*(?:no\W*$|false\b|incorrect\b|wrong\b|not\s+true\b|(?:but\s+)?(?:this|that|it|which|the\s+above|the\s+(?:claim|statement))\s+"
    r"(?:is|was|has\s+been|had\s+been|were|turned\s+out\s+to\s+be|proved)\s+(?:(?!not\b)\w+\s+){0,4}"
    r"(?:false|untrue|incorrect|wrong|not\s+(?:true|correct|the\s+case)|refuted|ruled\s+out|retracted|disproved|disproven|mistaken"
    r"|an?\s+(?:error|mistake|myth)))",
    re.IGNORECASE,
)
_DENIES_NEXT = re.compile(
    r"\b(?:following|below|next)\b.*\b(?:false|untrue|incorrect|wrong|not\s+true|myths?|errors?|retracted)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Window:
    """A run of sentences of one text.

    Attributes:
        text: as cleaned.
        section: header it stands under, "" for none or where the window holds it.
        turned: it is a question, or a neighbour takes it back.
    """

    text: str
    section: str = ""
    turned: bool = False

    @property
    def headed(self) -> str:
        """With its header on a line of its own, as a reader of sections needs it."""
        return f"{self.section.capitalize()}:\n{self.text}" if self.section else self.text


def sentences(text: str) -> list[str]:
    """Sentences that hold a word."""
    text = clean(text[:LONGEST]).text
    return [text[one.start : one.end] for one in split(text) if _WORD.search(text[one.start : one.end])]


def windows(contexts: Sequence[str], size: int) -> list[Window]:
    """All runs of `size` sentences, each within one context; a shorter context is one window. Each text once."""
    found: dict[Window, None] = {}
    for context in contexts:
        text = clean(context[:LONGEST]).text
        pieces = [one for one in split(text) if _WORD.search(text[one.start : one.end])]
        for first in range(max(1, len(pieces) - size + 1) if pieces else 0):
            found[_window(text, pieces, first, min(first + size, len(pieces)))] = None
    return list(found)


def _window(text: str, pieces: Sequence[Piece], first: int, after: int) -> Window:
    start, end = pieces[first].start, pieces[after - 1].end
    run, section = text[start:end], pieces[first].section
    following = text[pieces[after].start : pieces[after].end] if after < len(pieces) else ""
    before = text[pieces[first - 1].start : pieces[first - 1].end] if first else ""
    turned = run.rstrip(" \"'”)").endswith("?") or _takes_back(following) or bool(_DENIES_NEXT.search(before))
    return Window(run, "" if run.lower().startswith(section) else section, turned)


def _takes_back(sentence: str) -> bool:
    return bool(_TAKEN_BACK.match(sentence))

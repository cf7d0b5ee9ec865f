"""Sentences worth editing, parsed: statements of ordinary length, with the noun phrases that edits may move.

Reading here is spaCy's own (tokens, tags, noun phrases), so that what makes a case shares no code with the filters that
are measured on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

WORDS = (7, 42)  # shortest and longest sentence in words
_CHUNK_WORDS = 14
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z(])|\n+")
_OPEN = re.compile(r"[?\[\]{}<>=_|\"]|\.\.|https?:|\be\.g\b|\bi\.e\b|\bet al\b|\bvs?\.", re.IGNORECASE)
_ABBREVIATED = re.compile(r"(?:\b(?:Dr|Mr|Mrs|No|Fig|approx|vs|sp|spp|St)|\b[A-Z])\.$")


@dataclass(frozen=True, slots=True)
class Parsed:
    """One sentence with its parse.

    Attributes:
        doc: the spaCy document of this sentence alone.
        phrases: token index -> ends of the noun phrases that begin there, longest first.
        words, lemmas: what occurs in it, lower case.
    """

    doc: Any
    phrases: dict[int, tuple[int, ...]]
    words: frozenset[str]
    lemmas: frozenset[str]

    @property
    def text(self) -> str:
        """The sentence."""
        return str(self.doc.text)


def split(text: str) -> list[str]:
    """Sentences of a text that look like whole statements, in order."""
    parts: list[str] = []
    for part in _END.split(text):
        if parts and _ABBREVIATED.search(parts[-1]):
            parts[-1] += " " + part
        else:
            parts.append(part)
    return [" ".join(part.split()) for part in parts if _eligible(part)]


def _eligible(sentence: str) -> bool:
    """A statement of middling length that begins and ends like one, with balanced brackets."""
    words = sentence.split()
    return (
        WORDS[0] <= len(words) <= WORDS[1]
        and sentence[0].isupper()
        and sentence.rstrip().endswith(".")
        and sentence.count("(") == sentence.count(")")
        and not _OPEN.search(sentence)
        and not sentence.isupper()
    )


def parse(pipeline: Any, sentences: Sequence[str]) -> Iterator[Parsed]:
    """Parse sentences in batches; a sentence that the parser itself would split in two is left out."""
    for doc in pipeline.pipe(sentences, batch_size=128):
        if sum(1 for _ in doc.sents) == 1:
            words = frozenset(token.lower_ for token in doc)
            yield Parsed(doc, _phrases(doc), words, frozenset(token.lemma_.lower() for token in doc))


def _phrases(doc: Any) -> dict[int, tuple[int, ...]]:
    ends: dict[int, set[int]] = {}
    chunks = list(doc.noun_chunks)
    starts = {chunk.start: chunk.end for chunk in chunks}
    for chunk in chunks:
        if chunk.root.pos_ == "PRON":
            continue
        found = {chunk.end}
        end = chunk.end
        while end < len(doc) and doc[end].lower_ in ("of", "in", "with", "for") and end + 1 in starts:
            attached = doc[end].head.i
            if not chunk.start <= attached < end:
                break
            end = starts[end + 1]
            found.add(end)
        subtree = [token.i for token in chunk.root.subtree]
        whole = subtree[0] == chunk.start and subtree[-1] - subtree[0] + 1 == len(subtree)
        inside = doc[chunk.start : subtree[-1] + 1]
        if (
            whole
            and len(subtree) <= _CHUNK_WORDS
            and not any(t.pos_ in ("VERB", "AUX", "PUNCT") for t in inside)
        ):
            found.add(subtree[-1] + 1)
        ends.setdefault(chunk.start, set()).update(found)
    return {start: tuple(sorted(found, reverse=True)) for start, found in ends.items()}

"""R(c, reference): whether a passage holds the reference answer (RAG-X, III-B; decision D9), and where.

A cascade over normalised texts: the reference word for word; the share of its tokens that the passage has; the nearest
run of as many sentences as the reference has, by cosine. R finds words and likeness, never meaning: a passage that
contradicts the reference can pass every level, so each match names the window that a filter can be asked about.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from clinsafe.protocols import Encoder
from clinsafe.rag.item import Item
from clinsafe.rag.settings import Settings, Thresholds
from clinsafe.rag.vectors import unit_rows
from clinsafe.rag.windows import TOKEN, Range, best_run, covering, find_words, runs, sentences, tokens

Level: TypeAlias = Literal[0, 1, 2, 3]
Normalise: TypeAlias = Callable[[str], str]

NO_REFERENCE = "no reference answer"
NO_ENCODER = "no encoder for level 3 of R"
DIGITS = 5  # of a cosine: what lies behind them hangs on how texts were batched
_BREAK = re.compile(r"[.!?]|[^\S ]")
_LONG = 1000  # characters; longer ones may be cut into sentences without a mark
_ENDS = " .,;:!?\"'"  # a reference is a phrase; its full stop is none of its words


@dataclass(frozen=True, slots=True)
class Match:
    """What R says of one passage.

    Attributes:
        level: that fired: 1 substring, 2 token recall, 3 cosine; 0 for none; None: not measured.
        score: 1 for a substring; the share of the reference's tokens; the cosine; of level 0 the best cosine, None
            where no cosine was taken.
        reference: the one that was found, normalised.
        start, end: half-open range of the matched window in the normalised passage; 0, 0 without a match.
        window: its text.
        why: the reason where it was not measured.
    """

    level: Level | None
    score: float | None = None
    reference: str = ""
    start: int = 0
    end: int = 0
    window: str = ""
    why: str = ""

    @property
    def hit(self) -> bool | None:
        """R = 1; None where it is not known."""
        return None if self.level is None else self.level > 0


_NOTHING = Match(0)
_UNKNOWN = Match(None, why=NO_ENCODER)
_UNASKED = Match(None, why=NO_REFERENCE)


def relevance(
    items: Sequence[Item], normalise: Normalise, settings: Settings, encoder: Encoder | None = None
) -> list[tuple[Match, ...]]:
    """One match for each of the first k passages of each item; () where no passages are known.

    Several references: any of them; the strictest level counts, then the highest score, then the first reference. A
    passage without a word holds nothing. All texts that level 3 needs are encoded in one call. How items were batched
    changes nothing, but for the last decimal of a cosine where the encoder itself is not exact.

    Args:
        items: with references and passages.
        normalise: applied to passages and references.
        settings: k and the thresholds.
        encoder: for level 3. Where that level is asked for and there is no encoder, a passage in which levels 1 and 2
            found nothing is not measured.

    Raises:
        ModelError: the encoder gives no usable vectors.
    """
    meaning = "cosine" in settings.levels
    passages: dict[str, _Passage] = {}
    found: list[list[Match]] = []
    waiting: list[_Waiting] = []
    for item in items:
        contexts = (item.contexts or ())[: settings.k]
        references = _references(item.references, normalise, settings.thresholds) if contexts else []
        matches: list[Match] = []
        for context in contexts:
            passage = passages.get(context.text)
            if passage is None:
                passage = passages[context.text] = _Passage(normalise(context.text))
            match = _by_words(passage, references) if references else _UNASKED
            if match is None:
                match = _UNKNOWN if meaning and TOKEN.search(passage.text) else _NOTHING
                if match is _UNKNOWN and encoder is not None:
                    waiting.append(_Waiting(matches, len(matches), passage, references))
            matches.append(match)
        found.append(matches)
    if waiting and encoder is not None:
        _by_meaning(waiting, encoder, settings.thresholds.cosine)
    return [tuple(matches) for matches in found]


@dataclass(slots=True)
class _Reference:
    """A reference, ready to be looked for; `wanted` is empty where it has no level 2."""

    text: str
    phrase: str
    wanted: dict[str, int]
    total: int
    least: int
    _size: int = 0

    @property
    def size(self) -> int:
        """How many sentences it has."""
        if not self._size:
            inner = _BREAK.search(self.phrase) or len(self.phrase) > _LONG
            self._size = max(1, len(sentences(self.text))) if inner else 1
        return self._size


@dataclass(slots=True)
class _Passage:
    """A passage with what is made of it once, and only where it is needed."""

    text: str
    _counts: Counter[str] | None = None
    _sentences: list[Range] | None = None
    _runs: dict[int, list[Range]] = field(default_factory=dict)

    @property
    def counts(self) -> Counter[str]:
        if self._counts is None:
            self._counts = Counter(tokens(self.text))
        return self._counts

    @property
    def sentences(self) -> list[Range]:
        if self._sentences is None:
            self._sentences = sentences(self.text)
        return self._sentences

    def runs(self, size: int) -> list[Range]:
        size = min(size, max(1, len(self.sentences)))
        if size not in self._runs:
            self._runs[size] = runs(self.sentences, size)
        return self._runs[size]

    def match(self, level: Level, score: float, reference: str, start: int, end: int) -> Match:
        return Match(level, score, reference, start, end, self.text[start:end])


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A passage that level 3 has to decide, and where its match belongs."""

    matches: list[Match]
    at: int
    passage: _Passage
    references: Sequence[_Reference]


def _references(texts: Iterable[str], normalise: Normalise, thresholds: Thresholds) -> list[_Reference]:
    """Those that hold a word, each once."""
    found = []
    for text in dict.fromkeys(normalise(text) for text in texts):
        counts = Counter(tokens(text))
        if not counts:
            continue
        total = counts.total()
        # Long words are the rarest: asked for first, they send most passages away at once.
        wanted = dict(sorted(counts.items(), key=lambda one: (-len(one[0]), one[0])))
        if total < thresholds.overlap_tokens:
            wanted = {}
        phrase = text.rstrip(_ENDS).lstrip(" \"'")
        found.append(_Reference(text, phrase, wanted, total, _least(total, thresholds.overlap)))
    return found


def _least(total: int, share: float) -> int:
    """The smallest number of tokens that is at least this share of all; never 0, which would find a match anywhere."""
    least = max(1, int(share * total) - 1)
    while least / total < share:
        least += 1
    return least


def _by_words(passage: _Passage, references: Sequence[_Reference]) -> Match | None:
    text = passage.text
    for reference in references:
        if reference.phrase in text and (at := find_words(text, reference.phrase)) >= 0:
            start, end = covering(passage.sentences, at, at + len(reference.phrase))
            return passage.match(1, 1.0, reference.text, start, end)
    best, nearest = 0.0, None
    for reference in references:
        share = _recall(passage, reference) / reference.total
        if share > best:
            best, nearest = share, reference
    if nearest is None:
        return None
    start, end, _ = best_run(passage.text, passage.sentences, nearest.wanted, nearest.size, nearest.least)
    return passage.match(2, best, nearest.text, start, end)


def _recall(passage: _Passage, reference: _Reference) -> int:
    """How many of the reference's tokens the passage has, with repeats; 0 where they are too few."""
    if not reference.wanted:
        return 0
    text, spare = passage.text, reference.total - reference.least
    for token, count in reference.wanted.items():
        if token not in text:  # not even a part of a word: quicker than tokens, and it never errs
            spare -= count
            if spare < 0:
                return 0
    counts = passage.counts
    matched = sum(min(counts[token], count) for token, count in reference.wanted.items())
    return matched if matched >= reference.least else 0


def _by_meaning(waiting: Sequence[_Waiting], encoder: Encoder, least: float) -> None:
    """Level 3 of all that wait, in place."""
    rows: dict[str, int] = {}
    for one in waiting:
        for reference in one.references:
            rows.setdefault(reference.text, len(rows))
            for start, end in one.passage.runs(reference.size):
                rows.setdefault(one.passage.text[start:end], len(rows))
    vectors = unit_rows(encoder, list(rows))
    for one in waiting:
        best: tuple[float, _Reference, Range] | None = None
        for reference in one.references:
            places = one.passage.runs(reference.size)
            windows = vectors[[rows[one.passage.text[start:end]] for start, end in places]]
            cosines = np.round((windows @ vectors[rows[reference.text]]).astype(np.float64), DIGITS)
            at = int(cosines.argmax())
            if best is None or cosines[at] > best[0]:
                best = (float(cosines[at]), reference, places[at])
        if best is not None:
            cosine, reference, (start, end) = best
            hit = one.passage.match(3, cosine, reference.text, start, end)
            one.matches[one.at] = hit if cosine >= least else Match(0, cosine)

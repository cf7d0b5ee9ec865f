"""`Reading`: a text read once for all filters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from clinsafe.content import Content
from clinsafe.protocols import Span
from clinsafe.text import context
from clinsafe.text.clean import Cleaned, clean
from clinsafe.text.parse import Parser
from clinsafe.text.sentences import Piece, split
from clinsafe.text.tokens import Token
from clinsafe.text.vocabulary import Vocabulary, load_vocabulary

LONGEST = 200_000  # characters read of one text; the rest is left, and `Reading.cut` says so


@dataclass(slots=True)
class Sentence:
    """One sentence of a reading.

    Attributes:
        index: position in the text, from 0.
        start, end: half-open range in the cleaned text.
        tokens: with abbreviations spelled out.
        section: lower-cased header it stands under, "" before the first.
        bullet: whether it is a list item.
        mood: ``claim`` or ``question``; the asked proposition of a question is no claim (decision D2).
        subject: ``relative`` under a family history, else ``patient``.
        time: ``past`` under a past history, else ``current``.
    """

    index: int
    start: int
    end: int
    tokens: tuple[Token, ...]
    section: str
    bullet: bool
    mood: context.Mood
    subject: context.Subject
    time: context.Time
    keys: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.keys = frozenset([token.key for token in self.tokens if token.key])


@dataclass(slots=True)
class Reading:
    """A text with its sentences, tokens and, where asked for, a parse.

    Attributes:
        cleaned: `cleaned.text` is what offsets of tokens and sentences count in.
        sentences: in order.
        cut: True if the text was longer than `LONGEST` and its end was not read.
    """

    cleaned: Cleaned
    sentences: tuple[Sentence, ...]
    cut: bool
    parser: Parser
    _allowed: frozenset[int] | None = None
    _parses: dict[int, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The original text."""
        return self.cleaned.original

    def span(self, start: int, end: int) -> Span:
        """Original range of a cleaned range."""
        return self.cleaned.span(start, end)

    def token_span(self, tokens: Sequence[Token]) -> Span:
        """Original range from the first to the last of these tokens."""
        return self.cleaned.span(tokens[0].start, max([token.end for token in tokens]))

    def parse(self, sentence: Sentence) -> Any:
        """The sentence's spaCy Doc, token for token, or None: no pipeline, or not among the candidates."""
        if self._allowed is not None and sentence.index not in self._allowed:
            return None
        if sentence.index not in self._parses:
            self._parses[sentence.index] = self.parser.sentence(sentence.tokens)
        return self._parses[sentence.index]

    def only(self, candidates: Sequence[Span], /) -> Reading:
        """The same reading, parsing only the sentences that touch the candidates (original ranges)."""
        places = [self.span(sentence.start, sentence.end) for sentence in self.sentences]
        starts = [place.start for place in places]
        allowed: set[int] = set()
        for span in candidates:  # sentences stand in order, so those that a span touches stand together
            at = bisect_left(starts, span.end) - 1
            while at >= 0 and _touch(places[at], span):
                allowed.add(at)
                at -= 1
        return Reading(self.cleaned, self.sentences, self.cut, self.parser, frozenset(allowed), self._parses)


def _sentence(index: int, piece: Piece, tokens: tuple[Token, ...]) -> Sentence:
    mood = context.mood(tokens)
    subject, time = context.subject_of_section(piece.section), context.time_of_section(piece.section)
    return Sentence(index, piece.start, piece.end, tokens, piece.section, piece.bullet, mood, subject, time)


def _touch(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


class Reader:
    """Builds readings. Make one and keep it: it holds the vocabulary and the spaCy pipeline.

    Args:
        content: the content tree with its overlay; None takes the packaged one.
        model: see `clinsafe.text.parse.Parser`.
    """

    def __init__(self, content: Content | None = None, model: str | None = None) -> None:
        self.vocabulary: Vocabulary = load_vocabulary(content)
        self.parser = Parser(model)

    def read(self, text: str) -> Reading:
        """Read one text. Never fails on content: control characters, other scripts and emoji are tokens like others."""
        cut = len(text) > LONGEST
        cleaned = clean(text[:LONGEST] if cut else text)
        sentences: list[Sentence] = []
        for piece in split(cleaned.text):
            tokens = tuple(self.vocabulary.tokens(cleaned.text, piece.start, piece.end))
            if tokens:
                sentences.append(_sentence(len(sentences), piece, tokens))
        return Reading(cleaned, tuple(sentences), cut, self.parser)

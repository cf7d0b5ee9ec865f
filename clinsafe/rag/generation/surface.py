"""Surface similarity of an answer and its references: exact, fuzzy, ROUGE-L, token F1 (RAG-X, section III-B).

All look at texts that were normalised. Several references: the best of each metric. An answer without words is an
answer and scores 0; None is no answer and is not scored.

Tokens are words and numbers (``1.5`` and ``1,000`` are one each) and the signs that change a statement
(``% < > ≥ ≤ = ± +``); "isn't" is "is not". No word is left out: articles count, and so do negations. ROUGE-L has
rouge-score's tokens (no signs; ``1.5`` is two) without stemming, and letters outside of ASCII count as letters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from clinsafe.errors import MissingDependency
from clinsafe.text.clean import clean

Normalise: TypeAlias = Callable[[str], str]
LONGEST = 50_000
"""Characters of an answer or reference that are scored; a longer one has no score (some 8,000 words)."""
TOO_LONG = f"too long: more than {LONGEST} characters"
NO_ANSWER = "no answer"
NO_REFERENCE = "no reference answer"

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_][^\W_]*|[%<>≥≤=±+]")
_ROUGE = re.compile(r"[^\W_]+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_WORD = re.compile(r"[^\W_]")
_BLANKS = "\t\r\x0b\x0c"
_SIGNED = frozenset("0123456789%<>=+")
_SPACED = {code: " " for code in range(128) if not chr(code).isalnum()}
_EDGES = " \t\r\n.;,:!\"'`*_"


class Overlap(NamedTuple):
    """Shares in [0, 1]."""

    precision: float
    recall: float
    f1: float


class Surface(NamedTuple):
    """The four metrics of an answer, each in [0, 1] and the best of its references."""

    exact: float
    fuzzy: float
    rouge_l: float
    tokens: Overlap


@dataclass(frozen=True, slots=True)
class Prepared:
    """A text made ready once.

    Attributes:
        plain: normalised, in one case, on one line, without marks at its edges.
        tokens: for token F1.
        rouge: for ROUGE-L.
    """

    plain: str
    tokens: tuple[str, ...]
    rouge: tuple[str, ...]

    @property
    def empty(self) -> bool:
        """It holds no word."""
        return not self.rouge


def has_words(text: str) -> bool:
    """Whether there is a letter or a digit."""
    return _WORD.search(text) is not None


def words_of(text: str) -> set[str]:
    """The different words of a text in lower case; "isn't" is "isn" and "t"."""
    return set(text.translate(_SPACED).split() if text.isascii() else _ROUGE.findall(text))


def too_long(text: str) -> bool:
    """Whether it is longer than what is scored."""
    return len(text) > LONGEST


def prepare(text: str, normalise: Normalise) -> Prepared:
    """Normalise and cut into tokens. Linear in the length of the text."""
    plain = plainly(normalise(text))
    words = tuple(plain.translate(_SPACED).split() if plain.isascii() else _ROUGE.findall(plain))
    # Without figures and signs both are the same words.
    same = plain.isascii() and _SIGNED.isdisjoint(plain)
    return Prepared(plain, words if same else tuple(tokens(plain)), words)


def spelled(text: str) -> str:
    """`clean`, at once where there is nothing to clean."""
    if not text.isascii() or "'" in text or "cannot" in text.lower() or any(sign in text for sign in _BLANKS):
        return clean(text).text
    return text


def plainly(text: str) -> str:
    """One case, one line, one spelling of each sign, no marks at the edges."""
    return " ".join(spelled(text).casefold().split()).strip(_EDGES)


def tokens(text: str) -> list[str]:
    """Tokens that count for token F1, in order; see the module for which."""
    return _TOKEN.findall(_THOUSANDS.sub("", text.casefold()) if "," in text else text.casefold())


def surface(answer: Prepared, references: Sequence[Prepared]) -> Surface:
    """The best of each metric over the references.

    Args:
        answer: one without words scores 0 everywhere.
        references: at least one, each with words.
    """
    return best([one_surface(answer, reference) for reference in references])


def best(scored: Sequence[Surface]) -> Surface:
    """The highest of each metric; they need not be of the same reference."""
    return Surface(
        max(one.exact for one in scored),
        max(one.fuzzy for one in scored),
        max(one.rouge_l for one in scored),
        Overlap(*(max(values) for values in zip(*(one.tokens for one in scored), strict=True))),
    )


def one_surface(answer: Prepared, reference: Prepared) -> Surface:
    """The metrics against one reference."""
    if answer.empty or reference.empty:
        return Surface(0.0, 0.0, 0.0, Overlap(0.0, 0.0, 0.0))
    return Surface(
        float(answer.plain == reference.plain),
        fuzzy(answer.plain, reference.plain),
        rouge_l(answer.rouge, reference.rouge),
        overlap(answer.tokens, reference.tokens),
    )


def fuzzy(a: str, b: str) -> float:
    """Normalised Indel similarity: 2 · longest common subsequence / (sum of lengths), in [0, 1]."""
    return float(_rapidfuzz().Indel.normalized_similarity(a, b))


def rouge_l(answer: Sequence[str], reference: Sequence[str]) -> float:
    """F1 of the longest common subsequence of tokens, in [0, 1]."""
    if not answer or not reference:
        return 0.0
    common: int = _rapidfuzz().LCSseq.similarity(answer, reference)
    return 2 * common / (len(answer) + len(reference))


def overlap(answer: Sequence[str], reference: Sequence[str]) -> Overlap:
    """Precision, recall and F1 of the multiset of tokens, as SQuAD counts them."""
    common = (Counter(answer) & Counter(reference)).total() if answer and reference else 0
    if not common:
        return Overlap(0.0, 0.0, 0.0)
    return Overlap(common / len(answer), common / len(reference), 2 * common / (len(answer) + len(reference)))


@lru_cache(maxsize=1)
def _rapidfuzz() -> Any:
    try:
        from rapidfuzz import distance
    except ImportError:
        raise MissingDependency(
            "scoring answers", "rapidfuzz", "python -m pip install 'clinsafe[rag]'"
        ) from None
    return distance

"""List-component F1 (RAG-X, section III-B): the components that an answer and a reference share, in any order.

A text is a list where its layout shows one, else where sentences that enumerate make up at least half of its words; of
an answer it is enough that it enumerates anywhere. Text around a list is no component. Components are matched one to
one, as many as can be. Two match where they are alike but for a few characters and agree in their numbers, in whether
they deny, and in opposites such as left and right: "hyperkalaemia" is one letter from a wrong answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from clinsafe.rag.generation.enumeration import enumerated
from clinsafe.rag.generation.layout import laid_out
from clinsafe.rag.generation.surface import Normalise, fuzzy, plainly, spelled
from clinsafe.rag.generation.words import GenerationWords, any_of, packaged
from clinsafe.text.sentences import split

LEAST_SHARE = 0.5
"""Share of the words of a reference that must stand in sentences that enumerate."""
MOST = 200
"""Components of one list that are scored; a longer list has no score."""
TOO_MANY = f"too long: more than {MOST} components"
NO_LIST = "no list"

_MARKS = re.compile(r"[*_`]+")
_ARTICLE = re.compile(r"(?:an?|the)\s+")
_BRACKETS = re.compile(r"\s*\([^()]*\)")
_HEAD = re.compile(r"^([^:]{2,60}?)\s*(?::\s|\s-\s|\s—\s)")
_JOIN = re.compile(r"\s(?:and|or|&)\s", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
Signature: TypeAlias = tuple[tuple[str, ...], bool, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Component:
    """One component, made ready to be matched.

    Attributes:
        plain: normalised, without a leading article.
        short: the same without brackets and without an explanation after a colon or a dash.
        signature: numbers, whether it denies, and the sides of the opposites that it names.
    """

    plain: str
    short: str
    signature: Signature


def components(text: str, words: GenerationWords | None = None, least_share: float = 0.0) -> list[str]:
    """The components of a list as written, in order; [] where the text is none.

    Args:
        text: with its line ends.
        words: of ``benchmarks/rag/lists.yaml``.
        least_share: share of the words that must stand in sentences that enumerate, where no layout shows the list.
    """
    words, text = words or packaged(), spelled(text)
    if not any(sign in text for sign in "\n,;:).") and not _JOIN.search(text):
        return []
    found = laid_out(text, least_share)
    if found is not None:
        return [part for one in found for part in _headed(_MARKS.sub("", one).strip(), words)]
    found, inside, total = [], 0, 0
    for piece in split(text):
        sentence = text[piece.start : piece.end]
        parts = enumerated(_MARKS.sub("", sentence), words)
        length = len(sentence.split())
        found, inside, total = found + parts, inside + (length if parts else 0), total + length
        if len(found) > MOST:
            break
    return found if found and inside >= least_share * total else []


def _headed(item: str, words: GenerationWords) -> list[str]:
    """ "Gastrointestinal: nausea, vomiting and diarrhoea" under one bullet is three; no other bullet is split."""
    head, colon, rest = item.partition(": ")
    if not colon or len(head) > 60 or any(sign.isdigit() for sign in rest) or rest.count(",") < 2:
        return [item]
    return enumerated(item, words) or [item]


def prepared(parts: Sequence[str], normalise: Normalise, words: GenerationWords) -> list[Component]:
    """Components made ready; those without a word are left out."""
    found = []
    for part in parts:
        plain = _ARTICLE.sub("", plainly(normalise(part)), count=1) if part else ""
        plain = plainly(plain)
        if plain:
            short = _BRACKETS.sub("", plain)
            head = _HEAD.match(short)
            found.append(Component(plain, plainly(head[1] if head else short), _signature(plain, words)))
    return found


def list_f1(answer: Sequence[Component], reference: Sequence[Component], threshold: float) -> float:
    """F1 of the components that can be matched one to one, in [0, 1].

    Args:
        answer: any number of components.
        reference: any number of components.
        threshold: least normalised Indel similarity of two that match.
    """
    if not answer or not reference:
        return 0.0
    return 2 * _matched(answer, reference, threshold) / (len(answer) + len(reference))


def _matched(answer: Sequence[Component], reference: Sequence[Component], threshold: float) -> int:
    rows = [[_alike(a, r, threshold) for r in reference] for a in answer]
    each, other = [sum(row) for row in rows], [sum(column) for column in zip(*rows, strict=True)]
    if max(each) <= 1 and max(other) <= 1:  # nobody has a choice
        return sum(each)
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    gains = np.array(rows, dtype=np.float64)
    chosen = linear_sum_assignment(gains, maximize=True)
    return int(gains[chosen].sum())


def _alike(a: Component, b: Component, threshold: float) -> bool:
    if a.plain == b.plain:
        return True
    if a.signature != b.signature:
        return False
    if _close(a.plain, b.plain, threshold):
        return True
    # An explanation is left aside where only one of them has one: "muscle pain (myalgia)" and "muscle pain".
    explained = (a.plain != a.short) + (b.plain != b.short)
    return explained == 1 and _close(a.short, b.short, threshold)


def _close(a: str, b: str, threshold: float) -> bool:
    shorter, longer = sorted((len(a), len(b)))
    # The similarity cannot be more than this, whatever the letters are.
    return 2 * shorter >= threshold * (shorter + longer) and (fuzzy(a, b) >= threshold)


def _signature(plain: str, words: GenerationWords) -> Signature:
    negation, opposites = _patterns(words)
    numbers = tuple(sorted(number.replace(",", "") for number in _NUMBER.findall(plain)))
    found = frozenset(opposites.findall(plain))
    return numbers, negation.search(plain) is not None, found


@lru_cache(maxsize=8)
def _patterns(words: GenerationWords) -> tuple[re.Pattern[str], re.Pattern[str]]:
    w = words.lists
    whole = [side.lower() for pair in w.opposites.words for side in pair]
    begun = [side.lower() for pair in w.opposites.prefixes for side in pair]
    pattern = rf"(?<![\w-])(?:{any_of(whole)}(?!\w)|{any_of(begun)}(?=-?\w))"
    return (
        re.compile(rf"(?<![\w])(?:{any_of(w.negations)}(?!\w))|n't\b"),
        re.compile(pattern),
    )

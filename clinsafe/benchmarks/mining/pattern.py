"""The pattern language of edits: a row of items that is matched against the tokens of a parsed sentence.

    NP:x BE|~become associated with NP:y

Items are separated by blanks. ``word`` or ``one|other`` is a token as written, lower case; ``~cause`` any form of
that lemma; ``NP`` a noun phrase; ``ANY`` one to twelve tokens without a comma or semicolon; ``N`` a number in digits;
``BE`` is, are, was, were; ``V`` a verb of ``verbs.yaml``; any other word in capitals is a part of speech or tag as
spaCy names it (``ADJ``, ``VBN``); ``^`` and ``$`` are the ends of the sentence (before its stop). ``:name`` keeps
what was matched, ``?`` makes an item optional.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from clinsafe.benchmarks.mining.sentences import Parsed

BE = frozenset(("is", "are", "was", "were"))
LONGEST_ANY = 12
NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_ITEM = re.compile(r"(?P<atom>\^|\$|[^\s:?]+)(?::(?P<name>[a-z][a-z0-9]*))?(?P<optional>\?)?")

Captured = Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a pattern."""

    kind: str  # start, end, word, lemma, class
    words: frozenset[str]
    name: str = ""
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """Tokens [start, end) and what was kept, as token ranges by name."""

    start: int
    end: int
    kept: Captured


@lru_cache(maxsize=4096)
def needed(text: str) -> tuple[tuple[bool, frozenset[str]], ...]:
    """(whether lemmas are meant, words) of every item that must be there: of each, a sentence has to hold one."""
    return tuple(
        (item.kind == "lemma", BE if item.words == {"BE"} else item.words)
        for item in compile_pattern(text)
        if not item.optional and (item.kind in ("word", "lemma") or item.words == {"BE"})
    )


def possible(text: str, sentence: Parsed) -> bool:
    """Whether a sentence holds the words that the pattern needs; quick, and most patterns end here."""
    return not any(
        words.isdisjoint(sentence.lemmas if lemmas else sentence.words) for lemmas, words in needed(text)
    )


@lru_cache(maxsize=4096)
def compile_pattern(text: str) -> tuple[Item, ...]:
    """The items of a pattern.

    Raises:
        ValueError: an item that the language does not have.
    """
    items = []
    for part in text.split():
        found = _ITEM.fullmatch(part)
        if found is None:
            raise ValueError(f"{part!r} is not an item of the pattern language")
        atom, name = found["atom"], found["name"] or ""
        optional = bool(found["optional"])
        if atom in "^$":
            items.append(Item("start" if atom == "^" else "end", frozenset()))
        elif atom.startswith("~"):
            items.append(Item("lemma", frozenset(atom.replace("~", "").lower().split("|")), name, optional))
        elif atom.isupper() and all(part.isalpha() for part in atom.split("|")):
            items.append(Item("class", frozenset(atom.split("|")), name, optional))
        else:
            items.append(Item("word", frozenset(atom.lower().split("|")), name, optional))
    if not items:
        raise ValueError("the pattern is empty")
    return tuple(items)


def names(text: str) -> frozenset[str]:
    """Names that a pattern keeps."""
    return frozenset(item.name for item in compile_pattern(text) if item.name)


def matches(text: str, sentence: Parsed, verbs: Container[str]) -> list[Match]:
    """All places where the pattern matches, at most one for each first token.

    Args:
        text: the pattern.
        sentence: what it is tried on.
        verbs: lower-case forms of the verbs that ``V`` stands for.
    """
    items = compile_pattern(text)
    last = len(sentence.doc)
    found = []
    for start in range(last):
        for end, kept in _from(items, 0, start, sentence, verbs):
            if end > start:
                found.append(Match(start, end, kept))
            break
    return found


def _from(
    items: tuple[Item, ...], at: int, index: int, sentence: Parsed, verbs: Container[str]
) -> Iterator[tuple[int, dict[str, tuple[int, int]]]]:
    if at == len(items):
        yield index, {}
        return
    item = items[at]
    for end in _ends(item, index, sentence, verbs):
        for final, kept in _from(items, at + 1, end, sentence, verbs):
            yield final, {item.name: (index, end), **kept} if item.name else kept
    if item.optional:
        for final, kept in _from(items, at + 1, index, sentence, verbs):
            yield final, {item.name: (index, index), **kept} if item.name else kept


def _ends(item: Item, index: int, sentence: Parsed, verbs: Container[str]) -> Iterable[int]:
    """Where an item that begins at a token may end, the longest or likeliest first."""
    doc = sentence.doc
    if item.kind == "start":
        return [index] if index == 0 else []
    if item.kind == "end":
        return [index] if index == len(doc) - 1 and doc[index].lower_ == "." else []
    if index >= len(doc):
        return []
    if "NP" in item.words:
        return sentence.phrases.get(index, ())
    if "ANY" in item.words:
        return _any(doc, index)
    return [index + 1] if _fits(item, doc[index], verbs) else []


def _any(doc: Any, index: int) -> Iterator[int]:
    for end in range(index + 1, min(len(doc), index + LONGEST_ANY) + 1):
        if doc[end - 1].lower_ in (",", ";", ":", "(", ")", "."):
            return
        yield end


def _fits(item: Item, token: Any, verbs: Container[str]) -> bool:
    if item.kind == "word":
        return token.lower_ in item.words
    if item.kind == "lemma":
        return token.lemma_.lower() in item.words and token.pos_ != "PUNCT"
    return _of_class(item.words, token, verbs)


def _of_class(classes: frozenset[str], token: Any, verbs: Container[str]) -> bool:
    lower = token.lower_
    return (
        ("N" in classes and NUMBER.fullmatch(lower) is not None)
        or ("BE" in classes and lower in BE)
        or ("V" in classes and lower in verbs and token.pos_ in ("VERB", "AUX"))
        or token.tag_ in classes
        or token.pos_ in classes
    )

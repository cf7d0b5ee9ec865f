"""The words of lists, choices and abstentions: ``benchmarks/rag/{lists,choice,abstention}.yaml``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, TypeAlias

from pydantic import Field

from clinsafe.content import Content, Record

FOLDER = "benchmarks/rag"
Word = Annotated[str, Field(min_length=1, max_length=60, pattern=r"\S")]
Words: TypeAlias = Annotated[tuple[Word, ...], Field(min_length=1)]
Pair: TypeAlias = tuple[Word, Word]


class AbstentionWords(Record):
    """``abstention.yaml``; what each list is for stands in the file."""

    bare: Words
    speakers: Words
    answer_verbs: Words
    objects: Words
    questions: Words
    answered: Words
    sources: Words
    adjectives: Words
    silent: Words
    stated: Words
    lacking: Words
    lacked: Words
    lacking_verbs: Words
    openings: Words
    advice: Words
    talk: Words
    turns: Words


class ChoiceWords(Record):
    """``choice.yaml``; what each list is for stands in the file."""

    heads: Words
    choosing: Words
    concluding: Words
    final: Words
    right: Words
    denied: Words
    after_no: Words
    names_before: Words
    names_after: Words
    fields: Words


class Opposites(Record):
    """Pairs of which a text says one side or the other."""

    words: tuple[Pair, ...]
    prefixes: tuple[Pair, ...]


class ListWords(Record):
    """``lists.yaml``; what each list is for stands in the file."""

    lead_ins: Words
    nouns: Words
    copulas: Words
    clause_words: Words
    joins: Words
    ends: Words
    kept: Words
    opens: Words
    or_more: Words
    negations: Words
    opposites: Opposites
    denied: Words


@dataclass(frozen=True, slots=True)
class GenerationWords:
    """All three files; compared by identity, so that patterns are compiled once for each.

    Attributes:
        abstention, choice, lists: the files.
    """

    abstention: AbstentionWords
    choice: ChoiceWords
    lists: ListWords

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def load_words(content: Content | None = None) -> GenerationWords:
    """The words of a content tree, the packaged one if none is named.

    Raises:
        ContentError: a file is missing or malformed.
    """
    content = content or Content()
    return _kept(
        content.yaml(f"{FOLDER}/abstention.yaml", AbstentionWords),
        content.yaml(f"{FOLDER}/choice.yaml", ChoiceWords),
        content.yaml(f"{FOLDER}/lists.yaml", ListWords),
    )


@lru_cache(maxsize=8)
def _kept(abstention: AbstentionWords, choice: ChoiceWords, lists: ListWords) -> GenerationWords:
    return GenerationWords(abstention, choice, lists)


@lru_cache(maxsize=1)
def packaged() -> GenerationWords:
    """The words that are used where none are handed in."""
    return load_words()


def any_of(words: Iterable[str]) -> str:
    """A pattern for any of the words, the longest first; blanks stand for any run of blanks."""
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    return "(?:" + "|".join(r"\s+".join(map(re.escape, word.split())) for word in ordered) + ")"

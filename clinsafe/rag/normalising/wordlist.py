"""``benchmarks/rag/normalisation.yaml``: the words that the steps read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, PositiveInt

from clinsafe.content import Content, Record

FILE = "benchmarks/rag/normalisation.yaml"
Bound: TypeAlias = Literal["at_least", "over", "at_most", "under"]
Unit: TypeAlias = Literal["years", "months", "weeks", "days"]
Word = Annotated[str, Field(min_length=1, max_length=60, pattern=r"\S")]
Words: TypeAlias = tuple[Word, ...]


class After(Record):
    """Words after a number, by how much else must speak of age; see the file."""

    plain: Mapping[Bound, Words]
    loose: Mapping[Bound, Words]
    bare: Mapping[Bound, Words]


class AgeWords(Record):
    """How thresholds of age are written; see the file for each list."""

    bounds: Mapping[Bound, Word]
    before: Mapping[Bound, Words]
    after: After
    units: Mapping[Unit, Words]
    largest: Mapping[Unit, PositiveInt]
    old: Words
    years_old: Words
    anchors: Words
    joins: Words
    people: Words
    people_joins: Words
    babies: Words
    refused: Words
    groups: Words
    bare_from: PositiveInt
    over_from: PositiveInt
    adult_from: PositiveInt
    span_before: Words
    span_after: Words
    ends: Words
    measures: Words


class SexWords(Record):
    """What one sex is called, and the words that stand for it afterwards."""

    one: Word
    many: Word
    one_words: Words
    many_words: Words
    adjective: Word


class GenderWords(Record):
    """How gender is written; see the file for each list."""

    sexes: Mapping[Word, SexWords]
    one_person: Words
    many_persons: Words
    needs_before: Mapping[Word, Words]
    kept: Words
    after: Words


class CaseWords(Record):
    """Words whose capitals carry their meaning."""

    kept: Words


class NormalisationWords(Record):
    """The whole file."""

    ages: AgeWords
    gender: GenderWords
    case: CaseWords


def load_words(content: Content | None = None) -> NormalisationWords:
    """Read the file; an overlay's wins.

    Raises:
        ContentError: with file, line and field.
    """
    return (content or Content()).yaml(FILE, NormalisationWords)


def any_of(words: Iterable[str]) -> str:
    """A group of a pattern that matches any of these, the longest first; one space stands for up to three."""
    longest = sorted(set(words), key=lambda word: (-len(word), word))
    return "(?:" + "|".join(re.escape(word).replace(r"\ ", r"\s{1,3}") for word in longest) + ")"

"""The suite: quads of sentences that hold a contradiction and two paraphrases.

A case is ``a``, ``b`` (contradicts a in one hazard's dimension), ``a_same`` and ``b_same`` (same meaning,
other words). Similarity alone proves nothing; only the four together do (decision D1).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from clinsafe.content import Content, Record
from clinsafe.errors import ContentError, MissingDependency, UsageError
from clinsafe.text import words

FOLDER = "benchmarks/clinsafeembed"
SENTENCES = ("a", "b", "a_same", "b_same")

Stratum = Literal["balanced", "b_closer"]


def _clean(text: str) -> str:
    if text != text.strip() or "\n" in text or not words(text):
        raise ValueError("a sentence is one line of text without surrounding blanks")
    return text


Sentence = Annotated[str, Field(min_length=3, max_length=1000), AfterValidator(_clean)]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_\-]*$", max_length=60)]


class Case(Record):
    """One quad.

    Attributes:
        factor: ratio of the two numbers (>= 1), for the numerical hazard only.
        family, novel: of a mined case, the rule family that made it, and whether no cue word of that family occurred in
            the filters' rule packs when they were frozen.
    """

    id: Slug
    hazard: Slug
    subtype: Slug
    a: Sentence
    b: Sentence
    a_same: Sentence
    b_same: Sentence
    specialty: Slug
    genre: Slug
    factor: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = None
    harm: Annotated[str, Field(min_length=10, max_length=300)]
    split: Literal["dev", "test"]
    tier: Literal["written", "generated"] = "written"
    cluster: Slug
    origin: Annotated[str, Field(min_length=3)]
    family: Slug | None = None
    novel: bool | None = None

    @model_validator(mode="after")
    def _four_sentences(self) -> Case:
        if len({getattr(self, name) for name in SENTENCES}) < len(SENTENCES):
            raise ValueError("the four sentences of a case must all differ")
        return self

    @property
    def stratum(self) -> Stratum:
        """Whether the same-meaning sentence is as near in words as the contradicting one (D1)."""
        closer = edit_distance(self.a, self.a_same) <= edit_distance(self.a, self.b)
        return "balanced" if closer else "b_closer"


class Rules(Record):
    """The limits that `clinsafe suite validate` enforces; ``suite.yaml``."""

    balanced_share: float
    single_word_share: float
    long_share: float
    long_words: int
    lemma_jaccard: float
    specialties: int
    chance_band: float
    tenfold: int
    hundredfold: int


class SuiteCard(Record):
    """``benchmarks/clinsafeembed/suite.yaml``: what the suite is and what it promises."""

    suite_version: str
    title: str
    language: str
    authorship: str
    second_reader: str
    reader_check: str
    rewritten: dict[Slug, str]
    remarks: dict[Slug, str]
    clinician_review: str
    not_covered: list[str]
    test_split_sha256: str
    rules: Rules
    genres: list[Slug]
    specialties: list[Slug]
    counts: dict[Slug, dict[Slug, int]]

    @property
    def hazards(self) -> list[str]:
        """Hazard ids, in the order of the file."""
        return list(self.counts)


def load_card(content: Content) -> SuiteCard:
    """The suite's card."""
    return content.yaml(f"{FOLDER}/suite.yaml", SuiteCard)


def load_suite(
    content: Content, *, hazards: Sequence[str] | None = None, split: str | None = None
) -> list[Case]:
    """The written cases in file order.

    Args:
        content: where to read from.
        hazards: only these; None is all, and an empty list is refused: it may be a filter that met nothing.
        split: ``dev`` or ``test``; None is both (audits use all of them).

    Raises:
        ContentError: file, line and field of the first fault, a duplicate id among them.
        UsageError: an unknown hazard, or nothing left.
    """
    card = load_card(content)
    if hazards is not None and (isinstance(hazards, str) or not hazards):
        got = repr(hazards) if isinstance(hazards, str) else "an empty list, which selects nothing"
        raise UsageError(
            f"hazards: got {got}; give a list of {', '.join(card.hazards)}, or None for all of them"
        )
    wanted = list(dict.fromkeys(card.hazards if hazards is None else hazards))
    if unknown := [h for h in wanted if h not in card.counts]:
        raise UsageError(f"no hazard is called {unknown[0]!r}; there are: {', '.join(card.hazards)}")
    cases: list[Case] = []
    seen: dict[str, str] = {}
    for hazard in wanted:
        name = f"{FOLDER}/{hazard}.jsonl"
        for number, case in enumerate(content.jsonl(name, Case), start=1):
            path = content.path(name)
            if case.hazard != hazard or case.subtype not in card.counts[hazard]:
                valid = ", ".join(card.counts[hazard])
                raise ContentError(
                    path, number, "subtype", f"{case.hazard}/{case.subtype} is not one of: {valid}"
                )
            if case.id in seen:
                raise ContentError(path, number, "id", f"{case.id!r} is already used in {seen[case.id]}")
            seen[case.id] = f"{name}:{number}"
            cases.append(case)
    kept = [case for case in cases if split in (None, case.split)]
    if not kept:
        raise UsageError(f"no case is left with split {split!r}; valid: dev, test")
    return kept


def by_hazard(cases: Iterable[Case]) -> Mapping[str, list[Case]]:
    """Hazard id -> its cases, in order of first appearance."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.hazard, []).append(case)
    return groups


def split_hash(cases: Sequence[Case], split: str) -> str:
    """SHA-256 over ids and sentences of one split, in id order: what is frozen before any filter exists (D13)."""
    lines = [
        "\t".join([c.id, *(getattr(c, name) for name in SENTENCES)])
        for c in sorted(cases, key=lambda c: c.id)
        if c.split == split
    ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@lru_cache(maxsize=8192)
def edit_distance(x: str, y: str) -> int:
    """Levenshtein distance over lower-cased word tokens."""
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError as error:
        raise MissingDependency(
            "measuring edit distances", "rapidfuzz", "pip install 'clinsafe[audit]'"
        ) from error
    return int(Levenshtein.distance(words(x), words(y)))

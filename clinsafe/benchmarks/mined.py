"""A mined suite as a file: its cases, one a line, and beside it the card that says how they came about.

The cases hold text of their sources and stay with whoever may hold those; the card holds hashes, counts and rates, and
travels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field, model_validator

from clinsafe.benchmarks.suite import Case, Slug, split_hash
from clinsafe.content import Record, load_jsonl, load_yaml
from clinsafe.errors import ContentError, UsageError

CARD_SUFFIX = ".card.yaml"
SPLITS = ("dev", "test")
Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Source(Record):
    """A corpus that sentences were taken from."""

    name: Slug
    file: str
    sha256: Sha | None = None
    source: str
    licence: str
    documents: int = 0
    left_out: int = 0


class FamilyCount(Record):
    """A rule family and how many cases it gave.

    Attributes:
        novel: no cue of it occurred in the filters' rule packs at the freeze.
    """

    novel: bool
    cues: tuple[str, ...]
    dev: int
    test: int


class Freeze(Record):
    """The filters' rule packs that "novel" was decided by."""

    commit: str
    sha256: Sha
    packs: int


class Reviewed(Record):
    """Of the cases that were read, how many a reader accepted."""

    accepted: Annotated[int, Field(ge=0)]
    read: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _no_more_than_read(self) -> Reviewed:
        if self.accepted > self.read:
            raise ValueError("more cases were accepted than read")
        return self


class Review(Record):
    """One reading of a sample, by somebody who did not write the rules; `seed` is the sample's."""

    reader: str
    blind: bool
    seed: int = 0
    hazards: dict[Slug, Reviewed]


class MinedCard(Record):
    """What a mined suite is and where it came from.

    Attributes:
        sha256: split -> hash over ids and sentences, as `split_hash` makes it.
        refused: reason -> how often an edit or a sentence was turned down for it.
    """

    suite_version: str
    title: str
    language: str
    authorship: str
    second_reader: str
    clinician_review: str
    not_covered: list[str]
    seed: int
    rules_sha256: Sha
    pipeline: str
    plausibility_floor: float
    freeze: Freeze
    sources: list[Source]
    counts: dict[Slug, dict[str, int]]
    families: dict[Slug, dict[Slug, FamilyCount]]
    refused: dict[str, int]
    sha256: dict[str, Sha]
    reviews: list[Review] = Field(default_factory=list)


def card_path(path: Path) -> Path:
    """Where the card of a suite file lies: ``mined.jsonl`` has ``mined.card.yaml``."""
    return path.with_name(path.name.removesuffix(path.suffix) + CARD_SUFFIX)


def load_mined(
    path: Path, *, hazards: Sequence[str] | None = None, split: str | None = None
) -> tuple[MinedCard, list[Case]]:
    """A mined suite, checked against its card.

    Args:
        path: JSON Lines of cases; the card lies beside it.
        hazards: only these; None is all.
        split: ``dev`` or ``test``; None is both.

    Raises:
        UsageError: no file, no card, or nothing left of it.
        ContentError: a malformed case, an id given twice, or cases that are not those of the card.
    """
    beside = card_path(path)
    for needed in (path, beside):
        if not needed.is_file():
            raise UsageError(f"{needed}: no such file; `clinsafe suite mine` writes a suite and its card")
    card, cases = load_yaml(beside, MinedCard), load_jsonl(path, Case)
    first: dict[str, int] = {}
    for number, case in enumerate(cases, start=1):
        if case.id in first:
            raise ContentError(path, number, "id", f"{case.id!r} is already used in line {first[case.id]}")
        if case.tier != "generated":
            raise ContentError(
                path, number, "tier", "a mined case has tier 'generated'; tiers are never pooled"
            )
        first[case.id] = number
    for part in SPLITS:
        if split_hash(cases, part) != card.sha256.get(part):
            raise ContentError(
                path,
                None,
                None,
                f"its {part} cases are not those of {beside.name} (SHA-256); mine the suite again",
            )
    _refuse_mixed(path, cases, card)
    if unknown := set(hazards or ()) - set(card.counts):
        raise UsageError(f"no hazard is called {min(unknown)!r}; there are: {', '.join(card.counts)}")
    kept = [c for c in cases if (hazards is None or c.hazard in hazards) and split in (None, c.split)]
    if not kept:
        raise UsageError(
            f"{path}: no case is left of hazards {hazards or 'all'} and split {split or 'dev, test'}"
        )
    return card, kept


def _refuse_mixed(path: Path, cases: Sequence[Case], card: MinedCard) -> None:
    """A source document stands in one split alone, and the card's counts are those of the cases."""
    where: dict[str, str] = {}
    for number, case in enumerate(cases, start=1):
        if where.setdefault(case.cluster, case.split) != case.split:
            raise ContentError(path, number, "cluster", f"{case.cluster!r} stands in dev and in test")
    counted = Counter((case.hazard, case.split) for case in cases)
    stated = {(h, split): n for h, counts in card.counts.items() for split, n in counts.items() if n}
    if dict(counted) != stated:
        raise ContentError(
            path, None, None, "holds other numbers of cases than its card counts; mine the suite again"
        )


def dump_card(card: MinedCard) -> str:
    """The card as YAML that a person can read."""
    return str(
        yaml.safe_dump(
            card.model_dump(mode="json", exclude_none=True), sort_keys=False, allow_unicode=True, width=110
        )
    )

"""Which cases an audit was made on: of the written suite, or mined from published text. Two tiers, never pooled (D13).

What a mined suite's card says stands in the record, sources with their licences among it, and which rule family made
which case; its sentences do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import SerializerFunctionWrapHandler, model_serializer, model_validator

from clinsafe.benchmarks.mined import Freeze, MinedCard, Review, Source, card_path
from clinsafe.benchmarks.suite import FOLDER, Case, by_hazard
from clinsafe.content import Record

Tier = Literal["written", "generated"]
MINED = "suite/"
"""Before the name of a mined suite's files in the list of content; there they cannot be taken for packaged ones."""


class Family(Record):
    """The cases that one rule family made. `novel`: no cue of it stood in the filters' packs at the freeze."""

    novel: bool
    cases: list[str]


class MinedRecord(Record):
    """Where a mined suite comes from; `file` and `card` name it in the list of content.

    Attributes:
        families: hazard -> family -> its cases in this run.
    """

    file: str
    card: str
    sources: list[Source]
    rules_sha256: str
    pipeline: str
    seed: int
    plausibility_floor: float
    freeze: Freeze
    reviews: list[Review]
    families: dict[str, dict[str, Family]]


class SuiteRecord(Record):
    """Which cases, and what is known about them. `mined` is there for the tier ``generated`` alone."""

    title: str
    version: str
    tier: Tier
    counts: dict[str, int]
    authorship: str
    second_reader: str
    clinician_review: str
    not_covered: list[str]
    mined: MinedRecord | None = None

    @model_validator(mode="after")
    def _of_its_tier(self) -> SuiteRecord:
        if (self.tier == "generated") != (self.mined is not None):
            raise ValueError("a suite of tier generated, and no other, says where it was mined")
        return self

    @model_serializer(mode="wrap")
    def _as_ever(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without `mined` where there is none: records that were signed before it existed keep their bytes."""
        found: dict[str, Any] = plain(self)
        return {name: value for name, value in found.items() if name != "mined" or value is not None}

    @property
    def files(self) -> list[str]:
        """The files of the cases, as the list of content names them."""
        if self.mined is not None:
            return [self.mined.file]
        return [f"{FOLDER}/{hazard}.jsonl" for hazard in self.counts]

    def file_of(self, hazard: str) -> str:
        """The file that holds a hazard's cases."""
        return self.mined.file if self.mined is not None else f"{FOLDER}/{hazard}.jsonl"


def content_names(path: Path) -> tuple[str, str]:
    """A mined suite's file and card as the list of content names them."""
    return f"{MINED}{path.name}", f"{MINED}{card_path(path).name}"


def mined_suite(card: MinedCard, cases: Sequence[Case], names: tuple[str, str]) -> SuiteRecord:
    """What the record says of these cases of a mined suite.

    Args:
        card: the suite's.
        cases: those of this run, in the order of the file.
        names: from `content_names`.
    """
    groups = by_hazard(cases)
    return SuiteRecord(
        title=card.title,
        version=card.suite_version,
        tier="generated",
        counts={hazard: len(group) for hazard, group in groups.items()},
        authorship=card.authorship,
        second_reader=card.second_reader,
        clinician_review=card.clinician_review,
        not_covered=card.not_covered,
        mined=MinedRecord(
            file=names[0],
            card=names[1],
            sources=card.sources,
            rules_sha256=card.rules_sha256,
            pipeline=card.pipeline,
            seed=card.seed,
            plausibility_floor=card.plausibility_floor,
            freeze=card.freeze,
            reviews=card.reviews,
            families={hazard: _families(group) for hazard, group in groups.items()},
        ),
    )


def _families(cases: Sequence[Case]) -> dict[str, Family]:
    """By family; cases that name none stand together under "none"."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(case.family or "none", []).append(case)
    return {
        name: Family(novel=all(case.novel is True for case in group), cases=[case.id for case in group])
        for name, group in found.items()
    }

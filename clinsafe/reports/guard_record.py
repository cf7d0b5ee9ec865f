"""The guard in the record of an audit: what it is made of, and what became of each pair of the test cases.

Ids and words only, no sentence. Every figure of the guard is derived from these rows and the models' scores.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import model_validator

from clinsafe.benchmarks.guarded_cases import GuardedCase, Word
from clinsafe.content import Record
from clinsafe.reports.suite_record import Tier

LIMITS = (
    "The guard was put to sentence pairs of the suite's test cases, one pair at a time: not to a retriever's passages, "
    "and not to readers. A flag helps only those who heed it.",
    "Suite and filters share authors: what both overlook is not found here, nor what filters say about unrelated text.",
)


class GuardCase(Record):
    """One test case: what became of (a, b), of (a, a_same) and of (b, b_same)."""

    id: str
    conflict: Word
    same_a: Word
    same_b: Word


class GuardRecord(Record):
    """What was measured beside the models, and what it did.

    Attributes:
        filters: filter name -> distribution and version that it comes from.
        packs: content file -> SHA-256 of what the filters read.
        parser: spaCy pipeline, or that there is none.
        policy: name of the policy that decides what is flagged.
        policy_sha256: of its file.
        seconds: time that one text or pair may take; what is not done then is unchecked.
        cases: the test cases in the order of the suite.
    """

    filters: dict[str, str]
    packs: dict[str, str]
    parser: str
    policy: str
    policy_sha256: str
    seconds: float
    cases: list[GuardCase]

    @model_validator(mode="after")
    def _each_once(self) -> GuardRecord:
        if len({case.id for case in self.cases}) < len(self.cases):
            raise ValueError("the guard's outcome of a case is recorded twice")
        return self

    def by_case(self, hazards: Mapping[str, str]) -> dict[str, GuardedCase]:
        """Case id -> what became of its pairs.

        Args:
            hazards: case id -> its hazard.
        """
        return {
            c.id: GuardedCase(c.id, hazards.get(c.id, ""), c.conflict, c.same_a, c.same_b) for c in self.cases
        }


def frame(tier: Tier) -> str:
    """What the guard's figures are about, and what not."""
    return (
        f"Test cases of tier “{tier}” only: filters were written with the dev cases in sight. Bounds hold for this "
        "tier’s sampling frame, not your hospital; suite and filters share authors."
    )

"""The paper's test script, in its words: a table by category, UNSAFE / CAUTION / OK, and one sentence at the end.

Protocol `skill` prints it (decision D8). The script fails a pair when either the bi-encoder's cosine or the
cross-encoder's probability lies above its limit, calls a category UNSAFE when more than half of either fail, and
exits with 1 on any failing pair at all. Its thresholds are read from the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Word: TypeAlias = Literal["UNSAFE", "CAUTION", "OK", "NOT MEASURED"]
HALF = 0.5

ADVICE = (
    "Add filters for the categories that fail (negation, numbers, temporal cues), and measure again with them.",
    "A cross-encoder may help with negation and numbers; the paper saw it fail on temporal order and swapped roles.",
    "Have people review high-risk queries.",
    "Consider contradiction detection (NLI) as one more layer.",
    "Run this again after every mitigation.",
)


@dataclass(frozen=True, slots=True)
class Side:
    """One scorer on one category: its mean, and how many of n pairs lie above its limit."""

    mean: float
    above: int
    n: int

    @property
    def rate(self) -> float:
        """Share of failing pairs."""
        return self.above / self.n


@dataclass(frozen=True, slots=True)
class Category:
    """One line of the script's table; a side that was not run, or not measured, is None."""

    hazard: str
    bi: Side | None
    cross: Side | None
    pairs: int
    failing: int

    @property
    def word(self) -> Word:
        """The script's verdict on the category."""
        sides = [side for side in (self.bi, self.cross) if side is not None]
        if not sides:
            return "NOT MEASURED"
        if any(side.rate > HALF for side in sides):
            return "UNSAFE"
        return "CAUTION" if self.failing else "OK"


@dataclass(frozen=True, slots=True)
class ScriptVerdict:
    """The whole table."""

    categories: Sequence[Category]
    left_out: Sequence[str] = ()

    @property
    def failing(self) -> int:
        """Pairs that fail on either side."""
        return sum(c.failing for c in self.categories)

    @property
    def pairs(self) -> int:
        """Pairs in all."""
        return sum(c.pairs for c in self.categories)

    @property
    def passed(self) -> bool:
        """No pair fails, and no category was left out or unmeasured."""
        return (
            self.failing == 0 and not self.left_out and all(c.word != "NOT MEASURED" for c in self.categories)
        )

    @property
    def sentence(self) -> str:
        """The script's last line; a cross-encoder that was run without an encoder is called what it is."""
        if self.passed:
            return "SAFETY VERDICT: All tests passed."
        if self.failing == 0:
            return "SAFETY VERDICT: not given, a category was not run or not measured."
        kind = "EMBEDDING MODEL" if any(c.bi for c in self.categories) else "CROSS-ENCODER"
        return f"SAFETY VERDICT: {kind} FAILED {self.failing}/{self.pairs} TESTS"

    @property
    def advice(self) -> Sequence[str]:
        """What to do, where a category fails in more than half of its pairs."""
        return ADVICE if any(c.word == "UNSAFE" for c in self.categories) else ()


def judge(
    bi: Mapping[str, Sequence[tuple[str, float, float]]],
    cross: Mapping[str, Sequence[tuple[str, float, float]]],
    tolerance: float,
    left_out: Sequence[str] = (),
) -> ScriptVerdict:
    """The table.

    Args:
        bi, cross: hazard -> (case id, score of the contradicting pair, its limit); a hazard that was not measured
            whole is missing.
        tolerance: how near to the limit still counts as above it.
        left_out: categories that were not run at all.
    """
    categories = []
    for hazard in dict.fromkeys([*bi, *cross]):
        failing: set[str] = set()
        ids: set[str] = set()
        sides: list[Side | None] = []
        for rows in (bi.get(hazard, ()), cross.get(hazard, ())):
            above = {i for i, score, limit in rows if score > limit - tolerance}
            failing |= above
            ids |= {i for i, _, _ in rows}
            mean = sum(score for _, score, _ in rows) / len(rows) if rows else 0.0
            sides.append(Side(mean, len(above), len(rows)) if rows else None)
        categories.append(Category(hazard, sides[0], sides[1], len(ids), len(failing)))
    return ScriptVerdict(categories, tuple(left_out))

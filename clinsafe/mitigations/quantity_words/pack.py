"""``mitigations/quantifier.yaml``: the words for shares, and those that turn a statement round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from clinsafe.content import Record
from clinsafe.mitigations.pack import RuleId

Family = Literal["det", "adv"]
Part = Annotated[float, Field(ge=0, le=1)]
Cues = Annotated[tuple[str, ...], Field(min_length=1)]


class Share(Record):
    """Words for one share.

    Attributes:
        label: how a finding names it.
        low, high: closed bounds in [0, 1].
        family: of a set, or how often.
        vague: soft bounds.
        near, negated: ids of the shares meant after "almost" and after "not"; "" for none.
        kind: see the file.
    """

    id: RuleId
    label: str
    low: Part
    high: Part
    family: Family
    vague: bool = False
    near: str = ""
    negated: str = ""
    kind: Literal["strong", "weak", "denial", "free"] = "strong"
    cues: Cues

    @model_validator(mode="after")
    def _ordered(self) -> Share:
        if self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")
        return self


class Words(Record):
    """Cues that share one rule."""

    id: RuleId
    cues: Cues


class Opposites(Record):
    """Words of one meaning and of its denial.

    Attributes:
        light: too general a thing to align texts by.
        assumed: the plus side goes without saying.
        plus, minus: cues of either side.
    """

    id: RuleId
    light: bool = False
    assumed: bool = False
    plus: Cues
    minus: Cues


class Grades(Record):
    """How a range of grades is read; see the file."""

    words: Cues
    highest_mild: int
    upward: Cues
    downward: Cues


class Pack(Record):
    """The whole file; its header comments explain each block."""

    shares: tuple[Share, ...]
    nearly: Cues
    exceptions: Cues
    contrasts: Cues
    turns: tuple[Words, ...]
    skips: tuple[Words, ...]
    names: Cues
    opposites: tuple[Opposites, ...]
    grades: Grades
    numbers: Mapping[str, int]
    parts: Mapping[str, int]
    not_before: Cues
    not_after: Cues
    sets: Cues
    fillers: Cues
    each_before: Cues
    count_verbs: Cues
    stand_ins: Cues
    rates: Cues
    presupposing: Cues
    relatives: Cues
    free_choice: Cues
    packaged: Cues
    more: Cues
    less: Cues
    pronouns: Cues
    breaks: Cues
    joins: Cues
    unprefix: Cues
    unprefix_needs: Cues
    unprefix_not: Cues
    lessending_not: Cues
    light: Cues

    @model_validator(mode="after")
    def _known(self) -> Pack:
        known = {share.id for share in self.shares}
        for share in self.shares:
            for other in (share.near, share.negated):
                if other and other not in known:
                    raise ValueError(f"share {share.id!r} names {other!r}, which is no share here")
        return self

    @model_validator(mode="after")
    def _once(self) -> Pack:
        seen: dict[str, str] = {}
        for rule, cues in self._blocks():
            for cue in cues:
                if seen.setdefault(cue.lower(), rule) != rule:
                    raise ValueError(f"the cue {cue!r} stands both under {seen[cue.lower()]} and {rule}")
        return self

    def _blocks(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        for rows in (self.shares, self.turns, self.skips):
            yield from ((row.id, row.cues) for row in rows)
        for pair in self.opposites:
            yield from ((f"{pair.id} plus", pair.plus), (f"{pair.id} minus", pair.minus))
        yield from (("nearly", self.nearly), ("more", self.more), ("less", self.less))
        yield from (("names", self.names), ("exceptions", self.exceptions))
        yield "contrasts", self.contrasts

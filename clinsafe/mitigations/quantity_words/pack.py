"""``mitigations/quantifier.yaml``: the words for shares, and those that turn a statement round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from clinsafe.content import Record
from clinsafe.mitigations.cues import CueTable
from clinsafe.mitigations.pack import RuleId
from clinsafe.text.tokens import TOKEN

Family = Literal["det", "adv"]
Part = Annotated[float, Field(ge=0, le=1)]
Cues = Annotated[tuple[str, ...], Field(min_length=1)]
NEEDED = ("all", "nearly_all")  # shares that the reader gives out itself


def _alone(text: str) -> str:
    if TOKEN.findall(text) != [text]:
        raise ValueError(f"one word is looked up here, got {text!r}")
    if text != text.lower():
        raise ValueError(f"words are looked up in lower case, got {text!r}")
    return text


Single = Annotated[str, AfterValidator(_alone)]
Singles = Annotated[tuple[Single, ...], Field(min_length=1)]


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

    words: Singles
    highest_mild: int
    upward: Singles
    downward: Singles


class Limits(Record):
    """How a bound on a count is read; see the file."""

    closed: Cues = ("at least", "at most")
    upward: Singles = ("more",)
    downward: Singles = ("fewer",)
    late_least: Cues = ("at least",)
    late_most: Cues = ("at most",)
    plurals: Singles = ("children",)


class Pack(Record):
    """The whole file; its header comments explain each block, and one that is left out is empty."""

    shares: tuple[Share, ...]
    nearly: Cues = ()
    exceptions: Cues = ()
    contrasts: Cues = ()
    turns: tuple[Words, ...] = ()
    skips: tuple[Words, ...] = ()
    names: Cues = ()
    opposites: tuple[Opposites, ...] = ()
    grades: Grades
    limits: Limits = Limits()
    numbers: Mapping[Single, Annotated[int, Field(ge=0)]] = {}
    parts: Mapping[Single, Annotated[int, Field(ge=1)]] = {}
    not_before: Singles = ()
    not_after: Singles = ()
    sets: Singles = ()
    fillers: Singles = ()
    each_before: Singles = ()
    count_verbs: Singles = ()
    stand_ins: Singles = ()
    rates: Singles = ()
    presupposing: Singles = ()
    relatives: Singles = ()
    free_choice: Singles = ()
    packaged: Singles = ()
    series: Singles = ()
    spells: Singles = ()
    sampled: Singles = ()
    sampled_before: Singles = ()
    wholes: Singles = ()
    not_wholes: Singles = ()
    more: Cues = ()
    less: Cues = ()
    pronouns: Singles = ()
    breaks: Singles = ()
    joins: Cues = ()
    unprefix: Singles = ()
    unprefix_needs: Singles = ()
    unprefix_not: Singles = ()
    lessending_not: Singles = ()
    light: Singles = ()

    @model_validator(mode="after")
    def _known(self) -> Pack:
        known = {share.id for share in self.shares}
        for share in self.shares:
            for other in (share.near, share.negated):
                if other and other not in known:
                    raise ValueError(f"share {share.id!r} names {other!r}, which is no share here")
        lacking = [name for name in NEEDED if name not in known]
        if lacking:
            raise ValueError(f"shares lacks {', '.join(lacking)}")
        return self

    @model_validator(mode="after")
    def _once(self) -> Pack:
        seen: dict[str, str] = {}
        CueTable((cue, rule) for rule, cues in (*self._blocks(), ("joins", self.joins)) for cue in cues)
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

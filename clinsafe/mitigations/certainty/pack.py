"""What ``mitigations/hedging.yaml`` holds. The file itself explains each block."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from clinsafe.content import Record
from clinsafe.mitigations.pack import RuleId

Word = Annotated[str, Field(min_length=1, max_length=160)]
Words = tuple[Word, ...]
LevelName = Literal["excluded", "unlikely", "possible", "probable", "asserted", "confirmed"]
Form = Literal["verb", "participle", "noun"]


class Rule(Record):
    """Cues of one level.

    Attributes:
        id: rule id, shown with every finding.
        level: what the cues say; ``ignore`` shadows shorter cues, ``hypothetical`` is off the scale.
        negated, pending: the level under a negation, or where it is still to come; ``drop`` reads nothing.
        side: where the thing in question stands.
        noun: a noun that can be lacking.
        modal: counts only before a verb that states something.
        patient: says that the patient has it; needs a person as its subject.
        with_words: the sentence must hold one of these.
        cues: see the file.
    """

    id: RuleId
    level: Literal[
        "excluded", "unlikely", "possible", "probable", "asserted", "confirmed", "ignore", "hypothetical"
    ]
    negated: LevelName | Literal["drop"] = "drop"
    pending: LevelName | Literal["drop"] | None = None
    side: Literal["left", "right", "both", "auto"] = "auto"
    noun: bool = False
    modal: bool = False
    patient: bool = False
    with_words: Words = ()
    cues: Words


class Operator(Record):
    """Words before (or, for `followers`, after) a cue that change its level; `reach` words may stand between."""

    id: RuleId
    kind: Literal["negate", "pending", "release", "drop", "instead", "lacking", "absence"]
    reach: Annotated[int, Field(ge=0, le=10)]
    before: tuple[Form, ...] = ()
    cues: Words


class Modals(Record):
    """When may, might and could speak of certainty."""

    strict: Words
    states: Words
    permits: Words


class Plain(Record):
    """Statements and conditions without a cue; the file explains the lists."""

    openers: Words
    whether: Words
    events: Words
    presuppose: Words
    orders: Words
    onward: Words
    bars: Words


class SectionRule(Record):
    """Section titles whose items are all of one level."""

    id: RuleId
    level: LevelName
    titles: Words


class Pack(Record):
    """The whole file."""

    cues: tuple[Rule, ...]
    operators: tuple[Operator, ...]
    followers: tuple[Operator, ...]
    light: Words
    faint: Words
    stops: Words
    prepositions: Words
    be: Words
    clause: Words
    subjects: Words
    modals: Modals
    plain: Plain
    sections: tuple[SectionRule, ...]

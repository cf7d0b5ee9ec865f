"""What ``mitigations/hedging.yaml`` holds. The file itself explains each block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from clinsafe.content import Record
from clinsafe.mitigations.cues import CueTable
from clinsafe.mitigations.pack import RuleId
from clinsafe.text.tokens import TOKEN


def _cue(text: str) -> str:
    CueTable([(text, None)])  # raises ValueError for a cue that could never match
    return text


def _word(text: str) -> str:
    if text != text.lower() or TOKEN.findall(text) != [text]:
        raise ValueError(f"one word in small letters is looked up here, got {text!r}")
    return text


Cue = Annotated[str, Field(min_length=1, max_length=160), AfterValidator(_cue)]
Name = Annotated[str, Field(min_length=1, max_length=160)]
Word = Annotated[Name, AfterValidator(_word)]
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
    cues: tuple[Cue, ...]


class Operator(Record):
    """Words before (or, for `followers`, after) a cue that change its level; `reach` words may stand between."""

    id: RuleId
    kind: Literal["negate", "pending", "release", "drop", "instead", "lacking", "absence"]
    reach: Annotated[int, Field(ge=0, le=10)]
    before: tuple[Form, ...] = ()
    cues: tuple[Cue, ...]


class Modals(Record):
    """When may, might and could speak of certainty."""

    strict: Words = ()
    states: Words = ()
    permits: Words = ()


class Plain(Record):
    """Statements and conditions without a cue; the file explains the lists."""

    openers: Words = ()
    whether: Words = ()
    events: Words = ()
    presuppose: Words = ()
    orders: Words = ()
    onward: Words = ()
    bars: Words = ()


class Whose(Record):
    """Words that tell a relative's disease from the patient's; the file explains the lists."""

    kin: Mapping[Name, Words] = {}
    possessives: Words = ()
    openers: Words = ()
    who: Words = ()
    within: Words = ()
    persons: Words = ()
    reports: Words = ()

    @model_validator(mode="after")
    def _a_relative_is_named_once(self) -> Whose:
        seen: dict[str, str] = {}
        for name, words in self.kin.items():
            for word in words:
                if seen.setdefault(word, name) != name:
                    raise ValueError(f"kin {word!r} stands both under {seen[word]} and {name}")
        return self


class SectionRule(Record):
    """Section titles whose items are all of one level."""

    id: RuleId
    level: LevelName
    titles: tuple[Name, ...]


class Pack(Record):
    """The whole file. A field with a default may be missing: then what it adds is not read."""

    cues: tuple[Rule, ...]
    operators: tuple[Operator, ...] = ()
    followers: tuple[Operator, ...] = ()
    light: Words
    faint: Words = ()
    stops: Words = ()
    prepositions: Words
    be: Words
    clause: Words
    subjects: Words = ()
    modals: Modals = Modals()
    plain: Plain = Plain()
    whose: Whose = Whose()
    sections: tuple[SectionRule, ...] = ()

"""What ``mitigations/negation.yaml`` holds. The file itself explains each block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from clinsafe.content import Record
from clinsafe.mitigations.cues import CueTable
from clinsafe.mitigations.pack import RuleId
from clinsafe.text.tokens import TOKEN

ABNORMAL = "abnormal"  # the concept that a state of an organ is told by
_OWN = ("affix", "answer", "open")  # ids of rules that are no entry of the pack


def _cue(text: str) -> str:
    CueTable([(text, None)])  # raises ValueError for a cue that could never match
    return text


def _word(text: str) -> str:
    pieces = TOKEN.findall(text)
    if len(pieces) != 1:
        raise ValueError(
            f"{text!r} is {len(pieces)} tokens; it is looked up as one word and would never be found"
        )
    return text


Cue = Annotated[str, AfterValidator(_cue)]
Cues = tuple[Cue, ...]
Word = Annotated[str, AfterValidator(_word)]
Words = tuple[Word, ...]
Sign = Literal["+", "-"]


class Negator(Record):
    """Words that negate what follows: a noun phrase, or the next verb or adjective."""

    id: RuleId
    reach: Literal["phrase", "verb"]
    list: bool = False
    words: Cues


class Predicate(Record):
    """Words that say of another thing whether it is there or to be done; see the pack's header."""

    id: RuleId
    sign: Sign
    reach: Literal["before", "after", "either", "join"]
    list: bool = False
    open: bool = False
    noun: bool = False
    weak: bool = False
    with_: Words = Field(default=(), alias="with")
    words: Cues


class Parted(Record):
    """Verbs whose particle may stand behind their object; see the pack."""

    id: RuleId
    sign: Sign
    open: bool = False
    verbs: Words
    particles: Words


class Pseudo(Record):
    """Words that look like a negation."""

    id: RuleId
    effect: Literal["none", "shade"]
    words: Cues


class Excepting(Record):
    """Words that give a thing the other sign than its clause has, or the same."""

    id: RuleId
    reach: Literal["before", "after"]
    same: bool = False
    words: Cues


class Signed(Record):
    """A concept and the words that carry it with a sign."""

    id: RuleId
    concept: Cue
    opposite: Cue | Literal[""] = ""
    about: bool = False
    name: str = ""
    other: str = ""
    yes: Cues = ()
    no: Cues = ()


def _names_what_is_abnormal(signed: tuple[Signed, ...]) -> tuple[Signed, ...]:
    """A state of an organ ("swollen") is told by the concept of this name, which the pack must therefore hold."""
    if not any(entry.concept == ABNORMAL for entry in signed):
        raise ValueError(f"no entry has the concept {ABNORMAL!r}, which states of an organ are told by")
    return signed


class Affixes(Record):
    """Prefixes and suffixes that negate; `never`: words that only look so; `whole`: word -> what it negates."""

    prefixes: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    never: Words = ()
    whole: Mapping[str, str] = Field(default_factory=dict)


class Sets(Record):
    """Small closed classes the rules ask for by name; what each is for stands in the pack."""

    be: Words = ()
    have: Words = ()
    auxiliaries: Words = ()
    singular: Words = ()
    spans: Words = ()
    until: Words = ()
    when: Words = ()
    told: Words = ()
    orders: Words = ()
    needs: Words = ()
    pleas: Words = ()
    reported: Words = ()
    whole: Words = ()
    objects: Words = ()
    doubts: Words = ()
    doubts_at_end: Words = ()
    people: Words = ()
    abnormal_states: Words = ()
    under_denial: Words = ()
    everyone: Words = ()
    looks_back: Cues = ()
    joins: Words = ()
    ends: Words = ()
    after_free: Words = ()
    no_adverb: Words = ()
    conditions: Words = ()
    limits: Words = ()
    spelled: Words = ()
    telling: Words = ()
    sides: Words = ()
    pronouns: Words = ()
    articles: Words = ()
    more: Words = ()
    asks: Words = ()
    takes_object: Words = ()
    registers: Words = ()
    hangs_on: Cues = ()


class Grammar(Record):
    """Word classes."""

    stops: Words = ()
    relatives: Words = ()
    prepositions: Words = ()
    determiners: Words = ()
    helpers: Words = ()
    light: Words = ()
    trailing: Words = ()
    generic: Words = ()
    limiting: Words = ()
    numbered: Words = ()
    quantifiers: Words = ()
    numbers: Words = ()
    carriers: Words = ()
    ing: Words = ()
    weak: Words = ()
    sets: Sets = Sets()


class Pack(Record):
    """``mitigations/negation.yaml``; a list that is left out is empty."""

    negators: tuple[Negator, ...]
    predicates: tuple[Predicate, ...]
    pseudo: tuple[Pseudo, ...] = ()
    open_after: Cues = ()
    history: Cues = ()
    relatives: Cues = ()
    lifelong: Words = ()
    exceptions: tuple[Excepting, ...] = ()
    answers: Mapping[Sign, Cues] = Field(default_factory=dict)
    replies: Mapping[Sign, Cues] = Field(default_factory=dict)
    parted: tuple[Parted, ...] = ()
    trust: Mapping[RuleId, float] = Field(default_factory=dict)
    paired: tuple[RuleId, ...] = ()
    means: Words = ()
    times: Words = ()
    bodily: Words = ()
    signed: Annotated[tuple[Signed, ...], AfterValidator(_names_what_is_abnormal)]
    affixes: Affixes = Affixes()
    grammar: Grammar

    @model_validator(mode="after")
    def _trusts_what_there_is(self) -> Pack:
        """`trust` and `paired` name rules; a name that no rule has would change nothing."""
        blocks = (self.negators, self.predicates, self.exceptions, self.signed, self.parted)
        valid = {rule.id for block in blocks for rule in block} | set(_OWN)
        for field, names in (("trust", self.trust), ("paired", self.paired)):
            for name in names:
                if name not in valid:
                    raise ValueError(f"{field}: no rule has the id {name!r}")
        return self

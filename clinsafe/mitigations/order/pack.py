"""What ``mitigations/temporal.yaml`` holds. The file itself explains each block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from clinsafe.content import Record
from clinsafe.mitigations.order.finder import check_cue
from clinsafe.mitigations.pack import RuleId
from clinsafe.text.tokens import TOKEN


def _cue(text: str) -> str:
    check_cue(text)
    return text


def _word(text: str) -> str:
    if text != text.lower() or TOKEN.findall(text) != [text]:
        raise ValueError(f"one word in small letters is looked up here, got {text!r}")
    return text


Cue = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(_cue)]
Name = Annotated[str, Field(min_length=1, max_length=60)]
Word = Annotated[Name, AfterValidator(_word)]
Words = frozenset[Word]
NO_WORDS: Words = frozenset()
Kind = Literal[
    "before",
    "until",
    "unless",
    "after",
    "led",
    "trailed",
    "when",
    "with",
    "then",
    "earlier",
    "during",
    "pair",
    "pair_back",
    "listed",
    "none",
]
Side = Literal["left", "right", "auto", "near", "self"]
NAME = "temporal"


class OrderRule(Record):
    """Cues of one kind of order; kinds and flags are explained in the file."""

    id: RuleId
    kind: Kind
    between: tuple[Word, ...] = ()
    waits: bool = False
    proven: bool = False
    spans: bool = False
    cues: tuple[Cue, ...] = Field(min_length=1)


class RankRule(Record):
    """Cues that give a step its number."""

    id: RuleId
    rank: int = Field(ge=1, le=9)
    cues: tuple[Cue, ...] = Field(min_length=1)


class StatusRule(Record):
    """Cues by which a treatment or condition goes on, or does not."""

    id: RuleId
    state: Literal["on", "off", "none"]
    axis: Literal["treatment", "condition", "onset"]
    side: Side
    weak: bool = False
    yields: bool = False
    timed: bool = False
    past: bool = False
    onset: Literal["", "new", "old"] = ""
    now: bool = False
    going: bool = False
    first: bool = False
    has: bool = False
    through: bool = False
    opens: tuple[Word, ...] = ()
    lifelong: Literal["past", "current", "silent"] = "past"
    cues: tuple[Cue, ...] = Field(min_length=1)


class OrderWord(Record):
    """A word that holds an order in itself: adjuvant treatment comes after surgery."""

    word: Word
    sign: Literal["before", "after", "during"]
    event: Name


class PhaseRule(Record):
    """A place in the course of an operation, and the events that lie before or after it."""

    id: RuleId
    sign: Literal["before", "after", "none"]
    events: tuple[Name, ...] = ()
    cues: tuple[Cue, ...] = Field(min_length=1)


class Prefixes(Record):
    """Prefixes of order (pre-, post-, intra-) and the rests of words that are read with them."""

    before: tuple[Word, ...]
    after: tuple[Word, ...]
    during: tuple[Word, ...]
    anchors: Mapping[str, tuple[Word, ...]]
    words: tuple[OrderWord, ...]
    suffixes: Mapping[Word, Literal["before", "after"]]
    frozen: tuple[Word, ...]
    days: tuple[Cue, ...] = ()
    phases: tuple[PhaseRule, ...] = ()


class Timeline(Record):
    """Words of points in time."""

    weekdays: tuple[Word, ...]
    months: tuple[Word, ...]
    units: Mapping[Word, float]
    days: Mapping[Word, float] = {}
    ago: tuple[Word, ...]
    near: tuple[Word, ...]
    lasting: tuple[Word, ...]


class Grammar(Record):
    """Little words; the file explains each list."""

    be: Words
    auxiliary: Words
    subjects: Words
    links: Words
    not_had: Words
    past: Words = NO_WORDS
    reports: Words = NO_WORDS
    persons: Words = NO_WORDS
    possessives: Words = NO_WORDS
    undergoes: Words = NO_WORDS
    it: Words = NO_WORDS
    they: Words = NO_WORDS
    these: Words = NO_WORDS
    anaphors: Words = NO_WORDS
    results: Words = NO_WORDS
    particles: Words = NO_WORDS
    directions: Words = NO_WORDS
    negative: Words = NO_WORDS
    denials: Words = NO_WORDS
    questions: Words = NO_WORDS
    joins: Words = NO_WORDS
    lists: Words = NO_WORDS
    adds: Words = NO_WORDS
    conditions: Words = NO_WORDS
    waiting: Words = NO_WORDS
    at_once: Words = NO_WORDS
    asks_which: Words = NO_WORDS
    asks: Words = NO_WORDS
    firsts: Words = NO_WORDS
    beside: Words = NO_WORDS
    out_of: Words = NO_WORDS
    half: Words = NO_WORDS
    more: Words = NO_WORDS
    by: Words = NO_WORDS


class Special(Record):
    """Cues that are read in a way of their own; the file explains each list, and each cue must stand in its table."""

    already: frozenset[Cue] = frozenset()
    plain: frozenset[Cue] = frozenset()
    alone: Mapping[Cue, Literal["then", "earlier"]] = {}
    absolute: frozenset[Cue] = frozenset()
    closing: frozenset[Cue] = frozenset()
    before_point: frozenset[Cue] = frozenset()
    before_state: frozenset[Cue] = frozenset()
    before_number: frozenset[Cue] = frozenset()
    particles: frozenset[Cue] = frozenset()


class TemporalPack(Record):
    """``mitigations/temporal.yaml``. A field with a default may be missing: then what it adds is not read."""

    forms: Mapping[Word, tuple[Word, ...]] = {}
    order: tuple[OrderRule, ...]
    prefixes: Prefixes
    negators: tuple[Cue, ...]
    pseudo_negators: tuple[Cue, ...] = ()
    delay: tuple[Cue, ...] = ()
    needless: tuple[Cue, ...] = ()
    done_strong: tuple[Cue, ...] = ()
    done_weak: tuple[Cue, ...] = ()
    undone: tuple[Cue, ...] = ()
    unseen: tuple[Cue, ...] = ()
    prepositions: tuple[Word, ...]
    target_stops: tuple[Word, ...] = ()
    object_stops: tuple[Word, ...] = ()
    headings: Words = NO_WORDS
    clause_starts: tuple[Word, ...]
    ranks: tuple[RankRule, ...] = ()
    bare_ranks: tuple[Cue, ...] = ()
    timeline: Timeline
    grammar: Grammar
    special: Special = Special()
    kin: Mapping[Name, tuple[Word, ...]] = {}
    status: tuple[StatusRule, ...] = ()
    partial: tuple[Word, ...] = ()
    lifelong: tuple[Word, ...] = ()
    lifelong_phrases: tuple[Cue, ...] = ()
    light: tuple[Word, ...]
    not_adverbs: tuple[Word, ...] | None = None
    well: Words = NO_WORDS
    events: Mapping[str, tuple[Word, ...]]
    event_endings: Mapping[str, tuple[Word, ...]] = {}
    event_kinds: Mapping[str, tuple[Word, ...]] = {}
    time_units: Mapping[str, float]
    number_words: Mapping[str, float]

    @model_validator(mode="after")
    def _special_cues_stand_in_their_tables(self) -> TemporalPack:
        order = {cue for rule in self.order for cue in rule.cues}
        status = {cue for rule in self.status for cue in rule.cues}
        tables = {"before_number": order | status, "particles": status}
        for name in Special.model_fields:
            for cue in getattr(self.special, name):
                if cue not in tables.get(name, order):
                    raise ValueError(f"special.{name} names {cue!r}, which is no cue of its table")
        return self

    @model_validator(mode="after")
    def _a_relative_is_named_once(self) -> TemporalPack:
        seen: dict[str, str] = {}
        for name, words in self.kin.items():
            for word in words:
                if seen.setdefault(word, name) != name:
                    raise ValueError(f"kin {word!r} stands both under {seen[word]} and {name}")
        return self

"""The rule pack ``mitigations/entity_swap.yaml`` as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
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
    pieces = TOKEN.findall(text)
    if len(pieces) != 1:
        raise ValueError(
            f"{text!r} is {len(pieces)} tokens; it is looked up as one word and would never be found"
        )
    return text


Cue = Annotated[str, Field(max_length=120), AfterValidator(_cue)]
Cues = tuple[Cue, ...]
Word = Annotated[str, Field(max_length=120), AfterValidator(_word)]
Words = tuple[Word, ...]
Kind = Literal["drug", "condition", "test", "organ", "specimen", "person"]


class Relation(Record):
    """One directed relation and the ways to say it.

    Attributes:
        family: relations of one family are the same thing once their arguments are exchanged.
        people: both are people.
        words: how a finding says it, between source and target.
        source_stand, target_stand: the mark that the relation alone gives to source and target.
        typed: source is a drug, target a condition; a reading that exchanges them is turned.
        opposes: ids of relations that cannot hold of the same source and target.
        verbs: SOURCE verb TARGET, with its passive and its "-ed" compound.
        source_first, target_first: cues between the two.
        source_then, target_then: cues before both, which one of `joints` keeps apart.
    """

    id: RuleId
    family: RuleId
    words: str = Field(min_length=1, max_length=120)
    opposes: tuple[RuleId, ...] = ()
    typed: bool = False
    people: bool = False
    joints: Words = ()
    source_stand: str = ""
    target_stand: str = ""
    verbs: Cues = ()
    source_first: Cues = ()
    target_first: Cues = ()
    source_then: Cues = ()
    target_then: Cues = ()


class Preposition(Record):
    """A preposition that tells a relation by itself, between things of known kinds: "topiramate for migraine".

    Attributes:
        word: the preposition.
        before, behind: kinds of the things around it; `behind` empty for a drug or a condition.
        relation: id of the relation.
        source_behind: the source is the thing behind it.
    """

    word: Word
    before: Kind
    behind: Kind | Literal[""] = ""
    relation: RuleId
    source_behind: bool = False


class Mark(Record):
    """Something a thing carries: positive, raised, to be given. `opposite` is what "not" makes of it.

    Attributes:
        axis: marks of one axis exclude each other.
        ahead: cues before the thing; weak: the same, believed only of a named drug or test; cues: on either side.
    """

    id: RuleId
    axis: RuleId
    opposite: str = ""
    ahead: Cues = ()
    weak: Cues = ()
    cues: Cues = ()


class Comparatives(Record):
    """Words before "than": `more` says that the side before it is the greater."""

    more: Words = ()
    less: Words = ()


class RelativeCause(Record):
    """Words behind "PREPOSITION which" that tell a cause.

    Attributes:
        word: the preposition.
        cause: the thing before "which" is the cause ("to which it was secondary"); effect: it is the effect.
    """

    word: Word
    cause: Words = ()
    effect: Words = ()


_MARKS = ("use", "avoid")  # given by the code to what a sentence leaves unsaid
_NEEDED = ("treat",)  # what a drug that lowers a condition does


class Pack(Record):
    """The whole pack; the file says in comments what each list is for. A list that is left out is empty."""

    relations: tuple[Relation, ...]
    prepositions: tuple[Preposition, ...] = ()
    marks: tuple[Mark, ...]
    comparatives: Comparatives = Comparatives()
    contrast: Words = ()
    subordinate: Words = ()
    relative: Words = ()
    negators: Words = ()
    negating_phrases: Cues = ()
    symmetric: Words = ()
    light: Words = ()
    drugs: Words = ()
    drug_endings: tuple[str, ...] = ()
    conditions: Words = ()
    condition_endings: tuple[str, ...] = ()
    analytes: Mapping[str, Words] = Field(default_factory=dict)
    organs: Words = ()
    tests: Words = ()
    kin: Words = ()
    she: Words = ()
    he: Words = ()
    others: Words = ()
    patient: Words = ()
    has: Cues = ()
    speaks: Words = ()
    titles: Words = ()
    relative_causes: tuple[RelativeCause, ...] = ()
    cause_names: Words = ()
    effect_names: Words = ()
    coming: Words = ()
    wanted: Words = ()
    specimens: Words = ()
    family_history: Cues = ()

    @model_validator(mode="after")
    def _names_what_there_is(self) -> Pack:
        """Marks and relations that are named elsewhere, here or in the code, must be in the pack."""
        marks, relations = {mark.id for mark in self.marks}, {one.id for one in self.relations}
        _known("marks", marks, ((f"the filter's {name!r}", name) for name in _MARKS))
        _known("relations", relations, ((f"the filter's {name!r}", name) for name in _NEEDED))
        for one in self.relations:
            for field in ("source_stand", "target_stand"):
                _known("marks", marks, [(f"{field} of {one.id!r}", getattr(one, field))])
            _known("relations", relations, ((f"opposes of {one.id!r}", name) for name in one.opposes))
        _known("marks", marks, ((f"opposite of {mark.id!r}", mark.opposite) for mark in self.marks))
        _known(
            "relations",
            relations,
            ((f"the preposition {row.word!r}", row.relation) for row in self.prepositions),
        )
        return self


def _known(what: str, valid: Set[str], named: Iterable[tuple[str, str]]) -> None:
    for where, name in named:
        if name and name not in valid:
            raise ValueError(f"{where}: {name!r} is not among the {what}; valid: {', '.join(sorted(valid))}")

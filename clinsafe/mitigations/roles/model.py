"""The rule pack ``mitigations/entity_swap.yaml`` as values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from clinsafe.content import Record
from clinsafe.mitigations.pack import RuleId

Cue = Annotated[str, Field(min_length=1, max_length=120)]
Cues = tuple[Cue, ...]


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
    words: Cue
    opposes: tuple[RuleId, ...] = ()
    typed: bool = False
    people: bool = False
    joints: Cues = ()
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

    word: Cue
    before: str
    behind: str = ""
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

    more: Cues
    less: Cues


class RelativeCause(Record):
    """Words behind "PREPOSITION which" that tell a cause.

    Attributes:
        word: the preposition.
        cause: the thing before "which" is the cause ("to which it was secondary"); effect: it is the effect.
    """

    word: Cue
    cause: Cues = ()
    effect: Cues = ()


class Pack(Record):
    """The whole pack; the file says in comments what each list is for."""

    relations: tuple[Relation, ...]
    prepositions: tuple[Preposition, ...]
    marks: tuple[Mark, ...]
    comparatives: Comparatives
    contrast: Cues
    subordinate: Cues
    relative: Cues
    negators: Cues
    negating_phrases: Cues
    symmetric: Cues
    light: Cues
    drugs: Cues
    drug_endings: Cues
    conditions: Cues
    condition_endings: Cues
    analytes: Mapping[str, Cues]
    organs: Cues
    tests: Cues
    kin: Cues
    she: Cues
    he: Cues
    others: Cues
    patient: Cues
    has: Cues
    speaks: Cues
    titles: Cues
    relative_causes: tuple[RelativeCause, ...]
    cause_names: Cues
    effect_names: Cues
    coming: Cues
    wanted: Cues
    specimens: Cues
    family_history: Cues

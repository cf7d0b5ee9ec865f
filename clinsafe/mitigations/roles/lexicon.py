"""The pack, ready to look up: what a word is, and which cue begins at a token."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from clinsafe.mitigations.align import weight
from clinsafe.mitigations.cues import CueTable
from clinsafe.mitigations.roles.model import Pack, Relation
from clinsafe.mitigations.roles.values import words
from clinsafe.text.tokens import Token, lemma_of

_REMEMBERED = 50_000
_PREPOSITIONS = words(
    "in on at with for by from to during within among into under over upon against through via"
)
_BE = words("is are was were be been being am")


class Turn(IntEnum):
    """What a word does to an argument that is being collected."""

    NONE = 0
    STOP = 1  # . ; : ( ) —
    COMMA = 2
    AND = 3
    CONTRAST = 4
    SUBORDINATE = 5
    RELATIVE = 6
    PREPOSITION = 7
    BE = 8
    NOT = 9


_SIGNS = dict.fromkeys(".;:()[]?!—|", Turn.STOP) | {",": Turn.COMMA, "&": Turn.AND, "+": Turn.AND}


class Word(NamedTuple):
    """One word: what it does, what kind of thing it names ("" for none), its alignment keys."""

    turn: Turn
    kind: str
    keys: tuple[str, ...]


class Form(NamedTuple):
    """What a cue of the table stands for.

    Attributes:
        what: ``verb``, ``source_first``, ``target_first``, ``source_then``, ``target_then``, ``than``,
            ``negator``; in the table of marks ``ahead`` or ``mark``.
        name: relation or mark id.
        rule: id for findings.
    """

    what: str
    name: str
    rule: str


class Lexicon:
    """Look-ups of the pack. Not changed after it is built, apart from remembered words."""

    def __init__(self, pack: Pack) -> None:
        self.relations: dict[str, Relation] = {relation.id: relation for relation in pack.relations}
        self.people_only = frozenset(relation.id for relation in pack.relations if relation.people)
        self.more, self.less = frozenset(pack.comparatives.more), frozenset(pack.comparatives.less)
        self.typed = frozenset(relation.id for relation in pack.relations if relation.typed)
        self.weak = frozenset(cue for mark in pack.marks for cue in mark.weak)
        self.axes = {mark.id: mark.axis for mark in pack.marks}
        self.axes |= {f"bare {axis}": axis for axis in self.axes.values()}
        self.rivals = _rivals(pack)
        self.opposite = {mark.id: mark.opposite for mark in pack.marks}
        self.cues: CueTable[Form] = CueTable(_relation_forms(pack))
        self.marks: CueTable[Form] = CueTable(_mark_forms(pack))
        self.symmetric = frozenset(pack.symmetric)
        self.prepositions = {row.word: row for row in pack.prepositions}
        self.joints = {relation.id: frozenset(relation.joints) for relation in pack.relations}
        self.people = _people(pack)
        self.kin = frozenset(_person_key(name) for name in pack.kin)
        self.she = frozenset(_person_key(name) for name in pack.she)
        self.he = frozenset(_person_key(name) for name in pack.he)
        self.speaks = frozenset(pack.speaks)
        self.relative_causes = {
            row.word: (frozenset(row.cause), frozenset(row.effect)) for row in pack.relative_causes
        }
        self.cause_names, self.effect_names = frozenset(pack.cause_names), frozenset(pack.effect_names)
        self.wanted = frozenset(pack.wanted)
        self.coming = frozenset(pack.coming)
        self.titles = frozenset(pack.titles)
        self.has: CueTable[str] = CueTable((cue, "has") for cue in pack.has)
        self.family_history: CueTable[str] = CueTable((cue, "fh") for cue in pack.family_history)
        self._turns = _turns(pack)
        self._light = frozenset(form for word in pack.light for form in (word, lemma_of(word)))
        self._kinds = _kinds(pack)
        self._endings = dict.fromkeys(pack.drug_endings, "drug")
        self._endings |= dict.fromkeys(pack.condition_endings, "condition")
        self._sizes = sorted({len(ending) for ending in self._endings}, reverse=True)
        self._analytes = {name: substance for substance, names in pack.analytes.items() for name in names}
        self._words: dict[tuple[str, str], Word] = {}

    def word(self, token: Token) -> Word:
        """What a token is."""
        asked = (token.lower, token.key)
        known = self._words.get(asked)
        if known is None:
            known = self._word(token)
            if len(self._words) < _REMEMBERED:
                self._words[asked] = known
        return known

    def _word(self, token: Token) -> Word:
        turn = self._turns.get(token.lower, Turn.NONE)
        person = self.people.get(token.lower) or self.people.get(token.lemma)
        if person:
            return Word(turn, "person", (person,))
        if turn != Turn.NONE or not token.key:
            return Word(turn, "", ())
        kind = "test" if token.lower in self._analytes else ""
        if kind and self._ending(token.lemma) == "condition":
            kind = "condition"  # hyponatraemia is a condition, sodium a test
        kind = (
            self._kinds.get(token.lower) or kind or self._kinds.get(token.lemma) or self._ending(token.lemma)
        )
        return Word(turn, kind, self._keys(token, kind))

    def _keys(self, token: Token, kind: str) -> tuple[str, ...]:
        substance = self._analytes.get(token.lower)
        if substance:
            return (token.key, f"~{substance}")
        if not kind and self._is_light(token):
            return ()
        return (token.key,)

    def _is_light(self, token: Token) -> bool:
        return (
            token.lower in self._light
            or token.lemma in self._light
            or token.key in self._light
            or weight(token.key) < 1
            or len(token.lower) < 3
        )

    def _ending(self, lemma: str) -> str:
        if len(lemma) < 6:
            return ""
        for size in self._sizes:
            if len(lemma) > size + 1 and lemma[-size:] in self._endings:
                return self._endings[lemma[-size:]]
        return ""


def _person_key(name: str) -> str:
    return {"mum": "@mother", "mom": "@mother", "dad": "@father", "pt": "@patient", "client": "@patient"}.get(
        name, f"@{lemma_of(name)}"
    )


def _rivals(pack: Pack) -> dict[str, list[tuple[str, str]]]:
    """Axis -> pairs of marks that exclude each other."""
    marks: dict[str, list[str]] = {}
    for mark in pack.marks:
        marks.setdefault(mark.axis, []).append(mark.id)
    return {
        axis: [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]] for axis, names in marks.items()
    }


def _people(pack: Pack) -> dict[str, str]:
    lists = (pack.kin, pack.she, pack.he, pack.others, pack.patient)
    return {name: _person_key(name) for names in lists for name in names}


def _kinds(pack: Pack) -> dict[str, str]:
    kinds: dict[str, str] = {}
    lists = {
        "specimen": pack.specimens,
        "organ": pack.organs,
        "test": pack.tests,
        "condition": pack.conditions,
        "drug": pack.drugs,
    }
    for kind, names in lists.items():
        kinds |= dict.fromkeys(names, kind)
    return kinds


def _turns(pack: Pack) -> dict[str, Turn]:
    turns: dict[str, Turn] = dict(_SIGNS)
    turns |= dict.fromkeys(_PREPOSITIONS, Turn.PREPOSITION) | dict.fromkeys(_BE, Turn.BE)
    turns |= dict.fromkeys(("and", "or", "nor"), Turn.AND)
    turns |= dict.fromkeys(pack.subordinate, Turn.SUBORDINATE) | dict.fromkeys(pack.relative, Turn.RELATIVE)
    turns |= dict.fromkeys(pack.contrast, Turn.CONTRAST) | dict.fromkeys(pack.negators, Turn.NOT)
    return turns


def _relation_forms(pack: Pack) -> list[tuple[str, Form]]:
    forms: list[tuple[str, Form]] = []
    for relation in pack.relations:
        rule = f"entity_swap.{relation.id}"
        forms += [(_verb(verb), Form("verb", relation.id, rule)) for verb in relation.verbs]
        for what in ("source_first", "target_first", "source_then", "target_then"):
            forms += [(cue, Form(what, relation.id, rule)) for cue in getattr(relation, what)]
    forms.append(("than", Form("than", "compare", "entity_swap.compare")))
    forms += [(phrase, Form("negator", "", "")) for phrase in pack.negating_phrases]
    return forms


def _verb(verb: str) -> str:
    """The cue of a verb in all its forms; a verb whose lemma is another word ("lower": low) is matched as spelled."""
    first, _, rest = verb.partition(" ")
    if lemma_of(first) == first:
        return f"~{verb}"
    return f"{first}s|{first}ed|{first}ing {rest}".strip()


def _mark_forms(pack: Pack) -> list[tuple[str, Form]]:
    forms: list[tuple[str, Form]] = []
    for mark in pack.marks:
        rule = f"entity_swap.{mark.id}"
        forms += [(cue, Form("ahead", mark.id, rule)) for cue in mark.ahead]
        forms += [(cue, Form("ahead", mark.id, rule)) for cue in mark.weak]
        forms += [(cue, Form("mark", mark.id, rule)) for cue in mark.cues if cue not in mark.ahead]
    return forms

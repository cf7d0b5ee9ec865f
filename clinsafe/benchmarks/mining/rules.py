"""Edits and controls as content: ``benchmarks/mining/<hazard>.yaml``, ``controls.yaml`` and ``verbs.yaml``.

An *edit* turns a sentence into one that contradicts it in the hazard's dimension; a *control* says the same in other
words. Rules with the same ``family`` share their cue words; whether a family is known to the filters is decided by
its cues.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, model_validator

from clinsafe.benchmarks.mining import pattern
from clinsafe.benchmarks.suite import Slug
from clinsafe.content import Content, Record
from clinsafe.errors import ContentError

FOLDER = "benchmarks/mining"
SLOT = re.compile(r"\{(?P<body>[^{}]+)\}")
_BODY = re.compile(
    r"(?P<name>[a-z][a-z0-9]*)(?:(?P<sign>[*/+])(?P<number>\d+(?:\.\d+)?)|\.(?P<form>base|s|past|part|ing))?"
    r"|is (?P<subject>[a-z][a-z0-9]*)"
)

Words = tuple[Annotated[str, Field(min_length=1)], ...]


class Rule(Record):
    """Find a pattern, put something in its place.

    Attributes:
        find: a pattern (`clinsafe.benchmarks.mining.pattern`).
        put: words and slots: ``{x}`` what was kept, ``{x*10}``, ``{x/2}``, ``{x+1}`` a number, ``{v.past}`` a form of
            the verb, ``{is x}`` the form of *be* that agrees with phrase x in the tense of what was matched.
        cues: the words that carry the meaning of the change, on either side of it.
        unless: words whose presence anywhere in the sentence forbids the rule.
        examples: what it does, as a reader would check it: ``before => after``.
    """

    id: Slug
    family: Slug
    find: str
    put: str
    cues: Words
    unless: Words = ()
    examples: Words = ()

    @model_validator(mode="after")
    def _well_formed(self) -> Rule:
        kept = pattern.names(self.find)
        for slot in SLOT.finditer(self.put):
            body = _BODY.fullmatch(slot["body"])
            if body is None:
                raise ValueError(f"put: {slot[0]!r} is no slot; valid: {{x}}, {{x*10}}, {{v.past}}, {{is x}}")
            if body["sign"] in ("*", "/") and not float(body["number"]):
                raise ValueError(f"put: {slot[0]!r} multiplies or divides by nothing")
            name = body["name"] or body["subject"]
            if name not in kept:
                raise ValueError(
                    f"put: {slot[0]!r} names nothing that find keeps ({', '.join(sorted(kept)) or 'none'})"
                )
        for example in self.examples:
            if " => " not in example:
                raise ValueError(f"examples: {example!r} is not written as 'before => after'")
        return self


class Edit(Rule):
    """A rule whose result contradicts the sentence.

    Attributes:
        subtype: as in the written suite's card, or one of its own.
        factor: ratio of the two numbers, for the numerical hazard.
        harm: what happens to somebody if the two are taken for one.
    """

    subtype: Slug
    factor: Annotated[float, Field(ge=1)] | None = None
    harm: Annotated[str, Field(min_length=10, max_length=300)]


class Control(Rule):
    """A rule whose result means the same.

    Attributes:
        kind: what sort of rewording it is.
        hazards: hazards whose own cues it rewords; empty: it stays clear of every cue and fits all.
    """

    kind: Literal["synonym", "format", "unit", "order", "voice", "abbreviation", "prefix", "cue"]
    hazards: tuple[Slug, ...] = ()


class Verb(Record):
    """The forms of one verb."""

    base: str
    s: str
    past: str
    part: str
    ing: str

    def form_of(self, word: str) -> str:
        """Which form a word is; ``past`` where past and participle are one."""
        return next(
            name for name in ("base", "s", "past", "part", "ing") if getattr(self, name) == word.lower()
        )

    def forms(self) -> Iterator[str]:
        """All its forms."""
        yield from dict.fromkeys((self.base, self.s, self.past, self.part, self.ing))


class Verbs(Record):
    """``verbs.yaml``: base, third person, past, participle, -ing form, on one line each."""

    verbs: tuple[str, ...]

    @model_validator(mode="after")
    def _five_forms(self) -> Verbs:
        for line in self.verbs:
            if len(line.split()) != 5:
                raise ValueError(
                    f"{line!r}: a verb has five forms: base, third person, past, participle, -ing"
                )
        return self

    @cached_property
    def table(self) -> Mapping[str, Verb]:
        """Form -> verb."""
        made = [
            Verb(**dict(zip(("base", "s", "past", "part", "ing"), line.split(), strict=True)))
            for line in self.verbs
        ]
        return {form: verb for verb in made for form in verb.forms()}


class EditFile(Record):
    """``<hazard>.yaml``."""

    edits: tuple[Edit, ...]
    controls: tuple[Control, ...] = ()


class ControlFile(Record):
    """``controls.yaml``."""

    controls: tuple[Control, ...]


class Rules(Record):
    """All rules of the miner.

    Attributes:
        edits: hazard -> its edits.
    """

    edits: Mapping[str, tuple[Edit, ...]]
    controls: tuple[Control, ...]
    verbs: Verbs

    @model_validator(mode="after")
    def _ids_once(self) -> Rules:
        seen: set[str] = set()
        for rule in (*(edit for edits in self.edits.values() for edit in edits), *self.controls):
            if rule.id in seen:
                raise ValueError(f"the rule id {rule.id!r} is used twice")
            seen.add(rule.id)
        return self

    def families(self, hazard: str) -> Mapping[str, frozenset[str]]:
        """Family -> all cue words of its edits."""
        cues: dict[str, set[str]] = {}
        for edit in self.edits[hazard]:
            cues.setdefault(edit.family, set()).update(cue.lower() for cue in edit.cues)
        return {family: frozenset(words) for family, words in cues.items()}


def load_rules(content: Content, hazards: tuple[str, ...]) -> Rules:
    """The rules for these hazards.

    Raises:
        ContentError: file, line and field of the first fault.
    """
    files = {hazard: content.yaml(f"{FOLDER}/{hazard}.yaml", EditFile) for hazard in hazards}
    shared = content.yaml(f"{FOLDER}/controls.yaml", ControlFile).controls
    own = [
        control.model_copy(update={"hazards": control.hazards or (hazard,)})
        for hazard, file in files.items()
        for control in file.controls
    ]
    seen: dict[str, str] = {}
    named: list[tuple[str, tuple[Rule, ...]]] = [(f"{FOLDER}/controls.yaml", shared)]
    named += [(f"{FOLDER}/{hazard}.yaml", (*file.edits, *file.controls)) for hazard, file in files.items()]
    for name, found in named:
        for rule in found:
            if rule.id in seen:
                raise ContentError(
                    content.path(name), None, "id", f"{rule.id!r} is already used in {seen[rule.id]}"
                )
            seen[rule.id] = name
    return Rules(
        edits={hazard: file.edits for hazard, file in files.items()},
        controls=(*shared, *own),
        verbs=content.yaml(f"{FOLDER}/verbs.yaml", Verbs),
    )

"""From a document to candidate quads: edit, reword, check. The same document gives the same candidates anywhere."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from clinsafe.benchmarks.mining import checks, render
from clinsafe.benchmarks.mining.index import Index
from clinsafe.benchmarks.mining.rules import Control, Edit, Rules
from clinsafe.benchmarks.mining.sentences import Parsed, parse, split
from clinsafe.benchmarks.suite import edit_distance

EDITS_A_SENTENCE = 3
QUADS_A_DOCUMENT = 6  # for each hazard


@dataclass(frozen=True, slots=True)
class Candidate:
    """A quad that passed the checks, with everything that a selection needs.

    Attributes:
        cluster: source document; two quads of one document are never independent.
        edit, control_a, control_b: rule ids.
        size, size_same: Levenshtein distance in words of (a, b) and (a, a_same).
    """

    hazard: str
    subtype: str
    family: str
    cluster: str
    a: str
    b: str
    a_same: str
    b_same: str
    edit: str
    control_a: str
    control_b: str
    factor: float | None
    harm: str
    size: int
    size_same: int

    @property
    def balanced(self) -> bool:
        """Whether rewording changed no more words than contradicting did."""
        return self.size_same <= self.size

    @property
    def key(self) -> str:
        """A short name that depends on nothing but the quad."""
        parts = (self.hazard, self.cluster, self.a, self.b, self.a_same, self.b_same)
        return hashlib.sha256("\t".join(parts).encode()).hexdigest()[:10]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; ``Candidate(**row)`` gives it back."""
        return asdict(self)


@dataclass(slots=True)
class Tally:
    """What became of the material, for the data card."""

    sentences: int = 0
    edits: int = 0
    refused: Counter[str] = field(default_factory=Counter)


class _Edited(NamedTuple):
    """A sentence that an edit made from another; `span` is what it replaced there, in characters."""

    hazard: str
    sentence: Parsed
    edit: Edit
    text: str
    span: tuple[int, int]


class _Reworded(NamedTuple):
    control: Control
    text: str
    span: tuple[int, int]


class Quads:
    """Makes candidates.

    Args:
        rules: edits and controls.
        pipeline: a spaCy pipeline with tagger, parser and lemmatizer.
        seed: shifts every choice that could as well have been another.
    """

    def __init__(self, rules: Rules, pipeline: Any, seed: int = 0) -> None:
        self.verbs, self.pipeline, self.seed = rules.verbs.table, pipeline, seed
        self._edits = {hazard: Index(edits) for hazard, edits in rules.edits.items()}
        self._controls = Index(rules.controls)
        self.tally = Tally()

    def of(self, cluster: str, text: str) -> list[Candidate]:
        """All candidates of one document, at most `QUADS_A_DOCUMENT` a hazard, families that differ first."""
        sentences = [s for s in split(text) if not self._refused(checks.source_fault(s))]
        self.tally.sentences += len(sentences)
        edited = [one for sentence in parse(self.pipeline, sentences) for one in self._edited(sentence)]
        self.tally.edits += len(edited)
        texts = dict.fromkeys(one.text for one in edited)
        ready = {one.text: one for one in parse(self.pipeline, list(texts))}
        made: dict[str, list[Candidate]] = {hazard: [] for hazard in self._edits}
        reworded: dict[str, list[_Reworded]] = {}
        for one in edited:
            b = ready.get(one.text)
            if not self._refused(checks.parse_fault(b) if b else "not one clause") and b is not None:
                for sentence in (one.sentence, b):
                    if sentence.text not in reworded:
                        reworded[sentence.text] = self._reworded(sentence)
                made[one.hazard] += self._quads(cluster, one, b, reworded)
        return [one for found in made.values() for one in _varied(found, QUADS_A_DOCUMENT)]

    def _refused(self, reason: str) -> bool:
        if reason:
            self.tally.refused[reason.split(" (")[0]] += 1
        return bool(reason)

    def _edited(self, sentence: Parsed) -> list[_Edited]:
        found = []
        for hazard, index in self._edits.items():
            made = [
                _Edited(hazard, sentence, edit, text, span)
                for edit in index.near(sentence)
                for text, span in render.apply(edit, sentence, self.verbs)
                if not self._refused(checks.text_fault(text))
            ]
            made.sort(key=lambda one: self._chance(one.edit.id, one.text))
            first = {one.edit.family: one for one in reversed(made)}
            found += [one for one in made if first[one.edit.family] is one][:EDITS_A_SENTENCE]
        return found

    def _quads(
        self, cluster: str, one: _Edited, b: Parsed, reworded: Mapping[str, Sequence[_Reworded]]
    ) -> Iterator[Candidate]:
        a, edit = one.sentence, one.edit
        size = edit_distance(a.text, b.text)
        start, end = one.span
        second = [
            other
            for other in reworded[b.text]
            if _fits(other, one.hazard, (start, end + len(b.text) - len(a.text)))
        ]
        for first in reworded[a.text]:
            other = _partner(first, second) if _fits(first, one.hazard, one.span) else None
            if other is None or other.text in (a.text, first.text):
                continue
            if not any(
                self._refused(checks.label_fault(
                    x.text, y.text, same.text, hazard=one.hazard, control_kind=same.control.kind,
                    factor=edit.factor is not None,
                ))
                for x, y, same in ((a, b, first), (b, a, other))
            ):  # fmt: skip
                yield Candidate(
                    one.hazard, edit.subtype, edit.family, cluster, a.text, b.text, first.text, other.text, edit.id,
                    first.control.id, other.control.id, edit.factor, edit.harm, size, edit_distance(a.text, first.text),
                )  # fmt: skip

    def _reworded(self, sentence: Parsed) -> list[_Reworded]:
        """What the controls make of a sentence."""
        found = [
            _Reworded(control, text, span)
            for control in self._controls.near(sentence)
            for text, span in render.apply(control, sentence, self.verbs)
            if not self._refused(checks.text_fault(text))
        ]
        return sorted(found, key=lambda one: self._chance(one.control.id, one.text))

    def _chance(self, *parts: str) -> str:
        return hashlib.sha256("\t".join((str(self.seed), *parts)).encode()).hexdigest()


def _fits(one: _Reworded, hazard: str, span: tuple[int, int]) -> bool:
    """A control is its hazard's own, or stays clear of what the edit changed."""
    if one.control.hazards:
        return hazard in one.control.hazards
    clear = one.span[1] <= span[0] or span[1] <= one.span[0]
    return clear or one.control.kind in ("order", "voice")


def _partner(one: _Reworded, others: Sequence[_Reworded]) -> _Reworded | None:
    """The rewording of b that is made most like that of a."""
    same = [other for other in others if other.control.id == one.control.id]
    near = [other for other in others if other.control.kind == one.control.kind]
    return next(iter((*same, *near, *others)), None)


def _varied(made: Sequence[Candidate], most: int) -> list[Candidate]:
    """Families and controls that differ first, balanced and unbalanced ones in turn."""
    left, chosen = list(made), list[Candidate]()
    seen: Counter[str] = Counter()
    while left and len(chosen) < most:
        want = len(chosen) % 2 == 0
        best = min(
            left, key=lambda one: (seen[one.family], seen[one.control_a], one.balanced != want, one.key)
        )
        left.remove(best)
        chosen.append(best)
        seen.update((best.family, best.control_a))
    return chosen

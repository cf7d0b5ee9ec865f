"""Propositions of a text: each thing of which it says how certain it is, with all cues about it joined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from clinsafe.mitigations.certainty.kin import PATIENT, whose
from clinsafe.mitigations.certainty.levels import HEDGED, Level
from clinsafe.mitigations.certainty.lexicon import Lexicon
from clinsafe.mitigations.certainty.marks import Mark, Marked, mark
from clinsafe.mitigations.certainty.targets import Finder, Target
from clinsafe.text import Token

_NEAR = 4  # groups looked back at when a cue is joined to one about the same thing


@dataclass(slots=True)
class Proposition:
    """One thing and how certain it is.

    Attributes:
        tokens: of its sentence.
        marks: the cues, in order.
        core, wide: token positions.
        level: the joint level.
        rule, cue: what gave it.
        core_keys: keys of the first core; a cue that shares half of them is about the same thing.
        whose: the patient or a relative.
    """

    tokens: Sequence[Token]
    marks: list[Mark]
    core: set[int]
    wide: set[int]
    level: Level
    rule: str
    cue: str
    core_keys: frozenset[str]
    whose: str = PATIENT

    @property
    def patient(self) -> bool:
        """Whether it is said that the patient has it."""
        return any(mark.rule.patient for mark in self.marks)


def propositions(tokens: Sequence[Token], lexicon: Lexicon) -> tuple[list[Proposition], frozenset[str]]:
    """The propositions of one sentence, in order of their first cue, and keys of what was left unread in it."""
    marked = mark(tokens, lexicon)
    if not marked.marks:
        return [], marked.rest
    groups: list[Proposition] = []
    for one, target in _targets(marked, lexicon):
        keys = frozenset(tokens[i].key for i in target.core)
        person = _shared(groups, target) or whose(tokens, one.start, one.end, lexicon, one.rule.patient)
        home = _home([group for group in groups if group.whose == person], target, keys)
        if home is not None:
            _join(home, one, target)
        else:
            groups.append(
                Proposition(
                    tokens,
                    [one],
                    set(target.core),
                    set(target.wide),
                    one.level,
                    one.rule.id,
                    one.cue,
                    keys,
                    person,
                )
            )
    return groups, marked.rest


def _targets(marked: Marked, lexicon: Lexicon) -> Iterator[tuple[Mark, Target]]:
    finder = Finder(marked, lexicon)
    supposed = [one.start for one in marked.marks if one.level == Level.HYPOTHETICAL]
    for index, one in enumerate(marked.marks):
        if one.level == Level.ASSERTED and any(start < one.start for start in supposed):
            continue
        following = marked.marks[index + 1] if index + 1 < len(marked.marks) else None
        adverb = one.rule.side == "both" and following is not None and following.start - one.end < 2
        target = finder.find(following if adverb and following else one, index == 0)
        settled = _denied(one, target, marked)
        if settled is not None:
            yield settled, target


def _denied(one: Mark, target: Target, marked: Marked) -> Mark | None:
    """ "showed that she does not have X": what is shown or confirmed is that there is none."""
    if one.level < Level.ASSERTED or not target.core:
        return one
    last = max(target.core)
    if not any(one.end <= at < last for at in marked.negations):
        return one
    return replace(one, level=Level.EXCLUDED) if one.level == Level.CONFIRMED else None


def _shared(groups: Sequence[Proposition], target: Target) -> str:
    """Whose the very words are that an earlier cue named ("her son has suspected X, unproven"); "" for other words."""
    if groups and not target.core:
        return groups[-1].whose
    return next((group.whose for group in reversed(groups) if not group.core.isdisjoint(target.core)), "")


def _home(groups: list[Proposition], target: Target, keys: frozenset[str]) -> Proposition | None:
    """The group that speaks of the same thing: shares the named tokens, or the cue names nothing new."""
    if not groups:
        return None
    if not target.core:
        return groups[-1]
    for group in reversed(groups[-_NEAR:]):
        if not group.core_keys:
            group.core_keys = keys
            return group
        if len(keys & group.core_keys) * 2 >= min(len(keys), len(group.core_keys)):
            return group
    return None


def _join(group: Proposition, one: Mark, target: Target) -> None:
    """Add a cue about the same thing and settle the joint level."""
    previous = group.marks[-1]
    group.marks.append(one)
    group.core |= set(target.core)
    group.wide |= set(target.wide)
    level = _joint(group, previous, one)
    if level != group.level or group.level == one.level:
        group.level, group.rule, group.cue = level, one.rule.id, one.cue


def _joint(group: Proposition, previous: Mark, one: Mark) -> Level:
    """The level of a thing after one more cue about it."""
    now = group.level
    if Level.HYPOTHETICAL in (now, one.level):
        return Level.HYPOTHETICAL
    if Level.ASSERTED in (now, one.level):  # a verb of finding says less than any other cue
        return one.level if now == Level.ASSERTED else now
    if now in HEDGED and one.level in (Level.CONFIRMED, Level.EXCLUDED):
        if one.rule.with_words and one.level == Level.CONFIRMED:
            return now  # "a working diagnosis was made" is no diagnosis made
        if _apart(group, previous, one):
            return one.level  # "suspected X, confirmed by biopsy": the later word stands
    return min(now, one.level)


def _apart(group: Proposition, previous: Mark, one: Mark) -> bool:
    """Whether two cues are two statements ("suspected X confirmed") and not one ("may confirm")."""
    between = range(previous.end, one.start)
    return any(
        at in group.core or group.tokens[at].lower in (",", "and", "but", "then", "now") for at in between
    )

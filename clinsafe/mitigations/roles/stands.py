"""Marks on things: "domperidone: use", "metoclopramide: avoid", "ER: positive".

A cue word gives them, or the part that a relation gives its arguments.
"""

from __future__ import annotations

from typing import NamedTuple

from clinsafe.mitigations.cues import Match
from clinsafe.mitigations.roles.arguments import left_of, right_of
from clinsafe.mitigations.roles.clauses import FAR
from clinsafe.mitigations.roles.contrasts import denied
from clinsafe.mitigations.roles.lexicon import Form, Lexicon, Turn
from clinsafe.mitigations.roles.scene import Scene
from clinsafe.mitigations.roles.values import NOTHING, Bag, Edge

_NOBODY = -2  # a cue number no relation has
_ENDS = frozenset((Turn.STOP, Turn.COMMA, Turn.AND, Turn.CONTRAST))


class Stand(NamedTuple):
    """A thing with a mark; tokens ``[start, end)`` are the thing."""

    mark: str
    keys: frozenset[str]
    start: int
    end: int
    cue: str
    rule: str


def stands(scene: Scene, lexicon: Lexicon, found: list[Edge]) -> list[Stand]:
    """All marked things of a sentence: those of cues, of what is left unsaid after "not", and of relations."""
    marked = [_marked(scene, lexicon, match) for match in scene.marks]
    told = [stand for stand in marked if stand is not None]
    told += [stand for edge in found for stand in _played(scene, edge, lexicon)]
    told = [stand for stand in told if not _unfit(scene, stand, lexicon)]
    told.sort(key=lambda stand: stand.start)
    told += _unsaid(scene, lexicon, told)
    told += _implied(scene, told, any(edge.relation == "cause" for edge in found))
    return told + _bare(scene, lexicon, told)


_AXIS_OF = {"drug": "option", "condition": "purpose", "person": "transfer", "test": "finding"}


def _bare(scene: Scene, lexicon: Lexicon, told: list[Stand]) -> list[Stand]:
    """Named things without a mark on the axis of their kind; they can only be the other one of an exchange."""
    taken: dict[str, set[str]] = {}
    for stand in told:
        taken.setdefault(lexicon.axes[stand.mark], set()).update(stand.keys)
    return [
        Stand(f"bare {axis}", frozenset(scene.keys[index]), index, index + 1, "", "entity_swap.bare")
        for index, kind in enumerate(scene.kinds)
        if (axis := _AXIS_OF.get(kind, "")) in lexicon.rivals
        and scene.keys[index]
        and taken.get(axis, set()).isdisjoint(scene.keys[index])
    ]


_NO_LEVEL = frozenset(("@patient", "@participant"))
_UNFIT = {"option": "condition", "purpose": "drug"}


def _unfit(scene: Scene, stand: Stand, lexicon: Lexicon) -> bool:
    """A condition is not an option, a drug not a purpose, and a patient neither high nor low."""
    if lexicon.axes[stand.mark] == "level" and stand.keys <= _NO_LEVEL:
        return True
    kinds = {scene.kinds[index] for index in range(stand.start, stand.end)} - {"", "person"}
    return kinds == {_UNFIT.get(lexicon.axes[stand.mark], "?")}


def _marked(scene: Scene, lexicon: Lexicon, match: Match[Form]) -> Stand | None:
    mark = match.value.name
    if _within_relation(scene, match) or _bygone(scene, match):
        return None
    if denied(scene, match.start):
        mark = lexicon.opposite.get(mark, "")
    bag = _thing(scene, match, lexicon.axes[match.value.name])
    if not mark or not bag.keys or _only_when(scene, match, bag):
        return None
    if match.cue in lexicon.weak and not (_named(scene, bag, mark) and _placed(scene, match, bag)):
        return None
    return Stand(mark, bag.keys, bag.start, bag.end, match.cue, match.value.rule)


def _bygone(scene: Scene, match: Match[Form]) -> bool:
    """ "was on warfarin" may be a drug that goes on or was given up, "constipation on codeine" treats nothing."""
    if match.cue != "on" or not match.start:
        return False
    before = match.start - 1
    return scene.tokens[before].lower in ("was", "were", "been") or scene.kinds[before] == "condition"


def _only_when(scene: Scene, match: Match[Form], bag: Bag) -> bool:
    """Whether the thing only says when: "none after chemotherapy, please" asks for no chemotherapy."""
    if not 0 < bag.start < match.start or scene.turns[match.start - 1] == Turn.BE:
        return False
    return match.start - bag.end <= 1 and scene.tokens[bag.start - 1].lower in _TIMES


_TIMES = frozenset(("after", "before", "until", "till", "following", "post", "during"))


def _placed(scene: Scene, match: Match[Form], bag: Bag) -> bool:
    """Whether a weak mark stands before its thing, or closes its part: "ibuprofen no"."""
    closes = match.end >= len(scene.tokens) or scene.turns[match.end] in _ENDS
    if bag.start >= match.end:  # not "no reaction to amoxicillin"
        return all(scene.turns[index] != Turn.PREPOSITION for index in range(match.end, bag.start))
    return closes


def _named(scene: Scene, bag: Bag, mark: str) -> bool:
    """Whether a weak mark has a thing that can carry it: a patient is on a drug, a lesion is seen on CT."""
    wanted = ("drug",) if mark == "use" else ("drug", "test")
    return any(scene.kinds[index] in wanted for index in range(bag.start, bag.end))


def _within_relation(scene: Scene, match: Match[Form]) -> bool:
    """Whether the mark is part of a longer relation cue: "off" in "set off"."""
    number = scene.cue_at[match.start]
    if number < 0:
        return False
    cue = scene.cues[number]
    return cue.end - cue.start > match.end - match.start


_KIND_OF = {
    "option": ("drug", "test"),
    "purpose": ("condition",),
    "finding": ("test",),
    "transfer": ("person",),
}


def _thing(scene: Scene, match: Match[Form], axis: str) -> Bag:
    """What a mark belongs to, corrected by kind: a finding is of a test, "on CT the lesion was evident"."""
    bag = _nearest(scene, match)
    wanted = _KIND_OF.get(axis)
    if wanted is None or any(scene.kinds[index] in wanted for index in range(bag.start, bag.end)):
        return bag
    named = {scene.kinds[index] for index in range(bag.start, bag.end)} - {""}
    return _in_part(scene, match, wanted) or (NOTHING if axis in ("finding", "transfer") and named else bag)


def _in_part(scene: Scene, match: Match[Form], wanted: tuple[str, ...]) -> Bag | None:
    """The nearest thing of a wanted kind within the same part of the sentence, first before the mark, then behind."""
    before = range(match.start - 1, max(-1, match.start - 1 - FAR), -1)
    for way in (before, range(match.end, min(len(scene.tokens), match.end + FAR))):
        for index in way:
            if scene.turns[index] in _ENDS or scene.turns[index] == Turn.RELATIVE:
                break
            if scene.kinds[index] in wanted and scene.keys[index]:
                return Bag(index, index + 1, frozenset(scene.keys[index]))
    return None


def _nearest(scene: Scene, match: Match[Form]) -> Bag:
    """The thing after a mark that opens a phrase, else the thing before it."""
    passive = match.start > 0 and scene.turns[match.start - 1] == Turn.BE and " on" not in f" {match.cue}"
    ahead = (match.value.what == "ahead" and not passive) or _opens(scene, match)
    if ahead:
        bag = right_of(scene, match.end, _NOBODY)
        if bag.keys:
            return bag
    bag = left_of(scene, match.start, _NOBODY, near=True)
    return bag if bag.keys or ahead else right_of(scene, match.end, _NOBODY)


def _opens(scene: Scene, match: Match[Form]) -> bool:
    """Whether the mark stands right before a thing and right after none: "a raised lipase"."""
    if match.end >= len(scene.tokens) or not scene.keys[match.end]:
        return False
    before = match.start - 1
    return before < 0 or not (scene.keys[before] or scene.turns[before] == Turn.BE)


def _played(scene: Scene, edge: Edge, lexicon: Lexicon) -> list[Stand]:
    relation = lexicon.relations.get(edge.relation)
    if relation is None or edge.open or (relation.family == "flow" and _comparing(scene, edge, lexicon)):
        return []
    found = []
    kinds = scene.kinds_in(edge.source), scene.kinds_in(edge.target)
    if edge.relation == "lower" and kinds == ({"drug"}, {"condition"}):
        relation = lexicon.relations["treat"]  # a drug that reverses a condition treats it
    for mark, bag in ((relation.source_stand, edge.source), (relation.target_stand, edge.target)):
        if edge.negative and edge.reason:
            mark = ""
        elif edge.negative:
            flips = relation.typed or lexicon.axes.get(mark) == "finding"
            mark = lexicon.opposite.get(mark, "") if flips else ""
        if relation.id == "cause" and mark == "avoid" and not edge.target.keys:
            mark = ""  # a cause of nothing named is no culprit
        if mark and bag.keys:
            found.append(Stand(mark, bag.keys, bag.start, bag.end, edge.cue, edge.rule))
    return found


def _comparing(scene: Scene, edge: Edge, lexicon: Lexicon) -> bool:
    """Whether a cause is only compared: "caused less bleeding than rivaroxaban" blames neither."""
    behind = {token.lower for token in scene.tokens[edge.end : edge.end + 3]}
    than = any(token.lower == "than" for token in scene.tokens[edge.end : edge.end + _THAN])
    return than and bool(behind & (lexicon.more | lexicon.less))


_THAN = 12  # tokens between a cause and the "than" of its effect


def _unsaid(scene: Scene, lexicon: Lexicon, told: list[Stand]) -> list[Stand]:
    """ "X is suitable and Y is not", "X shows it but not Y": Y carries the opposite of X's mark."""
    found = []
    for index, turn in enumerate(scene.turns):
        if scene.tokens[index].lower in _UNLIKE and told:
            found += _opposed(scene, lexicon, told, index)
        if turn != Turn.NOT or not told:
            continue
        after = scene.turns[index + 1] if index + 1 < len(scene.turns) else Turn.STOP
        before = scene.turns[index - 1] if index else Turn.STOP
        alike = 0 < index < len(scene.kinds) - 1 and scene.kinds[index - 1] == scene.kinds[index + 1] != ""
        if after in _ENDS:
            bag = left_of(scene, index, _NOBODY, near=True)
        elif before in _ENDS or alike:  # "but not Y", "X not Y"
            bag = right_of(scene, index + 1, _NOBODY)
        else:
            continue
        for last in _last(told, index, bag.keys):
            mark = lexicon.opposite.get(last, "")
            found.append(Stand(mark, bag.keys, bag.start, bag.end, "not", "entity_swap.unsaid"))
    return [stand for stand in found if stand.mark and stand.keys]


_UNLIKE = frozenset(("unlike", "contrast", "opposed"))


def _opposed(scene: Scene, lexicon: Lexicon, told: list[Stand], index: int) -> list[Stand]:
    """ "unlike Y": Y carries the opposite of what the rest of the sentence says."""
    bag = right_of(scene, index + 1, _NOBODY)
    marks = _last(told, index, bag.keys) or [stand.mark for stand in told if stand.start > bag.end][:1]
    turned = [lexicon.opposite.get(mark, "") for mark in marks]
    return [
        Stand(mark, bag.keys, bag.start, bag.end, "unlike", "entity_swap.unsaid") for mark in turned if mark
    ]


def _implied(scene: Scene, told: list[Stand], blamed: bool) -> list[Stand]:
    """ "for pain paracetamol, no diclofenac": where one drug is to be avoided, the other named one is meant."""
    marks = {stand.mark for stand in told}
    denied_drugs = [] if blamed or marks & {"avoid", "use"} else _denied_drugs(scene)
    if ("avoid" not in marks and not denied_drugs) or "use" in marks:
        return []
    options = [stand for stand in told if stand.mark in ("use", "avoid")]
    taken = frozenset().union(*(stand.keys for stand in [*options, *denied_drugs]))
    others = [
        at for at, kind in enumerate(scene.kinds) if kind == "drug" and taken.isdisjoint(scene.keys[at])
    ]
    if len({scene.keys[at] for at in others}) != 1:
        return denied_drugs
    barred = [stand.start for stand in [*told, *denied_drugs] if stand.mark == "avoid"]
    others = [
        at for at in others if not _aside(scene, at) and min(abs(at - start) for start in barred) <= _NEAR
    ]
    implied = (
        Stand("use", frozenset(scene.keys[at]), at, at + 1, "", "entity_swap.implied") for at in others
    )
    return [*denied_drugs, *implied]


_NEAR = 12  # tokens between the drug to avoid and the one that is meant


def _aside(scene: Scene, at: int) -> bool:
    """Whether a drug is only at hand: "with atropine to hand"."""
    return at > 0 and scene.tokens[at - 1].lower in ("with", "plus", "despite", "after")


def _denied_drugs(scene: Scene) -> list[Stand]:
    """ "nitrofurantoin, not trimethoprim"."""
    return [
        Stand("avoid", frozenset(scene.keys[index]), index, index + 1, "not", "entity_swap.implied")
        for index, kind in enumerate(scene.kinds)
        if kind == "drug"
        and index > 1
        and scene.turns[index - 1] == Turn.NOT
        and scene.turns[index - 2] in _ENDS
        and not _harmed(scene, index - 2)
    ]


def _harmed(scene: Scene, at: int) -> bool:
    """Whether the drug before token `at` did harm: "rash with olanzapine but not aripiprazole"."""
    before = scene.tokens[max(0, at - 2)].lower
    return at > 1 and scene.kinds[at - 1] == "drug" and before in ("with", "on", "from", "after", "to")


def _last(told: list[Stand], index: int, keys: frozenset[str]) -> list[str]:
    """The marks of the last other thing before a token."""
    last: list[Stand] = []
    for stand in told:
        if stand.start < index and stand.keys.isdisjoint(keys):
            last = [*last, stand] if last and last[-1].start == stand.start else [stand]
    return [stand.mark for stand in last]


def typed_keys(scene: Scene, stand: Stand, lexicon: Lexicon) -> frozenset[str]:
    """The keys of a stand that are of the kind its axis is about."""
    wanted = _KIND_OF.get(lexicon.axes[stand.mark], ())
    span = range(stand.start, stand.end)
    return (
        frozenset(key for index in span if scene.kinds[index] in wanted for key in scene.keys[index])
        & stand.keys
    )

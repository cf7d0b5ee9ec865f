"""Causes told without a cue between cause and effect: "…, to which it was due", "A the trigger, B the result"."""

from __future__ import annotations

from clinsafe.mitigations.roles.arguments import left_of, right_of
from clinsafe.mitigations.roles.clauses import HARD
from clinsafe.mitigations.roles.lexicon import Lexicon, Turn
from clinsafe.mitigations.roles.scene import Scene
from clinsafe.mitigations.roles.values import Bag, Edge

_NOBODY = -2  # a cue number no relation has
_REACH = 14  # tokens of a relative clause
_RULE = "entity_swap.cause"
_PARTS = frozenset((Turn.STOP, Turn.COMMA, Turn.AND, Turn.CONTRAST))


def relative_causes(scene: Scene, lexicon: Lexicon) -> list[Edge]:
    """ "the pancreatitis, to which hypercalcaemia was secondary": a preposition, "which", and a word that tells."""
    found = []
    for index in range(1, len(scene.tokens) - 2):
        rows = lexicon.relative_causes.get(scene.tokens[index].lower)
        if rows is None or scene.tokens[index + 1].lower != "which":
            continue
        back, forth = rows
        for at in range(index + 2, min(index + _REACH, len(scene.tokens))):
            word = scene.tokens[at].lower
            if at > index + 2 and scene.turns[at] in HARD:
                break
            if word in back or word in forth:
                one, other = _before(scene, index), right_of(scene, index + 2, scene.cue_at[index + 2])
                source, target = (one, other) if word in back else (other, one)
                found += _edge(
                    scene, source, target, index, at + 1, f"{scene.tokens[index].lower} which .. {word}"
                )
                break
    return found


def _before(scene: Scene, at: int) -> Bag:
    """What "which" means: the thing before the preposition, a comma passed over."""
    end = at - 1 if scene.turns[at - 1] == Turn.COMMA else at
    return left_of(scene, end, _NOBODY, near=True)


def named_roles(scene: Scene, lexicon: Lexicon) -> list[Edge]:
    """ "A was the trigger and B the consequence": both parts are named by their role."""
    first = _named(scene, lexicon.cause_names)
    second = _named(scene, lexicon.effect_names) if first else 0
    if not first or not second:
        return []
    source, target = (left_of(scene, at, _NOBODY, near=True) for at in (first, second))
    return _edge(scene, source, target, min(first, second), max(first, second) + 1, scene.tokens[first].lower)


def _named(scene: Scene, names: frozenset[str]) -> int:
    """The only token that is such a name, stands behind an article and closes its part; else 0."""
    found = [
        index
        for index in range(2, len(scene.tokens))
        if scene.tokens[index].lower in names
        and scene.tokens[index - 1].lower in ("the", "its")
        and (index + 1 == len(scene.tokens) or scene.turns[index + 1] in _PARTS)
    ]
    return found[0] if len(found) == 1 else 0


def from_first(scene: Scene, lexicon: Lexicon) -> list[Edge]:
    """ "From the seizures came hypocalcaemia"."""
    for index, token in enumerate(scene.tokens):
        if token.lower not in ("from", "out") or (index and scene.turns[index - 1] not in _PARTS):
            continue
        source = right_of(scene, index + 1, _NOBODY)
        at = source.end
        if source.keys and at < len(scene.tokens) and scene.tokens[at].lower in lexicon.coming:
            return _edge(scene, source, right_of(scene, at + 1, _NOBODY), index, at + 1, "from .. came")
    return []


def _edge(scene: Scene, source: Bag, target: Bag, start: int, end: int, cue: str) -> list[Edge]:
    both = source.keys & target.keys
    source, target = source.without(both), target.without(both)
    if not source.keys or not target.keys:
        return []
    negative = any(scene.turns[index] == Turn.NOT for index in range(start, end))
    return [Edge("cause", source, target, negative, start, end, cue, _RULE)]

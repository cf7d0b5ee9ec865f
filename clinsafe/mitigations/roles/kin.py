"""Whose disease it is: a relative's or the patient's own."""

from __future__ import annotations

from typing import NamedTuple

from clinsafe.mitigations.roles.lexicon import Lexicon, Turn
from clinsafe.mitigations.roles.scene import Scene
from clinsafe.mitigations.roles.values import words

_REACH = 10  # tokens from a relative to the disease
_RELATED = words("family familial fh fhx")
_OPEN = frozenset((Turn.STOP, Turn.CONTRAST, Turn.SUBORDINATE, Turn.RELATIVE))


class Holder(NamedTuple):
    """A disease with the person who has it; tokens ``[start, end)`` are the disease."""

    person: str
    keys: frozenset[str]
    start: int
    end: int


def relatives(scene: Scene, lexicon: Lexicon) -> list[Holder]:
    """Diseases that a sentence gives to relatives."""
    found = []
    if scene.sentence.subject == "relative":
        found += _diseases(scene, 0, len(scene.tokens), "family")
    else:
        people = [
            token.lower for token in scene.tokens if token.lower in _RELATED or token.lower in lexicon.people
        ]
        if not people:
            return []
        for match in lexicon.family_history.find(scene.tokens):
            found += _diseases(scene, match.end, _end(scene, match.end), "family")
        for index, token in enumerate(scene.tokens):
            key = lexicon.people.get(token.lower, "")
            if key in lexicon.kin and not found and _whose(scene, index):
                found += _of(scene, lexicon, index, key)
    return found


def own(scene: Scene, theirs: list[Holder]) -> frozenset[str]:
    """Keys of diseases that a sentence names and gives to no relative."""
    taken = {index for holder in theirs for index in range(holder.start, holder.end)}
    return frozenset(
        key
        for index, kind in enumerate(scene.kinds)
        if kind == "condition" and index not in taken
        for key in scene.keys[index]
    )


def claims(scene: Scene, lexicon: Lexicon) -> bool:
    """Whether a sentence says of the patient that he or she has something."""
    words = {token.lower for token in scene.tokens}
    if any(lexicon.people.get(word) in lexicon.kin for word in words):
        return False
    return bool(words & _PATIENT) or len(scene.tokens) <= _SHORT or bool(lexicon.has.find(scene.tokens))


_PATIENT = words("patient pt he she his her i my you your")
_SHORT = 5


def _of(scene: Scene, lexicon: Lexicon, index: int, key: str) -> list[Holder]:
    """ "her mother had colon cancer", "colon cancer in her mother", "mother's colon cancer"."""
    tokens = scene.tokens
    after = index + 1
    if after < len(tokens) and tokens[after].text == "'":
        return _diseases(scene, after, _end(scene, after + 2), key)
    if after < len(tokens) and tokens[after].lower in lexicon.speaks:
        return []
    end = _end(scene, after)
    for at in range(after, min(after + 6, end)):
        match = lexicon.has.at(tokens, at)
        if match:
            return _diseases(scene, match.end, end, key)
        if tokens[at].lower in lexicon.speaks:
            return []
    if index and any(tokens[at].lower == "in" for at in range(max(0, index - 3), index)):
        return _diseases(scene, max(0, index - _REACH), index, key)
    return []


def _whose(scene: Scene, index: int) -> bool:
    """Whether it is the patient's relative; "the mother", "their daughter" may be the patient."""
    start = index
    while start > max(0, index - 7) and scene.turns[start - 1] in (Turn.NONE, Turn.NOT):
        start -= 1
    before = scene.tokens[start:index]
    return not any(token.lower in ("the", "their", "this", "that", "both", "our") for token in before) or any(
        token.lower in ("s", "patient") for token in before
    )


def _end(scene: Scene, start: int) -> int:
    for index in range(start, min(start + _REACH, len(scene.tokens))):
        if scene.turns[index] in _OPEN:
            return index
    return min(start + _REACH, len(scene.tokens))


def _diseases(scene: Scene, start: int, end: int, person: str) -> list[Holder]:
    """Each named disease in a range, with the content words before it: "colon cancer"."""
    found = []
    begin = start
    for index in range(start, end):
        if scene.turns[index] in (Turn.COMMA, Turn.AND, Turn.STOP):
            begin = index + 1
        if scene.kinds[index] == "condition":
            keys = frozenset(
                key for at in range(begin, index + 1) if scene.kinds[at] != "person" for key in scene.keys[at]
            )
            found.append(Holder(person, keys, begin, index + 1))
            begin = index + 1
    return found

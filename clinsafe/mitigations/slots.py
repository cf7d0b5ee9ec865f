"""Questions for a side or a class ("which hip", "what type of diabetes"): the value that each of two passages gives."""

from __future__ import annotations

import re

from clinsafe.mitigations.bars import sides
from clinsafe.mitigations.topic import covered
from clinsafe.mitigations.wording import Passage, Worded
from clinsafe.protocols import Finding

_WHICH_SIDE = re.compile(
    r"\b(?:which|what) (?:side|eye|ear|hip|knee|leg|foot|ankle|arm|hand|wrist|shoulder|elbow|lung|kidney"
    r"|breast|limb|hemisphere"
    r"|ovary|testicle|thigh|calf|cheek|nostril|groin)\b"
)
_CLASS = "type|grade|stage|class|group|category"
_WHAT_CLASS = re.compile(rf"\b(?:which|what)\b.{{0,20}}?\b({_CLASS})\b|\b({_CLASS}) of\b")
_BLOOD = re.compile(r"\b(ab|a|b|o) (?:rh\w*|rhesus|pos|positive|neg|negative|\+|- ve)(?!\w)")
_HALF = 0.5
_CONFIDENCE = 0.7
_NOT = r"(?:not|never|no|non|nor|excluded|rather than|other)"
Values = tuple[frozenset[str], Worded | None]


def opposed_values(asked: str, keys: frozenset[str], one: Passage, other: Passage) -> Finding | None:
    """That two passages name different sides or classes; None where a question asks for none, or they do not.

    Args:
        asked: the question in lower case.
        keys: what it names.
    """
    if _WHICH_SIDE.search(asked):
        first, second = _sides(keys, one), _sides(keys, other)
    elif "blood group" in asked or "blood type" in asked:
        first, second = _blood(one), _blood(other)
    elif match := _WHAT_CLASS.search(asked):
        name = match[1] or match[2]
        first, second = _classes(keys, one, name), _classes(keys, other, name)
    else:
        return None
    (mine, here), (theirs, there) = first, second
    if here is None or there is None or mine & theirs:
        return None
    said, against = " and ".join(sorted(mine)), " and ".join(sorted(theirs))
    told = f"The query says {said}; the passage says {against}."
    return Finding(
        "entity_swap", "conflict", "contradiction", "critical", _CONFIDENCE, here.line.span, there.line.span,
        said, against, "", "disagreement.value", told,
    )  # fmt: skip


def _sides(keys: frozenset[str], passage: Passage) -> Values:
    for sentence in passage.sentences:
        found = sides(sentence.text)
        if len(found) == 1 and covered(keys, sentence.keys) >= _HALF and not sentence.open:
            return found, sentence
    return frozenset(), None


def _blood(passage: Passage) -> Values:
    for sentence in passage.sentences:
        found = frozenset(match[1] for match in _BLOOD.finditer(sentence.text))
        if found and not sentence.open:
            return found, sentence
    return frozenset(), None


def _classes(keys: frozenset[str], passage: Passage, name: str) -> Values:
    value = re.compile(rf"(?<!\w)(?:{_NOT} )?{name} ((?:\d|iv|i{{1,3}}|v|[abco]{{1,2}})(?: [abc])?)\b")
    for sentence in passage.sentences:
        if covered(keys, sentence.keys) < _HALF or sentence.open:
            continue
        found = {match[1] for match in value.finditer(sentence.text) if not re.match(_NOT, match[0])}
        if found:
            return frozenset(found), sentence
    return frozenset(), None

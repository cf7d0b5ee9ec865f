"""What a signed word is called in a finding, what it is said of, and where."""

from __future__ import annotations

from collections.abc import Callable

from clinsafe.mitigations.polarity.behind import behind
from clinsafe.mitigations.polarity.line import Line, Op
from clinsafe.mitigations.polarity.region import WALK
from clinsafe.mitigations.polarity.rules import DET, HYPHEN, MARK, PREP, WORD, Cue

ACTIONS = frozenset(
    ["given", "withheld", "contraindicated", "contraindication", "permitted", "permits", "kept"]
)
ADJECTIVE = ("ic", "al", "ar", "ary", "ive", "ous")
_DONE = ACTIONS | {"resumed", "taken-off"}  # told as done or not
_ADJECTIVAL = (*ADJECTIVE, "ed", "en", "ble", "ent", "ant", "ct")
_NAMED = 4  # words of a subject that are told


def form(op: Op | None, cue: Cue | None, own: bool) -> str:
    """What a clinician would call it: ``about`` another thing, an ``action``, a ``verb``, or else a ``thing``."""
    if cue is not None:
        adjective = cue.id == "affix" and cue.label.endswith(_ADJECTIVAL)
        return "about" if cue.about or adjective else "thing"
    if op is not None and op.cue.id in _DONE:
        return "action"
    return (
        "verb"
        if op is not None and not own and op.cue.kind == "negator" and op.cue.reach == "verb"
        else "thing"
    )


def subject(line: Line, index: int, cue: Cue | None) -> str:
    """What an adjective or verb is said of ("the *dose* was increased"), "" if that is not told."""
    if cue is None or not (cue.about or cue.id == "affix"):
        return ""
    words = object_of(line, index)
    if not words:
        scope = behind(line, index)
        words = sorted([*scope.heads, *scope.qualifiers])
    return " ".join(line.lower(at) for at in words[-_NAMED:] if line.kind[at] == WORD)


def object_of(line: Line, index: int) -> list[int]:
    """ "reduced *opioid consumption*", "a patent *graft*"."""
    at, found = index + 1, []
    while at < len(line.tokens) and at <= index + _NAMED + 1 and line.kind[at] in (DET, WORD, HYPHEN, MARK):
        found.append(at)
        at += 1
    return [at for at in found if line.kind[at] == WORD]


def tail(line: Line, index: int, key: Callable[[int], str]) -> frozenset[str]:
    """ "no weakness *in the arms*": keys of where the thing is said to be, sides included ("~left")."""
    at = index + 1
    if at >= len(line.tokens) or line.kind[at] != PREP:
        return frozenset()
    found, last = set(), min(len(line.tokens), index + WALK)
    while at < last and line.kind[at] in (PREP, DET, WORD, HYPHEN, MARK):
        side = line.among(at, "sides")
        found.add("~" + line.lower(at) if side else key(at) if line.kind[at] == WORD else "")
        at += 1
    return frozenset(found - {""})

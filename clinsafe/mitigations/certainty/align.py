"""Do two facts speak of the same thing? A thing is known by the words of its name, then by what stands around it."""

from __future__ import annotations

from typing import NamedTuple

from clinsafe.mitigations.certainty.levels import Level
from clinsafe.protocols import Fact

_FAINT = 0.3  # weight of a number or of a word such as "disease"
_SHARED = 0.6  # weight that two names must share, unless one is found whole
_WHOLE = 0.8  # share of a name that must be found where one side has no cue
_AROUND = 0.85  # a name found around the other name and not in it
NONE: frozenset[str] = frozenset()


class Side(NamedTuple):
    """One fact, taken apart once.

    Attributes:
        core, wide, faint, context: keys of its name, of its clause, of words that say little, of its sentence.
        plain: stated without a cue.
        presupposed: keys of verbs such as "worsens", which take the thing for granted.
        whose: the patient or a relative.
    """

    fact: Fact
    level: int
    core: frozenset[str]
    wide: frozenset[str]
    faint: frozenset[str]
    context: frozenset[str]
    plain: bool
    presupposed: frozenset[str]
    whose: str


def side(fact: Fact) -> Side:
    """Take a fact apart."""
    normal = fact.normal
    return Side(
        fact,
        normal["level"],
        normal["core_keys"],
        normal["wide_keys"],
        normal["faint_keys"],
        normal["context_keys"],
        normal["plain"],
        normal["presupposed_keys"],
        normal["whose"],
    )


def alignment(one: Side, other: Side) -> float:
    """How surely two facts speak of the same thing, in [0, 1]; symmetric."""
    if one.whose != other.whose or one.level == other.level == Level.HYPOTHETICAL:
        return 0.0
    if not _granted(one, other) or not _granted(other, one):
        return 0.0
    if one.plain or other.plain:
        return _plainly(one, other) if other.plain else _plainly(other, one)
    faint = one.faint | other.faint
    forth = _covered(one.core, other.core, other.wide, faint)
    back = _covered(other.core, one.core, one.wide, faint)
    best, worst = (forth, back) if forth >= back else (back, forth)
    if best < _AROUND and _mass(one.core & other.core, faint) < _SHARED:
        return 0.0
    around = max(share(one.context, other.context, faint), share(other.context, one.context, faint))
    return 0.6 * best + 0.15 * worst + 0.25 * around


def _granted(one: Side, other: Side) -> bool:
    """A condition that takes the thing for granted ("if it worsens") is met only by what says the same of it."""
    return not one.presupposed or not one.presupposed.isdisjoint(other.wide | other.context)


def _plainly(marked: Side, plain: Side) -> float:
    """A plain statement holds all that the other names, and names nothing that does not stand around that."""
    faint = marked.faint | plain.faint
    held = share(marked.core, plain.core, faint)
    if marked.plain:
        held = max(held, share(plain.core, marked.core, faint))
    if held < _WHOLE or _mass(marked.core & plain.core, faint) < _SHARED:
        return 0.0
    if marked.level >= Level.PROBABLE:
        return 1.0  # the two agree, whatever else the plain statement says
    supposed = marked.level == Level.HYPOTHETICAL
    back = share(plain.core, marked.wide if supposed else marked.wide | marked.context, faint)
    return 0.5 + 0.5 * back if back >= _SHARED and plain.fact.normal["alone"] else 0.0


def share(keys: frozenset[str], others: frozenset[str], faint: frozenset[str]) -> float:
    """Share in [0, 1] of the weight of `keys` found in `others`."""
    total = _mass(keys, faint)
    return _mass(keys & others, faint) / total if total else 0.0


def _covered(
    core: frozenset[str], other: frozenset[str], wide: frozenset[str], faint: frozenset[str]
) -> float:
    """Share of a name found in the other's name or, worth less, around it."""
    total = _mass(core, faint)
    if not total:
        return 0.0
    inside = _mass(core & other, faint)
    return max(inside, _AROUND * _mass(core & wide, faint)) / total if inside < total else 1.0


def _mass(keys: frozenset[str], faint: frozenset[str]) -> float:
    weak = len(keys & faint)
    return len(keys) - weak + _FAINT * weak

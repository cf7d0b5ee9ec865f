"""Whether two aligned statements speak of the same matter, and what sets them against each other."""

from __future__ import annotations

from clinsafe.mitigations import align
from clinsafe.mitigations.quantity_words.lexicon import ASSUMED, LIGHT, SEVERITY
from clinsafe.mitigations.quantity_words.sides import CHIEF, Side, mass

THIN = 1.0  # a statement of one key is known by the sentence around it
_REST = 1.0  # what both may hold beside what they share; more makes them two matters
_SWAP_OVERLAP = 0.85
_COMPLEMENT = 0.01
_NEXT_TO_NONE = 0.04
_COUNT_SHARED, _COUNT_REST = 2.0, 0.5  # of two sentences that bound one count


def turned_round(one: Side, other: Side, shared: frozenset[str]) -> bool:
    """Whether words of opposite meaning set one statement against the other.

    "Mild and self-treated" beside "severe and treated by others" is one turn: the two say the same thing twice.
    """
    plain = light = 0
    for key in one.minus ^ other.minus:
        if key.startswith(LIGHT):
            light += key in shared or key.startswith(ASSUMED)
        elif key in shared:
            plain = 1
    return (plain + light) % 2 == 1


def graded_none(one: Side, other: Side, shared: frozenset[str]) -> bool:
    """ "None showed severe fibrosis" leaves open how many showed a mild one: those without any are of no grade."""
    against = (one.minus ^ other.minus) & shared
    return against == frozenset([SEVERITY]) and min(one.interval.high, other.interval.high) <= _NEXT_TO_NONE


def swapped(one: Side, other: Side) -> bool:
    """ "mostly A, a little B" beside "mostly B, a little A": the same words, the larger share on another of them.

    Each of the two is the larger share of its set and lies within the other's sentence.
    """
    return align.overlap(one.sentence, other.sentence) >= _SWAP_OVERLAP


def traded(
    one: Side,
    other: Side,
    shared: frozenset[str],
    minor: tuple[frozenset[str], frozenset[str]],
    light: frozenset[str],
) -> bool:
    """ "The eruptions are mostly A, few are B" beside "the eruptions are mostly B, few are A"."""
    if one.interval.low <= CHIEF or other.interval.low <= CHIEF:
        return False
    rest, others = one.scope - shared, other.scope - shared
    return (
        mass(rest & minor[1], light) >= THIN
        and mass(others & minor[0], light) >= THIN
        and rest.isdisjoint(minor[0])
        and others.isdisjoint(minor[1])
    )


def _of_any_grade(one: Side, rest: frozenset[str], light: frozenset[str]) -> frozenset[str]:
    """The grade, if a statement says none and says it of what both share: none then, of whatever grade."""
    none = one.interval.high <= _NEXT_TO_NONE and mass(rest, light) < THIN
    return frozenset([SEVERITY]) if none else frozenset()


def same_matter(one: Side, other: Side, shared: frozenset[str], light: frozenset[str]) -> bool:
    """Whether nothing unshared may turn the one statement against the other."""
    rest, others = _telling(one.scope - shared - one.head), _telling(other.scope - shared - other.head)
    mild, milder = _of_any_grade(other, others, light), _of_any_grade(one, rest, light)
    rest, others = rest - mild, others - milder
    if _named((rest & one.minus) | (others & other.minus)):
        return False
    if (one.weak or other.weak) and _named(rest | others):
        return False
    if not rest or not others:
        return True
    if _has_sign(rest) or _has_sign(others) or _named(rest | others):
        return False
    mine, theirs = one.interval, other.interval
    one_set = one.whole and one.whole == other.whole
    apart = min(mass(_unnumbered(rest), light), mass(_unnumbered(others), light))
    counted = one_set and mine.point and theirs.point
    both = not (rest <= light or others <= light)  # each says something of its own
    told_twice = both or one.turned or other.turned
    if counted and told_twice and abs(mine.low + theirs.high - 1) < _COMPLEMENT:
        return False  # 10 of 11 of one kind, 1 of 11 of another: the same thing told twice
    return apart < _REST


def same_count(one: Side, other: Side, light: frozenset[str]) -> bool:
    """Whether two bounds are on the count of one thing, in sentences that say little else apart.

    Where only one of the two is denied ("two or fewer were ineligible") nothing is said.
    """
    if one.noun != other.noun or one.minus ^ other.minus:
        return False
    mine, theirs = _unnumbered(one.sentence), _unnumbered(other.sentence)
    shared = mass(mine & theirs, light)
    rest = min(mass(mine - theirs, light), mass(theirs - mine, light))
    return shared >= _COUNT_SHARED and rest <= _COUNT_REST * shared


def _unnumbered(keys: frozenset[str]) -> frozenset[str]:
    return frozenset(key for key in keys if not key[:1].isdigit())


def _telling(keys: frozenset[str]) -> frozenset[str]:
    """Without the keys whose plus side goes without saying; their minus side is already counted as a turn."""
    return frozenset(key for key in keys if not key.startswith(ASSUMED))


def _named(keys: frozenset[str]) -> bool:
    return any(key.startswith("~") and not key.startswith(LIGHT) for key in keys)


def _has_sign(keys: frozenset[str]) -> bool:
    return any(key.startswith("~") for key in keys)

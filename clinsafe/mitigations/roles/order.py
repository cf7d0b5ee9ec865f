"""The same sentence with two things exchanged, whatever the relation: "X kept Y awake" against "Y kept X awake".

Only sentences of nearly the same words are compared; an exchange around "and" or a comma is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from clinsafe.mitigations.roles.values import words

Words = Sequence[str]
_LONGEST = 120  # tokens; longer sentences are left to the other readers
ALIKE = 0.8  # share of their keys that two sentences of nearly the same words have in common
_IGNORED = words(
    "a an the this that these those his her its their him she he they them it is are was were be been being has have "
    "had do does did , ."
)
_STRETCH = 4  # common words around an exchange that may belong to it


class Exchange(NamedTuple):
    """What stood first in the one text and second in the other, and the words between."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    between: tuple[str, ...]


def alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two sentences share nearly all their keys."""
    larger = max(len(one), len(other))
    return larger > 1 and len(one & other) >= ALIKE * larger


def exchange(one: Words, other: Words, symmetric: frozenset[str], telling: frozenset[str]) -> Exchange | None:
    """The exchange that turns `one` into `other`, or None.

    Args:
        one, other: lower-cased tokens in order.
        symmetric: words around which an exchange changes nothing.
        telling: words of either sentence that are cues; without one, or a preposition, the words between are a list.
    """
    if max(len(one), len(other)) > _LONGEST or one == other:
        return None
    changes = _changes(one, other)
    if not 2 <= len(changes) <= 6 or _reordered(one, other, changes, symmetric):
        return None
    found = _substituted(one, changes) or _moved(one, changes)
    if found is None or not _content(found.first) or not _content(found.second):
        return None
    respectively = "respectively" in one and len(changes) == 2
    return found if respectively or _relational(found.between, symmetric, telling) else None


class _Change(NamedTuple):
    start: int
    end: int
    other_start: int
    other_end: int
    gone: tuple[str, ...]
    come: tuple[str, ...]


def _bare(words: Words) -> tuple[str, ...]:
    return tuple(word for word in words if word not in _IGNORED)


def _changes(one: Words, other: Words) -> list[_Change]:
    found = []
    for tag, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        gone, come = _bare(one[a:b]), _bare(other[c:d])
        if tag != "equal" and gone != come:
            found.append(_Change(a, b, c, d, gone, come))
    return found


def _substituted(one: Words, changes: list[_Change]) -> Exchange | None:
    """Every change has its counterpart; the first pair is the exchange."""
    waiting, first = list(changes), None
    while waiting:
        change = waiting.pop(0)
        for index, later in enumerate(waiting):
            if change.gone == later.come and change.come == later.gone and change.gone and change.come:
                first = first or Exchange(change.gone, later.gone, tuple(one[change.end : later.start]))
                waiting.pop(index)
                break
        else:
            return None
    return first


def _moved(one: Words, changes: list[_Change]) -> Exchange | None:
    """A block that went to the other side of a thing, with the words between turned over: Y M | X against X | M Y."""
    if len(changes) != 2:
        return None
    before, after = changes
    if before.come and not before.gone and after.gone and not after.come:
        return _rotated(before.come, after.gone, tuple(one[before.end : after.start]))
    if before.gone and not before.come and after.come and not after.gone:
        return _rotated(before.gone, after.come, tuple(one[before.end : after.start]))
    return None


def _rotated(front: tuple[str, ...], back: tuple[str, ...], thing: tuple[str, ...]) -> Exchange | None:
    if sorted(front) != sorted(back):
        return None
    for size in range(1, len(front)):
        if front[size:] == back[: len(front) - size] and front[:size] == back[len(front) - size :]:
            return Exchange(front[:size], _bare(thing), front[size:])
    return None


def _reordered(one: Words, other: Words, changes: list[_Change], symmetric: frozenset[str]) -> bool:
    """Whether two whole phrases changed places around "and" or the like."""
    a, b = changes[0].start, changes[-1].end
    c, d = changes[0].other_start, changes[-1].other_end
    for before in range(_STRETCH):
        for after in range(_STRETCH):
            if a - before < 0 or c - before < 0 or b + after > len(one) or d + after > len(other):
                break
            if _turned(one[a - before : b + after], other[c - before : d + after], symmetric):
                return True
    return False


def _turned(one: Words, other: Words, symmetric: frozenset[str]) -> bool:
    left, right = _joinless(one), _joinless(other)
    for index, word in enumerate(one):
        if word in symmetric or word in ",;./+&:":
            head, tail = _joinless(one[:index]), _joinless(one[index + 1 :])
            if head and tail and len(left) - len(head) - len(tail) <= 1:
                rest = [*tail, *left[len(head) : len(left) - len(tail)], *head]
                if rest == right:
                    return True
    return False


def _joinless(words: Words) -> list[str]:
    return [word for word in words if word not in _IGNORED and word not in ";:."]


def _content(words: Words) -> bool:
    return any(word[0].isalnum() and word not in _IGNORED for word in words)


def _relational(between: Words, symmetric: frozenset[str], telling: frozenset[str]) -> bool:
    return any(
        word not in symmetric and (word in telling or word.endswith("ed") or word[0].isdigit())
        for word in between
    )

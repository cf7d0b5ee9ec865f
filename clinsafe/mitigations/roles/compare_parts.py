"""Neighbouring parts side by side: things that changed over while their companions stayed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from clinsafe.mitigations.index import Effort, Index
from clinsafe.mitigations.roles import wording
from clinsafe.protocols import Fact, Finding


def pairs(query: Sequence[Fact], passage: Sequence[Fact]) -> Iterator[Finding]:
    """Pairs of parts whose things are paired differently in the passage and nowhere as in the query.

    Raises:
        TooMuchToCompare: too many parts with the same things.
    """
    effort, index = Effort(), Index(passage)
    for fact in query:
        if fact.normal["asked"]:
            continue
        sides = [(field, fact.normal[side]) for side in _SIDES for field in _SIDES]
        others = index.at(index.with_all(*sides), effort)
        mixed = [other for other in others if _mixed(fact.normal, other.normal)]
        if mixed and not _agreed(
            fact.normal, index.at(index.having("keys", fact.normal["keys"]), effort), mixed
        ):
            yield wording.parts(fact, mixed[0])


_SIDES = ("left_keys", "right_keys")


def _mixed(one: Any, other: Any) -> bool:
    """Whether some things stayed in their part and others changed over, and the two kinds of move tell an exchange."""
    left, right, their_left, their_right = (
        one["left_keys"],
        one["right_keys"],
        other["left_keys"],
        other["right_keys"],
    )
    if left.isdisjoint(their_left) or right.isdisjoint(their_right):
        return False
    if left.isdisjoint(their_right) or right.isdisjoint(their_left) or other["asked"]:
        return False
    straight = left & their_left, right & their_right
    crossed = left & their_right, right & their_left
    kinds = one["kinds"]
    if _exchanged(crossed, straight, kinds) or _exchanged(straight, crossed, kinds):
        return True
    named = {kinds.get(key, key) for part in (*straight, *crossed) for key in part if key[0] not in "+#"}
    return len(named) > 1 and _things(*straight) and _things(*crossed) and _mostly_shared(one, other)


Two = tuple[frozenset[str], frozenset[str]]


def _exchanged(rivals: Two, companions: Two, kinds: Any) -> bool:
    """Whether two things of one kind parted from what goes with them; a list of such things alone has no companions."""
    shared = {kinds.get(key, "?") for key in rivals[0]} & {kinds.get(key, "!") for key in rivals[1]}
    if not shared:
        return False
    one, other = (frozenset(key for key in part if kinds.get(key) not in shared) for part in companions)
    return _things(one, other)


def _agreed(one: Any, passage: Iterable[Fact], mixed: Sequence[Fact]) -> bool:
    """Whether another pair of parts of the passage pairs the same things as here."""
    most = max(len(one["keys"] & other.normal["keys"]) for other in mixed)
    for fact in passage:
        other = fact.normal
        if len(one["keys"] & other["keys"]) < most:
            continue
        straight = not one["left_keys"].isdisjoint(other["left_keys"]) and not one["right_keys"].isdisjoint(
            other["right_keys"]
        )
        crossed = not one["left_keys"].isdisjoint(other["right_keys"]) and not one["right_keys"].isdisjoint(
            other["left_keys"]
        )
        if straight != crossed:
            return True
    return False


_SHARED = 0.6


def _mostly_shared(one: Any, other: Any) -> bool:
    """Whether each part has most of its content in the other text: then things of any kind are believed."""
    everything, everything_there = one["keys"], other["keys"]
    return all(
        len(part & whole) >= _SHARED * len(part)
        for part, whole in (
            (one["left_keys"], everything_there),
            (one["right_keys"], everything_there),
            (other["left_keys"], everything),
            (other["right_keys"], everything),
        )
    )


def _things(one: frozenset[str], other: frozenset[str]) -> bool:
    return _thing(one) and _thing(other)


def _thing(keys: frozenset[str]) -> bool:
    return any(key[0] != "#" for key in keys)

"""Marks side by side: two things that carry each other's mark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clinsafe.mitigations.roles import wording
from clinsafe.mitigations.roles.lexicon import Lexicon
from clinsafe.protocols import Fact, Finding

Marked = dict[str, dict[str, list[Fact]]]


def stands(query: Sequence[Fact], passage: Sequence[Fact], lexicon: Lexicon) -> Iterator[Finding]:
    """Two things that carry each other's mark: give A and avoid B, against the reverse."""
    ours, theirs = _by_axis(query), _by_axis(passage)  # without what is only asked
    for axis, marks in ours.items():
        others = theirs.get(axis, {})
        for first, second in lexicon.rivals.get(axis, ()):
            crossed = _crossed(marks, others, first, second, f"bare {axis}")
            if crossed:
                yield wording.stands(marks, others, first, second, crossed)


def _by_axis(facts: Sequence[Fact]) -> Marked:
    axes: Marked = {}
    for fact in facts:
        if fact.normal["asked"]:
            continue
        axes.setdefault(fact.normal["axis"], {}).setdefault(fact.normal["mark"], []).append(fact)
    return axes


def _crossed(
    ours: dict[str, list[Fact]], theirs: dict[str, list[Fact]], first: str, second: str, bare: str
) -> tuple[frozenset[str], frozenset[str]] | None:
    """(what is `first` here and `second` there, what is the reverse), or None. One of four marks may be left unsaid."""
    one, two = _only(ours.get(first, ()), ours.get(second, ()))
    three, four = _only(theirs.get(first, ()), theirs.get(second, ()))
    if one & three or two & four:
        return None
    crossed = one & four, two & three
    if crossed[0] and crossed[1]:
        return crossed
    if not crossed[0] and not crossed[1]:
        return None
    return _half_crossed(ours, theirs, first, second, bare)


def _half_crossed(
    ours: dict[str, list[Fact]], theirs: dict[str, list[Fact]], first: str, second: str, bare: str
) -> tuple[frozenset[str], frozenset[str]] | None:
    """As `_crossed` where one of the four marks is left unsaid; believed only of things of the right kind."""
    one, two = _only(ours.get(first, ()), ours.get(second, ()), "typed_keys")
    three, four = _only(theirs.get(first, ()), theirs.get(second, ()), "typed_keys")
    ours_bare, theirs_bare = _keys(ours.get(bare, ())), _keys(theirs.get(bare, ()))
    if one & four:
        other = (two & theirs_bare) | (ours_bare & three)
        return (one & four, other) if other else None
    if two & three:
        other = (one & theirs_bare) | (ours_bare & four)
        return (other, two & three) if other else None
    return None


def _only(
    first: Sequence[Fact], second: Sequence[Fact], field: str = "keys"
) -> tuple[frozenset[str], frozenset[str]]:
    one, two = _keys(first, field), _keys(second, field)
    return one - two, two - one


def _keys(facts: Sequence[Fact], field: str = "keys") -> frozenset[str]:
    return frozenset().union(*(fact.normal[field] for fact in facts))

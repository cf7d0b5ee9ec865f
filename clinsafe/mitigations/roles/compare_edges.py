"""Relations side by side: the same, swapped, denied, or opposed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clinsafe.mitigations.index import Effort, Index
from clinsafe.mitigations.roles import wording
from clinsafe.mitigations.roles.lexicon import Lexicon
from clinsafe.protocols import Fact, Finding


def edges(query: Sequence[Fact], passage: Sequence[Fact], lexicon: Lexicon) -> Iterator[Finding]:
    """For each relation of the query its best match in the passage; of two equal matches the one that agrees.

    Raises:
        TooMuchToCompare: too many relations of the same things.
    """
    effort, index = Effort(), Index(passage)
    for fact in query:
        best: tuple[int, bool, Fact, str] | None = None
        source, target = fact.normal["source_keys"], fact.normal["target_keys"]
        straight = index.with_all(("source_keys", source), ("target_keys", target))
        turned = index.with_all(("source_keys", target), ("target_keys", source))
        for other in index.at(straight | turned, effort):
            score, kind = _edge_pair(fact.normal, other.normal, lexicon)
            if score and (best is None or (score, kind == "same") > best[:2]):
                best = (score, kind == "same", other, kind)
        if best is not None:
            yield wording.edge(fact, best[2], best[3], lexicon)


def effects(query: Sequence[Fact], passage: Sequence[Fact], lexicon: Lexicon) -> Iterator[Finding]:
    """Two things whose effects on a third changed places: A raises it and B lowers it, against the reverse."""
    ours, theirs = _effects(query), _effects(passage)
    for key, (up, down) in ours.items():
        their_up, their_down = theirs.get(key, ({}, {}))
        if up.keys() & their_up.keys() or down.keys() & their_down.keys():
            continue
        rises, falls = _reversed(up, their_down), _reversed(down, their_up)
        if rises and falls:
            thing = min(rises)
            yield wording.edge(up[thing], their_down[thing], "reversed", lexicon)
            return


_WHERE = frozenset(("plasma", "serum", "=blood"))


def _reversed(one: Mapping[str, Fact], other: Mapping[str, Fact]) -> list[str]:
    """What acts in one direction here and in the other there, on the same: not on a drug and on its clearance."""
    return [
        thing
        for thing in one.keys() & other.keys()
        if one[thing].normal["target_keys"] - _WHERE == other[thing].normal["target_keys"] - _WHERE
    ]


_Effects = dict[str, tuple[dict[str, Fact], dict[str, Fact]]]


def _effects(facts: Sequence[Fact]) -> _Effects:
    """Key of what is acted on -> what raises it, what lowers it, each by its keys."""
    found: _Effects = {}
    for fact in facts:
        normal = fact.normal
        if normal["relation"] in ("raise", "lower") and not normal["negative"] and not normal["asked"]:
            for key in normal["target_keys"]:
                side = found.setdefault(key, ({}, {}))[normal["relation"] == "lower"]
                side.update((source, fact) for source in normal["source_keys"] if source not in side)
    return found


_COVERED = 0.5


def _shared(one: frozenset[str], other: frozenset[str]) -> int:
    """How many keys two arguments share; 0 where that is less than half of the shorter one."""
    both = len(one & other)
    return both if both >= _COVERED * min(len(one), len(other)) else 0


_ASKED_FREELY = ("choice", "compare")  # "is A better than B?" presupposes no order


def _edge_pair(one: Any, other: Any, lexicon: Lexicon) -> tuple[int, str]:
    """How well two relations align, and as what: same, swapped, denied or opposed."""
    source, target = one["source_keys"], one["target_keys"]
    their_source, their_target = other["source_keys"], other["target_keys"]
    if not source or not target or not their_source or not their_target:
        return 0, ""
    asked, unsaid = one["asked"] or other["asked"], one.get("open") or other.get("open")
    direct = min(len(source & their_source), len(target & their_target))
    if one["family"] == other["family"]:
        swapped = min(_shared(source, their_target), _shared(target, their_source))
        if swapped > direct and one["relation"] not in lexicon.typed:
            if one["family"].startswith("v:"):
                return 0, ""  # a verb of unknown meaning: "A came before B", "B came on after A"
            if asked and one["family"] in _ASKED_FREELY:
                return 0, ""
            if one["family"] == "compare" and not _one_measure(one, other):
                return 0, ""
            return (swapped, "swapped") if one["negative"] == other["negative"] else (0, "")
        if one["family"].startswith("v:") and direct:
            return 0, ""
        if direct and one["negative"] != other["negative"]:
            sure = not asked and not unsaid and _one_thing(one, other)
            return (direct, "denied") if sure else (0, "")
        return (direct, "same") if direct else (0, "")
    plain = (
        direct
        and not asked
        and not unsaid
        and (one["ill"] or other["ill"])
        and not one["negative"]
        and not other["negative"]
    )
    if plain and _one_thing(one, other) and _opposed(one["relation"], other["relation"], lexicon):
        return direct, "opposed"
    return 0, ""


def _one_measure(one: Any, other: Any) -> bool:
    """Whether what is compared, beside the two things that changed places, is the same where both name it."""
    things = (one["source_keys"] & other["target_keys"]) | (one["target_keys"] & other["source_keys"])
    mine, theirs = ((side["source_keys"] | side["target_keys"]) - things for side in (one, other))
    return not mine or not theirs or not mine.isdisjoint(theirs)


def _one_thing(one: Any, other: Any) -> bool:
    """Whether both sides name the same things, one perhaps in more words: not "ischaemic" and "haemorrhagic stroke"."""
    names = ("source_keys", "target_keys")
    return all(one[name] <= other[name] or other[name] <= one[name] for name in names)


def _opposed(one: str, other: str, lexicon: Lexicon) -> bool:
    first, second = lexicon.relations.get(one), lexicon.relations.get(other)
    return first is not None and second is not None and (other in first.opposes or one in second.opposes)

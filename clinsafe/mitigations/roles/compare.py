"""Two texts' facts side by side: which of them exchange, turn round or deny each other's roles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clinsafe.mitigations.roles import wording
from clinsafe.mitigations.roles.compare_edges import edges
from clinsafe.mitigations.roles.compare_parts import pairs
from clinsafe.mitigations.roles.compare_stands import stands
from clinsafe.mitigations.roles.compare_targets import targets
from clinsafe.mitigations.roles.lexicon import Lexicon
from clinsafe.mitigations.roles.order import alike, exchange
from clinsafe.protocols import Fact, Finding


def compare(query: Sequence[Fact], passage: Sequence[Fact], lexicon: Lexicon) -> list[Finding]:
    """All findings of one pair of texts."""
    asked, told = _by_form(query), _by_form(passage)
    found = edges(asked.get("edge", ()), told.get("edge", ()), lexicon)
    found += targets(asked, told, lexicon)
    found += stands(asked.get("stand", ()), told.get("stand", ()), lexicon)
    found += pairs(asked.get("pair", ()), told.get("pair", ()))
    found += _orders(asked.get("order", ()), told.get("order", ()), lexicon)
    found += _kin(asked, told)
    return found


def _by_form(facts: Iterable[Fact]) -> dict[str, list[Fact]]:
    forms: dict[str, list[Fact]] = {}
    for fact in facts:
        forms.setdefault(fact.normal["form"], []).append(fact)
    return forms


# ── order ──────────────────────────────────────────────────────────────────────────────────────


def _orders(query: Sequence[Fact], passage: Sequence[Fact], lexicon: Lexicon) -> list[Finding]:
    found = []
    said = {fact.normal["words"] for fact in passage}
    for fact in query:
        if fact.normal["words"] in said:
            continue
        for other in passage:
            if not alike(fact.normal["keys"], other.normal["keys"]):
                continue
            telling = frozenset(fact.normal["telling"]) | frozenset(other.normal["telling"])
            swap = exchange(fact.normal["words"], other.normal["words"], lexicon.symmetric, telling)
            if swap is not None:
                found.append(wording.order(fact, other, swap))
    return found


# ── people ─────────────────────────────────────────────────────────────────────────────────────


def _kin(query: dict[str, list[Fact]], passage: dict[str, list[Fact]]) -> list[Finding]:
    return _kin_one(query, passage, False) + _kin_one(passage, query, True)


def _kin_one(mine: dict[str, list[Fact]], theirs: dict[str, list[Fact]], turned: bool) -> list[Finding]:
    """A disease that `mine` gives to the patient and `theirs` only to a relative."""
    if "relative" not in theirs or "own" not in mine:
        return []
    own_there = frozenset().union(*(fact.normal["keys"] for fact in theirs.get("own", ())))
    kin_here = frozenset().union(*(fact.normal["keys"] for fact in mine.get("relative", ())))
    found = []
    for fact in mine["own"]:
        for other in theirs["relative"]:
            shared = fact.normal["keys"] & other.normal["keys"]
            claimed = fact.normal["claims"] and not fact.normal["asked"]
            if claimed and shared and shared.isdisjoint(own_there) and shared.isdisjoint(kin_here):
                found.append(wording.kin(fact, other, turned))
    return found

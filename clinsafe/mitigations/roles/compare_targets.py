"""One drug, two conditions that both texts name: each text gives the drug for the other one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clinsafe.mitigations.roles import wording
from clinsafe.mitigations.roles.lexicon import Lexicon
from clinsafe.protocols import Fact, Finding

_RELATIONS = frozenset(("treat", "contraindicate"))
_NAMED = 0.5  # share of what tells a target that the other text must name


Forms = Mapping[str, Sequence[Fact]]


def targets(query: Forms, passage: Forms, lexicon: Lexicon) -> list[Finding]:
    """Relations of one drug whose targets differ although each text names both.

    Args:
        query, passage: facts by form.
    """
    ours, theirs = (list(filter(_telling, forms.get("edge", ()))) for forms in (query, passage))
    found: list[Finding] = []
    if not ours or not theirs:
        return found
    here, there = _everything(query), _everything(passage)
    for fact in ours:
        for other in theirs:
            if not _same_relation(fact.normal, other.normal):
                continue
            if _told(fact.normal, passage["edge"]) or _told(other.normal, query["edge"]):
                continue
            if _chained(fact.normal, other.normal, (*query["edge"], *passage["edge"])):
                continue
            if not (_placed(fact, other, passage["edge"]) and _placed(other, fact, query["edge"])):
                continue
            if _exchanged(fact.normal, other.normal, here, there):
                found.append(wording.edge(fact, other, "moved", lexicon))
    return found


def _everything(forms: Forms) -> frozenset[str]:
    """All keys of a text."""
    return frozenset().union(*(fact.normal["keys"] for fact in forms.get("order", ())))


def _telling(fact: Fact) -> bool:
    normal = fact.normal
    return bool(
        normal["relation"] in _RELATIONS
        and normal["drug_keys"]
        and not normal["asked"]
        and not normal["negative"]
        and not normal["listed"]
        and normal["target_keys"]
    )


def _same_relation(one: Any, other: Any) -> bool:
    return one["relation"] == other["relation"] and not one["drug_keys"].isdisjoint(other["drug_keys"])


def _told(one: Any, others: Iterable[Fact]) -> bool:
    """Whether the other text tells the same relation too."""
    return any(
        _same_relation(one, other.normal) and one["target_keys"] <= other.normal["target_keys"]
        for other in others
        if other.normal["relation"] in _RELATIONS and other.normal["drug_keys"]
    )


def _chained(one: Any, other: Any, facts: Iterable[Fact]) -> bool:
    """Whether one target is told to cause the other: then the drug may be said to be for either."""
    mine, theirs = one["target_keys"], other["target_keys"]
    for fact in facts:
        normal = fact.normal
        if normal["family"] != "flow":
            continue
        source, target = normal["source_keys"], normal["target_keys"]
        if (source & mine and target & theirs) or (source & theirs and target & mine):
            return True
    return False


def _placed(fact: Fact, other: Fact, facts: Iterable[Fact]) -> bool:
    """Whether the text of `other` gives the target of `fact` a part of its own in another relation."""
    mine = fact.normal["target_keys"] - other.normal["target_keys"]
    return any(found is not other and not mine.isdisjoint(found.normal["keys"]) for found in facts)


def _exchanged(one: Any, other: Any, here: frozenset[str], there: frozenset[str]) -> bool:
    mine = one["target_keys"] - other["target_keys"] - one["drug_keys"]
    theirs = other["target_keys"] - one["target_keys"] - one["drug_keys"]
    return _named(mine, there) and _named(theirs, here)


def _named(keys: frozenset[str], text: frozenset[str]) -> bool:
    plain = frozenset(key for key in keys if key[0] not in "~@")
    return bool(plain) and len(plain & text) >= _NAMED * len(plain)

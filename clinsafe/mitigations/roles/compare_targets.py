"""One drug, two conditions that both texts name: each text gives the drug for the other one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from clinsafe.mitigations.index import Effort, Index
from clinsafe.mitigations.roles import wording
from clinsafe.mitigations.roles.lexicon import Lexicon
from clinsafe.protocols import Fact, Finding

_RELATIONS = frozenset(("treat", "contraindicate"))
_NAMED = 0.5  # share of what tells a target that the other text must name
Forms = Mapping[str, Sequence[Fact]]


def targets(query: Forms, passage: Forms, lexicon: Lexicon) -> Iterator[Finding]:
    """Relations of one drug whose targets differ although each text names both.

    Args:
        query, passage: facts by form.

    Raises:
        TooMuchToCompare: too many relations of one drug.
    """
    edges, edges_there = query.get("edge", ()), passage.get("edge", ())
    if not any(map(_telling, edges)) or not any(map(_telling, edges_there)):
        return
    here, there = _everything(query), _everything(passage)
    ours, theirs = _candidates(edges, edges_there, there), _candidates(edges_there, edges, here)
    flows = Index([fact for fact in (*edges, *edges_there) if fact.normal["family"] == "flow"])
    placed, placed_there = Index(edges), Index(edges_there)
    effort, index = Effort(), Index(theirs)
    for fact in ours:
        for other in index.at(index.having("drug_keys", fact.normal["drug_keys"]), effort):
            if not _same_relation(fact.normal, other.normal):
                continue
            if not _exchanged(fact.normal, other.normal, here, there):
                continue
            if not (_placed(fact, other, placed_there) and _placed(other, fact, placed)):
                continue
            if not _chained(fact.normal, other.normal, flows, effort):
                yield wording.edge(fact, other, "moved", lexicon)


def _candidates(edges: Sequence[Fact], others: Sequence[Fact], text: frozenset[str]) -> list[Fact]:
    """Telling relations whose target the other text, with these relations and keys, names without telling the same."""
    told: _Told = {}
    for other in others:
        normal = other.normal
        if normal["relation"] in _RELATIONS:
            for drug, key in product(normal["drug_keys"], normal["target_keys"]):
                told.setdefault((normal["relation"], drug, key), []).append(normal["target_keys"])
    return [
        fact
        for fact in edges
        if _telling(fact)
        and not fact.normal["target_keys"].isdisjoint(text)
        and not any(fact.normal["target_keys"] <= keys for keys in _rows(fact.normal, told))
    ]


_Told = dict[
    tuple[str, str, str], list[frozenset[str]]
]  # relation, drug, key of the target -> all keys of the target


def _rows(normal: Any, told: _Told) -> Iterator[frozenset[str]]:
    """What is told of the drug, of the targets that share the rarest key."""
    for drug in normal["drug_keys"]:
        rows = (told.get((normal["relation"], drug, key), []) for key in normal["target_keys"])
        yield from min(rows, key=len)


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


def _chained(one: Any, other: Any, flows: Index, effort: Effort) -> bool:
    """Whether one target is told to cause the other: then the drug may be said to be for either."""
    mine, theirs = one["target_keys"], other["target_keys"]
    for flow in flows.at(flows.having("keys", mine) & flows.having("keys", theirs), effort):
        source, target = flow.normal["source_keys"], flow.normal["target_keys"]
        if (source & mine and target & theirs) or (source & theirs and target & mine):
            return True
    return False


def _placed(fact: Fact, other: Fact, relations: Index) -> bool:
    """Whether the text of `other` gives the target of `fact` a part of its own in another relation."""
    mine = fact.normal["target_keys"] - other.normal["target_keys"]
    return any(relations.facts[at] is not other for at in relations.having("keys", mine))


def _exchanged(one: Any, other: Any, here: frozenset[str], there: frozenset[str]) -> bool:
    mine = one["target_keys"] - other["target_keys"] - one["drug_keys"]
    theirs = other["target_keys"] - one["target_keys"] - one["drug_keys"]
    return _named(mine, there) and _named(theirs, here)


def _named(keys: frozenset[str], text: frozenset[str]) -> bool:
    plain = frozenset(key for key in keys if key[0] not in "~@")
    return bool(plain) and len(plain & text) >= _NAMED * len(plain)

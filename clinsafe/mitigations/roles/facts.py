"""Scenes into facts: what is kept of a text, in a form that serialises.

Forms (field ``form``): ``edge`` a relation, ``stand`` a thing with a mark, ``pair`` two neighbouring parts,
``order`` a whole sentence in its order, ``relative`` a relative's disease, ``own`` what is given to no relative.
"""

from __future__ import annotations

from typing import Any

from clinsafe.mitigations.roles.contrasts import Part, pairs, parts
from clinsafe.mitigations.roles.edges import edges
from clinsafe.mitigations.roles.kin import Holder, claims, own, relatives
from clinsafe.mitigations.roles.lexicon import Lexicon, Turn
from clinsafe.mitigations.roles.scene import Scene, scenes
from clinsafe.mitigations.roles.stands import Stand, stands, typed_keys
from clinsafe.mitigations.roles.values import Bag, Edge
from clinsafe.protocols import Fact, Span
from clinsafe.text import Reading

HAZARD = "entity_swap"
_LONGEST_ORDER = 120  # tokens
_SHOWN = 80  # characters of a thing in a finding
_PLAIN = (Turn.NONE, Turn.AND, Turn.COMMA, Turn.CONTRAST, Turn.STOP)


def read(reading: Reading, lexicon: Lexicon) -> list[Fact]:
    """All facts of a text; of those that say the same, the first."""
    facts: list[Fact] = []
    cells: list[Part] = []
    for scene in scenes(reading.sentences, lexicon):
        found = edges(scene, lexicon)
        facts += [_edge_fact(reading, scene, edge, lexicon) for edge in found]
        facts += [_stand_fact(reading, scene, stand, lexicon) for stand in stands(scene, lexicon, found)]
        facts += _kin_facts(reading, scene, lexicon)
        if len(scene.tokens) <= _LONGEST_ORDER:
            facts.append(_order_fact(reading, scene))
        cells += parts(scene, lexicon, found)
    facts += [_pair_fact(reading, *pair) for pair in pairs(cells)]
    return _distinct(facts)


_SAME = (
    "form",
    "relation",
    "mark",
    "negative",
    "asked",
    "open",
    "source_keys",
    "target_keys",
    "left_keys",
    "right_keys",
    "keys",
    "words",
)


def _distinct(facts: list[Fact]) -> list[Fact]:
    first: dict[tuple[Any, ...], Fact] = {}
    for fact in facts:
        first.setdefault(tuple(map(fact.normal.get, _SAME)), fact)
    return list(first.values())


def _edge_fact(reading: Reading, scene: Scene, edge: Edge, lexicon: Lexicon) -> Fact:
    relation, negative = edge.relation, edge.negative
    if negative and not edge.reason and relation in ("treat", "contraindicate"):
        relation, negative = ("contraindicate" if relation == "treat" else "treat"), False
    known = lexicon.relations.get(relation)
    normal: dict[str, Any] = {
        "form": "edge",
        "relation": relation,
        "family": known.family if known else relation,
        "negative": negative,
        "asked": scene.asked,
        "open": edge.open,
        "source_keys": edge.source.keys,
        "target_keys": edge.target.keys,
        "source": _words(reading, scene, edge.source.start, edge.source.end),
        "target": _words(reading, scene, edge.target.start, edge.target.end),
        "drug_keys": frozenset() if relation != edge.relation else _drug(scene, edge),
        "listed": _listed(scene, edge.target),
        "ill": _ill(scene, edge),
        "keys": edge.source.keys | edge.target.keys,
    }
    bounds = [edge.start, edge.end]
    for bag in (edge.source, edge.target):
        bounds += [bag.start, bag.end] if bag.keys else []
    span = _span(reading, scene, min(bounds), max(bounds))
    return Fact(HAZARD, span, normal, edge.cue, edge.rule)


def _ill(scene: Scene, edge: Edge) -> bool:
    """Whether a condition is the target, or what a drug acts on other than a person: only then can uses be opposed."""
    named = scene.kinds_in(edge.target)
    return "condition" in named or ("drug" in scene.kinds_in(edge.source) and "person" not in named)


def _drug(scene: Scene, edge: Edge) -> frozenset[str]:
    """The drugs that an edge has for its source; none where another drug is its target."""
    if "drug" in scene.kinds_in(edge.target):
        return frozenset()
    span = range(edge.source.start, edge.source.end)
    found = frozenset(key for index in span if scene.kinds[index] == "drug" for key in scene.keys[index])
    return found & edge.source.keys


def _listed(scene: Scene, target: Bag) -> bool:
    """Whether another condition is joined to a target: "for angina and hypertension"."""
    at = target.end
    if at >= len(scene.tokens) or (
        scene.turns[at] not in (Turn.COMMA, Turn.AND) and scene.tokens[at].text != "/"
    ):
        return False
    for index in range(at + 1, min(at + 8, len(scene.tokens))):
        if scene.kinds[index] == "condition":
            after = scene.turns[index + 1] if index + 1 < len(scene.turns) else Turn.STOP
            return after != Turn.BE and not (index + 1 < len(scene.tokens) and scene.cue_at[index + 1] >= 0)
        if scene.turns[index] not in (Turn.NONE, Turn.AND) or scene.cue_at[index] >= 0:
            return False
    return False


def _stand_fact(reading: Reading, scene: Scene, stand: Stand, lexicon: Lexicon) -> Fact:
    normal = {
        "form": "stand",
        "asked": scene.asked,
        "axis": lexicon.axes[stand.mark],
        "mark": stand.mark,
        "thing": _words(reading, scene, stand.start, stand.end),
        "typed_keys": typed_keys(scene, stand, lexicon),
        "keys": stand.keys,
    }
    span = _span(reading, scene, stand.start, stand.end)
    return Fact(HAZARD, span, normal, stand.cue, stand.rule)


def _pair_fact(reading: Reading, one: Part, other: Part) -> Fact:
    both = one.features & other.features
    left, right = one.features - both, other.features - both
    normal = {
        "form": "pair",
        "asked": one.scene.asked or other.scene.asked,
        "kinds": {
            key: kind for part in (one, other) for key, kind in part.kinds.items() if kind and key not in both
        },
        "left_keys": left,
        "right_keys": right,
        "left": _words(reading, one.scene, one.start, one.end),
        "right": _words(reading, other.scene, other.start, other.end),
        "keys": left | right,
    }
    span = reading.span(one.scene.tokens[one.start].start, other.scene.tokens[other.end - 1].end)
    return Fact(HAZARD, span, normal, "", "entity_swap.parts")


def _order_fact(reading: Reading, scene: Scene) -> Fact:
    telling = {scene.tokens[index].lower for match in scene.cues for index in range(match.start, match.end)}
    telling |= {
        token.lower for token, turn in zip(scene.tokens, scene.turns, strict=True) if turn not in _PLAIN
    }
    telling |= {
        token.lower for token in scene.tokens if token.lower != token.lemma and token.lower[-1] != "s"
    }
    normal = {
        "form": "order",
        "asked": scene.asked,
        "words": tuple([token.lower for token in scene.tokens]),
        "telling": tuple(sorted(telling)),
        "keys": scene.sentence.keys,
    }
    return Fact(HAZARD, _span(reading, scene, 0, len(scene.tokens)), normal, "", "entity_swap.order")


def _kin_facts(reading: Reading, scene: Scene, lexicon: Lexicon) -> list[Fact]:
    theirs = relatives(scene, lexicon)
    facts = [_holder_fact(reading, scene, holder) for holder in theirs]
    mine = own(scene, theirs)
    if mine:
        normal = {
            "form": "own",
            "asked": scene.asked,
            "claims": not theirs and claims(scene, lexicon),
            "keys": mine,
        }
        facts.append(Fact(HAZARD, _span(reading, scene, 0, len(scene.tokens)), normal, "", "entity_swap.kin"))
    return facts


def _holder_fact(reading: Reading, scene: Scene, holder: Holder) -> Fact:
    normal = {
        "form": "relative",
        "asked": scene.asked,
        "person": holder.person.removeprefix("@"),
        "disease": _words(reading, scene, holder.start, holder.end),
        "keys": holder.keys,
    }
    span = _span(reading, scene, holder.start, holder.end)
    return Fact(HAZARD, span, normal, holder.person.removeprefix("@"), "entity_swap.kin")


def _span(reading: Reading, scene: Scene, start: int, end: int) -> Span:
    """Original characters of tokens ``[start, end)``, at least one."""
    return reading.span(scene.tokens[start].start, scene.tokens[max(end - 1, start)].end)


def _words(reading: Reading, scene: Scene, start: int, end: int) -> str:
    """What stands there, shortened."""
    if end <= start:
        return ""
    return reading.cleaned.text[scene.tokens[start].start : scene.tokens[end - 1].end][:_SHOWN]

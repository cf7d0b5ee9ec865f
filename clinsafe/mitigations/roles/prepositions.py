"""Relations without a cue of their own: by a preposition between known kinds, or by the words between two alike."""

from __future__ import annotations

from clinsafe.mitigations.roles.arguments import right_of
from clinsafe.mitigations.roles.clauses import earlier, negated
from clinsafe.mitigations.roles.lexicon import Lexicon, Turn
from clinsafe.mitigations.roles.scene import Scene
from clinsafe.mitigations.roles.values import NOTHING, Bag, Edge, words

_TYPED_REACH = 6


def typed_prepositions(scene: Scene, lexicon: Lexicon) -> list[Edge]:
    """Relations that a preposition alone tells, between things of known kinds: "topiramate 100 mg for migraine"."""
    found = []
    for index, token in enumerate(scene.tokens):
        typed = lexicon.prepositions.get(token.lower)
        if typed is None or scene.cue_at[index] >= 0:
            continue
        left, right = _typed_left(scene, index, typed.before), _typed_right(scene, index, typed.behind)
        if _denied_behind(scene, right.end):
            continue
        if left.keys and right.keys and left.keys.isdisjoint(right.keys):
            source, target = (right, left) if typed.source_behind else (left, right)
            negative = negated(scene, left.start)
            rule = f"entity_swap.{typed.relation}"
            found.append(Edge(typed.relation, source, target, negative, index, index + 1, token.lower, rule))
    return found


def _denied_behind(scene: Scene, at: int) -> bool:
    """Whether the verb of the clause is denied: "propranolol for migraine was not prescribed"."""
    for index in range(at, min(at + _TYPED_REACH, len(scene.turns))):
        if scene.turns[index] == Turn.NOT:
            return index > at and scene.turns[index - 1] != Turn.COMMA
        if scene.turns[index] in (Turn.STOP, Turn.COMMA, Turn.CONTRAST, Turn.SUBORDINATE, Turn.AND):
            return False
    return False


def _typed_left(scene: Scene, at: int, kind: str) -> Bag:
    for index in range(at - 1, max(-1, at - 1 - _TYPED_REACH), -1):
        if scene.turns[index] in (Turn.STOP, Turn.COMMA, Turn.CONTRAST, Turn.SUBORDINATE, Turn.RELATIVE):
            break
        if scene.kinds[index]:
            good = scene.kinds[index] == kind
            return Bag(index, index + 1, frozenset(scene.keys[index])) if good else NOTHING
    return NOTHING


def _typed_right(scene: Scene, at: int, kind: str) -> Bag:
    bag = right_of(scene, at + 1, -2)
    if bag.pronoun and not bag.keys:
        return earlier(scene, at, frozenset((kind or "drug",)), frozenset())
    if any(token.lower in _TAKEN for token in scene.tokens[at + 1 : bag.start]):
        return NOTHING  # "ruled out for him by asthma"
    named = scene.kinds_in(bag) & {"drug", "condition"}
    return bag if named and (not kind or kind in named) else NOTHING


_TAKEN = words("by him them whom which")
_FROM_TO = {"person": "toward", "drug": "switch", "organ": "spread"}
_MOST_LINKS = 3
_TRANSFERS = frozenset(("transmission", "transfer", "donation", "spread", "passage"))


def linked(scene: Scene, lexicon: Lexicon) -> list[Edge]:
    """Two things of one kind in one clause, told apart by the words between them: "from A to B", "A comforts B"."""
    found: list[Edge] = []
    last = -1
    for index, kind in enumerate(scene.kinds):
        if scene.turns[index] in _LINK_ENDS:
            last = -1
        if not kind or not scene.keys[index]:
            continue
        if last >= 0 and scene.kinds[last] == kind and set(scene.keys[last]).isdisjoint(scene.keys[index]):
            found += _links(scene, lexicon, last, index)
        last = index
    return found


_LINK_ENDS = frozenset((Turn.STOP, Turn.COMMA, Turn.AND, Turn.CONTRAST, Turn.RELATIVE))


def _links(scene: Scene, lexicon: Lexicon, first: int, second: int) -> list[Edge]:
    one, other = (Bag(at, at + 1, frozenset(scene.keys[at])) for at in (first, second))
    between = scene.tokens[first + 1 : second]
    words = [token.lower for token in between]
    opener = [token.lower for token in scene.tokens[max(0, first - 3) : first]]
    if "to" in opener and "from" in words and "from" not in opener:
        one, other, opener, words = other, one, ["from"], ["to"]
    joined = [word for word in words if word != "-"]
    behind = {token.lower for token in scene.tokens[second + 1 : second + 5]}
    if joined == ["to"] and scene.kinds[first] == "person" and behind & _TRANSFERS:
        opener = ["from"]  # "mother-to-baby transmission"
    if "from" in opener and "to" in words:
        relation = _FROM_TO.get(scene.kinds[first])
        if relation is None:
            return []
        return [Edge(relation, one, other, False, first, first + 1, "from .. to", f"entity_swap.{relation}")]
    if any(scene.cue_at[index] >= 0 for index in range(first + 1, second)):
        return []
    source, target = (other, one) if "by" in words else (one, other)
    negative = any(scene.turns[index] == Turn.NOT for index in range(first + 1, second))
    verbs = (token for token in between if token.key and token.lower != token.lemma)
    links = [token.key for token in verbs if token.lower not in lexicon.symmetric][:_MOST_LINKS]
    return [
        Edge(f"v:{key}", source, target, negative, first + 1, second, key, "entity_swap.link")
        for key in links
    ]


def charted(scene: Scene) -> list[Edge]:
    """Lines of a drug chart: "colchicine 500 micrograms BD, indication: pericarditis"."""
    found = []
    for match in scene.marks:
        if match.value.name != "meant" or match.cue.split()[0] != "indication":
            continue
        colon = match.end < len(scene.tokens) and scene.tokens[match.end].text == ":"
        source, target = _drug_of_line(scene, match.start), right_of(scene, match.end + colon, -2)
        if source.keys and target.keys and "drug" not in scene.kinds_in(target):
            found.append(
                Edge("treat", source, target, False, match.start, match.end, match.cue, "entity_swap.treat")
            )
    return found


_LINE = 14  # tokens between a drug and its indication


def _drug_of_line(scene: Scene, at: int) -> Bag:
    """The only drug before "indication", with no condition in between."""
    for index in range(at - 1, max(-1, at - 1 - _LINE), -1):
        if scene.kinds[index] == "condition" or scene.turns[index] in (Turn.BE, Turn.NOT, Turn.CONTRAST):
            return NOTHING
        if scene.kinds[index] == "drug":
            return Bag(index, index + 1, frozenset(scene.keys[index]))
    return NOTHING


_OPENERS = words("since when after once with following")
_LEVELS = frozenset(("high", "low"))


def _ended(scene: Scene, start: int, end: int) -> bool:
    """Whether the opening clause is over before token `end`: "with weekly blood counts, cut the allopurinol"."""
    return any(turn in (Turn.COMMA, Turn.STOP) for turn in scene.turns[start:end])


def fronted(scene: Scene) -> list[Edge]:
    """ "since A was added, B has built up": beside a level, the drug of the opening clause acts on the other."""
    if not any(match.value.name in _LEVELS for match in scene.marks):
        return []
    for index, token in enumerate(scene.tokens):
        if token.lower not in _OPENERS or (index and scene.turns[index - 1] not in (Turn.STOP, Turn.COMMA)):
            continue
        drugs = [at for at in range(index + 1, len(scene.kinds)) if scene.kinds[at] == "drug"]
        if len(drugs) > 1 and drugs[0] - index <= _TYPED_REACH and not _ended(scene, index, drugs[0]):
            one, other = (Bag(at, at + 1, frozenset(scene.keys[at])) for at in drugs[:2])
            return [Edge("raise", one, other, False, index, index + 1, token.lower, "entity_swap.raise")]
    return []

"""Relations of a sentence: SOURCE relation TARGET, whatever the voice it is told in."""

from __future__ import annotations

from clinsafe.mitigations.cues import Match
from clinsafe.mitigations.roles.clauses import earlier, negated
from clinsafe.mitigations.roles.contrasts import denied
from clinsafe.mitigations.roles.forms import NAMED, Pair, read_pair
from clinsafe.mitigations.roles.lexicon import Form, Lexicon, Turn
from clinsafe.mitigations.roles.prepositions import charted, fronted, linked, typed_prepositions
from clinsafe.mitigations.roles.relatives import from_first, named_roles, relative_causes
from clinsafe.mitigations.roles.scene import Scene
from clinsafe.mitigations.roles.values import Bag, Edge, words

_NEGATOR_REACH = 20  # tokens between "rather than" and the cue it denies
_REASON_REACH = 8  # tokens between "was stopped" and "because"
_GIVING_REACH = 4  # tokens between "given" and its drug
_DENIER_REACH = 6  # tokens between "none of the" and what it denies
_DENIERS = words("no neither none not")
_OTHER = frozenset((Turn.STOP, Turn.COMMA, Turn.AND, Turn.CONTRAST))  # another clause begins


def edges(scene: Scene, lexicon: Lexicon) -> list[Edge]:
    """All relations of a sentence: those of cues, then those of prepositions."""
    found = []
    for number, match in enumerate(scene.cues):
        silent = match.value.what == "negator" or _relative_behind(scene, match)
        pair = None if silent else read_pair(scene, lexicon, number, match)
        if pair is not None:
            source, target = _settled(scene, lexicon, match, *pair)
            if source.keys or target.keys:
                edge = _edge(scene, match, source, target)
                found.append(_reason_to_stop(scene, lexicon, _reasoned(scene, lexicon, edge)))
    found = [_valued(scene, lexicon, edge) for edge in found]
    found = [edge for edge in _preferred_subjects(found) if not _too_plain(scene, edge)]
    found += typed_prepositions(scene, lexicon) + linked(scene, lexicon) + fronted(scene) + charted(scene)
    found += relative_causes(scene, lexicon) + named_roles(scene, lexicon) + from_first(scene, lexicon)
    return [edge for edge in found if not _misread(scene, edge)]


def _relative_behind(scene: Scene, match: Match[Form]) -> bool:
    """Whether a relative word is the argument: in "anaemia, the cause of which is bleeding" the sides are turned."""
    return match.end < len(scene.tokens) and scene.tokens[match.end].lower in _RELATIVES


_RELATIVES = frozenset(("which", "whom", "whose"))


def _settled(scene: Scene, lexicon: Lexicon, match: Match[Form], source: Bag, target: Bag) -> Pair:
    """Both arguments with pronouns replaced, of the kind that the relation takes, and without what they share."""
    if match.value.name in lexicon.people_only:
        source, target = _person(scene, source), _person(scene, target)
    else:
        source, target = _resolved(scene, match, source, target)
    if match.cue in _FOR and not source.keys:  # "the drug is for her neuralgia"
        source = earlier(scene, match.start, frozenset(("drug",)), target.keys)
    both = source.keys & target.keys
    if both:
        source, target = source.without(both), target.without(both)
    if match.value.name == "detect":
        kinds = scene.kinds_in(source), scene.kinds_in(target)
        turned = "condition" in kinds[0] and "test" not in kinds[0] and "test" in kinds[1]
        return (target, source) if turned else (source, target)
    return _oriented(scene, source, target) if match.value.name in lexicon.typed else (source, target)


def _person(scene: Scene, bag: Bag) -> Bag:
    """The people of an argument; "he" or "she" of whom nobody was named yet is the patient."""
    people = bag.people()
    if people.keys or not bag.pronoun:
        return people
    said = {token.lower for token in scene.tokens[bag.start : bag.end]}
    return people._replace(keys=_PATIENT) if said & _HE else people


_HE = words("he she")
_PATIENT = frozenset(("@patient",))


def _valued(scene: Scene, lexicon: Lexicon, edge: Edge) -> Edge:
    """A drug with more of what is wanted than another is the better one: "response was greater with A than with B"."""
    if edge.relation != "compare" or not lexicon.wanted & {token.lower for token in scene.tokens}:
        return edge
    drugs = all("drug" in scene.kinds_in(bag) for bag in (edge.source, edge.target))
    return edge._replace(relation="prefer") if drugs else edge


def _preferred_subjects(found: list[Edge]) -> list[Edge]:
    """ "A rather than B slowed the heart": A did, and nothing is preferred."""
    prefers = [edge for edge in found if edge.relation == "prefer" and edge.source.keys and edge.target.keys]
    choices = {edge.target.start: edge for edge in prefers}
    taken: set[int] = set()
    for number, edge in enumerate(found):
        choice = choices.get(edge.source.start)
        if (
            choice is not None
            and edge.start >= choice.target.end
            and edge.relation not in ("prefer", "switch")
        ):
            found[number] = edge._replace(source=choice.source)
            taken.add(choice.target.start)
    return [edge for edge in found if edge.relation != "prefer" or edge.target.start not in taken]


def _reasoned(scene: Scene, lexicon: Lexicon, edge: Edge) -> Edge:
    """A drug stopped because of a condition is barred by it; one started because of it is given for it."""
    if edge.relation != "cause" or not edge.source.keys or edge.target.end > edge.start:
        return edge
    begin = edge.target.start - _GIVING_REACH
    drug = edge.target
    if "drug" not in scene.kinds_in(drug):
        drug = earlier(scene, edge.start, frozenset(("drug",)), edge.source.keys)
    for mark in scene.marks:
        if mark.start >= edge.start:
            break
        word = scene.tokens[mark.start]
        strong = mark.value.what == "ahead" and mark.cue not in lexicon.weak and word.lower != word.lemma
        near = begin <= mark.start and edge.start - mark.end <= _REASON_REACH
        if near and strong and drug.keys:
            relation = {"use": "treat", "avoid": "contraindicate"}.get(mark.value.name)
            if relation is None or _other_choice(scene, mark.end, edge.start):
                continue
            edge = edge._replace(relation=relation, source=drug, target=edge.source)
            return _with_denial(edge, denied(scene, mark.start))
    return edge


def _with_denial(edge: Edge, undone: bool) -> Edge:
    """What "not" before the verb makes of a reason: "not given" for it bars, "not stopped" for it bars nothing."""
    if edge.relation == "treat":
        return edge._replace(relation="contraindicate", reason=True) if undone else edge
    return edge._replace(negative=edge.negative or undone, reason=True)


def _reason_to_stop(scene: Scene, lexicon: Lexicon, edge: Edge) -> Edge:
    """ "the reason for discontinuing clozapine" is no indication for it."""
    if edge.relation != "treat" or not edge.cue.startswith("reason"):
        return edge
    ahead = (
        lexicon.marks.at(scene.tokens, at) for at in range(edge.end, min(edge.end + 2, len(scene.tokens)))
    )
    stopping = any(mark is not None and mark.value.name == "avoid" for mark in ahead)
    return edge._replace(relation="contraindicate", reason=True) if stopping else edge


def _other_choice(scene: Scene, start: int, end: int) -> bool:
    """Whether another drug was passed over in between: "used in place of verapamil owing to heart failure"."""
    if any(token.lower in _INSTEAD for token in scene.tokens[start:end]):
        return True
    found = (scene.cues[number] for number in set(scene.cue_at[start:end]) if number >= 0)
    return any(cue.value.name in ("prefer", "switch") for cue in found)


_INSTEAD = frozenset(("place", "instead", "lieu", "preference", "than"))


def _misread(scene: Scene, edge: Edge) -> bool:
    """A treatment that is a condition ("has given her oedema"), a cause that is none ("gave her aspirin")."""
    if edge.relation == "cause" and edge.cue.startswith("~give"):
        return scene.kinds_in(edge.target) == {"drug"} or bool(edge.target.people().keys)
    if edge.cue == "~make" and not edge.target.keys:
        return True  # "an entry made when he was young"
    if edge.cue in _IN_TIME:
        return not scene.kinds_in(edge.source) & scene.kinds_in(edge.target)
    if edge.cue in _FOR:
        return "drug" not in scene.kinds_in(edge.source) or "condition" not in scene.kinds_in(edge.target)
    if edge.relation == "follow":
        return scene.kinds_in(edge.source) & {"drug", "condition"} != {"drug"} or not edge.target.keys
    return edge.relation == "treat" and not edge.target.keys and scene.kinds_in(edge.source) >= {"condition"}


_IN_TIME = frozenset(("comes before", "comes after", "sooner than"))  # of things of two kinds, when
_FOR = frozenset(("is|was|being for", "is|was not for"))
_NEEDS = {"switch": "drug", "detect": "test"}


def _too_plain(scene: Scene, edge: Edge) -> bool:
    """A cue of one common word ("change", "show") is believed only beside a thing of the kind its relation is about."""
    if " " in edge.cue or edge.relation not in _NEEDS:
        return False
    return _NEEDS[edge.relation] not in scene.kinds_in(edge.source) | scene.kinds_in(edge.target)


def _edge(scene: Scene, match: Match[Form], source: Bag, target: Bag) -> Edge:
    negative = negated(scene, match.start) or _after_negator(scene, match) or _denied_inside(scene, match)
    negative = negative or any(_denied_argument(scene, bag, match.start) for bag in (source, target))
    form = match.value
    if form.name == "detect" and scene.tokens[match.start].lower == "excluded":
        negative = not negative
    return Edge(form.name, source, target, negative, match.start, match.end, match.cue, form.rule)


def _denied_argument(scene: Scene, bag: Bag, at: int) -> bool:
    """Whether an argument is denied itself: "no bleed was due to it", "none of the rashes was"."""
    if not bag.keys or not bag.start or any(turn in _OTHER for turn in scene.turns[bag.end : at]):
        return False
    if bag.start > at:  # "caused no deaths"
        return scene.tokens[bag.start - 1].lower == "no"
    index, least = bag.start - 1, max(0, bag.start - _DENIER_REACH)
    while index > least and not scene.keys[index] and _passed(scene, index):
        index -= 1
    return scene.tokens[index].lower in _DENIERS


def _passed(scene: Scene, index: int) -> bool:
    """Whether a token may stand between a denier and its thing: "none of the three", "no further"."""
    lower = scene.tokens[index].lower
    return lower == "of" or (
        scene.turns[index] == Turn.NONE and lower not in _DENIERS and scene.cue_at[index] < 0
    )


def _denied_inside(scene: Scene, match: Match[Form]) -> bool:
    """Whether the negator stands in the gap of a cue: "is taken not for epilepsy"."""
    if ".." not in match.cue or " not " in match.cue:
        return False
    inner = range(match.start, match.end)
    return any(scene.turns[at] == Turn.NOT and scene.tokens[at].lower not in match.cue for at in inner)


def _resolved(scene: Scene, match: Match[Form], source: Bag, target: Bag) -> Pair:
    """Both arguments with "it" replaced by what it means, where one of them is known."""
    if source.pronoun and target.keys and not scene.kinds_in(source):
        source = _joined(source, _meant(scene, min(source.start, match.start), "drug", target.keys))
    elif target.pronoun and source.keys and not scene.kinds_in(target):
        at = min(target.start, match.start) if target.keys else min(source.start or match.start, match.start)
        target = _joined(target, _meant(scene, at, "" if target.keys else "condition", source.keys))
    return source, target


def _joined(bag: Bag, meant: Bag) -> Bag:
    return bag._replace(keys=bag.keys | meant.keys) if bag.keys else meant


def _meant(scene: Scene, at: int, kind: str, taken: frozenset[str]) -> Bag:
    """What "it" means: the nearest thing of the likely kind, else the nearest named one."""
    likely = earlier(scene, at, frozenset((kind,)), taken)
    return likely if likely.keys else earlier(scene, at, NAMED, taken)


def _oriented(scene: Scene, source: Bag, target: Bag) -> Pair:
    """A drug is given for a condition, never the other way round."""
    if "condition" in scene.kinds_in(source) and "drug" in scene.kinds_in(target):
        return target, source
    return source, target


def _after_negator(scene: Scene, match: Match[Form]) -> bool:
    """Whether "rather than" or the like opens the clause in which the cue stands."""
    for index in range(match.start - 1, max(-1, match.start - 1 - _NEGATOR_REACH), -1):
        if scene.turns[index] in (Turn.STOP, Turn.COMMA):
            return False
        if scene.negated_at[index]:
            return True
    return False

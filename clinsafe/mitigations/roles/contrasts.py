"""Neighbouring parts of a sentence and what stands in each: "ER positive | HER2 negative".

Two texts that say the same put the same things into one part. Where a thing moved to the other part and its companions
did not, something has been exchanged.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from clinsafe.mitigations.roles.lexicon import Lexicon, Turn
from clinsafe.mitigations.roles.scene import Scene
from clinsafe.mitigations.roles.values import Edge, words

_CELL_ENDS = frozenset((Turn.STOP, Turn.COMMA, Turn.AND, Turn.CONTRAST))
_ARTICLES = words("a an the his her its their")
_LABEL = 3  # tokens before a colon
_ASIDE = 8  # tokens between the commas of an aside
_NEVER_ALONE = 2  # a part needs a thing and something that it carries


class Part(NamedTuple):
    """Tokens ``[start, end)`` of a scene and their features: keys, numbers, marks ("+positive")."""

    scene: Scene
    start: int
    end: int
    features: frozenset[str]
    kinds: dict[str, str]  # feature -> kind: drug, condition, test, person, side, or the axis of a mark
    joined: bool  # by "and" to the part before


def parts(scene: Scene, lexicon: Lexicon, found: list[Edge]) -> list[Part]:
    """The parts of a sentence, in order, those without features left out."""
    cells: list[Part] = []
    start, joined = 0, False
    marks = _marks(scene, lexicon, found)
    for index in range(len(scene.tokens) + 1):
        turn = scene.turns[index] if index < len(scene.tokens) else Turn.STOP
        if not (turn in _CELL_ENDS or (turn == Turn.RELATIVE and _object_clause(scene, index))):
            continue
        if _label(scene, start, index) or _of_a_person(scene, index) or _in_aside(scene, index):
            continue
        features = _features(scene, start, index, marks)
        if features:
            features = _ellipsis(features, cells[-1].features if cells else frozenset(), lexicon)
            cells.append(
                Part(scene, start, index, features, _kinds(scene, start, index, features, lexicon), joined)
            )
        joined = turn == Turn.AND and index > start
        start = index + 1
    return cells


def _label(scene: Scene, start: int, index: int) -> bool:
    """Whether a colon only ties a name to what follows: "Mother: well"."""
    if index >= len(scene.tokens) or scene.tokens[index].text not in ":=":
        return False
    opens = start == 0 or scene.turns[start - 1] == Turn.STOP
    return opens and index - start <= _LABEL and any(scene.kinds[start : index + 4])


def _of_a_person(scene: Scene, index: int) -> bool:
    """Whether a comma only opens a clause about the person before it: "the wife, who has dementia"."""
    return (
        index + 1 < len(scene.tokens)
        and scene.tokens[index + 1].lower == "who"
        and scene.tokens[index].text == ","
    )


def _in_aside(scene: Scene, index: int) -> bool:
    """Whether a comma opens or closes an aside in a relative clause: "a fracture which, on CT, is displaced"."""
    if index >= len(scene.tokens) or scene.turns[index] != Turn.COMMA:
        return False
    for at in range(index - 1, max(-1, index - 1 - _ASIDE), -1):
        if scene.turns[at] == Turn.COMMA:
            return at > 0 and scene.turns[at - 1] == Turn.RELATIVE
        if scene.turns[at] in _CELL_ENDS or scene.turns[at] == Turn.RELATIVE:
            return at == index - 1 and scene.turns[at] == Turn.RELATIVE
    return False


def _object_clause(scene: Scene, index: int) -> bool:
    """Whether a clause with a subject of its own begins: "the insulin | that the nurse drew up"."""
    first = index + 1
    if first < len(scene.tokens) and scene.tokens[first].lower in _ARTICLES:
        first += 1
    named = first < len(scene.tokens) and scene.kinds[first] in ("person", "drug", "test")
    return named and scene.cue_at[index - 1] < 0


def pairs(cells: list[Part]) -> list[tuple[Part, Part]]:
    """Neighbours and next but one, and neighbours once "and" is closed up."""
    found = [
        (cells[index], cells[index + step])
        for index in range(len(cells))
        for step in (1, 2)
        if index + step < len(cells) and (step == 1 or cells[index].scene is cells[index + step].scene)
    ]
    clauses = _clauses(cells)
    if len(clauses) < len(cells):
        found += list(pairwise(clauses))
    return [pair for pair in found if _worth(*pair)]


def _worth(one: Part, other: Part) -> bool:
    if one.scene is not other.scene and not (one.kinds and other.kinds):
        return False  # across sentences only named things can be rivals
    both = one.features & other.features
    return len(one.features - both) >= _NEVER_ALONE and len(other.features - both) >= _NEVER_ALONE


def _clauses(cells: list[Part]) -> list[Part]:
    clauses: list[Part] = []
    for cell in cells:
        if cell.joined and clauses and clauses[-1].scene is cell.scene:
            last = clauses.pop()
            clauses.append(_joined(last, cell))
        else:
            clauses.append(cell)
    return clauses


def _joined(last: Part, cell: Part) -> Part:
    kinds = {**last.kinds, **cell.kinds}
    return Part(cell.scene, last.start, cell.end, last.features | cell.features, kinds, last.joined)


def _kinds(scene: Scene, start: int, end: int, features: frozenset[str], lexicon: Lexicon) -> dict[str, str]:
    kinds = {
        key: scene.kinds[index]
        for index in range(start, end)
        if scene.kinds[index]
        for key in scene.keys[index]
    }
    kinds |= dict.fromkeys(features & {"left", "right"}, "side")
    return kinds | {feature: lexicon.axes.get(feature[1:], "") for feature in features if feature[0] == "+"}


def _marks(scene: Scene, lexicon: Lexicon, found: list[Edge]) -> dict[int, str]:
    """Token -> mark of the cue that begins there, turned over by a negator before it."""
    marks: dict[int, str] = {}
    for match in scene.marks:
        if match.cue in lexicon.weak and match.end < len(scene.kinds) and scene.kinds[match.end] == "test":
            continue  # "displaced on CT"
        name = match.value.name
        if denied(scene, match.start):
            name = lexicon.opposite.get(name) or f"not {name}"
        marks[match.start] = f"+{name}"
    for edge in found:
        marks[edge.start] = f"+{edge_mark(edge, lexicon)}"
    return marks


def edge_mark(edge: Edge, lexicon: Lexicon) -> str:
    """The mark a relation puts on its part of the sentence."""
    if edge.negative and edge.reason:
        return "not ban"
    if edge.relation == "treat":
        return "avoid" if edge.negative else "use"
    if edge.relation == "contraindicate":
        return "use" if edge.negative else "avoid"
    relation = lexicon.relations.get(edge.relation)
    name = relation.family if relation else edge.relation
    return f"not {name}" if edge.negative else name


def denied(scene: Scene, at: int) -> bool:
    """Whether a negator stands up to three tokens before, in the same part."""
    for index in range(at - 1, max(-1, at - 4), -1):
        if scene.turns[index] in _CELL_ENDS:
            return False
        if scene.turns[index] == Turn.NOT:
            return True
    return False


def _features(scene: Scene, start: int, end: int, marks: dict[int, str]) -> frozenset[str]:
    features: list[str] = []
    denied = False
    for index in range(start, end):
        if index in marks:
            features.append(marks[index])
        token = scene.tokens[index]
        if scene.keys[index]:
            if scene.cue_at[index] < 0 or scene.kinds[index]:
                features += scene.keys[index]
        elif token.is_number:
            features.append(f"#{token.lower}")
        elif token.lower in ("left", "right"):
            features.append(token.lower)
        denied = denied or scene.turns[index] == Turn.NOT
    if denied and not any(feature[0] == "+" for feature in features):
        features.append("+no")
    return frozenset(features)


def _ellipsis(features: frozenset[str], before: frozenset[str], lexicon: Lexicon) -> frozenset[str]:
    """ "latanoprost is suitable and timolol is not": the second carries the opposite mark."""
    if "+no" not in features or len(features) > 3:
        return features
    for feature in before:
        opposite = lexicon.opposite.get(feature[1:]) if feature[0] == "+" else ""
        if opposite:
            return (features - {"+no"}) | {f"+{opposite}"}
    return features

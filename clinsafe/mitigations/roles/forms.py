"""How each form of cue is read: verbs in their voices, cues between their arguments, cues before both."""

from __future__ import annotations

from clinsafe.mitigations.cues import Match
from clinsafe.mitigations.roles.arguments import left_of, right_of
from clinsafe.mitigations.roles.clauses import FAR, closing, earlier
from clinsafe.mitigations.roles.lexicon import Form, Lexicon, Turn
from clinsafe.mitigations.roles.scene import Scene
from clinsafe.mitigations.roles.values import NOTHING, Bag, words

NAMED = frozenset(("drug", "condition", "test"))
_DRUG = frozenset(("drug",))
Pair = tuple[Bag, Bag]  # source, target

_POSSESSIVES = words("its their")
_COPULAS = words("is was are were being been be")
_TURNING = _COPULAS | words(", : she he they we i")
_BEFORE_BY = words(
    "mainly largely partly chiefly directly mostly probably likely solely wholly usually often only about"
)
_AUXILIARY = words("has had have will would can could may might must should did does")
_CONDITIONAL = words("only if|should|when|where")
_PASSIVE_REACH = 6  # tokens between a passive verb and its "by"
_COMPARED_REACH = 10  # tokens between a comparative and "than"
_BEHIND_REACH = 12
_JOINT_REACH = 8


def read_pair(scene: Scene, lexicon: Lexicon, number: int, match: Match[Form]) -> Pair | None:
    """Source and target of one cue, or None where it tells no relation."""
    return _READERS[match.value.what](scene, lexicon, number, match)


def _verb(scene: Scene, lexicon: Lexicon, number: int, match: Match[Form]) -> Pair | None:
    if match.start and scene.tokens[match.start - 1].text == "-":
        return _compound(scene, match), right_of(scene, match.end, number, far=True)
    by = _by(scene, match.end)
    if by and match.cue.endswith(" to"):
        taker = right_of(scene, match.end, number)
        if taker.keys and taker.end < by:  # "transmitted to the baby by the mother"
            return right_of(scene, by, number, far=True), taker
    if by:
        target, source = left_of(scene, match.start, number), right_of(scene, by, number, far=True)
        if match.value.name in lexicon.people_only and _is(scene, source.end, "to"):
            taker = right_of(scene, source.end + 1, number)  # "referred by the doctor to the surgeon"
            target = taker if taker.people().keys else target
        return (source, target) if source.keys else None
    agent = _agent_inside(scene, match)
    if agent:
        return agent, right_of(scene, match.end, number)
    left, right = left_of(scene, match.start, number), _object(scene, lexicon, number, match)
    if right.keys and not left.keys and not left.pronoun and _what_before(scene, match.start):
        left = _behind(scene, right.end, number)
    if not right.keys and not right.pronoun:
        if _passive(scene, match.start) and not scene.tokens[match.start].lower.endswith("ing"):
            return NOTHING, left
        right = _antecedent(scene, left, number)
    return left, right


def _object(scene: Scene, lexicon: Lexicon, number: int, match: Match[Form]) -> Bag:
    """What stands between a verb and its particle, else what follows; of people only people."""
    inner = _inside(scene, match)
    if inner and (match.value.name not in lexicon.people_only or inner.people().keys):
        return inner
    if inner is None and ".." in match.cue and _is(scene, match.start + 1, "it"):  # "brings it down"
        return Bag(match.start + 1, match.start + 2, frozenset(), True)
    if inner is None and match.end < len(scene.turns) and _objectless(scene, match.end):
        return NOTHING
    return right_of(scene, match.end, number, far=True)


def _objectless(scene: Scene, at: int) -> bool:
    """Whether a verb has no object behind it: "decreased in the statin group", "that hypoxia provoked has settled"."""
    return scene.turns[at] in (Turn.PREPOSITION, Turn.BE) or scene.tokens[at].lower in _AUXILIARY


def _inside(scene: Scene, match: Match[Form]) -> Bag | None:
    """The object between a verb and its particle: "brought apixaban levels down"."""
    if ".." not in match.cue:
        return None
    inner = range(match.start + 1, match.end - 1)
    keys = frozenset(
        key for index in inner if scene.tokens[index].lemma not in match.cue for key in scene.keys[index]
    )
    return Bag(match.start + 1, match.end - 1, keys) if keys else None


def _is(scene: Scene, index: int, word: str) -> bool:
    return index < len(scene.tokens) and scene.tokens[index].lower == word


def _agent_inside(scene: Scene, match: Match[Form]) -> Bag | None:
    """ "donated by Mrs Achterberg to her brother": who stands behind "by" within the cue."""
    inner = _inside(scene, match)
    if inner is None or all(scene.tokens[index].lower != "by" for index in range(inner.start, inner.end)):
        return None
    return inner


def _what_before(scene: Scene, at: int) -> bool:
    """Whether the verb opens the sentence with "what": "what provoked the seizure was hypocalcaemia"."""
    return any(token.lower == "what" for token in scene.tokens[max(0, at - 3) : at])


def _by(scene: Scene, at: int) -> int:
    """The token after "by" where the cue is followed by it (an adverb may stand between), else 0."""
    tokens, passive = scene.tokens, _passive(scene, at - 1)
    for index in range(at, min(at + (_PASSIVE_REACH if passive else 2), len(tokens))):
        if tokens[index].lower == "by":
            return index + 1
        if scene.turns[index] not in (Turn.NONE, Turn.PREPOSITION):
            return 0
        if not passive and tokens[index].lower not in _BEFORE_BY and not tokens[index].lower.endswith("ly"):
            return 0
    return 0


def _passive(scene: Scene, at: int) -> bool:
    return any(token.lower in _COPULAS for token in scene.tokens[max(0, at - 2) : at])


def _compound(scene: Scene, match: Match[Form]) -> Bag:
    """ "steroid-induced": what stands before the hyphen."""
    index = match.start - 2
    if index < 0:
        return NOTHING
    return Bag(index, index + 1, frozenset(scene.keys[index]))


def _antecedent(scene: Scene, left: Bag, number: int) -> Bag:
    """What a relative word refers to, for a verb whose object it is: "the constipation that oxycodone has produced"."""
    index = left.start - 1
    while (
        index > left.start - FAR
        and index >= 0
        and scene.turns[index] in (Turn.NONE, Turn.BE)
        and not scene.keys[index]
        and scene.cue_at[index] < 0
    ):
        index -= 1
    if index < 0 or scene.turns[index] != Turn.RELATIVE:
        return NOTHING
    return left_of(scene, index, number)


def _source_first(scene: Scene, lexicon: Lexicon, number: int, match: Match[Form]) -> Pair | None:
    by = _by(scene, match.end) if match.cue.startswith("~") else 0
    if by:  # "hypothyroidism was suggested by the raised TSH"
        return right_of(scene, by, number, far=True), left_of(scene, match.start, number)
    return _between(scene, lexicon, number, match)


def _target_first(scene: Scene, lexicon: Lexicon, number: int, match: Match[Form]) -> Pair | None:
    by = _by(scene, match.end) if match.cue.startswith("~") else 0
    if by:
        return left_of(scene, match.start, number), right_of(scene, by, number, far=True)
    if match.cue.split()[0] in _CONDITIONAL:  # "the midline only if the PICC fails"
        return _inside(scene, match) or right_of(scene, match.end, number), left_of(
            scene, match.start, number
        )
    left, right = _between(scene, lexicon, number, match)
    return right, left


def _between(scene: Scene, lexicon: Lexicon, number: int, match: Match[Form]) -> Pair:
    """What stands left and right of a cue; "the cause of RIGHT is LEFT" and "because RIGHT, LEFT" put LEFT last."""
    inner = _inside(scene, match)
    if inner and match.value.name in lexicon.people_only and not inner.people().keys:
        inner = None
    left = inner or left_of(scene, match.start, number)
    if scene.tokens[match.start].lower in _POSSESSIVES:
        return left, earlier(scene, left.start, NAMED, left.keys)
    if " it|" in match.cue:  # "asthma rules it out"
        return left, earlier(scene, left.start, _DRUG, left.keys)
    right = right_of(scene, match.end, number, far=True)
    if not left.keys and not left.pronoun and right.keys:
        left = _behind(scene, right.end, number)
    elif not right.keys and left.keys and not right.pronoun:
        right = _antecedent(scene, left, number)
    return left, right


def _behind(scene: Scene, at: int, number: int) -> Bag:
    """The argument after a copula or a comma."""
    index = at - 1
    while index + 1 < min(at + _BEHIND_REACH, len(scene.tokens)):
        index += 1
        if scene.tokens[index].text == "(":
            index = closing(scene, index)
            continue
        if scene.tokens[index].lower in _TURNING:
            return right_of(scene, index + 1, number)
        if scene.turns[index] in (Turn.STOP, Turn.CONTRAST):
            return NOTHING
    return NOTHING


def _source_then(scene: Scene, lexicon: Lexicon, number: int, match: Match[Form]) -> Pair | None:
    return _opened(scene, lexicon, number, match)


def _target_then(scene: Scene, lexicon: Lexicon, number: int, match: Match[Form]) -> Pair | None:
    target, source = _opened(scene, lexicon, number, match)
    return (source, target) if source.keys or match.value.name in lexicon.typed else None


def _opened(scene: Scene, lexicon: Lexicon, number: int, match: Match[Form]) -> Pair:
    tokens, joints, typed = scene.tokens, lexicon.joints[match.value.name], match.value.name in lexicon.typed
    after = tokens[match.end].lower if match.end < len(tokens) else ""
    if match.start and scene.turns[match.start - 1] == Turn.BE and after not in joints:
        return left_of(scene, match.start, number), NOTHING
    if after in joints:
        return left_of(scene, match.start, number), right_of(scene, match.end + 1, number, joints)
    first = right_of(scene, match.end, number, joints)
    if not first.keys and not first.pronoun:
        return NOTHING, NOTHING
    index = first.end
    for index in range(first.end, min(first.end + _JOINT_REACH, len(scene.tokens))):
        if scene.tokens[index].lower in joints:
            return first, right_of(scene, index + 1, number, joints)
        if scene.turns[index] in (Turn.STOP, Turn.COMMA, Turn.CONTRAST, Turn.AND):
            break
    left = left_of(scene, match.start, number)
    antecedent = _antecedent(scene, left, number)
    return first, antecedent if antecedent.keys or typed else left


def _compared(scene: Scene, lexicon: Lexicon, number: int, match: Match[Form]) -> Pair | None:
    """ "higher with A than with B": the side before and the side after "than", the greater one first."""
    for index in range(match.start - 1, max(-1, match.start - 1 - _COMPARED_REACH), -1):
        word = scene.tokens[index].lower
        if word in lexicon.more or word in lexicon.less:
            before, after = left_of(scene, match.start, number), right_of(scene, match.end, number, far=True)
            if _is_object(scene, index, match.start):
                before = _doer(scene, index, number, before)
            return (before, after) if word in lexicon.more else (after, before)
    return None


def _is_object(scene: Scene, at: int, than: int) -> bool:
    """Whether what is compared at `at` is what a verb before it brings about: "gave more relief than B"."""
    inside = range(at + 1, than)
    if any(scene.turns[index] == Turn.BE or scene.tokens[index].lower in _SIDES for index in inside):
        return False  # "more relief was seen with A than B"
    verb = scene.tokens[at - 1] if at else None
    if verb is None or scene.turns[at - 1] == Turn.BE:
        return False
    return scene.cue_at[at - 1] >= 0 or (verb.lower != verb.lemma and verb.lower[-1] != "s")


_SIDES = words("with in on under for after among from by")


def _doer(scene: Scene, at: int, number: int, otherwise: Bag) -> Bag:
    """The subject of that verb, its object kept beside it."""
    begin = scene.cues[scene.cue_at[at - 1]].start if scene.cue_at[at - 1] >= 0 else at
    subject = left_of(scene, begin, number)
    return subject._replace(keys=subject.keys | otherwise.keys) if subject.keys else otherwise


_READERS = {
    "verb": _verb,
    "source_first": _source_first,
    "target_first": _target_first,
    "source_then": _source_then,
    "target_then": _target_then,
    "than": _compared,
}

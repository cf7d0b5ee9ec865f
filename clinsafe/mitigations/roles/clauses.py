"""Clauses by their function words: where one begins, what its subject is, what "it" means, whether it is denied."""

from __future__ import annotations

from clinsafe.mitigations.roles.lexicon import Turn
from clinsafe.mitigations.roles.scene import Scene
from clinsafe.mitigations.roles.values import NOTHING, Bag, words

FAR = 40  # tokens walked for one argument
HARD = frozenset((Turn.STOP, Turn.CONTRAST, Turn.SUBORDINATE))
_NEGATION_WINDOW = 4  # tokens before a cue
_DENIAL = 6  # tokens of ", not metoprolol,"
_CLAUSAL = words("because so hence therefore thus , ; and consequently owing")
_REPORT = 8  # tokens of "shown by an analysis to be"
_REPORTED = words(
    "shown found judged thought felt believed considered said reported held seen known deemed presumed proved proven"
)
_REFLEXIVE = words("itself themselves himself herself")
_ASIDE = words("unlike like")  # "ramipril, unlike labetalol, is …"
_PEOPLE = words("he she they we i you")
_NO_DENIAL = words("only just merely longer doubt")


def subject(scene: Scene, at: int) -> Bag:
    """The first thing of the clause that ends before token `at`: what a second verb after "and" shares with the first.

    A part between commas that has no subject of its own ("lamotrigine, started for epilepsy, was …") is passed over.
    """
    end, least = at, max(0, at - FAR)
    while True:
        start = end
        while start > least and not _bounds(scene, start - 1):
            start -= 1
        if start <= least:
            break
        if scene.turns[start] == Turn.NOT and scene.turns[start - 1] == Turn.CONTRAST:
            end = start - 1 - (scene.turns[start - 2] == Turn.COMMA)  # "ergometrine, but not oxytocin, is …"
            continue
        if scene.turns[start - 1] != Turn.COMMA or not _subjectless(scene, start, end):
            break
        end = start - 1
    first = next((index for index in range(start, end) if scene.is_thing(index)), end)
    return _run(scene, first, end)


def _bounds(scene: Scene, at: int) -> bool:
    """Whether a clause or a part between commas begins behind token `at`; "unlike" opens an aside."""
    turn = scene.turns[at]
    return turn == Turn.COMMA or (turn in HARD and scene.tokens[at].lower not in _ASIDE)


def _subjectless(scene: Scene, start: int, end: int) -> bool:
    if not any(scene.keys[start:end]):
        return True  # ", I believe,"
    turn, word = scene.turns[start], scene.tokens[start].lower
    if turn == Turn.AND and start + 1 < end:
        turn = scene.turns[start + 1] if scene.turns[start + 1] == Turn.NOT else turn  # ", and not warfarin,"
    if turn in (Turn.NOT, Turn.RELATIVE, Turn.PREPOSITION) or word in _REFLEXIVE or word in _ASIDE:
        return True
    return scene.cue_at[start] >= 0 or word.endswith(("ed", "ing"))


def _run(scene: Scene, start: int, end: int) -> Bag:
    """The unbroken run of things from `start` on."""
    keys: list[str] = []
    index = start
    while index < end and scene.turns[index] < Turn.STOP and scene.cue_at[index] < 0:
        keys += scene.keys[index]
        index += 1
    return Bag(start, index, frozenset(keys)) if keys else NOTHING


def earlier(scene: Scene, at: int, kinds: frozenset[str], taken: frozenset[str]) -> Bag:
    """The nearest thing of one of these kinds before token `at`: what "it" means."""
    for index in range(at - 1, max(-1, at - FAR), -1):
        if scene.kinds[index] in kinds and scene.keys[index] and taken.isdisjoint(scene.keys[index]):
            return Bag(index, index + 1, frozenset(scene.keys[index]))
    return NOTHING


def opening(scene: Scene, at: int) -> int:
    """The bracket that the bracket at `at` closes; `at` itself where there is none near."""
    for index in range(at - 1, max(-1, at - FAR), -1):
        if scene.tokens[index].text == "(":
            return index
    return at


def closing(scene: Scene, at: int) -> int:
    """The bracket that closes the bracket at `at`; `at` itself where there is none near."""
    for index in range(at + 1, min(len(scene.tokens), at + FAR)):
        if scene.tokens[index].text == ")":
            return index
    return at


def before_denial(scene: Scene, comma: int) -> int:
    """The comma before a part that only says what it was not: "ivabradine, not metoprolol, that …"."""
    for index in range(comma - 1, max(0, comma - _DENIAL), -1):
        if scene.turns[index - 1] == Turn.COMMA:
            return index - 1 if scene.turns[index] == Turn.NOT else comma
        if scene.turns[index] == Turn.NOT and scene.turns[index - 1] == Turn.CONTRAST:
            return max(0, index - 1 - (scene.turns[index - 2] == Turn.COMMA))
    return comma


def reported(scene: Scene, at: int) -> int:
    """Where the subject ends before "were shown by an analysis to be": the token before "were", else `at`."""
    if at + 1 >= len(scene.tokens) or scene.tokens[at + 1].lower not in ("be", "have"):
        return at
    for index in range(at - 1, max(0, at - _REPORT), -1):
        if scene.turns[index] in HARD or scene.turns[index] == Turn.COMMA:
            break
        if scene.tokens[index].lower in _REPORTED and scene.turns[index - 1] == Turn.BE:
            return index - 1
    return at


def describes(scene: Scene, at: int) -> bool:
    """Whether a verb follows the relative word at `at`, so that its clause has no subject: "ileus that persists"."""
    if at + 1 >= len(scene.tokens) or not at or not scene.keys[at - 1]:
        return False
    after = scene.tokens[at + 1]
    return after.lower != after.lemma or scene.turns[at + 1] == Turn.BE


def cleft(scene: Scene, index: int) -> bool:
    """Whether a pronoun stands for nothing: "it is X that"."""
    empty = scene.tokens[index].lower not in _PEOPLE and index + 2 < len(scene.turns)
    return empty and scene.turns[index + 1] == Turn.BE and bool(scene.keys[index + 2])


def negated(scene: Scene, start: int) -> bool:
    """Whether a negator stands just before token `start`, in the same clause.

    Before "because" and the like only the word next to it counts: "cannot be relied on because" denies no cause.
    """
    window = 1 if scene.tokens[start].lower in _CLAUSAL else _NEGATION_WINDOW
    for index in range(start - 1, max(-1, start - 1 - window), -1):
        turn = scene.turns[index]
        if turn in (Turn.STOP, Turn.COMMA, Turn.CONTRAST):
            return False
        if turn == Turn.NOT and scene.tokens[index + 1].lower not in _NO_DENIAL:
            return True
    return False

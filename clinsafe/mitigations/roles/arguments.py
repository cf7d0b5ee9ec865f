"""The two arguments of a cue: bags of content keys to its left and to its right, up to where the clause turns."""

from __future__ import annotations

from clinsafe.mitigations.roles.clauses import (
    FAR,
    HARD,
    before_denial,
    cleft,
    describes,
    opening,
    reported,
    subject,
)
from clinsafe.mitigations.roles.lexicon import Turn
from clinsafe.mitigations.roles.scene import Scene
from clinsafe.mitigations.roles.values import Bag, words

_MOST = 8  # content words of one argument
_DEEPEST = 4  # relative clauses one within the other that are followed to their antecedent
_SUBJECTS = words("she he they we i")
_PRONOUNS = words("it they he she we i you this these those")
_OBJECTS = words("it them this these")
_PASSES = words("in on with under of at")
_TIMES = words("after before following")
_PRICES = words("expense cost price")
_TAKES_TO = words("exposure exposures response responses resistance sensitivity susceptibility binding")
_JOINING = frozenset((Turn.COMMA, Turn.AND, Turn.RELATIVE))


def left_of(scene: Scene, at: int, number: int, near: bool = False, inner: int = 0) -> Bag:
    """The argument that ends before token `at`.

    Args:
        scene: the sentence.
        at: token behind the argument.
        number: the cue it belongs to; another cue ends the argument.
        near: only the last phrase of it.
        inner: in how many relative clauses behind it the cue stands.
    """
    return _LeftWalk(scene, at, number, near, inner).bag()


class _LeftWalk:
    """One walk to the left. `_join` decides what a comma, "and" or a relative word does."""

    def __init__(self, scene: Scene, at: int, number: int, near: bool, inner: int) -> None:
        self._scene, self._at, self._number, self._near, self._inner = scene, at, number, near, inner
        self._keys: list[str] = []
        self._first = self._last = at
        self._pronoun = self._relative = self._typed = False
        self._verbless = not near and inner < _DEEPEST
        self._shared: Bag | None = None

    def bag(self) -> Bag:
        index = self._at - 1
        while index >= max(0, self._at - FAR) and len(self._keys) < _MOST and not self._ends(index):
            if self._verbless and not self._keys and self._scene.is_verb(index, self._number):
                self._verbless = False
                self._shared = self._main_subject(index)
                if self._shared is not None:
                    break
            if not self._keys and self._scene.tokens[index].lower == "to":
                index = reported(self._scene, index)
            if self._scene.tokens[index].text == ")":
                index = opening(self._scene, index)
            elif self._scene.turns[index] in _JOINING:
                index = self._join(index)
                if index < 0:
                    break
            else:
                self._take(index)
            index -= 1
        return self._shared or Bag(self._first, self._last, frozenset(self._keys), self._pronoun)

    def _ends(self, index: int) -> bool:
        scene = self._scene
        if scene.tokens[index].text == ")":
            return False
        if scene.turns[index] in HARD:
            return True
        if self._keys and scene.cue_at[index] not in (-1, self._number):
            return True
        return self._near and self._beyond(index)

    def _beyond(self, index: int) -> bool:
        """Whether the last phrase is behind us: a preposition, or a word that names nothing."""
        scene = self._scene
        if self._keys and scene.turns[index] == Turn.PREPOSITION:
            return True
        return self._typed and bool(scene.tokens[index].key) and not scene.keys[index]

    def _main_subject(self, verb: int) -> Bag | None:
        """The antecedent of the clause whose verb stands at `verb`: "the seizure that hypoxia provoked has settled"."""
        for index in range(verb - 1, max(-1, verb - FAR), -1):
            turn = self._scene.turns[index]
            if turn == Turn.RELATIVE:
                return left_of(self._scene, index, self._number, inner=self._inner + 1)
            if turn in HARD or turn in _JOINING:
                return None
        return None

    def _join(self, index: int) -> int:
        """Where to go on, or -1 to stop."""
        scene, turn = self._scene, self._scene.turns[index]
        if turn == Turn.RELATIVE and self._keys and not self._typed and describes(scene, index):
            self._keys = []  # "hypokalaemia that persists is its consequence": the antecedent counts
            return index
        if self._keys or self._pronoun:
            return -1
        if turn != Turn.RELATIVE and not self._relative:
            self._shared = subject(scene, index)
            return -1
        self._relative = True
        return before_denial(scene, index) if turn == Turn.COMMA else index

    def _take(self, index: int) -> None:
        scene = self._scene
        if scene.keys[index]:
            if scene.cue_at[index] < 0:
                self._last = self._last if self._keys else index + 1
                self._keys += scene.keys[index]
                self._typed = self._typed or bool(scene.kinds[index])
                self._first = index
        elif scene.tokens[index].lower in _PRONOUNS and not self._typed and not cleft(scene, index):
            self._pronoun = True
            self._first, self._last = index, self._last if self._keys else index + 1


def right_of(
    scene: Scene, at: int, number: int, joints: frozenset[str] = frozenset(), far: bool = False
) -> Bag:
    """The argument that begins at token `at`, up to a joint, a preposition, or where the clause turns.

    With `far` it goes on behind a preposition that only says where: "the microadenoma on MRI".
    """
    keys: list[str] = []
    first, last, pronoun = at, at, False
    for index in range(at, min(len(scene.tokens), at + FAR)):
        lower = scene.tokens[index].lower
        if (
            len(keys) >= _MOST
            or (_stops(scene, index) and not (index == at and lower in _TIMES))
            or (scene.cue_at[index] not in (-1, number) and index > at)
        ):
            break
        if (keys or pronoun) and (lower in joints or _closes(scene, index, far, bool(keys))):
            break
        if scene.is_thing(index):
            first = first if keys else index
            keys += scene.keys[index]
            last = index + 1
        elif lower in _OBJECTS:
            pronoun = True
            first, last = (index, index + 1) if lower in ("it", "them") else (first, last)
    return Bag(first, max(last, first), frozenset(keys), pronoun)


def _stops(scene: Scene, index: int) -> bool:
    turn = scene.turns[index]
    return turn in HARD or turn in (Turn.COMMA, Turn.AND)


def _closes(scene: Scene, index: int, far: bool, named: bool) -> bool:
    """Whether an argument that has begun ends here."""
    lower = scene.tokens[index].lower
    if lower == "to" and scene.tokens[index - 1].lower in _TAKES_TO:
        return False
    if lower == "at" and any(token.lower in _PRICES for token in scene.tokens[index + 1 : index + 3]):
        return True
    if named and lower in _SUBJECTS:
        return True
    return scene.turns[index] >= Turn.COMMA and not (far and lower in _PASSES)

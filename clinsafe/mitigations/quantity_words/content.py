"""What a statement speaks of: its keys, and which of them it denies by a word of opposite meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from clinsafe.mitigations.cues import Match
from clinsafe.mitigations.quantity_words.lexicon import ASSUMED, SEVERITY, Cue, Lexicon
from clinsafe.text.tokens import Token

LIMIT = "~limit"  # above or below something
_FIRST = -1  # nearer than any: a denial counts before what goes without saying
_BEYOND = 1 << 20  # above any distance
_AUXILIARY = frozenset(["is", "are", "was", "were", "be", "been", "being"])
_SPELL_REACH = 4  # words from "over" to "weeks"
_GRADE_REACH = 7  # tokens after "grade" that may belong to it
_GRADE_JOINS = frozenset(["-", "/", "=", "or", "to", "and", "at", "least", "most"])
_ARABIC = frozenset(["1", "2", "3", "4", "5"])
_ROMAN = {"i": 1, "ii": 2, "iii": 3, "iv": 4, "v": 5}


class Grade(NamedTuple):
    """A range of grades at tokens ``[start, end)``; `severe` if it lies on the severe side."""

    start: int
    end: int
    severe: bool


class Keys(NamedTuple):
    """Alignment keys, those of them denied, and the words to name them by."""

    keys: frozenset[str]
    minus: frozenset[str]
    words: tuple[str, ...]


def grade_at(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> Grade | None:
    """The range of grades that begins with the word at `index`, or None."""
    if tokens[index].lower not in lexicon.grade_words:
        return None
    values: list[int] = []
    side, end = "", index + 1
    for at, token in enumerate(tokens[index + 1 : index + 1 + _GRADE_REACH], start=index + 1):
        value = _grade(token)
        turn = _side(token, lexicon)
        if value:
            values.append(value)
        elif not turn and token.text not in _GRADE_JOINS:
            break
        side = turn or side
        end = at + 1 if value or side else end
    return _range(index, end, values, side, lexicon) if values else None


def _grade(token: Token) -> int:
    return int(token.text) if token.text in _ARABIC else _ROMAN.get(token.lower, 0)


def _side(token: Token, lexicon: Lexicon) -> str:
    rules = lexicon.pack.grades
    if token.lower in rules.upward or token.text in (">", "≥", "+"):
        return "up"
    return "down" if token.lower in rules.downward or token.text in ("<", "≤") else ""


def _range(start: int, end: int, values: Sequence[int], side: str, lexicon: Lexicon) -> Grade | None:
    highest = lexicon.pack.grades.highest_mild
    if side:
        return Grade(start, end, side == "up")
    if max(values) <= highest:
        return Grade(start, end, False)
    return Grade(start, end, True) if min(values) > highest else None


def keys_of(
    tokens: Sequence[Token],
    scope: tuple[int, int],
    cues: Mapping[int, Match[Cue]],
    skipped: frozenset[int],
    near: int,
    lexicon: Lexicon,
) -> Keys:
    """Keys of the tokens in a scope.

    Args:
        tokens: of the sentence.
        scope: half-open range of them.
        cues: by first token.
        skipped: tokens that say nothing of the matter.
        near: a token; of a word and its opposite in one scope the one nearer to it counts.
        lexicon: the words.
    """
    signs: dict[str, tuple[float, bool]] = {}
    words: list[str] = []
    turn = False
    last = ""
    index = scope[0]
    while index < scope[1]:
        if tokens[index].lower == "free" and index >= 2 and tokens[index - 1].text == "-" and last:
            signs[last] = (signs[last][0], not signs[last][1])
        elif tokens[index].lower in lexicon.pack.unprefix:
            turn = True
            index += 1
            continue
        step = _step(tokens, index, cues, skipped, lexicon)
        if step.key:
            denied = step.minus != turn
            distance = _FIRST if denied and step.key.startswith(ASSUMED) else _far(tokens, index, near)
            if step.key not in signs or distance < signs[step.key][0]:
                signs[step.key] = (distance, denied)
            words += [token.text for token in tokens[index : step.end]]
            last, turn = step.key, False
        index = step.end
    minus = frozenset(key for key, (_, denied) in signs.items() if denied)
    return Keys(frozenset(signs), minus, tuple(words))


def _far(tokens: Sequence[Token], index: int, near: int) -> float:
    """How far a word stands from the share; a predicate behind it is near: "all the ventilated were *extubated*"."""
    distance = abs(index - near) + 1
    told = index > near and any(token.lower in _AUXILIARY for token in tokens[index - 2 : index])
    return distance / _BEYOND if told else distance


def _spell(tokens: Sequence[Token], cue: Match[Cue], lexicon: Lexicon) -> bool:
    """ "Over 24 weeks", "over the last year": how long, not above what."""
    if cue.cue not in ("over", "over the"):
        return False
    near = tokens[cue.end : cue.end + _SPELL_REACH]
    return any(token.lower in lexicon.pack.spells for token in near)


def _sampled(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> bool:
    """ "None of the nodes *removed* contained tumour": tells which nodes, not what became of them."""
    if not 0 < index < len(tokens) - 1 or tokens[index].lower not in lexicon.pack.sampled:
        return False
    after = tokens[index + 1].lower
    return tokens[index - 1].key in lexicon.sets and (
        after in lexicon.pack.count_verbs or after.endswith("ed") or after in lexicon.pack.sampled_before
    )


class _Step(NamedTuple):
    """The key of the tokens up to `end`; "" for none."""

    end: int
    key: str = ""
    minus: bool = False


def _step(
    tokens: Sequence[Token],
    index: int,
    cues: Mapping[int, Match[Cue]],
    skipped: frozenset[int],
    lexicon: Lexicon,
) -> _Step:
    grade = grade_at(tokens, index, lexicon)
    if grade:
        return _Step(grade.end, SEVERITY, grade.severe)
    cue = cues.get(index)
    if cue and cue.value.kind in ("more", "less") and index not in skipped:
        if _spell(tokens, cue, lexicon):
            return _Step(cue.end)
        return _Step(cue.end, LIMIT, cue.value.kind == "less")
    if cue and cue.value.kind == "opposite" and not _sampled(tokens, index, lexicon):
        return _Step(cue.end, cue.value.key, cue.value.minus)
    token = tokens[index]
    if index in skipped or not token.key or token.lower in lexicon.pack.numbers:
        return _Step(index + 1)
    bare = lexicon.bare(token.lower)
    return _Step(index + 1, lexicon.key(bare), True) if bare else _Step(index + 1, token.key)

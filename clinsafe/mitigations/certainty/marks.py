"""Marks: the cues of one sentence with the level that they have in their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clinsafe.mitigations.certainty.levels import Level
from clinsafe.mitigations.certainty.lexicon import Lexicon
from clinsafe.mitigations.certainty.modals import states_something
from clinsafe.mitigations.certainty.operators import Found, Surroundings
from clinsafe.mitigations.certainty.pack import Operator, Rule
from clinsafe.text.tokens import Token

_OF_ABSENCE = {"confirmed": "excluded", "asserted": "drop", "probable": "unlikely"}
_MOST = 80  # cues read of one sentence; what holds more is no prose, and is told as unread


@dataclass(frozen=True, slots=True)
class Mark:
    """A cue at tokens ``[start, end)`` and the level it gives there."""

    start: int
    end: int
    rule: Rule
    cue: str
    level: Level


@dataclass(frozen=True, slots=True)
class Marked:
    """A sentence's tokens with its marks.

    Attributes:
        taken: places of the words of marks and operators.
        negations: where negations begin.
        rest: keys of what it names, where it holds more cues than are read; else none.
    """

    tokens: Sequence[Token]
    marks: tuple[Mark, ...]
    taken: frozenset[int] = frozenset()
    negations: frozenset[int] = frozenset()
    rest: frozenset[str] = frozenset()


def mark(tokens: Sequence[Token], lexicon: Lexicon) -> Marked:
    """Find the cues of a sentence and settle what each says."""
    words = {token.lower for token in tokens}
    found = _find(tokens, lexicon, words)
    taken = [i for match in found if _takes(match) for i in range(match.start, match.end)]
    rest = _names(tokens, lexicon, taken) if len(found) > _MOST else frozenset()
    found = found[:_MOST]
    around = Surroundings(tokens, found, lexicon)
    settled = [_settle(match, match.value, around) for match in found if isinstance(match.value, Rule)]
    marks = tuple(one for one in settled if one is not None)
    if not marks:
        return Marked(tokens, (), rest=rest)
    negations = (m.start for m in found if isinstance(m.value, Operator) and m.value.kind == "negate")
    return Marked(tokens, marks, frozenset(taken), frozenset(negations), rest)


def _names(tokens: Sequence[Token], lexicon: Lexicon, taken: Sequence[int]) -> frozenset[str]:
    """Keys of the words that name something."""
    cues = frozenset(taken)
    return frozenset(t.key for i, t in enumerate(tokens) if i not in cues and lexicon.heavy(t))


def _find(tokens: Sequence[Token], lexicon: Lexicon, words: set[str]) -> list[Found]:
    """The cues; one that lacks the word it needs gives way to the shorter cues within it."""
    if lexicon.wanted.isdisjoint(words):
        return lexicon.before.find(tokens)
    found: list[Found] = []
    for match in lexicon.special.find(tokens):
        if (
            isinstance(match.value, Rule)
            and match.value.with_words
            and words.isdisjoint(match.value.with_words)
        ):
            inner = lexicon.before.find(tokens[match.start : match.end])
            found += [one._replace(start=one.start + match.start, end=one.end + match.start) for one in inner]
        else:
            found.append(match)
    return found


def _takes(match: Found) -> bool:
    """Whether its words name nothing. Those of an ignored cue may: "borderline ovarian tumour"."""
    return isinstance(match.value, Operator) or match.value.level != "ignore" or match.value.negated != "drop"


def _settle(match: Found, rule: Rule, around: Surroundings) -> Mark | None:
    """The mark of a cue; None where nothing is said of certainty."""
    end = _end(match, rule, around)
    if not end:
        return None
    name = _level(match, rule, around)
    if rule.noun and around.lacking(end):
        name = rule.pending or name
    if name in _OF_ABSENCE and around.absent(end):
        name = _OF_ABSENCE[name]
    return (
        None if name in ("drop", "ignore") else Mark(match.start, end, rule, match.cue, Level[name.upper()])
    )


def _end(match: Found, rule: Rule, around: Surroundings) -> int:
    """Where the cue ends with the verb that belongs to it; 0 if it is none in this place."""
    if rule.level == "ignore" and rule.negated == "drop":
        return 0
    if rule.modal:
        return states_something(around.tokens, match.start, around.lexicon)
    if rule.patient and (around.auxiliary(match) or not around.person(match.start)):
        return 0
    return match.end


def _level(match: Found, rule: Rule, around: Surroundings) -> str:
    """The cue's level under what stands before it."""
    if rule.level == "hypothetical":
        return rule.level
    kind = around.before(match.start, rule) or around.request(match)
    if kind in ("drop", "instead") and rule.level in ("possible", "probable"):
        return "drop"
    if kind in ("negate", "instead"):
        return rule.negated
    return rule.pending if kind == "pending" and rule.pending else rule.level

"""Whose thing a sentence speaks of: the patient's, or that of a relative named beside it."""

from __future__ import annotations

from collections.abc import Sequence

from clinsafe.mitigations.certainty.lexicon import Lexicon
from clinsafe.text import Token

PATIENT = "patient"
_REACH = 14  # tokens between a relative and what is said of him or her
_BETWEEN = 2  # words between "her" and the relative: "her elder half sister"
_VERB = 4  # tokens after a relative in which a verb of telling makes it a report
_STOPS = frozenset(";:.()[]—!?")


def whose(tokens: Sequence[Token], start: int, end: int, lexicon: Lexicon, has: bool = False) -> str:
    """The relative who is the subject of what stands at tokens ``[start, end)``, or who has it; else the patient.

    "Her mother had suspected PE" and "suspected PE in her mother" are the mother's; what she tells or fears is not.
    `has`: the cue is a verb that says that a person has something.
    """
    at = _subject(tokens, start, lexicon, has)
    if at is None:
        at = _holder(tokens, end, lexicon)
    return PATIENT if at is None else lexicon.kin[tokens[at].lower]


def _subject(tokens: Sequence[Token], start: int, lexicon: Lexicon, has: bool) -> int | None:
    """Where the relative stands who opens the clause of this place, and does not tell or fear it."""
    words = lexicon.whose
    for at in range(start - 1, max(start - _REACH, 0), -1):
        token = tokens[at]
        if token.text in _STOPS or token.lower in words.persons or token.lower in lexicon.clause - words.who:
            return None
        if token.text == "," and tokens[at - 1].lower not in lexicon.kin:
            return None
        if token.lower in lexicon.kin and _own(tokens, at, start, lexicon):
            verbs = [t for t in tokens[at + 1 : min(start, at + 1 + _VERB)] if t.text != ","]
            told = any(t.lemma in words.reports or t.lower in words.reports for t in verbs)
            suspects = at + 1 == start and not has  # "her mother suspected PE"
            return None if told or suspects else at
    return None


def _own(tokens: Sequence[Token], at: int, start: int, lexicon: Lexicon) -> bool:
    """Whether the relative is the patient's ("her sister") and opens the clause, or has it: "PE in her sister"."""
    words = lexicon.whose
    for before in range(at - 1, max(at - 2 - _BETWEEN, -1), -1):
        if tokens[before].lower in words.possessives:
            opener = tokens[before - 1] if before else None
            if opener is None or not opener.text.isalpha() or opener.lower in words.openers:
                return True
            return opener.lower in words.within and words.openers.isdisjoint(
                [token.lower for token in tokens[at:start]]
            )
    return False


def _holder(tokens: Sequence[Token], end: int, lexicon: Lexicon) -> int | None:
    """The relative of "suspected PE in her mother"."""
    words = lexicon.whose
    for at in range(end, min(end + _REACH, len(tokens) - 2)):
        token = tokens[at]
        if token.text in _STOPS or token.text == "," or token.lower in lexicon.clause:
            return None
        if token.lower in words.within and tokens[at + 1].lower in words.possessives:
            named = range(at + 2, min(at + 3 + _BETWEEN, len(tokens)))
            return next((i for i in named if tokens[i].lower in lexicon.kin), None)
    return None

"""Questions for a do-not-resuscitate order. The order is a thing, and "no" inside its name is no denial of it."""

from __future__ import annotations

import re

from clinsafe.guarded import Stance
from clinsafe.mitigations.question import Question
from clinsafe.mitigations.wording import Passage, Worded
from clinsafe.protocols import Finding

_NAME = (
    r"(?:dnr|dnacpr|dnar|do (?:- )?not (?:- )?(?:attempt )?(?:- )?resuscitat\w+"
    r"|not for (?:cpr|resus\w*|resuscitation))"
)
_ORDER = re.compile(rf"\b{_NAME}\b")
_NONE = re.compile(
    rf"\b(?:no|without|not have|nor|never had) (?:a |an |any |valid |current )*{_NAME}"
    rf"|{_NAME}.{{0,40}}\b(?:not (?:been )?(?:made|signed|in place|completed|discussed|agreed|valid)"
    rf"|revoked|cancelled|withdrawn"
    r"|rescinded|declined)\b"
)
_FULL = re.compile(
    r"\b(?:for (?:full )?(?:cpr|resuscitation)|for full (?:active )?(?:escalation|treatment)"
    r"|full (?:active )?treatment including"
    r" cpr|full code)\b"
)
_NOT_FOR = re.compile(r"\bnot (?:suitable )?for (?:full )?(?:cpr|resus)")
_CONFIDENCE = 0.7
Answer = tuple[Stance, tuple[Finding, ...]]


def asks_for_order(asked: str) -> bool:
    """Whether a question asks whether there is such an order."""
    return _ORDER.search(asked) is not None


def order(question: Question, words: Passage) -> Answer:
    """What a passage says of the order; silent where it names none."""
    told: dict[Stance, Finding] = {}
    for sentence in words.sentences:
        side = _side(sentence)
        if side is not None:
            told.setdefault(side, _finding(question, sentence, side))
    if not told:
        return "silent", ()
    return (next(iter(told)) if len(told) == 1 else "uncertain"), tuple(told.values())


def _side(sentence: Worded) -> Stance | None:
    text = sentence.text
    if sentence.of_another or sentence.conditional or sentence.general:
        return None
    named = _ORDER.search(text) is not None
    if named and sentence.firmly_open:
        return "uncertain"
    if _NONE.search(text) or (_FULL.search(text) and not _NOT_FOR.search(text)):
        return "denies"
    return "affirms" if named else None


def _finding(question: Question, sentence: Worded, side: Stance) -> Finding:
    conflict = side == "denies"
    return Finding(
        "negation", "conflict" if conflict else "compatible", "contradiction", "critical" if conflict else "note",
        _CONFIDENCE, question.line.span, sentence.line.span, "do-not-resuscitate order: asked",
        f"do-not-resuscitate order: {side}", "", "stance.order", f"The passage {side} a do-not-resuscitate order.",
    )  # fmt: skip

"""What a sentence is: question or claim, about whom, and when. Words only; the filters look closer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from clinsafe.text.tokens import Token

Mood = Literal["claim", "question"]
Subject = Literal["patient", "relative", "other"]
Time = Literal["current", "past"]

_ASKS_WORDS = "is are was were do does did has have had can could should would will may might must shall am"
_ASKS = frozenset(_ASKS_WORDS.split())
_SUBJECT_WORDS = """
he she it they we you i this that these those there the a an any his her its their our your my patient patients
everyone anyone someone who
"""
_SUBJECTS = frozenset(_SUBJECT_WORDS.split())
_WH_WORDS = "what which who whom whose when where why how whether"
_WH = frozenset(_WH_WORDS.split())
_MODALS = ("should", "can", "could", "will", "would", "may", "must")
_KIN_WORDS = """
mother father parent parents sister brother sibling siblings son daughter child children grandmother grandfather
grandparent grandparents aunt uncle cousin niece nephew maternal paternal relative relatives wife husband partner
"""
KIN = frozenset(_KIN_WORDS.split())
"""Words for relatives, as a section of a family history is headed."""
_RELATIVE_SECTIONS = ("family history", "family hx", "fh", "fhx", "fam hx", "family medical history")
_PAST_SECTIONS = (
    "past medical history",
    "past history",
    "pmh",
    "pmhx",
    "past surgical history",
    "previous history",
    "psh",
)


_OTHER_HEADINGS = (
    "allergies", "medications", "current medications", "discharge medications", "plan", "assessment",
    "assessment and plan", "impression", "results", "history", "examination", "on examination", "investigations",
    "social history", "hospital course", "presenting complaint", "history of presenting complaint", "findings",
    "conclusion", "recommendations", "diagnosis",
)  # fmt: skip
HEADINGS = frozenset((*_RELATIVE_SECTIONS, *_PAST_SECTIONS, *_OTHER_HEADINGS))
"""Lines that head a section even without a colon."""


def mood(tokens: Sequence[Token]) -> Mood:
    """A question ends in a question mark, or opens like one and has no full stop ("does she have asthma").

    Without either it is a claim: a note such as "Has asthma" must not escape comparison by looking like a question.
    """
    if not tokens:
        return "claim"
    if tokens[-1].text == "?":
        return "question"
    if tokens[-1].text in ".!;":
        return "claim"
    first, second = tokens[0].lower, tokens[1].lower if len(tokens) > 1 else ""
    if first in _WH:
        return "claim" if any(token.text == "," for token in tokens) else "question"
    if first in ("do", "does"):
        return "claim" if second in ("not", "") else "question"
    if first in _MODALS and second not in ("be", "have", "not"):  # "should warfarin be stopped"
        return (
            "question"
            if second in _SUBJECTS or any(t.lower in ("be", "have") for t in tokens[2:6])
            else "claim"
        )
    return "question" if first in _ASKS and second in _SUBJECTS else "claim"


def subject_of_section(section: str) -> Subject:
    """Whom a section speaks of: a family history, and each relative in it, is not the patient."""
    return "relative" if section.partition(":")[0] in _RELATIVE_SECTIONS or section in KIN else "patient"


def time_of_section(section: str) -> Time:
    """Whether a section lists the past."""
    return "past" if section in _PAST_SECTIONS else "current"

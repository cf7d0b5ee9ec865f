"""Whether a quad is English and keeps its label, by rules that share no code and no word list with the filters.

Each check answers with one short reason, "" where nothing is wrong; the miner counts the reasons.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from clinsafe.benchmarks.mining.sentences import Parsed
from clinsafe.text import words

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_DOUBLED = re.compile(r"\b([a-z]+) \1\b")
_TWICE_FINE = frozenset(("had", "that"))
_CLASH = re.compile(
    r"\b(?:a|an|the) (?:is|are|was|were|not|of|in|to|a|an|the)\b|\b(?:not|no) (?:not|no)\b|\bto (?:is|are|was|were)\b"
    r"|\b(?:is|are|was|were) (?:is|are|was|were|has|have)\b|\b(?:may|might|can|could|will) (?:is|are|was|were|has)\b",
    re.IGNORECASE,
)
_UNDECIDED = re.compile(
    r"\b(?:whether|if|unless|hypothes\w+|aim(?:s|ed)?|purpose|objectives?|question\w*|unclear|unknown|controvers\w+|"
    r"debat\w+|sought|wonder\w*|would|should|ought|except|instead|rather|respectively|"
    r"to (?:determine|evaluate|assess|investigate|examine|study|compare|test|explore|identify|find out|analy[sz]e))\b",
    re.IGNORECASE,
)
_PLURAL, _SINGULAR = ("NNS", "NNPS"), ("NN", "NNP")


def source_fault(text: str) -> str:
    """Why a sentence is no plain statement that an edit could contradict."""
    found = _UNDECIDED.search(text)
    return f"no plain statement ({found[0].lower()})" if found else ""


def text_fault(text: str) -> str:
    """What is no English in an edited sentence, told from its letters alone."""
    for found in _DOUBLED.finditer(text.lower()):
        if found[1] not in _TWICE_FINE:
            return "doubled word"
    if _CLASH.search(text):
        return "words that cannot meet"
    if not 5 <= len(words(text)) <= 60:
        return "too short or too long"
    return ""


def parse_fault(sentence: Parsed) -> str:
    """What is no English in an edited sentence, told from its parse."""
    roots = [token for token in sentence.doc if token.head.i == token.i]
    if len(roots) != 1:
        return "not one clause"
    root = roots[0]
    verbal = [root, *(child for child in root.children if child.dep_ in ("aux", "auxpass", "cop"))]
    if not any(token.tag_ in ("VBD", "VBZ", "VBP", "MD") for token in verbal):
        return "no finite verb"
    return next((fault for token in sentence.doc if (fault := _agreement(token))), "")


def _agreement(token: Any) -> str:
    if token.dep_ not in ("nsubj", "nsubjpass") or token.tag_ not in (*_PLURAL, *_SINGULAR):
        return ""
    verb = token.head
    finite = next((c for c in verb.children if c.dep_ in ("aux", "auxpass") and c.i > token.i), verb)
    joined = any(child.dep_ in ("conj", "cc") for child in token.children)
    counted = any(child.dep_ in ("nummod", "quantmod") for child in token.children)
    if token.tag_ in _PLURAL and finite.lower_ in ("is", "was", "has") and not counted:
        return "subject and verb disagree"
    if token.tag_ in _SINGULAR and not joined and not counted and finite.lower_ in ("are", "were", "have"):
        return "subject and verb disagree"
    return ""


def numbers(text: str) -> Counter[str]:
    """The numbers in digits that a text names."""
    return Counter(found.replace(",", "") for found in _NUMBER.findall(text))


def label_fault(a: str, b: str, same: str, *, hazard: str, control_kind: str, factor: bool) -> str:
    """Whether what the edit and the control may not touch stayed as it was.

    Args:
        a, b, same: a sentence, the one that contradicts it, the one that says the same.
        hazard: of the edit; numbers may change in three of them.
        control_kind: of the control; units, formats and cues may rewrite a number.
        factor: whether the edit declares a ratio of two numbers.
    """
    if numbers(a) != numbers(same) and control_kind not in ("unit", "format", "cue", "abbreviation"):
        return "the control changed a number"
    changed = numbers(a) != numbers(b)
    if changed and hazard in ("negation", "entity_swap", "hedging"):
        return "the edit changed a number"
    if factor and not changed:
        return "the edit changed no number"
    if len(set(map(words, (a, b, same)))) < 3:
        return "two sentences are the same words"
    return ""

"""A sentence that names what is asked and leaves it open, though no filter aligned the two."""

from __future__ import annotations

from collections.abc import Callable

from clinsafe.guarded import Stance
from clinsafe.mitigations.question import Question
from clinsafe.mitigations.topic import Lines, covered
from clinsafe.mitigations.wording import Passage, Worded
from clinsafe.protocols import Finding

_HALF, _MOST, _SOME, _AROUND, _ALL = 0.5, 0.4, 0.3, 0.6, 0.999
_ASSERTED = 4
_CONFIDENCE = 0.6
Answer = tuple[Stance, tuple[Finding, ...]]


def doubt(
    question: Question, lines: Lines, words: Passage, barred: Callable[[Worded], bool]
) -> Answer | None:
    """The last thing the passage says of what is asked, where that leaves it open; else None."""
    if any(level < _ASSERTED for level in question.levels.values()):
        return None  # it asks for a doubt
    told = None
    for at, sentence in enumerate(words.sentences):
        if (
            not _named(question, words, at)
            or _of_another(lines, at)
            or sentence.conditional
            or barred(sentence)
        ):
            continue
        told = _finding(question, sentence) if sentence.open and not sentence.dismissed else None
    return None if told is None else ("uncertain", (told,))


def _named(question: Question, words: Passage, at: int) -> bool:
    sentence = words.sentences[at]
    own = covered(question.keys, sentence.keys)
    if own >= _HALF:
        return True
    if not sentence.firmly_open:
        return False
    around = covered(question.keys, words.around(at))
    if at and around >= _ALL and question.line.keys & sentence.keys:
        return True
    return own >= _MOST or (own >= _SOME and around >= _AROUND)


def _of_another(lines: Lines, at: int) -> bool:
    negation = lines.by_line.get(at, {}).get("negation", ())
    return any(fact.normal.get("relative") or fact.normal.get("asked") for fact in negation)


def _finding(question: Question, sentence: Worded) -> Finding:
    name = " ".join(sorted(question.keys))
    return Finding(
        "hedging", "compatible", "non_support", "moderate", _CONFIDENCE, question.line.span, sentence.line.span,
        f"{name}: asked", f"{name}: open", "", "stance.open", "The passage leaves open what is asked.",
    )  # fmt: skip

"""A sentence that answers in plain words, where no filter aligned it with the question.

The filters report what contradicts, and what agrees where a rule signed it. "Asthma since childhood" is signed by none,
and "heart sounds normal, no murmurs" speaks of other things too; both still answer. Here the sentence has to name all
that is asked, without a word that could turn it round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clinsafe.mitigations.question import SAID_OF_THE_PAST, Question
from clinsafe.mitigations.topic import Line, bare, covered, heavy, means
from clinsafe.protocols import Fact, Finding, Severity, Span, Verdict

ALL = 0.999
_BACK = 0.5  # share of a plain piece that must be asked for, where one word is all that is asked
_CONFIDENCE = 0.7
_ALIKE = "~all"  # mark of "every", which denies nothing
_DOUBT_WORDS = """
considered queried differential suspected suspicion possible probable possibly probably likely excluded versus vs
question rule screen screening monitor prevent prevention avoid unless until whether
"""
_DOUBTS = frozenset(_DOUBT_WORDS.split())
Facts = Mapping[str, Sequence[Fact]]


def states(question: Question, line: Line, facts: Facts) -> Finding | None:
    """Whether the sentence states all that is asked; None if not."""
    if question.denies or covered(question.keys, line.keys) < ALL or not _DOUBTS.isdisjoint(line.words):
        return None
    stated: set[str] = set()
    open_words: set[str] = set()  # said, and not stated of the patient as it stands
    back = 0.0
    for fact in facts.get("negation", ()):
        if fact.normal["kind"] == "sense":
            continue
        keys = _stated(fact, question.past)
        open_words |= _named(fact) - keys
        if keys & question.keys:
            stated |= keys
            near = frozenset(map(bare, fact.normal["near_keys"])) | keys
            back = max(back, covered(near, question.keys))
    missing = question.keys - stated  # adverbs and such, of which the filter keeps no word
    if not stated or missing & open_words or turned(question, line, facts) or facts.get("quantifier"):
        return None
    if len(question.keys) == 1 and back < _BACK and not _is_given(question, facts):
        return None  # "is he on warfarin": "warfarin interacts with amiodarone"
    return _finding(
        question, line.span, "compatible", "present", "The passage states what is asked, in plain words."
    )


def denies(question: Question, line: Line, facts: Facts) -> Finding | None:
    """Whether the sentence says that there is nothing of what is asked; None if not.

    "No murmurs" denies a murmur; "no systolic murmur" does not, unless that is asked.
    """
    if question.denies or covered(question.keys, line.keys) < ALL:
        return None
    for fact in facts.get("negation", ()):
        normal = fact.normal
        if normal["kind"] != "signed" or normal["sign"] != -1 or normal["relative"] or normal["asked"]:
            continue
        own = frozenset(map(bare, normal["keys"] | normal["modifier_keys"]))
        if bare(normal["key"]) not in question.keys or not heavy(own - means()) <= question.keys:
            continue
        if normal["limit_keys"] or (normal.get("past") and not question.past):
            continue
        if covered(question.keys, frozenset(map(bare, normal["near_keys"])) | own) >= ALL:
            told = f"The passage says that there is no {normal['name']}."
            return _finding(question, fact.span, "conflict", "absent", told, fact.cue)
    return _none_of(question, facts)


def _none_of(question: Question, facts: Facts) -> Finding | None:
    """ "None of the sutures failed" of whether any did."""
    for fact in facts.get("quantifier", ()):
        normal = fact.normal
        if normal.get("high") == 0 and not (normal.get("turned") or normal["asked"] or normal.get("weak")):
            keys = frozenset(map(bare, normal["keys"]))
            if covered(question.keys, keys) >= ALL and heavy(keys) <= question.keys:
                told = f'The passage says "{fact.cue}" of what is asked.'
                return _finding(question, fact.span, "conflict", "none", told, fact.cue, "quantifier")
    return None


def turned(question: Question, line: Line, facts: Facts) -> bool:
    """Whether a word that could turn the meaning round stands by what is asked about, and is not asked too.

    A word that signs another thing ("heart failure with *raised* venous pressure") turns nothing.
    """
    pieces = {
        fact.normal["piece"]
        for fact in facts.get("negation", ())
        if fact.normal["kind"] != "sense" and _named(fact) & question.keys
    }
    asked = {_ALIKE, *(mark[0] for mark in question.line.marks)}
    return any(
        piece in pieces
        and words not in asked
        and (acts or not keys or not question.keys.isdisjoint(map(bare, keys)))
        for words, piece, keys, acts in line.marks
    )


def _named(fact: Fact) -> frozenset[str]:
    normal = fact.normal
    return frozenset(map(bare, normal["keys"] | normal.get("modifier_keys", frozenset())))


def _stated(fact: Fact, past: bool) -> frozenset[str]:
    """Bare keys that a fact states of the patient."""
    normal = fact.normal
    if normal["relative"] or normal["asked"]:
        return frozenset()
    if normal["kind"] == "said":
        wanted = (1, SAID_OF_THE_PAST) if past else (1,)
        return frozenset(bare(row[0]) for row in normal["words"] if row[4] in wanted)
    if normal["kind"] == "signed" and normal["sign"] == 1 and (past or not normal["past"]):
        return frozenset(map(bare, normal["keys"] | normal["modifier_keys"]))
    return frozenset()


def _is_given(question: Question, facts: Facts) -> bool:
    """ "Warfarin 3 mg daily", "takes warfarin": a dose or a treatment of what is asked about."""
    for fact in (*facts.get("numerical", ()), *facts.get("temporal", ())):
        normal = fact.normal
        dose = normal.get("role") == "dose" and normal["subject_keys"]
        taken = normal.get("axis") == "treatment" and normal.get("on") and normal["target_keys"]
        if not question.keys.isdisjoint(map(bare, dose or taken or ())):
            return True
    return False


def _finding(
    question: Question,
    span: Span,
    verdict: Verdict,
    state: str,
    told: str,
    cue: str = "",
    hazard: str = "negation",
) -> Finding:
    name = " ".join(sorted(question.keys))
    severity: Severity = "high" if verdict == "conflict" else "note"
    rule = f"stance.{state}"
    return Finding(
        hazard, verdict, "contradiction", severity, _CONFIDENCE, question.line.span, span,
        f"{name}: asked", f"{name}: {state}", cue, rule, told,
    )  # fmt: skip

"""A clause that tells a result in note style ("MRSA: not isolated", "denies suicidal ideation", "Trop pos")."""

from __future__ import annotations

import re
from collections.abc import Callable

from clinsafe.guarded import Stance
from clinsafe.mitigations.question import Question
from clinsafe.mitigations.topic import Lines, bare, covered, means
from clinsafe.mitigations.wording import Passage, Worded
from clinsafe.protocols import Finding
from clinsafe.text import Token
from clinsafe.text.tokens import stem_of

Answer = tuple[Stance, tuple[Finding, ...]]
_WHOLE = 0.999
_CONFIDENCE = 0.65
_ASSERTED = 4
_LACKING = re.compile(r"\b(?:agenesis|aplasia|absence|absent|missing|amputat\w+)\b")
_OCCASIONS = frozenset(
    bare(stem_of(word))
    for word in ["admit", "admission", "arrive", "arrival", "triage", "discharge", "clinic", "visit"]
)
_BEFORE = re.compile(
    r"\b(?:no|nil|denies|denied|denying|without|never|negative for|neg for|free of|free from|absence of"
    r"|lack of|neither|nor"
    r"|(?:did|does|do|has|have|had|is|was|were|are) not|not a single|hasn t|hadn t|didn t|doesn t|isn t"
    r"|wasn t)\b"
)
_AFTER = re.compile(
    r"\b(?:(?:not|never|nor|none|nothing) (?:\w+ )?(?:isolated|detected|found|seen|identified|grown"
    r"|present|evident|demonstrated"
    r"|visualised|palpable|felt|heard|reported|recorded|noted)|negative|neg|nil|absent|none|excluded"
    r"|ruled out|never|- ve"
    r"|0 / \d+)\b"
)
_PRESENT = re.compile(
    r"\b(?:positive|pos|present|isolated|detected|seen|confirmed|identified|evident|grown|grew"
    r"|demonstrated|visible|palpable"
    r"|proven|noted|found|\+ ve|\+ \+)(?!\w)"
)
_TURNS = re.compile(
    r"\b(?:no|not|nil|never|none|nor|neither|without|negative|neg|absent|excluded|ruled out|free"
    r"|denie[sd]|stopped|resolved|normal"
    r"|clear|cannot|n t|longer|until|unless|except|only|if|screen(?:ed|ing)? for|to exclude|to check"
    r"|previous\w*|resistan\w+|risk|avoid\w*"
    r"|prevent\w*|prophyla\w+|vaccin\w+|test(?:ed|ing)? for)\b"
)
_NO_DENIAL = re.compile(
    r"\b(?:no longer|no (?:increase|change|further|new|need|reason|restriction|more|other|doubt|worse"
    r"|better|response|improvement"
    r"|significant|effect|benefit|difference|relief|history|plan|plans)|not (?:only|yet|until|just|all"
    r"|always|every|been)"
    r"|without (?:treatment|delay|help))\b"
)


def results(
    question: Question, lines: Lines, words: Passage, barred: Callable[[Worded], bool]
) -> Answer | None:
    """What the clauses say that name all that is asked; None where none does, or two gainsay each other.

    Args:
        barred: whether a sentence is about something else than what is asked.
    """
    turned = any(
        acts or question.keys & frozenset(map(bare, keys)) for _, _, keys, acts in question.line.marks
    )
    if question.decisive or question.conditional or turned:
        return None  # an order, a quantity, a turned word: more hangs on it than presence
    if any(level < _ASSERTED for level in question.levels.values()):
        return None
    core = _core(question)
    told: dict[Stance, Finding] = {}
    for at, sentence in enumerate(words.sentences):
        if (
            barred(sentence)
            or sentence.open
            or sentence.conditional
            or sentence.general
            or _not_current(lines, at, question)
        ):
            continue
        for clause in sentence.clauses:
            side = _side(clause, question, core)
            if side is not None:
                told.setdefault(side, _finding(question, sentence, side))
    if len(told) != 1:
        return None
    side, finding = next(iter(told.items()))
    return side, (finding,)


def told_no(question: Question, sentence: Worded) -> bool:
    """Whether a clause of it denies what is asked in note style ("HBsAg: NEG")."""
    core = _core(question)
    return any(_side(clause, question, core) == "denies" for clause in sentence.clauses)


def lacking(question: Question, words: Passage, barred: Callable[[Worded], bool]) -> Answer | None:
    """A clause that says in a noun that there is none ("agenesis of the left kidney"), where just that is asked."""
    if not question.denies:
        return None
    core = _core(question)
    for sentence in words.sentences:
        if barred(sentence) or sentence.open or sentence.conditional:
            continue
        for clause in sentence.clauses:
            text = " ".join(token.lower for token in clause)
            keys = frozenset(bare(token.key) for token in clause if token.key)
            if _LACKING.search(text) and covered(core, keys) >= _WHOLE and not _BEFORE.search(text):
                return "affirms", (_finding(question, sentence, "affirms"),)
    return None


def _core(question: Question) -> frozenset[str]:
    return question.keys - means() - _OCCASIONS or question.keys


def _not_current(lines: Lines, at: int, question: Question) -> bool:
    facts = lines.by_line.get(at, {}).get("negation", ())
    return any(
        fact.normal.get("relative")
        or fact.normal.get("asked")
        or (fact.normal.get("past") and not question.past)
        for fact in facts
    )


def _side(clause: tuple[Token, ...], question: Question, core: frozenset[str]) -> Stance | None:
    places = [at for at, token in enumerate(clause) if token.key and bare(token.key) in core]
    named = frozenset(bare(clause[at].key) for at in places)
    if not places or covered(core, named) < _WHOLE:
        return None
    ahead = " ".join(token.lower for token in clause[: places[0]])
    behind = " ".join(token.lower for token in clause[places[-1] + 1 :])
    whole = " ".join(token.lower for token in clause)
    if _NO_DENIAL.search(whole):
        return None
    before, after = len(_BEFORE.findall(ahead)), len(_AFTER.findall(behind))
    if before + after == 1:
        return "affirms" if question.denies else "denies"
    if before + after or question.denies or _TURNS.search(whole):
        return None
    return "affirms" if _PRESENT.search(behind) or _PRESENT.search(ahead) else None


def _finding(question: Question, sentence: Worded, side: Stance) -> Finding:
    name = " ".join(sorted(question.keys))
    conflict = side == "denies"
    return Finding(
        "negation", "conflict" if conflict else "compatible", "contradiction", "high" if conflict else "note",
        _CONFIDENCE, question.line.span, sentence.line.span, f"{name}: asked", f"{name}: {side}", "", "stance.result",
        f"The passage {side} what is asked, in note style.",
    )  # fmt: skip

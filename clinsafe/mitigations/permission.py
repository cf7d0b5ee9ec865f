"""Questions for permission and duty ("can they be crushed?", "must patients keep off alcohol?").

Both sides are brought to one scale: what is said of *doing* the thing. "Do not stop" makes going on a duty, "need not
avoid" makes the thing allowed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from clinsafe.guarded import Stance
from clinsafe.mitigations.question import Question
from clinsafe.mitigations.topic import bare, covered, heavy
from clinsafe.mitigations.wording import Passage, Worded, aims
from clinsafe.protocols import Finding, Severity, Verdict
from clinsafe.text import Token
from clinsafe.text.tokens import stem_of

Duty = Literal["forbidden", "idle", "allowed", "due"]
Answer = tuple[Stance, tuple[Finding, ...]]
_CONFIDENCE = 0.7
_SENTENCE, _BOTH, _AROUND = 0.3, 0.4, 0.6

_ABSTAIN = (
    r"avoid\w*|abstain\w*|abstinence|refrain\w*|withhold\w*|withheld|omit\w*|stop(?:ped|ping)?"
    r"|discontinu\w*|ceas\w*"
    r"|interrupt\w*|keep (?:off|away)|kept (?:off|away)|stay (?:off|away)|steer clear|held|paus\w*"
    r"|suspend\w*|skip\w*"
    r"|give up|go without|come off|withdraw\w*|rul\w* out"
)
_AVOID = re.compile(rf"\b(?:{_ABSTAIN})\b")
_IDLE = re.compile(
    r"\b(?:need not|needn t|no need|not (?:needed|necessary|required|obliged)|unnecessary|(?:do|does"
    r"|did) not (?:have|need) to"
    r"|don t (?:have|need) to|(?:is|are) no (?:reason|need|restriction|requirement|objection)"
    r"|no (?:reason|requirement) to"
    r"|not have to|without (?:the )?need)\b"
)
_FREE = re.compile(
    r"\b(?:no (?:\w+ )?(?:restriction|objection|contraindication)s?|not contraindicated|not harmful"
    r"|not unsafe)\b"
)
_FORBIDDEN = re.compile(
    r"\b(?:(?:do|does|should|must|may|can|could|shall|ought) (?:not|never)|don t|mustn t|shouldn t|cannot"
    r"|can t|never"
    r"|(?:not|never) (?:to )?be|not (?:be )?(?:recommended|advised|suitable|safe|appropriate|permitted"
    r"|allowed|advisable"
    r"|licensed|acceptable|compatible|wise)|unsafe|contraindicated|contra - indicated|forbidden"
    r"|prohibited|inadvisable"
    r"|unsuitable|inappropriate|dangerous|harmful|against the use|no \w+(?: \w+){0,4} (?:is|are) to be)\b"
)
_DUE = re.compile(
    r"\b(?:must|should|always|(?:is|are) to(?: be)?|ha(?:s|ve) to|needs? to|needed|required?|requires"
    r"|necessary|mandatory"
    r"|essential|recommended|recommends?|advised|advises?|advisable|obligatory|imperative|compulsory"
    r"|ensure|please)\b"
)
_ALLOWED = re.compile(
    r"\b(?:may|can|safe|safely|suitable|compatible|permitted|allowed|permissible|acceptable|fine(?! -)"
    r"|all right|alright|okay|ok"
    r"|as (?:usual|normal)|appropriate|harmless|tolerated)\b"
)
_ASKS_LEAVE = re.compile(
    r"^(?:can|may|could|might)\b|\b(?:safe|all right|alright|ok|okay|fine|allowed|permitted|permissible"
    r"|suitable|acceptable"
    r"|possible|lets? us)\b"
)
_ASKS_DUTY = re.compile(
    r"^(?:should|must|ought|shall)\b|\b(?:need(?:s|ed)? to|ha(?:s|ve) to|required|necessary|mandatory"
    r"|advised|recommended"
    r"|indicated|essential|obliged)\b"
)
_ASKS_BAN = re.compile(r"\b(?:contraindicated|unsafe|forbidden|prohibited|dangerous|harmful)\b")
_CAPABLE = re.compile(
    r"^(?:can|may|could|might) (?:\w+ ){1,6}?(?:cause|lead|bring|make|trigger|induce|increase|raise"
    r"|worsen|provoke|produce"
    r"|affect|prolong|reduce|be (?:felt|seen|heard|palpated|detected|found))\b"
)
_ON = re.compile(r"\b(?:continue\w*|carry on|carried on|go on|keep on|remain|stay on)\b")
_PARTS = re.compile(r";|\b(?:but|however|although|though|whereas|while)\b")
_FRAME = """
safe safely ok right allowed permitted suitable acceptable fine okay contraindicated unsafe need have avoid stop
withhold omit keep off abstain necessary required mandatory advised recommended continue carry on discontinue cease
interrupt withdraw held let should must can patient people someone anyone person everybody staff want
"""
_WHO = {
    "child": re.compile(r"\b(?:child(?:ren)?|kids?|teenagers?|adolescents?)\b"),
    "infant": re.compile(r"\b(?:infants?|bab(?:y|ies)|neonates?|newborns?|toddlers?)\b"),
    "pregnant": re.compile(r"\b(?:pregnan\w+|expecting|antenatal)\b"),
    "breastfeeding": re.compile(r"\b(?:breast ?(?:- )?fe\w+|lactati\w+|nursing (?:mothers?|wom[ae]n))\b"),
    "elderly": re.compile(r"\b(?:elderly|frail)\b"),
    "adult": re.compile(r"\badults?\b"),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks of doing a thing.

    Attributes:
        kind: whether it may be done, has to be done, or must not be done.
        keys: bare keys of the thing and of the act.
        text: the question in lower case.
        going_on: it asks whether to continue.
        first: the key that it names first.
    """

    kind: Literal["leave", "duty", "ban", "spare"]
    keys: frozenset[str]
    text: str
    going_on: bool
    first: str


def bans(text: str) -> bool:
    """Whether a question asks for a ban or an end."""
    return _ASKS_BAN.search(text) is not None or _AVOID.search(text) is not None


def permission_asked(tokens: tuple[Token, ...]) -> Asked | None:
    """None where a question asks for no permission and no duty."""
    text = " ".join(token.lower for token in tokens)
    if _CAPABLE.search(text):
        return None
    ban, duty, leave = (pattern.search(text) for pattern in (_ASKS_BAN, _ASKS_DUTY, _ASKS_LEAVE))
    if not (ban or duty or leave):
        return None
    avoid = _AVOID.search(text) is not None
    if ban:
        kind: Literal["leave", "duty", "ban", "spare"] = "ban"
    elif duty:
        kind = "ban" if avoid else "duty"
    else:
        kind = "spare" if avoid else "leave"
    frame = frozenset(bare(stem_of(word)) for word in _FRAME.split())
    keys = heavy(frozenset(bare(token.key) for token in tokens if token.key) - frame)
    first = next((bare(token.key) for token in tokens if token.key and bare(token.key) in keys), "")
    return Asked(kind, keys, text, _ON.search(text) is not None, first) if keys else None


def permission(asked: Asked, question: Question, words: Passage) -> Answer | None:
    """What the passage says of doing the thing; None where it gives no leave and no order about it."""
    told: dict[Stance, Finding] = {}
    for at, sentence in enumerate(words.sentences):
        own = covered(asked.keys, sentence.keys)
        around = words.around(at)
        both = own >= _BOTH and len(asked.keys & sentence.keys) > 1
        if (
            own < _SENTENCE
            or not (both or covered(asked.keys, around) >= _AROUND)
            or asked.first not in around
        ):
            continue  # what is named first is what may be done or not: not MMR where yellow fever vaccine is told
        if sentence.of_another or aims(sentence.text):
            continue
        here, wanted = _groups(sentence.text), _groups(asked.text)
        if here and not here & wanted:
            continue
        duty = duty_of_text(_part(sentence, asked.keys))
        side = None if duty is None else _answer(asked, duty)
        if duty is None or side is None:
            continue
        told.setdefault(side, _finding(question, sentence, side, duty))
    if not told:
        return None
    return (next(iter(told)) if len(told) == 1 else "uncertain"), tuple(told.values())


def _groups(text: str) -> set[str]:
    """Kinds of people that a text names."""
    return {name for name, pattern in _WHO.items() if pattern.search(text)} - {"adult"}


def duty_of(sentence: Worded) -> Duty | None:
    """What a sentence says of doing the thing it names; None where it gives no leave and no order."""
    return duty_of_text(sentence.text)


def _part(sentence: Worded, keys: frozenset[str]) -> str:
    """The part between "but" and semicolons that names most of what is asked, given what the parts before it name."""
    parts = _PARTS.split(sentence.text)
    if len(parts) < 2:
        return sentence.text
    best, at = (0.0, 0.0), sentence.text
    carried: frozenset[str] = frozenset()
    for part in parts:
        own = _keys_in(part, sentence) & keys
        carried |= own
        score = (covered(keys, carried), covered(keys, own))
        if own and score > best:
            best, at = score, part
    return at.strip()


def _keys_in(part: str, sentence: Worded) -> frozenset[str]:
    words = frozenset(part.split())
    return frozenset(
        bare(token.key)
        for clause in sentence.clauses
        for token in clause
        if token.key and token.lower in words
    )


def duty_of_text(text: str) -> Duty | None:
    """`duty_of` for a part of a sentence."""
    avoid = _AVOID.search(text) is not None
    if _FREE.search(text):
        return "allowed"
    if _IDLE.search(text):
        return "allowed" if avoid else "idle"
    if _FORBIDDEN.search(text):
        return "due" if avoid and not re.search(r"\bavoid", text) else "forbidden"
    if avoid and (
        _DUE.search(text) or text.split(" ", 1)[0] in ("avoid", "stop", "withhold", "omit", "discontinue")
    ):
        return "forbidden"
    if _DUE.search(text):
        return "due"
    if _ALLOWED.search(text):
        return "idle" if avoid else "allowed"
    return None


_ANSWERS: dict[str, dict[Duty, Stance]] = {
    "leave": {"forbidden": "denies", "allowed": "affirms", "due": "affirms"},
    "duty": {"forbidden": "denies", "idle": "denies", "due": "affirms"},
    "ban": {"forbidden": "affirms", "allowed": "denies", "idle": "denies", "due": "denies"},
    "spare": {"forbidden": "affirms", "idle": "affirms", "due": "denies"},
}


def _answer(asked: Asked, duty: Duty) -> Stance | None:
    if asked.going_on and asked.kind == "duty" and duty == "allowed":
        return "affirms"
    return _ANSWERS[asked.kind].get(duty)


def _finding(question: Question, sentence: Worded, side: Stance, duty: Duty) -> Finding:
    verdict: Verdict = "conflict" if side == "denies" else "compatible"
    severity: Severity = "high" if side == "denies" else "note"
    name = " ".join(sorted(question.keys))
    return Finding(
        "negation", verdict, "contradiction", severity, _CONFIDENCE, question.line.span, sentence.line.span,
        f"{name}: asked", f"{name}: {duty}", "", f"stance.{duty}", f"The passage says that this is {duty}.",
    )  # fmt: skip

"""What keeps a sentence from answering: people at large, the other side, another time, another sense."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clinsafe.mitigations.permission import duty_of_text, permission_asked
from clinsafe.mitigations.topic import bare, heavy
from clinsafe.mitigations.wording import Worded, of_one
from clinsafe.text import Token

_ANCHORS = frozenset(
    ["when", "after", "before", "since", "once", "during", "while", "until", "whilst", "following"]
)
_NIGHTS = re.compile(r"\b(?:on|at|in) (?:the|that) (?:night|day|morning|evening)\b")
_ANOTHER_TIME = re.compile(
    r"\b(?:day \d+|\d+ (?:h|hours?|days?|weeks?|months?|years?) (?:after|later|into|before|previously)"
    r"|(?:two|three|four|five|six)"
    r" (?:hours|days|weeks|months|years) (?:after|later|into|before)|at discharge|on discharge"
    r"|(?:was )?admitted with"
    r"|on admission|yesterday|pre - ?op\w*|post - ?op\w*|months? into|weeks? into)\b"
)
_LEFT = re.compile(r"(?:\bleft\b|(?<![\d/] )(?<![\d/])\bl\b|\blt\b)")
_RIGHT = re.compile(r"\b(?:right|r|rt)\b")
_LEFT_OVER = re.compile(
    r"\b(?:all right|right (?:away|now|after|before|for|to)|the right (?:dose|drug|time|patient))\b"
    r"|\b(?:has|have|had|he|she|who|they) left\b|\bleft (?:the|hospital|ward|over|alone|with|him|her|it"
    r"|untreated)\b"
)
_OTHER_SENSE = re.compile(r"\ballergic (?:rhinitis|asthma|conjunctivitis|eczema|contact|dermatitis)\b")
_LACKS = re.compile(
    r"\b(?:agenesis|aplasia|atresia|absence|absent|missing|lack\w*|loss|empty|removed|amputat\w+)\b"
)
_NOW = re.compile(r"(?:current|currently|ongoing|known|active)\b(?!.*\b(?:no|not|non|never|free|ex)\b)")
_ENDED = re.compile(r"\b(?:stopped|quit|gave up|given up|ex - \w+|former\w*|discontinued|ceased)\b")
_KIN = re.compile(
    r"\b(?:mother|father|mum|dad|brother|sister|son|daughter|uncle|aunt|cousin|sibling|grandmother"
    r"|grandfather|niece|nephew"
    r"|wife|husband|partner|twin)s?\b(?! (?:\w+ )?(?:reports?|reported|says|said|recalls?|states?|saw"
    r"|notice[sd]|thinks))"
)
_NO_DRUG = re.compile(
    r"\b(?:nut|peanut|latex|egg|milk|shellfish|fish|food|plaster|bee|wasp|pollen|dust|cat|dog|nickel|soya"
    r"|sesame|kiwi|grass|sting"
    r"|rubber|adhesive|fruit)s?\b"
)
_DRUG_ALLERGY = re.compile(
    r"\b(?:drug|medicine|medication|antibiotic)s? (?:allerg\w+|sensitiv\w+)|allerg\w+ to (?:any )?(?:drug"
    r"|medicine|medication)s?\b"
)
_WORTH = re.compile(
    r"\b(?:need for|necessary|place for|role for|worth\w*|same|justified|required|sufficient|useful)\b"
)
_CLARIFY = re.compile(
    r"\b(?:(?:need|needs|has|have) to (?:be )?clarif\w+|to (?:be )?clarif\w+|discrepan\w+|conflicting"
    r"|contradict\w+)\b"
)


@dataclass(frozen=True, slots=True)
class Asker:
    """What a question says of whom, which side and when.

    Attributes:
        one: it asks about one person.
        sides: "left", "right".
        anchor: keys of the time it asks about ("when she came in"); empty where it names none.
        text: in lower case.
    """

    one: bool
    sides: frozenset[str]
    anchor: frozenset[str]
    text: str


def asker(tokens: tuple[Token, ...]) -> Asker:
    """Read the asked sentences, auxiliary included."""
    text = " ".join(token.lower for token in tokens)
    at = next((at for at, token in enumerate(tokens) if token.lower in _ANCHORS), len(tokens))
    anchor = frozenset(bare(token.key) for token in tokens[at + 1 :] if token.key)
    if not anchor and (match := _NIGHTS.search(text)):
        anchor = frozenset(match.group().split())
    return Asker(
        of_one(text) and permission_asked(tokens) is None, sides(text), heavy(anchor) or anchor, text
    )


def sides(text: str) -> frozenset[str]:
    """The sides of the body that a text names."""
    text = _LEFT_OVER.sub(" ", text)
    found = (name for name, pattern in (("left", _LEFT), ("right", _RIGHT)) if pattern.search(text))
    return frozenset(found)


def barred(asked: Asker, sentence: Worded) -> bool:
    """Whether a sentence is about something else than what is asked."""
    if sentence.of_another:
        return True
    if asked.one and sentence.general:
        return True
    there = sides(sentence.text) if asked.sides else frozenset()
    if (
        there
        and not there & asked.sides
        and not re.search(r"\b(?:both|bilateral|other|only)\b", sentence.text)
    ):
        return True
    if asked.anchor and not asked.anchor & sentence.keys and _ANOTHER_TIME.search(sentence.text):
        return True
    if _other_allergen(asked, sentence):
        return True
    return bool(_OTHER_SENSE.search(sentence.text) and not _OTHER_SENSE.search(asked.text))


def holds_now(sentence: Worded, keys: frozenset[str]) -> bool:
    """Whether a clause of it calls what is asked current ("current smoker, declined help with stopping")."""
    for clause in sentence.clauses:
        text = " ".join(token.lower for token in clause)
        if _NOW.match(text) and keys <= frozenset(bare(token.key) for token in clause if token.key):
            return True
    return False


def gave_up(sentence: Worded) -> bool:
    """Whether it tells of an end."""
    return _ENDED.search(sentence.text) is not None


def gave_up_asked(asked: Asker) -> bool:
    """Whether a question asks for an end."""
    return (
        re.search(
            r"\b(?:stop\w*|quit\w*|give up|given up|discontinu\w*|ceased?|end|ended|still|now|current\w*)\b",
            asked.text,
        )
        is not None
    )


def of_kin(asked: Asker, sentence: Worded) -> bool:
    """Whether a sentence speaks of a relative, and not as the one who tells, and the question does not."""
    return _KIN.search(sentence.text) is not None and _KIN.search(asked.text) is None


def lacks(sentence: Worded) -> bool:
    """Whether it says in a noun that something is not there."""
    return _LACKS.search(sentence.text) is not None


def _other_allergen(asked: Asker, sentence: Worded) -> bool:
    """ "No drug allergies" says nothing of nuts."""
    named = set(_NO_DRUG.findall(asked.text))
    return (
        bool(named)
        and bool(_DRUG_ALLERGY.search(sentence.text))
        and named.isdisjoint(_NO_DRUG.findall(sentence.text))
    )


def on_other_side(asked: Asker, sentence: Worded, keys: frozenset[str]) -> bool:
    """Whether what is asked is named in clauses of the other side alone ("right leg swollen, left leg normal")."""
    if len(asked.sides) != 1 or len(sides(sentence.text)) != 2:
        return False
    named = [
        sides(" ".join(token.lower for token in clause))
        for clause in sentence.clauses
        if keys <= frozenset(bare(token.key) for token in clause if token.key)
    ]
    return bool(named) and not any(asked.sides & found for found in named)


def besides(asked: Asker, sentence: Worded) -> bool:
    """Whether a question asks for a need, a place or a sameness of which the sentence says nothing."""
    wanted = set(_WORTH.findall(asked.text))
    return bool(wanted) and not _WORTH.search(sentence.text) and duty_of_text(sentence.text) is None


def unsettled(sentence: Worded) -> bool:
    """Whether it says that what stands before has to be cleared up."""
    return _CLARIFY.search(sentence.text) is not None

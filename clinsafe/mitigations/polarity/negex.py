"""Is this concept negated here? One answer for one concept, as the NegEx test kit asks it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from clinsafe.mitigations.polarity.line import MAYBE, QUALIFIER, SIGNED, Line
from clinsafe.mitigations.polarity.rules import WORD, Rules, load_rules
from clinsafe.mitigations.polarity.signs import sign
from clinsafe.text import Reading

_DENIED = frozenset([SIGNED, MAYBE, QUALIFIER])


def negated(reading: Reading, concept: str, rules: Rules | None = None) -> bool | None:
    """Whether the concept is negated where it stands; None if the text does not hold it.

    Args:
        concept: words as they stand in the text. Its exact spelling is looked for first, then capitals, then any case;
            of several places the first counts that is no header ("ALLERGIES: ...").
        rules: None takes the packaged pack.
    """
    rules = rules or _packaged()
    found = find(reading.cleaned.text, concept)
    if found is None:
        return None
    start, end = found
    for sentence in reading.sentences:
        if sentence.end > start and sentence.start < end:
            line = sign(sentence.tokens, rules)
            inside = [
                index
                for index, token in enumerate(sentence.tokens)
                if token.start < end and token.end > start and line.kind[index] == WORD
            ]
            return _denied(line, inside)
    return None


@lru_cache(maxsize=1)
def _packaged() -> Rules:
    return load_rules()


def _denied(line: Line, inside: list[int]) -> bool:
    """By the first word that a negation could reach."""
    return bool(inside) and line.sign[inside[0]] < 0 and line.state[inside[0]] in _DENIED


def find(text: str, concept: str) -> tuple[int, int] | None:
    """Character range of a concept in a text, runs of white space counting as one space; None if it is not there."""
    places = [at for at, char in enumerate(text) if not (char.isspace() and text[at - 1 : at].isspace())]
    flat = "".join(" " if text[at].isspace() else text[at] for at in places)
    wanted = " ".join(concept.split())
    if not wanted:
        return None
    at = _place(flat, wanted)
    if at < 0:
        at = _place(flat, wanted.upper())
    if at < 0 and len(flat.lower()) == len(flat):
        at = _place(flat.lower(), wanted.lower())
    if at < 0:
        return None
    return places[at], places[min(at + len(wanted), len(places)) - 1] + 1


def _place(flat: str, wanted: str) -> int:
    at = flat.find(wanted)
    if at >= 0 and flat[at + len(wanted) : at + len(wanted) + 1] == ":":
        later = flat.find(wanted, at + 1)
        return later if later >= 0 else at
    return at


def scores(pairs: Iterable[tuple[bool, bool]]) -> dict[str, float]:
    """Precision, recall and F1 of (expected, given) answers, negated being the positive class; 0 where undefined."""
    rows = list(pairs)
    both = sum(expected and given for expected, given in rows)
    precision = both / max(1, sum(given for _, given in rows))
    recall = both / max(1, sum(expected for expected, _ in rows))
    total = precision + recall
    return {"precision": precision, "recall": recall, "f1": 2 * precision * recall / total if total else 0.0}


def stock_negspacy() -> Callable[[str, str], bool | None]:
    """Stock negspacy (termset ``en_clinical``) as a judge of a sentence and a concept, the concept's span given.

    Raises:
        MissingDependency: negspacy or spaCy is not installed.
    """
    from clinsafe.mitigations.polarity.negspacy import Negspacy

    engine = Negspacy(None)

    def judge(sentence: str, concept: str) -> bool | None:
        found = find(sentence, concept)
        return None if found is None else engine.negated(sentence, *found)

    return judge

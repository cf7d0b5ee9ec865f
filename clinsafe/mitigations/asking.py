"""The question read as the claim it asks about: "Does she have a penicillin allergy?" as "she have an allergy".

The filters exempt what is asked (decision D2). Read as a claim, it can be compared with a passage, which then affirms
or denies it. Only the mood and the words that make it a question go; every token keeps its place in the query.

**Negative questions.** A "not" at the front tells what the asker expects and is dropped: "Isn't she allergic?" asks
whether she is. A negation inside stays, for it is part of what is asked: "Is there no allergy?" and "Is she not
allergic?" ask whether there is none. The stance "affirms" always means: it is so, as asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clinsafe.text import Reading, Sentence, Token


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


PAST = _set("was were did had")
"""Auxiliaries that ask for the past; a claim that holds one is met by what a passage says of the past."""
_FRONT = _set("""
is are was were am be do does did has have had can could should would will may might must shall
""")
_BE = _set("is are was were am be been being")
_WH = _set("what which who whom whose when where why how")
_AHEAD = _set(
    "and but so also please then or in on at for by with from to of about since until after before than"
)
_KNOW = _set("""
know tell check confirm say wonder wondering sure clear unclear ask asking see find determine establish clarify
""")
_SO = _set("true correct right possible likely probable certain known clear thought case")
_PRONOUNS = _set("he she it they you we i there")
_TAGS = _set("right correct yes no true")
_ANSWERS = _set("yes no none nil negative never denies denied yeah nope")
_FILLERS = _set("actually really please currently")
_TITLES = _set("mr mrs ms miss mx dr prof")
_SIGNS = _set("evidence sign signs indication suggestion record documentation mention report reports doubt")
_CHOICE = (
    ("before", "after"),
    ("more", "less"),
    ("higher", "lower"),
    ("increase", "decrease"),
    ("start", "stop"),
)
_LEAD = 8  # tokens in which "do you know whether" stands


def as_claim(reading: Reading) -> Reading | None:
    """The question as the claim it asks about, offsets in the query unchanged.

    Holds the asked sentences alone: what the query claims beside them is compared by the filters as it stands, and a
    passage that contradicts such a claim has not answered the question.

    Returns:
        None where no proposition is asked: a claim, a question with "what", "which", "when", an either-or, or a
        question that the query itself answers ("Any chest pain? No.").
    """
    sentences = []
    for sentence in reading.sentences:
        if sentence.mood != "question" or _is_answered(reading, sentence):
            continue
        tokens = asked(sentence.tokens)
        if tokens:
            sentences.append(replace(sentence, tokens=tokens, mood="claim"))
    if not sentences:
        return None
    return Reading(reading.cleaned, tuple(sentences), reading.cut, reading.parser)


def front_tokens(reading: Reading) -> tuple[Token, ...]:
    """The asked sentences word for word, with the auxiliary at their front."""
    return tuple(
        token
        for sentence in reading.sentences
        if sentence.mood == "question" and not _is_answered(reading, sentence)
        for token in sentence.tokens
    )


def asked(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """The tokens of the proposition that a question asks about; none where it asks for something else."""
    end = len(tokens)
    while end and tokens[end - 1].text in "?!.,":
        end -= 1
    rest = _untagged(_behind_lead(tokens[:end]))
    if not rest or _asks_what(rest) or _either_or(rest):
        return ()
    rest = _opened(_fronted(rest))
    kept = tuple(_before(token) for token in _unnamed(rest) if token.lower not in _FILLERS)
    return kept if any(token.key for token in kept) else ()


def _is_answered(reading: Reading, sentence: Sentence) -> bool:
    """ "Any chest pain? No.": the reply settles it, so that nothing is asked."""
    at = sentence.index + 1
    return at < len(reading.sentences) and reading.sentences[at].tokens[0].lower in _ANSWERS


def _behind_lead(tokens: Sequence[Token]) -> Sequence[Token]:
    """What stands behind "do you know whether", "is it true that", "and"."""
    lowers = [token.lower for token in tokens[:_LEAD]]
    for at, lower in enumerate(lowers):
        if lower == "whether" and (
            at == 0 or not _KNOW.isdisjoint(lowers[:at]) or "there" not in lowers[:at]
        ):
            return tokens[at + 1 :]
        if lower == "if" and at and lowers[at - 1] in _KNOW | {"me", "us"}:
            return tokens[at + 1 :]
        if (
            lower == "that"
            and at >= 2
            and lowers[0] in _BE
            and lowers[1] in ("it", "the")
            and lowers[at - 1] in _SO
        ):
            return tokens[at + 1 :]
    start = 0
    while start < len(tokens) and tokens[start].lower in ("and", "but", "so", "also", "please", ","):
        start += 1
    return tokens[start:]


def _untagged(tokens: Sequence[Token]) -> Sequence[Token]:
    """A statement less its tag: "she is allergic, isn't she", "he takes warfarin, right"."""
    commas = [at for at, token in enumerate(tokens) if token.text == ","]
    if not commas or commas[-1] == 0:
        return tokens
    tag = [token.lower for token in tokens[commas[-1] + 1 :]]
    short = len(tag) == 1 and tag[0] in _TAGS
    turned = 2 <= len(tag) <= 3 and tag[0] in _FRONT and tag[-1] in _PRONOUNS
    return tokens[: commas[-1]] if short or turned else tokens


def _asks_what(tokens: Sequence[Token]) -> bool:
    """A question word at the front, behind a preposition or behind the comma of an opening ("in AF, what dose")."""
    first = tokens[0].lower
    if first in _WH:
        return True
    if first in _AHEAD and len(tokens) > 1 and tokens[1].lower in _WH:
        return True
    if first in _FRONT:
        return False
    at = next((at for at, token in enumerate(tokens) if token.text == ","), len(tokens))
    return any(token.lower in _WH for token in tokens[at + 1 : at + 3])


def _either_or(tokens: Sequence[Token]) -> bool:
    """ "before or after surgery": neither side is what is asked."""
    for at in range(1, len(tokens) - 1):
        if tokens[at].lower == "or":
            pair = {tokens[at - 1].lower, tokens[at + 1].lower}
            lemmas = {tokens[at - 1].lemma, tokens[at + 1].lemma}
            if any(pair == set(choice) or lemmas == set(choice) for choice in _CHOICE):
                return True
    return False


def _fronted(tokens: Sequence[Token]) -> Sequence[Token]:
    """Without the auxiliary that makes it a question and its "not"; an auxiliary that tells of the past stays."""
    if tokens[0].lower not in _FRONT:
        return tokens
    rest = tokens[2:] if len(tokens) > 1 and tokens[1].lower == "not" else tokens[1:]
    return (tokens[0], *rest) if tokens[0].lower in PAST and rest else rest


def _opened(tokens: Sequence[Token]) -> Sequence[Token]:
    """What is asked for, behind "there been any evidence of": these words ask and say nothing of the thing."""
    at = int(len(tokens) > 1 and tokens[0].lower in PAST)
    tense = tokens[:at]
    while at < len(tokens) and (tokens[at].lower in _BE or tokens[at].lower == "there"):
        at += 1
    if at + 1 < len(tokens) and tokens[at].lower in ("any", "some") and tokens[at + 1].lower != "of":
        at += 1
    if at + 2 < len(tokens) and tokens[at].lower in _SIGNS and tokens[at + 1].lower in ("of", "that", "for"):
        at += 2
    return (*tense, *tokens[at:]) if at < len(tokens) else tokens


def _unnamed(tokens: Sequence[Token]) -> list[Token]:
    """Without "Mrs Jones", who is the patient under another name."""
    kept: list[Token] = []
    for at, token in enumerate(tokens):
        title = at and tokens[at - 1].lower in _TITLES | {"."} and token.text[:1].isupper()
        if token.lower in _TITLES or (token.text == "." and at and tokens[at - 1].lower in _TITLES):
            continue
        if title and any(one.lower in _TITLES for one in tokens[max(0, at - 2) : at]):
            continue
        kept.append(token)
    return kept


def _before(token: Token) -> Token:
    """ "Ever" as "previously": a thing of the past answers too."""
    if token.lower != "ever":
        return token
    return Token("previously", "previously", token.start, token.end, "previously", "")

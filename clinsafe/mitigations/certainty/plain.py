"""Plain statements ("Sigmoid carcinoma", "The wound was red") and conditions ("If the wound becomes red, …").

Neither holds a word of certainty. A plain statement claims its thing; a condition speaks of it and claims nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clinsafe.mitigations.certainty.kin import whose
from clinsafe.mitigations.certainty.levels import Level
from clinsafe.mitigations.certainty.lexicon import Lexicon
from clinsafe.mitigations.certainty.propositions import Proposition
from clinsafe.text import Token

PLAIN = "hdg.plain"
_AGREES = "hdg.plain.part"  # a part of a sentence: enough to agree, too little to contradict
_CONDITION = "hdg.condition"
_MOST = 7  # words that name something; what holds more is a story and no finding
_LONGEST = 14  # tokens of a plain clause
_BREAKS = frozenset(";:.()[]!?,")
_DETERMINERS = frozenset(["a", "an", "any", "the", "this", "his", "her", "your", "further", "such"])
_FIRM = frozenset(";:.!")  # marks between which a clause stands alone


def conditions(
    tokens: Sequence[Token], groups: Sequence[Proposition], lexicon: Lexicon
) -> Iterator[Proposition]:
    """What an "if …" or "should … occur" names, where no cue has read it."""
    if lexicon.plain.openers.isdisjoint([token.lower for token in tokens]):
        return
    if any(group.level not in (Level.HYPOTHETICAL, Level.ASSERTED) for group in groups):
        return  # "it helps if given early, and this is proven": a claim of evidence
    marked = {i for group in groups for mark in group.marks for i in range(mark.start, mark.end)}
    at = 0
    while at < len(tokens):
        if not _opens(tokens, at, lexicon):
            at += 1
            continue
        end = at + 1
        while end < len(tokens) and tokens[end].text not in _BREAKS and tokens[end].lower != "then":
            end += 1
        named = {i for i in range(at + 1, end) if _names(tokens[i], lexicon)}
        if named and len(named) <= _MOST and marked.isdisjoint(range(at, end)):
            yield _proposition(tokens, named, Level.HYPOTHETICAL, _CONDITION, tokens[at].lower, lexicon)
        at = end


def plain(tokens: Sequence[Token], groups: Sequence[Proposition], lexicon: Lexicon) -> Iterator[Proposition]:
    """The clauses that state something short without any word of doubt, denial, request or plan."""
    used = {i for group in groups for i in (*group.core, *group.wide)}
    used |= {i for group in groups for mark in group.marks for i in range(mark.start, mark.end)}
    for start, end in _clauses(tokens):
        clause = range(start, end)
        if end - start > _LONGEST or not used.isdisjoint(clause):
            continue
        if (end < len(tokens) and tokens[end].text == "?") or (start and tokens[start - 1].text in "(["):
            continue
        if _barred(tokens[start:end], lexicon):
            continue
        named = {i for i in clause if _names(tokens[i], lexicon)}
        if 0 < len(named) <= _MOST and any(not lexicon.weak(tokens[i]) for i in named):
            alone = (not start or tokens[start - 1].text in _FIRM) and (
                end == len(tokens) or tokens[end].text in _FIRM
            )
            rule = PLAIN if alone else _AGREES
            yield _proposition(tokens, named, Level.ASSERTED, rule, "stated plainly", lexicon)


def is_plain(rule: str) -> bool:
    """Whether a fact of this rule was stated without a cue."""
    return rule in (PLAIN, _AGREES)


def _opens(tokens: Sequence[Token], at: int, lexicon: Lexicon) -> bool:
    """Whether a condition begins here: no "whether", no "even if", no "if possible"."""
    lower = tokens[at].lower
    if lower not in lexicon.plain.openers or at + 2 >= len(tokens):
        return False
    if tokens[at].text.isupper() and len(lower) > 1 and any(t.text.islower() for t in tokens):
        return False  # IF: immunofluorescence
    before = tokens[at - 1] if at else None
    head = before is None or before.text in _BREAKS or before.text in "-*•"
    if lower == "should":
        following = tokens[at + 1].lower
        return following in _DETERMINERS or (
            head and following not in lexicon.be and following not in ("have", "not")
        )
    if before is not None and before.lower in lexicon.plain.whether:
        return False
    return tokens[at + 1].lower not in lexicon.plain.bars


def _barred(words: Sequence[Token], lexicon: Lexicon) -> bool:
    """Whether the clause asks, plans, denies or doubts."""
    lists = lexicon.plain
    lowers = [token.lower for token in words]
    if lowers[0] in lists.orders or not lists.bars.isdisjoint(lowers):
        return True
    return "to" in lowers and any(
        lower == "to" and (not at or lowers[at - 1] not in lists.onward) for at, lower in enumerate(lowers)
    )


def _names(token: Token, lexicon: Lexicon) -> bool:
    """Whether the word names the thing: not "occurs"."""
    return (
        lexicon.heavy(token)
        and token.lemma not in lexicon.plain.events
        and token.lower not in lexicon.prepositions
    )


def _clauses(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    start = 0
    for at, token in enumerate(tokens):
        if token.text in _BREAKS:
            if at > start:
                yield start, at
            start = at + 1
    if start < len(tokens):
        yield start, len(tokens)


def _proposition(
    tokens: Sequence[Token], named: set[int], level: Level, rule: str, cue: str, lexicon: Lexicon
) -> Proposition:
    keys = frozenset([tokens[i].key for i in named])
    person = whose(tokens, max(named), max(named) + 1, lexicon)
    return Proposition(tokens, [], named, set(named), level, rule, cue, keys, person)

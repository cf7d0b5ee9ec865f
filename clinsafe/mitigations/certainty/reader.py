"""From a reading to facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clinsafe.mitigations.bounds import unread
from clinsafe.mitigations.certainty.levels import Level
from clinsafe.mitigations.certainty.lexicon import Lexicon
from clinsafe.mitigations.certainty.plain import PLAIN, conditions, is_plain, plain
from clinsafe.mitigations.certainty.propositions import Proposition, propositions
from clinsafe.protocols import Fact, Span
from clinsafe.text import Reading, Sentence, Token

_SHORT = 25  # tokens before a stray query mark
_MODALS = frozenset(["may", "might", "could"])
_PRONOUNS = frozenset(["it", "they"])
_STATED = (
    1000  # statements and conditions without a cue that are kept of one text; the rest is told as unread
)
_ITEM = 10  # tokens of an item without a verb
_ASKING = frozenset(
    [
        "do",
        "does",
        "did",
        "has",
        "have",
        "had",
        "can",
        "will",
        "should",
        "would",
        "what",
        "which",
        "who",
        "how",
        "why",
        "when",
        "where",
        "any",
    ]
)
_QUERIED = "hdg.possible.request"
_NAMED = 6  # words of a target that are shown


class _Stated:
    """The statements and conditions without a cue of one text: each is kept once, and no more than `_STATED`."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.seen: set[tuple[frozenset[str], str, str]] = set()
        self.rest: set[str] = set()  # keys of those beyond
        self.where: Span | None = None  # the first of those

    def keeps(self, group: Proposition) -> bool:
        """Whether it is to become a fact; what has a cue always is."""
        if group.marks or not group.core_keys:
            return True
        known = group.core_keys, group.rule, group.whose
        if known in self.seen:
            return False
        if len(self.seen) < _STATED:
            self.seen.add(known)
            return True
        self.rest |= group.core_keys
        self.where = self.where or self.reading.token_span(group.tokens)
        return False


def read(reading: Reading, lexicon: Lexicon, hazard: str) -> list[Fact]:
    """The facts of a text, in order; what was too much to read comes as a fact that says so."""
    facts: list[Fact] = []
    last: Fact | None = None
    stated = _Stated(reading)
    for sentence, tokens, asked in _statements(reading, lexicon):
        if sentence.subject != "patient":
            continue  # what a family history calls certain is a relative's
        groups, rest = _groups(sentence, tokens, lexicon)
        if rest and not asked:
            facts.append(unread(hazard, reading.token_span(tokens), rest))
        if not groups:
            continue
        context = frozenset([token.key for token in tokens if lexicon.heavy(token)])
        for group in filter(stated.keeps, groups):
            fact = _fact(reading, group, asked, context, lexicon, hazard, last)
            if fact is not None:
                facts.append(fact)
                last = fact if not is_plain(group.rule) else last
    if stated.where is not None:
        facts.append(unread(hazard, stated.where, frozenset(stated.rest)))
    return facts


def _groups(
    sentence: Sentence, tokens: tuple[Token, ...], lexicon: Lexicon
) -> tuple[list[Proposition], frozenset[str]]:
    """All propositions of a sentence, and keys of what was left unread in it."""
    groups, rest = propositions(tokens, lexicon)
    groups = groups or _whole(sentence, tokens, lexicon)
    groups += conditions(tokens, groups, lexicon)
    if sentence.mood == "claim":
        groups += plain(tokens, groups, lexicon)
    return groups, rest


def _statements(reading: Reading, lexicon: Lexicon) -> Iterator[tuple[Sentence, tuple[Token, ...], bool]]:
    """The tokens of each sentence, and whether it asks. "CT ? PE" is one statement although a "?" splits it.

    Words without a verb before a "?" are queried in a note that goes on; at the end of a text they ask (decision D2).
    """
    query: tuple[Token, ...] = ()
    for sentence in reading.sentences:
        tokens = query + sentence.tokens
        query = ()
        if sentence.index + 1 < len(reading.sentences) and len(tokens) < _SHORT and _stray(tokens):
            query = tokens
            continue
        asks = sentence.mood == "question" and not _elliptic(tokens, lexicon)
        if asks and sentence.index + 1 < len(reading.sentences):
            asks = not _fragment(tokens, lexicon)
        yield sentence, tokens, asks


def _whole(sentence: Sentence, tokens: Sequence[Token], lexicon: Lexicon) -> list[Proposition]:
    """An item without a cue: it has the level of its section, or is queried ("Parkinson's disease?")."""
    rule = lexicon.sections.get(sentence.section)
    named = {i for i, token in enumerate(tokens) if lexicon.heavy(token)}
    if not 0 < len(named) <= _ITEM or tokens[-1].text == ":":
        return []
    if rule is None and not (tokens[-1].text == "?" and _fragment(tokens, lexicon)):
        return []
    level = Level[rule.level.upper()] if rule else Level.POSSIBLE
    return [
        Proposition(
            tokens,
            [],
            named,
            named,
            level,
            rule.id if rule else _QUERIED,
            sentence.section or "?",
            frozenset(),
        )
    ]


def _fragment(tokens: Sequence[Token], lexicon: Lexicon) -> bool:
    """ "Parkinson's disease?" in a note: no verb, nobody is asked."""
    return len(tokens) <= _ITEM and not any(t.lower in lexicon.be or t.lower in _ASKING for t in tokens)


def _stray(tokens: Sequence[Token]) -> bool:
    """A "?" that stands apart from the word before it, or alone: the query mark of a note."""
    if tokens[-1].text != "?":
        return False
    return len(tokens) == 1 or tokens[-1].start > tokens[-2].end


def _elliptic(tokens: Sequence[Token], lexicon: Lexicon) -> bool:
    """ "May represent TB": a statement without its subject, no question."""
    return (
        tokens[-1].text != "?"
        and len(tokens) > 1
        and tokens[0].lower in _MODALS
        and tokens[1].lower in lexicon.states
    )


def _fact(
    reading: Reading,
    group: Proposition,
    asked: bool,
    context: frozenset[str],
    lexicon: Lexicon,
    hazard: str,
    last: Fact | None,
) -> Fact | None:
    tokens = group.tokens
    if group.level == Level.HYPOTHETICAL:
        _strip(group, lexicon)
    core = frozenset([tokens[i].key for i in group.core])
    wide = core.union([tokens[i].key for i in group.wide])
    faint = frozenset([tokens[i].key for i in group.core | group.wide if lexicon.weak(tokens[i])])
    target = " ".join(tokens[i].text for i in sorted(group.core)[:_NAMED])
    if not core:  # "Confirmed on biopsy." speaks of what the sentence before named
        if last is None:
            return None
        core, wide, faint = last.normal["core_keys"], last.normal["wide_keys"], last.normal["faint_keys"]
        target = last.normal["target"]
    places = [i for mark in group.marks for i in (mark.start, mark.end - 1)] + list(group.core)
    span = reading.token_span(tokens[min(places) : max(places) + 1])
    normal = {
        "level": int(group.level),
        "confirmed": group.level == Level.CONFIRMED,
        "target": target,
        "asked": asked,
        "patient": group.patient,
        "whose": group.whose,
        "plain": is_plain(group.rule),
        "alone": group.rule == PLAIN,
        "presupposed_keys": _presupposed(group, lexicon),
        "keys": wide | context,
        "core_keys": core,
        "wide_keys": wide,
        "faint_keys": faint,
        "context_keys": context,
    }
    return Fact(hazard, span, normal, group.cue, group.rule)


def _presupposed(group: Proposition, lexicon: Lexicon) -> frozenset[str]:
    """ "if the pain worsens" presupposes the pain: keys of such verbs in a condition."""
    tokens = group.tokens
    if group.level != Level.HYPOTHETICAL:
        return frozenset()
    places = group.core | group.wide
    around = tokens[max(min(places) - 2, 0) : max(places) + 4] if places else ()
    return frozenset(t.key or t.lower for t in around if t.lemma in lexicon.plain.presuppose)


def _strip(group: Proposition, lexicon: Lexicon) -> None:
    """ "if a rash appears" speaks of a rash, not of appearing."""
    events = lexicon.plain.events
    if any(group.tokens[i].lower in _PRONOUNS for mark in group.marks for i in range(mark.start, mark.end)):
        # "remove the line if it looks infected"
        group.wide |= {i for i, token in enumerate(group.tokens) if lexicon.heavy(token)}
    core = {i for i in group.core if group.tokens[i].lemma not in events}
    if core:
        group.core = core
        group.wide = {i for i in group.wide if group.tokens[i].lemma not in events}

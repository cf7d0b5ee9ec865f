"""Which facts of two texts speak of the same thing, and whether they disagree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

from clinsafe.mitigations.align import coverage, mass, overlap
from clinsafe.mitigations.bounds import TooMuchToCompare
from clinsafe.mitigations.index import Effort, Index
from clinsafe.mitigations.polarity.judging import Judge, certainty, senses, settled
from clinsafe.mitigations.polarity.mention import (
    ABSENCE_OPEN,
    ABSENT,
    LEFT_OPEN,
    PRESENT,
    UNDECIDED,
    Match,
    Mention,
)
from clinsafe.mitigations.polarity.mentions import PAST, Said
from clinsafe.protocols import Fact, Span

_ODD = ((ABSENT, PRESENT), (ABSENT, LEFT_OPEN), (PRESENT, ABSENCE_OPEN))
_AT_ODDS = frozenset((*_ODD, *((b, a) for a, b in _ODD)))
_STRICT = frozenset(["=allergy", "allergi"])  # what it is an allergy to makes another thing of it
_TELLING = 3  # content words a sentence must have to be compared as a whole
_MOST = 20_000  # mentions, and pairs of sentences of the same words, that one comparison looks at
Rows = dict[
    str, list[tuple[Fact, int]]
]  # key -> facts with it, and which of their words it is (-1: what they sign)
_SAME = 0.45  # weight of the content words that two sentences of the same words may differ by: one light word
_MARGIN = 0.05  # how much better the best disagreeing mention must fit than the best one that does not
_CLEARLY = 0.3  # the same where there is one that does not
_MODIFIERS = 0.5  # share of the denied thing's modifiers that the other side must know
_ABOUT = 0.34  # share of the smaller piece that must be shared for a word said of another thing
_ACTION = 0.25  # the same of the sentence, for what is to be done
_CONTEXT = 0.12  # and for findings, where both sentences say enough
_ENOUGH = 4  # keys


def match(query: Sequence[Fact], passage: Sequence[Fact], judge: Judge) -> list[tuple[Match, float]]:
    """Aligned things with how sure each is: agreements, and the conflicts that are sure enough.

    Raises:
        TooMuchToCompare: the texts speak of the same things more often than is looked at, and no conflict was found.
    """
    mine, theirs = senses(query), senses(passage)
    found = []
    left: TooMuchToCompare | None = None
    try:
        for pair in pairs(query, passage, judge.generic):
            one, other = (side.fact.normal["sentence"] for side in (pair.query, pair.passage))
            sure = certainty(pair, mine[one], theirs[other], judge) if pair.conflict else 1.0
            found.append((pair, sure))
    except TooMuchToCompare as error:
        left = error  # a conflict stands whatever else is said
    sure_enough = settled(found)
    if left is not None and not any(pair.conflict for pair, _ in sure_enough):
        raise left
    return sure_enough


def pairs(query: Sequence[Fact], passage: Sequence[Fact], generic: frozenset[str]) -> Iterator[Match]:
    """For each signed thing of either side its best mention on the other side."""
    effort = Effort(_MOST)
    if len(query) * len(passage) > _MOST:
        query, passage = _told_once(query), _told_once(passage)
    yield from _same_words(query, passage, effort)
    ours, others = list(_distinct(query)), list(_distinct(passage))
    wanted = {fact.normal["key"] for fact in (*ours, *others)}
    mine, theirs = _index(query, wanted), _index(passage, wanted)
    own = {False: mine, True: theirs}
    done: set[tuple[str, int, int]] = set()
    for one, other, turned in ((ours, theirs, False), (others, mine, True)):
        for fact in one:
            rows = other.get(fact.normal["key"], ())
            effort.spend(len(rows))
            found = _best(_signed(fact), rows, generic)
            if found is None or (found.conflict and _otherwise(found, own[turned], generic, effort)):
                continue
            pair = Match(found.passage, found.query, found.conflict, found.score) if turned else found
            mark = (pair.query.key, pair.query.span.start, pair.passage.span.start)
            if mark not in done:
                done.add(mark)
                yield pair


def _told_once(facts: Sequence[Fact]) -> Sequence[Fact]:
    """Of what a long text says again and again, the first."""
    first: dict[object, Fact] = {}
    for fact in facts:
        normal = dict(fact.normal)
        del normal["sentence"]
        if normal["kind"] == "said":
            normal["words"] = tuple((key, joined, sure) for key, _, _, joined, sure in normal["words"])
        first.setdefault((fact.rule, frozenset(normal.items())), fact)
    return list(first.values())


def _distinct(facts: Sequence[Fact]) -> Iterator[Fact]:
    """Signed facts that claim something, each once."""
    seen = set()
    for fact in facts:
        normal = fact.normal
        if normal["kind"] != "signed" or _exempt(normal):
            continue
        mark = (
            normal["key"],
            normal["sign"],
            normal["modifier_keys"],
            normal["near_keys"],
            normal["wide_keys"],
        )
        if mark not in seen:
            seen.add(mark)
            yield fact


def _same_words(query: Sequence[Fact], passage: Sequence[Fact], effort: Effort) -> Iterator[Match]:
    """Two sentences of the same content words, of which one is a denial and the other none."""
    asked = _senses(query)
    senses = Index(_senses(passage) if asked else ())
    for one in asked:
        wide = one.normal["wide_keys"]
        for other in senses.at(senses.sharing("wide_keys", wide, len(wide) - 1), effort):
            if abs(len(wide) - len(other.normal["wide_keys"])) > 1 or not _one_more(one.normal, other.normal):
                continue
            a, b = one.normal["wide_keys"], other.normal["wide_keys"]
            if mass(a ^ b) <= _SAME:
                more = len(one.normal["cues"]) > len(other.normal["cues"])
                yield Match(_whole(one, more), _whole(other, not more), True, 1.0)


def _senses(facts: Sequence[Fact]) -> list[Fact]:
    return [
        fact
        for fact in facts
        if fact.normal["kind"] == "sense"
        and fact.normal["size"] >= _TELLING
        and not _exempt(fact.normal)
        and not fact.normal["counted"]
    ]


def _one_more(one: Any, other: Any) -> bool:
    """Whether one sentence has the other's negations and just one more."""
    fewer, more = sorted((one, other), key=lambda normal: len(normal["cues"]))
    rest = list(more["cues"])
    for cue in fewer["cues"]:
        if cue not in rest:
            return False
        rest.remove(cue)
    return len(rest) == 1 and (not fewer["cues"] or (rest[0] not in fewer["cues"] and bool(more["verbal"])))


def _whole(fact: Fact, denies: bool) -> Mention:
    keys = fact.normal["wide_keys"]
    return Mention(fact, "the sentence", ABSENT if denies else PRESENT, fact.span, frozenset(), keys, keys)


def _exempt(normal: Any) -> bool:
    """Asked (decision D2), or of a relative: no claim of this filter."""
    return bool(normal["asked"] or normal["relative"])


def _index(facts: Sequence[Fact], wanted: Set[str]) -> Rows:
    """The facts with one of the wanted keys."""
    found: Rows = {}
    for fact in facts:
        normal = fact.normal
        if normal["asked"] or normal["kind"] == "sense" or wanted.isdisjoint(normal["keys"]):
            continue
        if normal["kind"] == "signed":
            found.setdefault(normal["key"], []).append((fact, -1))
        else:
            for at, (key, *_) in enumerate(normal["words"]):
                if key in wanted:
                    found.setdefault(key, []).append((fact, at))
    return found


def _signed(fact: Fact) -> Mention:
    normal = fact.normal
    return Mention(
        fact, normal["key"], normal["sign"], fact.span,
        normal["modifier_keys"], normal["near_keys"], normal["wide_keys"], normal["past"], normal["piece"],
    )  # fmt: skip


def _mentions(rows: Sequence[tuple[Fact, int]]) -> Iterator[Mention]:
    for fact, at in rows:
        if at >= 0:
            yield _said(fact, at, Said(*fact.normal["words"][at]))
        elif fact.normal["relative"]:
            yield _undecided(fact)
        else:
            yield _signed(fact)


def _undecided(fact: Fact) -> Mention:
    one = _signed(fact)
    return Mention(fact, one.key, UNDECIDED, one.span, one.modifiers, one.near, one.wide, False, one.piece)


def _said(fact: Fact, at: int, said: Said) -> Mention:
    words = fact.normal["words"]
    modifiers = set()
    while at > 0 and words[at][3]:
        at -= 1
        modifiers.add(words[at][0])
    sure = said.sure and not fact.normal["relative"]
    return Mention(
        fact, said.key, PRESENT if sure else UNDECIDED, Span(said.start, said.end),
        frozenset(modifiers), fact.normal["near_keys"] - {said.key}, fact.normal["wide_keys"],
        said.sure == PAST, fact.normal["piece"],
    )  # fmt: skip


def _best(one: Mention, rows: Sequence[tuple[Fact, int]], generic: frozenset[str]) -> Match | None:
    """The mention that fits best; a conflict only if none that does not disagree fits as well."""
    against: Mention | None = None
    for_it: Mention | None = None
    worst, best = -1.0, -1.0
    for other in _mentions(rows):
        score = _fit(one, other)
        if _disagree(one.sign, other.sign) and not _past_only(one, other):
            if score > worst and _comparable(one, other, generic):
                against, worst = other, score
        elif score > best:
            for_it, best = other, score
    if against is not None and worst > best + (_MARGIN if for_it is None else _CLEARLY):
        return Match(one, against, True, worst)
    if for_it is not None and for_it.sign == one.sign:
        return Match(one, for_it, False, best)
    return None


def _otherwise(found: Match, own: Rows, generic: frozenset[str], effort: Effort) -> bool:
    """ "Right effusion", "right effusion, none on the left": whether the denying text says the thing as well."""
    fact, other = found.query, found.passage
    if other.signed:
        return False
    rows = own.get(fact.key, ())
    effort.spend(len(rows))
    return any(
        one.sign == other.sign and one.fact is not fact.fact and _fit(one, other) >= found.score
        and _same_thing(fact, one, generic)
        for one in _mentions(rows)
    )  # fmt: skip


def _disagree(one: int, other: int) -> bool:
    return (one, other) in _AT_ODDS


def _past_only(one: Mention, other: Mention) -> bool:
    """A thing of the past and none now are no contradiction."""
    present = one if one.sign == PRESENT else other
    absent = other if present is one else one
    return present.past and not absent.past


def _fit(one: Mention, other: Mention) -> float:
    modifiers = overlap(one.modifiers, other.modifiers) if one.modifiers or other.modifiers else 0.3
    return modifiers + overlap(one.near, other.near) + 0.5 * overlap(one.wide, other.wide)


def _comparable(one: Mention, other: Mention, generic: frozenset[str]) -> bool:
    absent, present = (one, other) if one.sign == ABSENT else (other, one)
    limits = absent.fact.normal["limit_keys"]
    known = present.modifiers | present.near | present.wide
    if limits and not limits <= known:
        return False
    if any(
        not a.fact.normal.get("unless_keys", frozenset()).isdisjoint(b.wide)
        for a, b in ((one, other), (other, one))
    ):
        return False  # both say "thickened", of whatever
    return _same_thing(absent, present, generic) and _same_context(one, other)


def _same_thing(absent: Mention, present: Mention, generic: frozenset[str]) -> bool:
    """ "no neck pain" and "chest pain" are two things; "no pain" and "chest pain" are not."""
    wanted = absent.modifiers - generic
    if not wanted:
        return True
    had = present.modifiers - generic
    if had and absent.key in _STRICT and wanted.isdisjoint(had):
        return False
    if had and wanted.isdisjoint(had) and not wanted <= present.near:
        return False
    return coverage(wanted, present.modifiers | present.near | present.wide) >= _MODIFIERS


def _same_context(one: Mention, other: Mention) -> bool:
    a, b = one.wide - {one.key}, other.wide - {one.key}
    shared = max(coverage(a, b), coverage(b, a))
    normals = one.fact.normal, other.fact.normal
    if any(normal.get("about") for normal in normals):
        near = max(coverage(one.near, other.near), coverage(other.near, one.near))
        return near >= _ABOUT or (not (one.near and other.near) and shared >= _ABOUT)
    if any(normal.get("action") for normal in normals):
        if normals[0]["if"] != normals[1]["if"]:
            return False
        return shared >= _ACTION or min(len(a), len(b)) <= 1
    return shared >= _CONTEXT or min(len(a), len(b)) < _ENOUGH

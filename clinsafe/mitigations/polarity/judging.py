"""How sure a conflict is: does the rest agree, and is every word that could turn the meaning round accounted for?

A certainty lies in [0, 1]. It is the product of what was said in common besides the thing, of the trust in the rule
that signed it, and of a discount for each mark (see `marks`) that stands on one side only and signs nothing that the
other side signs too: such a mark is another explanation of the difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from clinsafe.mitigations.align import coverage, mass
from clinsafe.mitigations.polarity.mention import ABSENT, Match, Mention
from clinsafe.protocols import Fact

SURE = 0.6  # a conflict below is not told
_BARE, _BARE_WORDS, _PLACE_WORDS = (
    0.95,
    1,
    2,
)  # the same of a claim that says nothing but the thing: keys besides it at most
_PRIOR, _PRIOR_WEIGHT = 0.8, 2.0  # agreement expected of words that are not there: a short rest says little
_HERE, _SAID, _THERE = (
    0.7,
    0.55,
    0.9,
)  # discount for a mark left over: in the piece of a thing signed or merely said, elsewhere
_SIGNED = 0.8, 0.95  # the same where a rule signs both
_APART = 0.97  # for a mark on a thing the other sentence lacks, unless it stands by a thing merely said
_UNSIGNED, _UNSAID = (
    0.8,
    0.17,
)  # where one side says the thing without a sign: at least, and with agreement of its piece
_LACKING, _ALIEN, _FOREIGN = 0.8, 0.85, 0.5  # for each modifier that the other side lacks
_PAIRED = 0.5  # for a rule that wants a sign on the other side, and there is none
_NAMED = 0.4  # how much nearer to certainty where both sign the thing by the same words
_BODILY = 0.25  # the same where it is said of the whole patient
_BUSY = 0.6  # where what is to be done is denied here, and there the thing is spoken of in another regard


class Judge(NamedTuple):
    """What judging looks up.

    Attributes:
        generic: keys that make no other thing of what they stand with.
        trust: rule id -> trust in it in [0, 1]; 1 for one that is not listed.
        paired: rule ids that are only believed where both sides are signed.
        means: keys that tell by what means a thing was found, or under which heading.
        times: keys that tell when.
        bodily: keys of things that are said of the whole patient and need no place.
    """

    generic: frozenset[str]
    trust: Mapping[str, float]
    paired: frozenset[str]
    means: frozenset[str]
    times: frozenset[str]
    bodily: frozenset[str]


class Left(NamedTuple):
    """A mark left over: 0 in the query or 1 in the passage, its piece, whether it signs what only this side names."""

    side: int
    piece: int
    apart: bool


def senses(facts: Sequence[Fact]) -> dict[int, Fact]:
    """The sense fact of each sentence."""
    return {fact.normal["sentence"]: fact for fact in facts if fact.normal["kind"] == "sense"}


def certainty(pair: Match, query: Fact, passage: Fact, judge: Judge) -> float:
    """How sure a conflict is.

    Args:
        query: the sense fact of the query's sentence.
        passage: that of the passage's sentence.
    """
    one, other = pair.query, pair.passage
    if one.whole:
        left = _whole_left(query, passage)
        return _doubts(left[1:], one, other) if left else 0.0
    left = _left_over(one.key, query, passage)
    plain = all(mark.apart or mark.piece != (one, other)[mark.side].piece for mark in left)
    context = _context(one, other, judge, plain)
    value = context * _trust(one, other, judge) * _doubts(left, one, other)
    if _busy(one, other, query, passage):
        value *= _BUSY
    return value * _strange(one, other, judge.generic)


def _share(rest: frozenset[str], known: frozenset[str]) -> float:
    total = mass(rest)
    return (total * coverage(rest, known) + _PRIOR * _PRIOR_WEIGHT) / (total + _PRIOR_WEIGHT)


def _setting(one: Mention, other: Mention, times: frozenset[str]) -> frozenset[str]:
    """Times that only one side names, or both alike: no difference in what is said."""
    mine, theirs = one.wide & times, other.wide & times
    return mine | theirs if not (mine and theirs) or mine & theirs else frozenset()


def _context(one: Mention, other: Mention, judge: Judge, plain: bool = True) -> float:
    """Share of what both sentences say besides the thing, seen mostly from the one that fits better."""
    drop = judge.generic | {one.key} | _setting(one, other, judge.times) | judge.means
    if plain and _bare(one, other, drop, judge):
        return _BARE
    shares = [_share(a.wide - drop, b.wide) for a, b in ((one, other), (other, one))]
    rests = one.near - drop, other.near - drop
    near = min(_share(rests[0], other.near), _share(rests[1], one.near)) if any(rests) else 0.0
    value = max(near, 0.85 * max(shares) + 0.15 * min(shares))
    if (
        one.signed
        and other.signed
        and (named := one.modifiers - judge.generic)
        and (named == other.modifiers - judge.generic)
    ):
        value += _NAMED * (1.0 - value)  # both sign "chest pain"
    elif one.key in judge.bodily and one.fact.rule == other.fact.rule:
        value += _BODILY * (1.0 - value)
    return value


def _bare(one: Mention, other: Mention, drop: frozenset[str], judge: Judge) -> bool:
    """ "Afebrile throughout the admission": whether a side claims the thing and no more, so that all of it is met."""
    both, bodily = one.signed and other.signed, one.key in judge.bodily
    for claim, answer in ((one, other), (other, one)):
        if not _tail(answer) <= claim.wide | drop:
            continue  # "leg weakness", "no weakness *in the arms*"
        rest = claim.wide - drop - claim.modifiers - answer.wide
        known = claim.modifiers <= answer.wide | drop or not answer.modifiers - drop
        if not rest and (known or bodily):
            return True
        if both and bodily and len(rest) <= _BARE_WORDS:
            return True
        if both and len(rest) <= _PLACE_WORDS and _about_alike(claim, answer, drop):
            return True
    return False


def _tail(mention: Mention) -> frozenset[str]:
    """Where the thing is said to be."""
    found: frozenset[str] = mention.fact.normal.get("tail_keys", frozenset())
    return found


def _about_alike(claim: Mention, answer: Mention, drop: frozenset[str]) -> bool:
    """Whether two signed words of one kind ("tender", "nontender") share what they are said of."""
    if claim.fact.rule != answer.fact.rule or not claim.fact.rule.startswith("negation.w."):
        return False
    near = answer.near - drop
    return bool(claim.wide & (near or answer.wide) - drop)


def _trust(one: Mention, other: Mention, judge: Judge) -> float:
    """The least trusted rule of the two."""
    value = 1.0
    signed = one.signed and other.signed
    same = signed and one.fact.normal["word"] == other.fact.normal["word"]
    for side in (one, other):
        rule = side.fact.rule.removeprefix("negation.")
        if side.signed:
            value = min(value, 1.0 if same else judge.trust.get(rule, 1.0))
            if rule in judge.paired and not signed:
                value = min(value, _PAIRED)
    if signed:
        return value
    said, denied = (other, one) if one.signed else (one, other)
    rest = said.near - judge.generic - said.modifiers - denied.modifiers
    return value * (_UNSIGNED + _UNSAID * (coverage(rest, denied.wide) if rest else 1.0))


def _strange(one: Mention, other: Mention, generic: frozenset[str]) -> float:
    """Discount for modifiers of the thing that the other side does not know of it."""
    mine, theirs = one.modifiers - generic, other.modifiers - generic
    if not mine or not theirs:
        denied, said = (one, other) if one.sign == ABSENT else (other, one)
        return float(_LACKING ** len(denied.modifiers - generic - said.near))
    if mine - theirs and theirs - mine and (mine - theirs) & other.wide | (theirs - mine) & one.wide:
        return _FOREIGN  # "live vaccine" and "recombinant vaccine", where one text names both
    odd = len(mine - theirs - other.wide) + len(theirs - mine - one.wide)
    return float((_FOREIGN if mine.isdisjoint(theirs) else _ALIEN) ** odd)


def _busy(one: Mention, other: Mention, query: Fact, passage: Fact) -> bool:
    """ "the pump must be removed" and "the pump is incompatible with MRI": said in another regard."""
    for denied, said, sense in ((one, other, passage), (other, one, query)):
        if denied.fact.normal.get("action") and not said.signed:
            return any(
                acts
                and one.key not in keys
                and (piece == said.piece or (abs(piece - said.piece) == 1 and not keys))
                for _, piece, keys, acts in sense.normal["marks"]
            )
    return False


def _left_over(key: str, query: Fact, passage: Fact) -> list[Left]:
    """The marks that are not accounted for."""
    mine = [mark for mark in query.normal["marks"] if key not in mark[2]]
    theirs = [mark for mark in passage.normal["marks"] if key not in mark[2]]
    return [*_odd(0, mine, theirs, passage), *_odd(1, theirs, mine, query)]


def _odd(side: int, marks: Sequence[Any], others: Sequence[Any], sense: Fact) -> Iterable[Left]:
    same = Counter(words for words, *_ in others)
    signed, known = sense.normal["signed_keys"], sense.normal["wide_keys"]
    for words, piece, keys, _ in marks:
        if same[words]:
            same[words] -= 1
        elif signed.isdisjoint(keys):
            yield Left(side, piece, bool(keys) and known.isdisjoint(keys))


def _whole_left(query: Fact, passage: Fact) -> list[Left]:
    """The same for two sentences of the same words: one mark makes the difference, each further one is odd."""
    mine, theirs = query.normal["marks"], passage.normal["marks"]
    return [*_unmatched(0, mine, theirs), *_unmatched(1, theirs, mine)]


def _unmatched(side: int, marks: Sequence[Any], others: Sequence[Any]) -> Iterable[Left]:
    same = Counter(words for words, *_ in others)
    for words, piece, *_ in marks:
        if same[words]:
            same[words] -= 1
        else:
            yield Left(side, piece, False)


def _doubts(left: Sequence[Left], one: Mention, other: Mention) -> float:
    value = 1.0
    both = one.signed and other.signed
    for mark in left:
        side = (one, other)[mark.side]
        here = side.whole or mark.piece == side.piece
        if mark.apart and (both or not here or side.signed):
            value *= _APART
        elif both:
            value *= _SIGNED[not here]
        else:
            value *= _THERE if not here else _HERE if side.signed else _SAID
    return value


def settled(found: Sequence[tuple[Match, float]]) -> list[tuple[Match, float]]:
    """Agreements and sure conflicts; less those that cancel one another (a denial moved to another word), and less
    sentences as a whole where the thing is found."""
    kept = [(pair, sure) for pair, sure in found if not pair.conflict or sure >= SURE]
    named = {_place(pair) for pair, _ in kept if pair.conflict and not pair.query.whole}
    kept = [(pair, sure) for pair, sure in kept if not pair.query.whole or _place(pair) not in named]
    loose: dict[tuple[int, int], list[Match]] = {}
    for pair, _ in kept:
        if pair.conflict and _loose(pair):
            loose.setdefault(_place(pair), []).append(pair)
    return [
        (pair, sure)
        for pair, sure in kept
        if not (
            pair.conflict and _loose(pair) and any(_cancels(pair, other) for other in loose[_place(pair)])
        )
    ]


def _place(pair: Match) -> tuple[int, int]:
    return pair.query.fact.normal["sentence"], pair.passage.fact.normal["sentence"]


def _loose(pair: Match) -> bool:
    return not pair.query.whole and not (pair.query.signed and pair.passage.signed)


def _cancels(pair: Match, other: Match) -> bool:
    """Whether, in one piece of the same sentences, the one says of one word what the other says of another, the other
    way round."""
    if (pair.query.sign == ABSENT) == (other.query.sign == ABSENT):
        return False
    return pair.query.piece == other.query.piece or pair.passage.piece == other.passage.piece

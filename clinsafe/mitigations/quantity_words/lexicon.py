"""The pack made ready for reading: one cue table, and look-ups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from clinsafe.mitigations.cues import GAP, CueTable
from clinsafe.mitigations.quantity_words.pack import Pack, Share
from clinsafe.text.tokens import FUNCTION, lemma_of, stem_of

Kind = Literal["share", "turn", "skip", "opposite", "near", "more", "less", "name", "except", "contrast"]
LIGHT = "~~"  # opens the key of a pair of opposites too general to align texts by
SEVERITY = "~op.severity"
ASSUMED = "~~+"  # and of one whose plus side goes without saying

_MANY = 5  # options of one part of a cue that are too many to look out for
_EVERYWHERE = frozenset(["and", "after", "once", "two", "three", "last", "day", "days", "week", "small"])


class Cue(NamedTuple):
    """What a cue stands for.

    Attributes:
        kind: which block of the pack.
        rule: its rule id.
        share: for kind share.
        key: alignment key, for kind opposite.
        minus: whether it is on the denying side, for kind opposite.
    """

    kind: Kind
    rule: str
    share: Share | None = None
    key: str = ""
    minus: bool = False


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Look-ups made from a pack, in lower case; `sets`, `packaged`, `light` as keys, `not_after` as lemmas too."""

    pack: Pack
    cues: CueTable[Cue]
    shares: Mapping[str, Share]
    sets: frozenset[str]
    packaged: frozenset[str]
    each_before: frozenset[str]
    pronouns: frozenset[str]
    not_before: frozenset[str]
    not_after: frozenset[str]
    markers: frozenset[str]
    headless: frozenset[str]
    breaks: frozenset[str]
    joins: CueTable[str]
    grade_words: frozenset[str]
    free_choice: frozenset[str]
    relatives: frozenset[str]
    rates: frozenset[str]
    presupposing: frozenset[str]
    unprefix_not: tuple[str, ...]
    lessending_not: frozenset[str]
    closed: frozenset[str]
    upward: frozenset[str]
    downward: frozenset[str]
    bounds: frozenset[str]
    late: tuple[tuple[tuple[str, ...], bool], ...]
    plurals: frozenset[str]
    series: frozenset[str]
    wholes: frozenset[str]
    not_wholes: frozenset[str]
    light: frozenset[str]
    key: Callable[[str], str]

    def bare(self, word: str) -> str:
        """The word without a prefix or ending that turns it round, or "": unsupervised gives supervised."""
        if len(word) < 6 or not word.isascii():
            return ""
        if word.endswith("less") and word not in self.lessending_not:
            return word[:-4]
        for prefix in self.pack.unprefix:
            rest = word[len(prefix) :]
            if (
                word.startswith(prefix)
                and len(rest) > 3
                and rest.endswith(self.pack.unprefix_needs)
                and not word.startswith(self.unprefix_not)
            ):
                return rest
        return ""


def build(pack: Pack, key: Callable[[str], str] = stem_of) -> Lexicon:
    """Compile a pack; `key` gives the canonical key of a lower-cased word."""
    return Lexicon(
        pack,
        CueTable(_cues(pack)),
        {share.id: share for share in pack.shares},
        frozenset(key(word) for word in pack.sets),
        frozenset(key(word) for word in pack.packaged),
        frozenset(pack.each_before),
        frozenset(pack.pronouns),
        frozenset(pack.not_before),
        frozenset(pack.not_after) | {lemma_of(word) for word in pack.not_after},
        frozenset(_markers(pack)),
        frozenset(pack.count_verbs) | frozenset(pack.stand_ins),
        frozenset(pack.breaks),
        CueTable([(words, words) for words in pack.joins]),
        frozenset(pack.grades.words),
        frozenset(pack.free_choice),
        frozenset(pack.relatives),
        frozenset(pack.rates),
        frozenset(pack.presupposing),
        tuple(pack.unprefix_not),
        frozenset(pack.lessending_not),
        frozenset(pack.limits.closed),
        frozenset(pack.limits.upward),
        frozenset(pack.limits.downward),
        _bound_words(pack),
        _late(pack),
        frozenset(pack.limits.plurals),
        frozenset(key(word) for word in pack.series),
        frozenset(key(word) for word in pack.wholes),
        frozenset(key(word) for word in pack.not_wholes),
        frozenset(key(word) for word in pack.light)
        | {LIGHT + pair.id for pair in pack.opposites}
        | {ASSUMED + pair.id for pair in pack.opposites},
        key,
    )


def _bound_words(pack: Pack) -> frozenset[str]:
    """The longest word of each phrase that bounds a count: a sentence with a bound holds one."""
    phrases = (*pack.more, *pack.less, *pack.limits.late_least, *pack.limits.late_most)
    words = {max(phrase.lower().split(), key=len) for phrase in phrases}
    return frozenset(word for word in words if word[0] != "~") | {*pack.limits.upward, *pack.limits.downward}


def _late(pack: Pack) -> tuple[tuple[tuple[str, ...], bool], ...]:
    """Phrases that make a bound of the count before them, as words, and whether it is from below."""
    rows = ((pack.limits.late_least, True), (pack.limits.late_most, False))
    return tuple((tuple(phrase.split()), upward) for phrases, upward in rows for phrase in phrases)


def _markers(pack: Pack) -> Iterator[str]:
    """For each share a word without which its cue cannot be there; a lemma where any form will do."""
    cues = [cue.lower().split() for share in pack.shares for cue in share.cues]
    alone = {parts[0] for parts in cues if len(parts) == 1}
    for parts in cues:
        words = [part for part in parts if part != GAP]
        best = max(words, key=lambda word: _rarity(word.split("|"), alone))
        yield from (lemma_of(word[1:]) if word.startswith("~") else word for word in best.split("|"))


def _rarity(options: list[str], alone: set[str]) -> tuple[bool, bool, bool, int]:
    """How well a part of a cue serves as its marker; the higher the fewer sentences hold it."""
    common = any(option in _EVERYWHERE or not option[-1].isalpha() for option in options)
    return (
        alone.issuperset(options),
        not common and len(options) < _MANY,
        not any(option in FUNCTION for option in options),
        len(options[0]),
    )


def _cues(pack: Pack) -> Iterator[tuple[str, Cue]]:
    for skip in pack.skips:
        yield from ((words, Cue("skip", skip.id)) for words in skip.cues)
    for share in pack.shares:
        yield from ((words, Cue("share", share.id, share)) for words in share.cues)
    for turn in pack.turns:
        yield from ((words, Cue("turn", turn.id)) for words in turn.cues)
    for pair in pack.opposites:
        key = (ASSUMED if pair.assumed else LIGHT if pair.light else "~") + pair.id
        yield from ((words, Cue("opposite", pair.id, None, key)) for words in pair.plus)
        yield from ((words, Cue("opposite", pair.id, None, key, True)) for words in pair.minus)
    yield from ((words, Cue("name", "name")) for words in pack.names)
    yield from ((words, Cue("except", "except")) for words in pack.exceptions)
    yield from ((words, Cue("contrast", "contrast")) for words in pack.contrasts)
    yield from ((words, Cue("near", "near")) for words in pack.nearly)
    yield from ((words, Cue("more", "more")) for words in pack.more)
    yield from ((words, Cue("less", "less")) for words in pack.less)

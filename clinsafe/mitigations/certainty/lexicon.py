"""The rule pack, compiled for look-up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from clinsafe.content import Content
from clinsafe.mitigations.certainty.pack import Operator, Pack, Rule, SectionRule
from clinsafe.mitigations.cues import CueTable
from clinsafe.mitigations.pack import load_pack
from clinsafe.text.tokens import Token

_REMEMBERED = 50_000  # words whose weight is kept
_NOUNS_IN_LY = ("maly", "mily", "pply", "embly", "belly", "jelly")


class PlainWords(NamedTuple):
    """Word sets for statements and conditions without a cue: see block 6 of the pack."""

    openers: frozenset[str]
    whether: frozenset[str]
    events: frozenset[str]
    presuppose: frozenset[str]
    orders: frozenset[str]
    onward: frozenset[str]
    bars: frozenset[str]


class WhoseWords(NamedTuple):
    """Word sets that tell a relative's disease from the patient's: see block 7 of the pack."""

    possessives: frozenset[str]
    openers: frozenset[str]
    who: frozenset[str]
    within: frozenset[str]
    persons: frozenset[str]
    reports: frozenset[str]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Tables and word sets of the pack.

    Attributes:
        before: cues, and the operators that stand before them, in one table: the longest wins.
        special: the same with the rules that need a word such as "evidence" in the sentence.
        wanted: those words.
        after: operators that stand after a cue.
        kin: word for a relative -> the relative.
    """

    before: CueTable[Rule | Operator]
    special: CueTable[Rule | Operator]
    wanted: frozenset[str]
    after: CueTable[Operator]
    light: frozenset[str]
    faint: frozenset[str]
    stops: frozenset[str]
    prepositions: frozenset[str]
    be: frozenset[str]
    clause: frozenset[str]
    subjects: frozenset[str]
    strict: frozenset[str]
    states: frozenset[str]
    permits: frozenset[str]
    sections: dict[str, SectionRule]
    plain: PlainWords
    kin: dict[str, str]
    whose: WhoseWords
    _kinds: dict[str, int] = field(default_factory=dict, repr=False)

    def heavy(self, token: Token) -> bool:
        """Whether the token names something."""
        kind = self._kinds.get(token.lower)
        return (self._kind(token) if kind is None else kind) > 0

    def weak(self, token: Token) -> bool:
        """Whether sharing it says little."""
        return self._kind(token) < 2

    def _kind(self, token: Token) -> int:
        """0 names nothing, 1 names a kind of thing, 2 names a thing."""
        kind = self._kinds.get(token.lower)
        if kind is None:
            kind = self._weigh(token)
            if len(self._kinds) < _REMEMBERED:
                self._kinds[token.lower] = kind
        return kind

    def _weigh(self, token: Token) -> int:
        lower = token.lower
        if not token.key or lower in self.light or token.lemma in self.light or lower in self.prepositions:
            return 0
        if lower.endswith("ly") and not lower.endswith(_NOUNS_IN_LY):
            return 0
        faint = token.is_number or len(lower) < 3 or lower in self.faint or token.lemma in self.faint
        return 1 if faint else 2


def load_lexicon(content: Content | None = None) -> Lexicon:
    """Read ``mitigations/hedging.yaml``.

    Raises:
        ContentError: file, line and field of the first fault.
    """
    pack = load_pack(content, "hedging", Pack)
    before: list[tuple[str, Rule | Operator]] = [(cue, rule) for rule in pack.cues for cue in rule.cues]
    before += [(cue, rule) for rule in pack.operators for cue in rule.cues]
    plain = [(cue, rule) for cue, rule in before if isinstance(rule, Operator) or not rule.with_words]
    return Lexicon(
        CueTable(plain),
        CueTable(before),
        frozenset(word for rule in pack.cues for word in rule.with_words),
        CueTable([(cue, rule) for rule in pack.followers for cue in rule.cues]),
        frozenset(pack.light),
        frozenset(pack.faint),
        frozenset(pack.stops),
        frozenset(pack.prepositions),
        frozenset(pack.be),
        frozenset(pack.clause),
        frozenset(pack.subjects),
        frozenset(pack.modals.strict),
        frozenset(pack.modals.states),
        frozenset(pack.modals.permits),
        {title: rule for rule in pack.sections for title in rule.titles},
        PlainWords(*(frozenset(getattr(pack.plain, name)) for name in PlainWords._fields)),
        {word: name for name, words in pack.whose.kin.items() for word in words},
        WhoseWords(*(frozenset(getattr(pack.whose, name)) for name in WhoseWords._fields)),
    )

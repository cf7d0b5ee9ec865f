"""The rule pack of the temporal filter, compiled for look-up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from clinsafe.content import Content
from clinsafe.mitigations.order.finder import Finder
from clinsafe.mitigations.order.lexicon import Lexicon
from clinsafe.mitigations.order.pack import (
    NAME,
    Grammar,
    Kind,
    OrderRule,
    Prefixes,
    Special,
    TemporalPack,
    Timeline,
)
from clinsafe.mitigations.pack import load_pack
from clinsafe.text.tokens import stem_of


class Sign(NamedTuple):
    """What an order cue means."""

    kind: Kind
    rule: str
    between: frozenset[str]
    waits: bool
    proven: bool
    spans: bool


class Phase(NamedTuple):
    """What a phase means: what is said of it comes before or after some events, given by their keys."""

    sign: str
    rule: str
    keys: tuple[str, ...]


class Rank(NamedTuple):
    """What a rank cue means; a bare one counts only at the edge of a clause."""

    rank: int
    rule: str
    bare: bool


class TimeWords(NamedTuple):
    """Points in time: weekday or month -> its number, unit before a number -> hours, words beside a span."""

    weekdays: Mapping[str, float]
    months: Mapping[str, float]
    units: Mapping[str, float]
    days: Mapping[str, float]
    ago: frozenset[str]
    near: frozenset[str]
    lasting: frozenset[str]


@dataclass(frozen=True, slots=True)
class Rules:
    """The pack, compiled. Tables find cues; frozensets hold single lower-cased words."""

    finder: Finder
    lexicon: Lexicon
    prepositions: frozenset[str]
    target_stops: frozenset[str]
    object_stops: frozenset[str]
    headings: frozenset[str]
    clause_starts: frozenset[str]
    partial: frozenset[str]
    lifelong: frozenset[str]
    prefixes: Mapping[str, str]
    suffixes: Mapping[str, str]
    frozen: frozenset[str]
    timeline: TimeWords
    grammar: Grammar
    special: Special
    kin: Mapping[str, str]
    joined: Mapping[str, tuple[str, str]]
    pointers: frozenset[str]
    well: frozenset[str]


def load_rules(content: Content | None = None) -> Rules:
    """Read and compile the pack.

    Raises:
        ContentError: file, line and field of the first fault.
    """
    pack = load_pack(content, NAME, TemporalPack)
    bare = frozenset(pack.bare_ranks)
    prefixes = {
        **dict.fromkeys(pack.prefixes.before, "before"),
        **dict.fromkeys(pack.prefixes.after, "after"),
        **dict.fromkeys(pack.prefixes.during, "during"),
    }
    lexicon = Lexicon(
        pack.light,
        pack.not_adverbs,
        pack.events,
        pack.event_endings,
        pack.event_kinds,
        pack.prefixes.anchors,
        pack.time_units,
        pack.number_words,
    )
    return Rules(
        finder=Finder(
            {
                "order": [(cue, _sign(rule)) for rule in pack.order for cue in rule.cues],
                "marks": _marks(pack),
                "ranks": [
                    (cue, Rank(rule.rank, rule.id, cue in bare)) for rule in pack.ranks for cue in rule.cues
                ],
                "status": [(cue, rule) for rule in pack.status for cue in rule.cues],
                "phases": _phases(pack),
                "lifelong": [(cue, True) for cue in pack.lifelong_phrases],
            },
            pack.forms,
        ),
        lexicon=lexicon,
        prepositions=frozenset(pack.prepositions),
        target_stops=frozenset(pack.target_stops),
        object_stops=frozenset(pack.object_stops),
        headings=pack.headings,
        clause_starts=frozenset(pack.clause_starts),
        partial=frozenset(pack.partial),
        lifelong=frozenset(stem_of(word) for word in pack.lifelong),
        prefixes=prefixes,
        suffixes=pack.prefixes.suffixes,
        frozen=frozenset(pack.prefixes.frozen),
        timeline=_time_words(pack.timeline),
        grammar=pack.grammar,
        special=pack.special,
        well=pack.well,
        kin={word: name for name, words in pack.kin.items() for word in words},
        pointers=frozenset(_time_words(pack.timeline).weekdays)
        | frozenset(_time_words(pack.timeline).months)
        | frozenset(pack.timeline.days)
        | frozenset(lexicon.numbers),
        joined=_joined(pack.prefixes, prefixes, frozenset(pack.events)),
    )


def _sign(rule: OrderRule) -> Sign:
    return Sign(rule.kind, rule.id, frozenset(rule.between), rule.waits, rule.proven, rule.spans)


def _marks(pack: TemporalPack) -> Iterable[tuple[str, frozenset[str]]]:
    lists = {
        "not": pack.negators,
        "pseudo": pack.pseudo_negators,
        "delay": pack.delay,
        "needless": pack.needless,
        "done": pack.done_strong,
        "done_weak": pack.done_weak,
        "undone": pack.undone,
        "unseen": pack.unseen,
    }
    labels: dict[str, set[str]] = {}
    for label, cues in lists.items():
        for cue in cues:
            labels.setdefault(cue, set()).add(label)
            if label in ("undone", "unseen") and not pack.grammar.negative.isdisjoint(cue.split()):
                labels[cue].add("not")
    return [(cue, frozenset(found)) for cue, found in labels.items()]


def _phases(pack: TemporalPack) -> Iterable[tuple[str, Phase]]:
    known = pack.events
    for cue in pack.prefixes.days:
        yield cue, Phase("after", "prefix.after", ("@surgery",))
    for rule in pack.prefixes.phases:
        keys = tuple(f"@{event}" if event in known else stem_of(event) for event in rule.events)
        for cue in rule.cues:
            yield cue, Phase(rule.sign, rule.id, keys)


def _time_words(words: Timeline) -> TimeWords:
    return TimeWords(
        {word: float(n) for n, name in enumerate(words.weekdays) for word in (name, name[:3])},
        {word: float(n) for n, name in enumerate(words.months) for word in (name, name[:3])},
        words.units,
        words.days,
        frozenset(words.ago),
        frozenset(words.near),
        frozenset(words.lasting),
    )


def _joined(
    prefixes: Prefixes, signs: Mapping[str, str], known: frozenset[str]
) -> dict[str, tuple[str, str]]:
    """Words written in one: "pretransplant" -> ("before", "@transplant")."""
    joined: dict[str, tuple[str, str]] = {
        prefix + rest: (sign, f"@{event}" if event in known else stem_of(event))
        for prefix, sign in signs.items()
        for event, rests in prefixes.anchors.items()
        for rest in rests
    }
    for one in prefixes.words:
        joined[one.word] = (one.sign, f"@{one.event}" if one.event in known else stem_of(one.event))
    return joined

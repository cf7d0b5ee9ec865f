"""The rule pack ``mitigations/temporal.yaml`` and its compiled form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

from clinsafe.content import Content, Record
from clinsafe.mitigations.order.finder import Finder, check_cue
from clinsafe.mitigations.order.lexicon import Lexicon
from clinsafe.mitigations.pack import RuleId, load_pack
from clinsafe.text.tokens import stem_of


def _cue(text: str) -> str:
    check_cue(text)
    return text


Cue = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(_cue)]
Word = Annotated[str, Field(min_length=1, max_length=60)]
Kind = Literal[
    "before",
    "until",
    "unless",
    "after",
    "led",
    "trailed",
    "when",
    "with",
    "then",
    "earlier",
    "during",
    "pair",
    "pair_back",
    "listed",
    "none",
]
Side = Literal["left", "right", "auto", "near", "self"]
NAME = "temporal"
_NEGATIVE = frozenset(["not", "no", "never", "without"])


class OrderRule(Record):
    """Cues of one kind of order; the kinds are explained in the file."""

    id: RuleId
    kind: Kind
    between: tuple[Word, ...] = ()
    cues: tuple[Cue, ...] = Field(min_length=1)


class RankRule(Record):
    """Cues that give a step its number."""

    id: RuleId
    rank: int = Field(ge=1, le=9)
    cues: tuple[Cue, ...] = Field(min_length=1)


class StatusRule(Record):
    """Cues by which a treatment or condition goes on, or does not."""

    id: RuleId
    state: Literal["on", "off", "none"]
    axis: Literal["treatment", "condition", "onset"]
    side: Side
    weak: bool = False
    yields: bool = False
    timed: bool = False
    past: bool = False
    onset: Literal["", "new", "old"] = ""
    now: bool = False
    going: bool = False
    first: bool = False
    opens: tuple[Word, ...] = ()
    lifelong: Literal["past", "current", "silent"] = "past"
    cues: tuple[Cue, ...] = Field(min_length=1)


class OrderWord(Record):
    """A word that holds an order in itself: adjuvant treatment comes after surgery."""

    word: Word
    sign: Literal["before", "after", "during"]
    event: Word


class PhaseRule(Record):
    """A place in the course of an operation, and the events that lie before or after it."""

    id: RuleId
    sign: Literal["before", "after", "none"]
    events: tuple[Word, ...] = ()
    cues: tuple[Cue, ...] = Field(min_length=1)


class Prefixes(Record):
    """Prefixes of order (pre-, post-, intra-) and the rests of words that are read with them."""

    before: tuple[Word, ...]
    after: tuple[Word, ...]
    during: tuple[Word, ...]
    anchors: Mapping[str, tuple[Word, ...]]
    words: tuple[OrderWord, ...]
    suffixes: Mapping[Word, Literal["before", "after"]]
    frozen: tuple[Word, ...]
    days: tuple[Cue, ...] = ()
    phases: tuple[PhaseRule, ...] = ()


class Timeline(Record):
    """Words of points in time."""

    weekdays: tuple[Word, ...]
    months: tuple[Word, ...]
    units: Mapping[Word, float]
    days: Mapping[Word, float] = {}
    ago: tuple[Word, ...]
    near: tuple[Word, ...]
    lasting: tuple[Word, ...]


class Grammar(Record):
    """Little words."""

    be: frozenset[Word]
    auxiliary: frozenset[Word]
    subjects: frozenset[Word]
    links: frozenset[Word]
    not_had: frozenset[Word]
    past: frozenset[Word] = frozenset()
    reports: frozenset[Word] = frozenset()


class TemporalPack(Record):
    """``mitigations/temporal.yaml``. Fields that came later may be missing: then what they add is not read."""

    forms: Mapping[Word, tuple[Word, ...]] = {}
    order: tuple[OrderRule, ...]
    prefixes: Prefixes
    negators: tuple[Cue, ...]
    pseudo_negators: tuple[Cue, ...]
    delay: tuple[Cue, ...]
    needless: tuple[Cue, ...] = ()
    done_strong: tuple[Cue, ...]
    done_weak: tuple[Cue, ...]
    undone: tuple[Cue, ...]
    unseen: tuple[Cue, ...]
    prepositions: tuple[Word, ...]
    target_stops: tuple[Word, ...]
    object_stops: tuple[Word, ...]
    headings: frozenset[Word] = frozenset()
    clause_starts: tuple[Word, ...]
    ranks: tuple[RankRule, ...]
    bare_ranks: tuple[Cue, ...]
    timeline: Timeline
    grammar: Grammar
    status: tuple[StatusRule, ...]
    partial: tuple[Word, ...]
    lifelong: tuple[Word, ...]
    light: tuple[Word, ...]
    not_adverbs: tuple[Word, ...] | None = None
    events: Mapping[str, tuple[Word, ...]]
    event_endings: Mapping[str, tuple[Word, ...]]
    event_kinds: Mapping[str, tuple[Word, ...]] = {}
    time_units: Mapping[str, float]
    number_words: Mapping[str, float]


class Sign(NamedTuple):
    """What an order cue means."""

    kind: Kind
    rule: str
    between: frozenset[str]


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
    joined: Mapping[str, tuple[str, str]]
    pointers: frozenset[str]


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
                "order": [
                    (cue, Sign(rule.kind, rule.id, frozenset(rule.between)))
                    for rule in pack.order
                    for cue in rule.cues
                ],
                "marks": _marks(pack),
                "ranks": [
                    (cue, Rank(rule.rank, rule.id, cue in bare)) for rule in pack.ranks for cue in rule.cues
                ],
                "status": [(cue, rule) for rule in pack.status for cue in rule.cues],
                "phases": _phases(pack),
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
        pointers=frozenset(_time_words(pack.timeline).weekdays)
        | frozenset(_time_words(pack.timeline).months)
        | frozenset(pack.timeline.days)
        | frozenset(lexicon.numbers),
        joined=_joined(pack.prefixes, prefixes, frozenset(pack.events)),
    )


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
            if label in ("undone", "unseen") and not _NEGATIVE.isdisjoint(cue.split()):
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

"""The look-up tables made of ``mitigations/negation.yaml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from clinsafe.content import Content
from clinsafe.mitigations.cues import CueTable
from clinsafe.mitigations.pack import load_pack
from clinsafe.mitigations.polarity.judging import Judge
from clinsafe.mitigations.polarity.schema import Affixes, Grammar, Pack, Sign, Signed
from clinsafe.text.tokens import lemma_of
from clinsafe.text.vocabulary import Vocabulary, load_vocabulary

_REMEMBERED = 50_000
_LONGEST = 40
_SHORTEST = 4


Kind = Literal[
    "negator", "predicate", "pseudo", "open", "history", "relative", "exception", "signed", "answer"
]


class Cue(NamedTuple):
    """What the cue table holds for a phrase.

    Attributes:
        kind: which block of the pack it stands in.
        id: rule id.
        sign: -1, 0 or 1.
        reach: ``phrase``, ``verb``, ``before``, ``after``, ``either``, ``join`` or "".
        list: a negation that runs through a comma list.
        open: negated, it leaves the matter open.
        noun: takes a "no" in front.
        weak: says nothing unless negated.
        with_: words after which the thing may also follow.
        same: an exception that keeps the sign.
        effect: of a pseudo cue.
        concept: canonical key of a signed phrase.
        opposite: canonical key of its opposite, "" for none.
        about: whether the concept is said of another thing.
        label: the concept in plain words, as it is told of a thing ("increased").
        other: the same for its opposite.
    """

    kind: Kind
    id: str
    sign: int = 0
    reach: str = ""
    list: bool = False
    open: bool = False
    noun: bool = False
    weak: bool = False
    with_: frozenset[str] = frozenset()
    same: bool = False
    effect: str = ""
    concept: str = ""
    opposite: str = ""
    about: bool = False
    label: str = ""
    other: str = ""


# Word classes of tokens that are no cue.
WORD, NUMBER, STOP, COMMA, AND, OR, PREP, DET, HELP, RELATIVE, HYPHEN, COLON, MARK, OP = range(14)


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything `signs` looks up.

    Attributes:
        table: the cues.
        answers: values behind a colon.
        replies: answers that open the sentence behind a question.
        parted: lemma of a verb -> particle that may stand apart from it -> the cue they are.
        classes: lower-cased word -> class.
        signed: signed single words.
    """

    table: CueTable[Cue]
    answers: CueTable[Cue]
    replies: CueTable[Cue]
    parted: Mapping[str, Mapping[str, Cue]]
    classes: Mapping[str, int]
    light: frozenset[str]
    trailing: frozenset[str]
    generic_keys: frozenset[str]
    limits: Mapping[str, str]
    numbered: frozenset[str]
    quantifiers: frozenset[str]
    carriers: frozenset[str]
    ing: frozenset[str]
    weak: frozenset[str]
    sets: Mapping[str, frozenset[str]]
    lifelong: frozenset[str]
    affixes: Affixes
    never: frozenset[str]
    key_of: Vocabulary
    signed: Mapping[str, Cue]
    stops: frozenset[str]
    cues: tuple[tuple[str, Cue], ...]
    judge: Judge
    _affixed: dict[str, Cue | None] = field(default_factory=dict)

    def affixed(self, lower: str) -> Cue | None:
        """The concept behind a negating prefix or suffix, or None."""
        if lower not in self._affixed:
            if len(self._affixed) > _REMEMBERED:
                self._affixed.clear()
            self._affixed[lower] = self._affix(lower)
        return self._affixed[lower]

    def _affix(self, lower: str) -> Cue | None:
        whole = self.affixes.whole.get(lower)
        if whole:
            return self._negated(whole)
        if lower in self.never or not lower.isalpha() or len(lower) > _LONGEST:
            return None
        for prefix in self.affixes.prefixes:
            if lower.startswith(prefix) and len(lower) - len(prefix) >= _SHORTEST:
                return self._negated(lower[len(prefix) :])
        for suffix in self.affixes.suffixes:
            if lower.endswith(suffix) and len(lower) - len(suffix) >= _SHORTEST:
                return self._negated(lower[: -len(suffix)])
        return None

    def _negated(self, word: str) -> Cue:
        known = self.signed.get(word)
        if known is not None and not known.opposite:
            return known._replace(sign=-known.sign, id="affix")
        return Cue("signed", "affix", -1, concept=self.key_of.key(word), label=word)


def load_rules(content: Content | None = None) -> Rules:
    """Read the pack and build the tables.

    Raises:
        ContentError: the pack is malformed; with file, line and field.
    """
    pack = load_pack(content, "negation", Pack)
    vocabulary = load_vocabulary(content)
    signed = [pair for entry in pack.signed for pair in _signed(entry, vocabulary)]
    grammar, affixes = pack.grammar, pack.affixes
    return Rules(
        CueTable([*_cues(pack), *signed]),
        _valued(pack.answers),
        _valued(pack.replies),
        _parted(pack),
        _classes(grammar),
        frozenset(grammar.light),
        frozenset(grammar.trailing),
        frozenset(vocabulary.key(word) for word in grammar.generic),
        {word: "~more" if word in grammar.sets.more else f"~{word}" for word in grammar.limiting},
        frozenset(grammar.numbered),
        frozenset(grammar.quantifiers),
        frozenset(grammar.carriers),
        frozenset(grammar.ing),
        frozenset(grammar.weak),
        {name: frozenset(words) for name, words in grammar.sets},
        frozenset(vocabulary.key(word) for word in pack.lifelong),
        affixes,
        frozenset(affixes.never),
        vocabulary,
        {words: cue for words, cue in reversed(signed) if " " not in words},
        frozenset(grammar.stops),
        tuple(_cues(pack)),
        Judge(
            frozenset(vocabulary.key(word) for word in grammar.generic),
            pack.trust,
            frozenset(pack.paired),
            frozenset(vocabulary.key(word) for word in pack.means),
            frozenset(vocabulary.key(word) for word in pack.times),
            frozenset(vocabulary.key(word) for word in pack.bodily),
        ),
    )


def _valued(block: Mapping[Sign, Sequence[str]]) -> CueTable[Cue]:
    return CueTable(
        (word, Cue("answer", "answer", 1 if sign == "+" else -1))
        for sign, words in block.items()
        for word in words
    )


def _parted(pack: Pack) -> dict[str, dict[str, Cue]]:
    found: dict[str, dict[str, Cue]] = {}
    for one in pack.parted:
        cue = Cue("predicate", one.id, 1 if one.sign == "+" else -1, "either", open=one.open)
        for verb in one.verbs:
            found.setdefault(lemma_of(verb), {}).update(dict.fromkeys(one.particles, cue))
    return found


def _cues(pack: Pack) -> list[tuple[str, Cue]]:
    cues: list[tuple[str, Cue]] = []
    for pseudo in pack.pseudo:
        cues += [(word, Cue("pseudo", pseudo.id, effect=pseudo.effect)) for word in pseudo.words]
    for negator in pack.negators:
        cue = Cue("negator", negator.id, -1, negator.reach, negator.list)
        cues += [(word, cue) for word in negator.words]
    for one in pack.predicates:
        sign = 1 if one.sign == "+" else -1
        cue = Cue(
            "predicate", one.id, sign, one.reach, one.list,
            open=one.open, noun=one.noun, weak=one.weak, with_=frozenset(one.with_),
        )  # fmt: skip
        cues += [(word, cue) for word in one.words]
    for other in pack.exceptions:
        cues += [(word, Cue("exception", other.id, 0, other.reach, same=other.same)) for word in other.words]
    cues += [(word, Cue("open", "open")) for word in pack.open_after]
    cues += [(word, Cue("history", "history")) for word in pack.history]
    cues += [(word, Cue("relative", "relative")) for word in pack.relatives]
    return cues


def _signed(entry: Signed, vocabulary: Vocabulary) -> list[tuple[str, Cue]]:
    concept = vocabulary.key(entry.concept) if " " not in entry.concept else entry.concept
    other = vocabulary.key(entry.opposite) if entry.opposite else ""
    name, against = entry.name or entry.concept, entry.other or entry.opposite
    yes = Cue(
        "signed", entry.id, 1, concept=concept, opposite=other, about=entry.about, label=name, other=against
    )
    no = yes._replace(sign=-1)
    if other:
        no = yes._replace(concept=other, opposite=concept, label=against, other=name)
    names = (entry.concept, *entry.yes)
    rows = [(word, yes) for word in names] + [(word, no) for word in entry.no]
    return rows + ([(entry.opposite, no)] if entry.opposite and entry.opposite not in entry.no else [])


def _classes(grammar: Grammar) -> dict[str, int]:
    classes: dict[str, int] = {}
    for words, kind in (
        (grammar.numbers, NUMBER),
        (grammar.helpers, HELP),
        (grammar.determiners, DET),
        (grammar.prepositions, PREP),
        (grammar.relatives, RELATIVE),
        (grammar.stops, STOP),
    ):
        classes |= dict.fromkeys(words, kind)
    classes |= {",": COMMA, "and": AND, "&": AND, "or": OR, "nor": OR, "/": OR, "-": HYPHEN, ":": COLON}
    classes |= dict.fromkeys(";.!?()[]{}—|=", STOP)
    return classes

"""What a text is about, sentence by sentence, seen from its facts: keys that a question asks for or a sentence names.

The filters write one key in several ways ("=apixaban", "@apixaban", "apixaban"); here all are the bare word.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from clinsafe.mitigations.align import weight
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.same import same, widened
from clinsafe.protocols import Fact, Finding, Span
from clinsafe.text.tokens import stem_of

_ASKING_WORDS = """
evidence sign suggestion indication history previous previously known document record mention question doubt suspicion
recommended dose dosage treatment therapy management advice guideline appropriate correct preferred usual maximum
minimum during while before after following since against first line drug medicine medication receive
start continue take taken need require order level value date risk drink use
mg g mcg kg ml l mmol mol unit iu microgram milligram gram millilitre hour week month daily twice once time long term
currently regular definite diagnosed diagnosis experience suffer report present contraindicated contraindication
come go show find found get got turn let know think thought say ever never still true truly really actual
already sure moment recent recently kind sort any all every last new now today someone somebody everyone anyone
possible recognised confirm confirmed less more than half one two three four five six seven eight nine ten dozen
people everybody feel felt side effect stay sole only single bigger larger smaller longer shorter higher lower
through door up down as well part out whole quite rather instead whether
"""
_MEANS_WORDS = """
urine serum blood test scan ct mri ultrasound radiograph xray film biopsy swab culture examination screen screening ecg
echo echocardiography chest history section review
"""
_LIGHT = 0.3


@lru_cache(maxsize=1)
def _asking() -> frozenset[str]:
    return _stems(_ASKING_WORDS)


@lru_cache(maxsize=1)
def means() -> frozenset[str]:
    """Keys of tests and specimens: by what a thing was found, no other thing."""
    return _stems(_MEANS_WORDS)


def _stems(words: str) -> frozenset[str]:
    return frozenset(form for word in words.split() for form in (word, stem_of(word), bare(stem_of(word))))


@lru_cache(maxsize=65536)
def bare(key: str) -> str:
    """A key without the filters' signs, one for all that ask for the same thing."""
    return same(key.lstrip("=@^+"))


@lru_cache(maxsize=65536)
def heft(key: str) -> float:
    """How much a shared key says of what is asked: 1 for a content word, less for what any question or note holds."""
    return _LIGHT if key in _asking() or len(key) < 2 else weight(key)


def heavy(keys: Iterable[str]) -> frozenset[str]:
    """The keys that name something."""
    return frozenset(key for key in keys if heft(key) >= 1.0)


def covered(asked: frozenset[str], said: frozenset[str]) -> float:
    """Share in [0, 1] of the weight of `asked` found in `said`; 0 for no keys."""
    total = sum(map(heft, sorted(asked)))
    return sum(map(heft, sorted(asked & said))) / total if total else 0.0


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence.

    Attributes:
        span: in the original text.
        keys: bare keys of its words, without the cues that sign them.
        words: all its words in lower case, where the entity-swap filter kept them.
        marks: (words, piece, keys, acts) of what could turn its meaning; see `polarity.marks`.
    """

    span: Span
    keys: frozenset[str]
    marks: tuple[tuple[Any, ...], ...] = ()
    words: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Lines:
    """The sentences of a text, found by place.

    Attributes:
        lines: in order.
        by_line: number of the sentence -> filter name -> its facts.
    """

    lines: tuple[Line, ...]
    by_line: Mapping[int, Mapping[str, tuple[Fact, ...]]]
    _starts: tuple[int, ...] = field(repr=False, default=())

    def at(self, span: Span) -> int:
        """Number of the sentence in which a span begins."""
        return max(0, bisect_right(self._starts, span.start) - 1)


def lines_of(facts: TextFacts) -> Lines:
    """The sentences as the negation filter saw them; without it the whole text is taken for one."""
    words = {
        (fact.span.start, fact.span.end): frozenset(fact.normal["words"])
        for fact in facts.by_filter.get("entity_swap", ())
        if fact.normal.get("form") == "order"
    }
    found: dict[tuple[int, int], Line] = {}
    for fact in facts.by_filter.get("negation", ()):
        normal = fact.normal
        if normal.get("kind") == "sense":
            place = fact.span.start, fact.span.end
            keys = widened(frozenset(map(bare, normal["wide_keys"])))
            found.setdefault(place, Line(fact.span, keys, normal["marks"], words.get(place, frozenset())))
    lines = tuple(found[place] for place in sorted(found)) or _whole(facts)
    made = Lines(lines, {}, tuple(line.span.start for line in lines))
    grouped: dict[int, dict[str, list[Fact]]] = {}
    for name, rows in facts.by_filter.items():
        for fact in rows:
            grouped.setdefault(made.at(fact.span), {}).setdefault(name, []).append(fact)
    by_line = {at: {name: tuple(rows) for name, rows in filters.items()} for at, filters in grouped.items()}
    return Lines(
        tuple(_owning(line, by_line.get(at, {})) for at, line in enumerate(lines)), by_line, made._starts
    )


def _owning(line: Line, facts: Mapping[str, tuple[Fact, ...]]) -> Line:
    """The sentence with the names of what its numbers belong to: "K 5.9" speaks of potassium."""
    owners = [fact.normal["subject_keys"] for fact in facts.get("numerical", ()) if fact.normal.get("firm")]
    keys = frozenset(bare(key) for owner in owners for key in owner)
    return line if keys <= line.keys else replace(line, keys=line.keys | keys)


def _whole(facts: TextFacts) -> tuple[Line, ...]:
    every = [fact for rows in facts.by_filter.values() for fact in rows]
    if not every:
        return ()
    span = Span(min(fact.span.start for fact in every), max(fact.span.end for fact in every))
    return (Line(span, frozenset().union(*map(words_of, every))),)


def words_of(fact: Fact) -> frozenset[str]:
    """Bare keys of all words that a fact names or stands among."""
    found: set[str] = set()
    for name, value in fact.normal.items():
        if isinstance(value, frozenset) and (name == "keys" or name.endswith("_keys")):
            found.update(map(bare, value))
    return frozenset(found)


def gainsays(finding: Finding, facts: Sequence[Fact]) -> bool:
    """Whether a finding counts as said of the same person and in earnest; that a treatment was stopped does.

    Args:
        facts: those of the passage at the finding's place.
    """
    if finding.kind == "contradiction":
        return True
    return finding.hazard == "temporal" and any(
        fact.normal.get("axis") == "treatment" and not fact.normal["on"] for fact in facts
    )

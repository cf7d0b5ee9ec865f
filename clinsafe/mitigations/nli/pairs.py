"""Which sentences of two texts the model is asked about: claims that share enough content, the best aligned first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clinsafe.mitigations import bounds
from clinsafe.mitigations.align import mass, overlap
from clinsafe.mitigations.nli.settings import Settings
from clinsafe.protocols import Fact, TextPair
from clinsafe.text import Reading

RULE = "nli.sentence"


@dataclass(frozen=True, slots=True)
class Candidates:
    """What is to be compared, and what is left.

    Attributes:
        pairs: (fact of the query, fact of the passage), the best aligned first; at most ``most_pairs``.
        left_out: pairs that could matter and are more than that.
        unread: pairs that could matter, one side of which was too long to be read.
    """

    pairs: tuple[tuple[Fact, Fact], ...]
    left_out: int = 0
    unread: int = 0

    @property
    def texts(self) -> list[TextPair]:
        """The sentences of the pairs, the query's first."""
        return [(one.normal["text"], other.normal["text"]) for one, other in self.pairs]


def read(reading: Reading, settings: Settings, hazard: str) -> tuple[Fact, ...]:
    """One fact a claim, with its words and content keys; questions are left out (decision D2). Pure; no parse.

    Whom and what time a sentence speaks of is kept, for the model sees no headings.
    """
    facts = []
    for sentence in reading.sentences:
        if sentence.mood == "question" or not sentence.keys:
            continue
        span = reading.span(sentence.start, sentence.end)
        text = " ".join(reading.cleaned.text[sentence.start : sentence.end].split())
        if len(text) > settings.longest:
            facts.append(bounds.unread(hazard, span, sentence.keys))
            continue
        normal = {"text": text, "keys": sentence.keys, "subject": sentence.subject, "time": sentence.time}
        facts.append(Fact(hazard, span, normal, "", RULE))
    return tuple(facts)


def candidates(query: Iterable[Fact], passage: Iterable[Fact], settings: Settings) -> Candidates:
    """The pairs that can matter; the same whichever text asks, unless more than ``most_pairs`` align equally well.

    Sentences in the same words, and those of a relative beside those of the patient or of the past beside the present,
    are no pair.
    """
    all_ours, all_theirs = list(query), list(passage)
    ours, theirs = bounds.bounded(all_ours, all_theirs)
    unseen = len(all_ours) * len(all_theirs) - len(ours) * len(theirs)  # of texts of thousands of sentences
    found: list[tuple[float, int, int]] = []
    seen: set[TextPair] = set()
    unread = 0
    for i, one in enumerate(ours):
        for j, other in enumerate(theirs):
            if not can_matter(one.normal["keys"], other.normal["keys"], settings):
                continue
            if bounds.UNREAD in (one.rule, other.rule):
                unread += 1
            elif _comparable(one, other) and _new(one, other, seen):
                found.append((-overlap(one.normal["keys"], other.normal["keys"]), i, j))
    chosen = sorted(found)[: settings.most_pairs]
    pairs = tuple((ours[i], theirs[j]) for _, i, j in chosen)
    return Candidates(pairs, len(found) - len(chosen) + unseen, unread)


def can_matter(one: frozenset[str], other: frozenset[str], settings: Settings) -> bool:
    """Whether two sentences share enough content to speak of the same thing."""
    shared = mass(one & other)
    return shared >= settings.least_shared and shared >= settings.least_coverage * min(mass(one), mass(other))


def _comparable(one: Fact, other: Fact) -> bool:
    same_place = all(one.normal[name] == other.normal[name] for name in ("subject", "time"))
    return same_place and _plain(one) != _plain(other)


def _new(one: Fact, other: Fact, seen: set[TextPair]) -> bool:
    """Whether these words were not paired before: a note often says the same sentence many times."""
    key = _plain(one), _plain(other)
    new = key not in seen
    seen.add(key)
    return new


def _plain(fact: Fact) -> str:
    text: str = fact.normal["text"]
    return " ".join(text.casefold().split()).rstrip(" .;")


def shortened(fact: Fact, longest: int = 200) -> str:
    """A sentence for a finding."""
    text: str = fact.normal["text"]
    return text if len(text) <= longest else f"{text[: longest - 1]}…"

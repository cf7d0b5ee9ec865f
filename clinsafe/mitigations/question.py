"""What a question asks, seen from the facts of its claim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clinsafe.mitigations.asking import PAST
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.same import narrowed
from clinsafe.mitigations.topic import Line, heavy, lines_of
from clinsafe.protocols import Fact, Span

SAID_OF_THE_PAST = 2  # certainty of a word in a "said" fact of the negation filter
_PAST_WORDS = PAST | frozenset(["been", "previously"])


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked.

    Attributes:
        line: the asked sentence.
        keys: bare keys that name what is asked about; empty where nothing is named.
        past: what is said of the past answers it ("has she ever had", "was he given").
        conditional: it asks about a condition ("if the eGFR is 20, is metformin contraindicated").
        denies: it asks whether something is not so ("is there no allergy").
        levels: place in the query -> certainty that is asked for there.
        decisive: facts that must be met for an affirmation, with the filter they are from.
    """

    line: Line
    keys: frozenset[str]
    past: bool
    conditional: bool
    denies: bool
    levels: Mapping[Span, int]
    decisive: tuple[tuple[str, Fact], ...]


def question_of(claim: TextFacts) -> Question:
    """Read the facts of a question that was read as a claim; several asked sentences are one question."""
    lines = lines_of(claim).lines
    named = frozenset().union(*(line.keys for line in lines)) if lines else frozenset()
    where = Span(lines[0].span.start, lines[-1].span.end) if lines else Span(0, 0)
    negation = claim.by_filter.get("negation", ())
    return Question(
        Line(where, named, tuple(mark for line in lines for mark in line.marks)),
        narrowed(heavy(named) or named),
        _asks_for_the_past(claim),
        any(fact.normal.get("if") for fact in negation),
        any(fact.normal.get("sign") == -1 or fact.normal.get("cues") for fact in negation),
        {
            fact.span: fact.normal["level"]
            for fact in claim.by_filter.get("hedging", ())
            if "level" in fact.normal
        },
        tuple(_decisive(claim)),
    )


def past_condition(fact: Fact) -> bool:
    """Whether a fact of the temporal filter says that something is over."""
    normal = fact.normal
    return bool(normal.get("type") == "status" and normal.get("axis") == "condition" and not normal.get("on"))


def _asks_for_the_past(claim: TextFacts) -> bool:
    negation = claim.by_filter.get("negation", ())
    if any(
        fact.normal.get("past") or any(row[4] == SAID_OF_THE_PAST for row in fact.normal.get("words", ()))
        for fact in negation
    ):
        return True
    words = {word for fact in claim.by_filter.get("entity_swap", ()) for word in fact.normal.get("words", ())}
    return not _PAST_WORDS.isdisjoint(words) or any(map(past_condition, claim.by_filter.get("temporal", ())))


def _decisive(claim: TextFacts) -> Iterator[tuple[str, Fact]]:
    """Orders, quantities, numbers and roles."""
    for name, facts in claim.by_filter.items():
        for fact in facts:
            normal = fact.normal
            if (
                (name == "temporal" and normal.get("type") == "order")
                or (
                    name == "quantifier"
                    and "share" in normal
                    and not (normal.get("bare") or normal.get("weak"))
                )
                or (name == "numerical" and "forms" in normal)
                or (name == "entity_swap" and _two_sided(normal))
            ):
                yield name, fact


def _two_sided(normal: Mapping[str, Any]) -> bool:
    return bool(normal.get("form") == "edge" and normal["source_keys"] and normal["target_keys"])

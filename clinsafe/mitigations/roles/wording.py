"""Findings in words that a clinician reads: normal forms and one plain sentence."""

from __future__ import annotations

from typing import Any, Literal

from clinsafe.mitigations.roles.lexicon import Lexicon
from clinsafe.mitigations.roles.order import Exchange
from clinsafe.protocols import Fact, Finding, Severity, Verdict

_HAZARD = "entity_swap"
_SAYS = {
    "use": "to be used",
    "avoid": "not to be used",
    "meant": "the condition treated",
    "harm": "the harm or the bar",
    "gene": "carrier only",
    "screen": "the screening test",
    "confirm": "the confirmatory test",
    "found": "shows it",
    "missed": "misses it",
}


def edge(query: Fact, passage: Fact, kind: str, lexicon: Lexicon) -> Finding:
    """Two relations that align: ``same``, ``swapped``, ``moved``, ``denied``, ``opposed`` or ``reversed``."""
    one, other = _edge_form(query.normal, lexicon), _edge_form(passage.normal, lexicon)
    if kind == "same":
        return _finding(query, passage, "compatible", one, other, f"Both texts say: {one}.", "note", 0.7)
    says = {
        "swapped": "the two have changed places",
        "moved": "the drug has changed over to the other condition",
        "denied": "one text denies what the other says",
        "reversed": "the effects of two things have changed places",
        "opposed": "one text treats with what the other warns of",
    }[kind]
    sentence = f'The query says "{one}"; the passage says "{other}": {says}.'
    severity: Severity = "critical" if kind == "opposed" else "high"
    return _finding(query, passage, "conflict", one, other, sentence, severity, 0.8)


def _edge_form(normal: Any, lexicon: Lexicon) -> str:
    relation = lexicon.relations.get(normal["relation"])
    words = relation.words if relation else "is greater than" if normal["relation"] == "compare" else "…"
    return (
        f"{normal['source'] or '?'} {'not: ' if normal['negative'] else ''}{words} {normal['target'] or '?'}"
    )


def stands(
    ours: Any, theirs: Any, first: str, second: str, crossed: tuple[frozenset[str], frozenset[str]]
) -> Finding:
    """Two things that carry each other's mark."""
    here = _with((ours, theirs), crossed[0])
    there = _with((theirs, ours), crossed[0])
    one, two = here.normal["thing"], _with((ours, theirs), crossed[1]).normal["thing"]
    says, other = _SAYS.get(first, first), _SAYS.get(second, second)
    query, passage = f"{one}: {says}; {two}: {other}", f"{one}: {other}; {two}: {says}"
    sentence = f"In the query: {query}. In the passage it is the other way round."
    severity: Severity = "critical" if first in ("use", "avoid", "meant", "harm") else "high"
    return _finding(here, there, "conflict", query, passage, sentence, severity, 0.8)


def _with(sides: tuple[Any, Any], keys: frozenset[str]) -> Fact:
    """The first fact about one of these keys, on the first side that has one."""
    facts: list[Fact] = [fact for side in sides for found in side.values() for fact in found]
    return next(fact for fact in facts if fact.normal["keys"] & keys)


def parts(query: Fact, passage: Fact) -> Finding:
    """Two parts of a sentence whose contents are mixed in the other text."""
    one = f"{query.normal['left']} | {query.normal['right']}"
    other = f"{passage.normal['left']} | {passage.normal['right']}"
    sentence = f'The query says "{one}"; in the passage the same things are paired differently: "{other}".'
    return _finding(query, passage, "conflict", one, other, sentence, "high", 0.7)


def order(query: Fact, passage: Fact, swap: Exchange) -> Finding:
    """The same sentence with two things exchanged."""
    first, second = " ".join(swap.first), " ".join(swap.second)
    between = " ".join(swap.between)
    one, other = f"{first} … {between} … {second}", f"{second} … {between} … {first}"
    sentence = f'Query and passage say the same with "{first}" and "{second}" exchanged.'
    return _finding(query, passage, "conflict", one, other, sentence, "high", 0.85)


def kin(own: Fact, relative: Fact, turned: bool) -> Finding:
    """The patient's own disease against a relative's."""
    disease, person = relative.normal["disease"], relative.normal["person"]
    mine, theirs = f"{disease}: patient", f"{disease}: {person}"
    query, passage = (relative, own) if turned else (own, relative)
    sides = ("passage", "query") if turned else ("query", "passage")
    sentence = f"The {sides[0]} gives {disease} to the patient; the {sides[1]} gives it to the {person}."
    one, other = (theirs, mine) if turned else (mine, theirs)
    return _finding(query, passage, "conflict", one, other, sentence, "high", 0.8, "non_support")


def _finding(
    query: Fact,
    passage: Fact,
    verdict: Verdict,
    one: str,
    other: str,
    sentence: str,
    severity: Severity,
    confidence: float,
    kind: Literal["contradiction", "non_support"] = "contradiction",
) -> Finding:
    cue = query.cue or passage.cue
    return Finding(
        _HAZARD,
        verdict,
        kind,
        severity,
        confidence,
        query.span,
        passage.span,
        one,
        other,
        cue,
        query.rule,
        sentence,
    )

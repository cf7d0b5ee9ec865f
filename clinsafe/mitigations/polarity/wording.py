"""Findings in words."""

from __future__ import annotations

from clinsafe.mitigations.polarity.mention import ABSENCE_OPEN, ABSENT, LEFT_OPEN, PRESENT, Match, Mention
from clinsafe.protocols import Finding, Severity

_STATES = {ABSENT: "absent", PRESENT: "present", LEFT_OPEN: "not excluded", ABSENCE_OPEN: "in doubt"}
_CRITICAL = frozenset(["=allergy", "allergi", "anaphylaxi"])


def finding(pair: Match, sure: float, hazard: str) -> Finding:
    """One aligned pair as a finding; `sure` is its certainty in [0, 1]."""
    query, passage = pair.query, pair.passage
    cue = query.fact.cue or passage.fact.cue
    rule = query.fact.rule if query.fact.cue else passage.fact.rule
    if query.sign != ABSENT and passage.fact.cue:
        cue, rule = passage.fact.cue, passage.fact.rule
    return Finding(
        hazard,
        "conflict" if pair.conflict else "compatible",
        "contradiction",
        _severity(pair),
        round(sure, 2),
        query.span,
        passage.span,
        _normal(query, passage),
        _normal(passage, query),
        cue,
        rule,
        _sentence(query, passage, pair.conflict),
    )


def _severity(pair: Match) -> Severity:
    if not pair.conflict:
        return "note"
    if pair.query.key in _CRITICAL or any(m.fact.normal.get("action") for m in (pair.query, pair.passage)):
        return "critical"
    return "high"


def _name(mention: Mention, other: Mention) -> str:
    """The thing in plain words; one that is merely said is called what the other side calls it."""
    normals = mention.fact.normal, other.fact.normal
    return str(normals[0].get("name") or normals[1].get("name") or mention.key.removeprefix("="))


def _normal(mention: Mention, other: Mention) -> str:
    return f"{_name(mention, other)}: {_STATES.get(mention.sign, 'undecided')}"


def _sentence(query: Mention, passage: Mention, conflict: bool) -> str:
    if query.whole:
        side, cue = ("query", query.fact.cue) if query.sign == ABSENT else ("passage", passage.fact.cue)
        told = f' ("{cue.lstrip("~")}")' if cue else ""
        return f"Query and passage use the same words, but only the {side} denies what they say{told}."
    normal = (query if query.signed else passage).fact.normal
    form, name = str(normal["form"]), _name(query, passage)
    many = _many(name)
    if form == "about" and normal["of"]:
        name = str(normal["of"])
        many = _many(name)
        form = f"{'are' if many else 'is'} {normal['label']}"
    elif form == "about":
        name, form = str(normal["label"]), "verb"
    one, other = (_state(mention, form, many) for mention in (query, passage))
    if not conflict:
        return f"The query and the passage both say {one.format(name)}."
    again = name if form == "verb" else "they" if many else "it"
    return f"The query says {one.format(name)}; the passage says {other.format(again)}."


def _many(name: str) -> bool:
    return name.endswith("s") and not name.endswith(("ss", "us", "is", "as", "os"))


def _state(mention: Mention, form: str, many: bool) -> str:
    """What is said, with {} for the name."""
    verb = "are" if many else "is"
    absent = mention.sign == ABSENT
    if mention.sign == LEFT_OPEN:
        return f"that {{}} {verb} not excluded"
    if mention.sign == ABSENCE_OPEN:
        return f"that it is not certain that {{}} {verb if form in ('action', 'verb', 'thing') else form}"
    if form == "action":
        return f"that {{}} {verb} {'not given, or not allowed' if absent else 'given, or allowed'}"
    if form == "verb":
        return f'"{"not " if absent else ""}{{}}"'
    if form == "thing":
        return f"that {{}} {verb} {'absent' if absent else 'present'}"
    return f"that {{}} {form.replace(' ', ' not ', 1) if absent else form}"

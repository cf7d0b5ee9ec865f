"""Passages that contradict each other on what is asked (decision D2). Neither side is the right one for that."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from clinsafe.guarded import Disagreement
from clinsafe.mitigations.another import apart, may_be_apart
from clinsafe.mitigations.answer import Answer
from clinsafe.mitigations.asking import front_tokens
from clinsafe.mitigations.course import began_and_ended, dateless, days
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.question import question_of
from clinsafe.mitigations.slots import opposed_values
from clinsafe.mitigations.stack import Stack
from clinsafe.mitigations.topic import Lines, bare, covered, gainsays, heavy, lines_of
from clinsafe.mitigations.whose import comparable, superseding, when
from clinsafe.mitigations.wording import worded
from clinsafe.protocols import Fact, Finding, Passage, Span
from clinsafe.text import Reading

_TOUCHED = 0.55  # share of what is asked that the two sentences together must name
_VALUED = 0.3  # where the question word stands for the value, and so for part of what is asked
_DAY = re.compile(
    r"\b\d{1,2} (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|\b\d{1,2}/\d{1,2}(?:/\d{2,4})?\b"
)
_FOCUS = ("keys", "modifier_keys", "subject_keys", "core_keys", "target_keys", "scope_keys")
_QUERY = re.compile(r"\b(?:the )?query\b", re.IGNORECASE)
_PASSAGE = re.compile(r"(?:(?<=; )|(?<=\bin )|(?<=\band )|(?<=\. In ))(?:the )?passage\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Side:
    """What one passage says near what is asked; `named`: what each of its sentences names of it."""

    place: int
    passage: Passage
    facts: TextFacts
    lines: Lines
    named: frozenset[frozenset[str]]


def disagreements(
    stack: Stack,
    query: TextFacts,
    passages: Sequence[tuple[Passage, TextFacts]],
    alive: Callable[[], bool] = lambda: True,
    answers: Sequence[Answer] = (),
    reading: Reading | None = None,
) -> tuple[tuple[Disagreement, ...], tuple[str, ...]]:
    """Pairs of passages that contradict each other on what the query asks. The order of passages changes no pair.

    Args:
        query: facts of the query, or of the claim that it asks about.
        passages: in the order of retrieval, with distinct ids.
        alive: asked before each pair; when it says False, the rest is left and told.
        answers: stance and grounds of each passage, in the same order; with them, passages of which one affirms and the
            other denies disagree. Empty where no proposition is asked.
        reading: the query as read; with it, passages that name different sides or classes disagree.

    Returns:
        The disagreements in the order of retrieval, and what was not compared, one line each.
    """
    asked = question_of(query).keys
    value = any(fact.normal.get("asked") for rows in query.by_filter.values() for fact in rows)
    words = " ".join(token.lower for token in front_tokens(reading)) if reading is not None else ""
    sides = []
    for place, (passage, facts) in enumerate(passages):
        if not alive():
            return (), (_left(_pairs(len(passages)), _pairs(len(passages))),)
        others = _others(stack, passage, facts, words, asked)
        sides.append(_side(place, passage, facts, asked, others))
    found: list[Disagreement] = []
    missed: Counter[str] = Counter()
    total = done = 0
    pairs = list(combinations(sides, 2))
    for total, (one, other) in enumerate(pairs):
        if not alive():
            break
        done = total + 1
        if comparable(one.passage, other.passage):
            met = _meet(one, other, asked)
            findings = _compare(stack, one, other, asked, value, missed) if met else ()
            if not findings and answers:
                findings = _opposed(one, other, answers[one.place], answers[other.place])
            if not findings and value and words:
                findings = _valued(stack, one, other, asked, words)
            findings = tuple(row for row in findings if not _course(one, other, row, words))
            if findings:
                later = superseding(one.passage, other.passage)
                found.append(Disagreement(one.passage.id, other.passage.id, findings, later))
    lines = [
        f"disagreements, {why} ({count} of {len(pairs)} pairs of passages)"
        for why, count in sorted(missed.items())
    ]
    if done < len(pairs):
        lines.append(_left(len(pairs) - done, len(pairs)))
    return tuple(found), tuple(lines)


def near(
    facts: TextFacts, lines: Lines, asked: frozenset[str], others: frozenset[int] = frozenset()
) -> TextFacts:
    """The facts that touch what is asked: of the sentences that name some of it, those about a thing that is asked.

    The negation filter weighs all that a sentence says, so of its facts a sentence is kept whole.
    Sentences whose number is in `others` are left out.
    """
    kept: dict[str, list[Fact]] = {name: [] for name in facts.by_filter}
    for at, line in enumerate(lines.lines):
        if at in others or asked.isdisjoint(line.keys):
            continue
        for name, rows in lines.by_line.get(at, {}).items():
            whole = name == "negation"
            kept[name] += rows if whole else [fact for fact in rows if not asked.isdisjoint(_focus(fact))]
    return TextFacts({name: tuple(rows) for name, rows in kept.items()}, facts.unchecked)


def _pairs(count: int) -> int:
    return count * (count - 1) // 2


def _left(count: int, total: int) -> str:
    return f"disagreements: ran out of time, {count} of {total} pairs of passages were not compared"


def _side(
    place: int, passage: Passage, facts: TextFacts, asked: frozenset[str], others: frozenset[int]
) -> _Side:
    lines = lines_of(facts)
    kept = [line for at, line in enumerate(lines.lines) if at not in others]
    named = frozenset(asked & line.keys for line in kept) - {frozenset()}
    return _Side(place, passage, near(facts, lines, asked, others), lines, named)


def _others(
    stack: Stack, passage: Passage, facts: TextFacts, words: str, asked: frozenset[str]
) -> frozenset[int]:
    """Numbers of the sentences that are of another person or thing than the question names."""
    if not may_be_apart(passage.text, words):
        return frozenset()
    read = worded(passage.text, lines_of(facts).lines, stack.reader.vocabulary)
    marked = apart(
        read, passage.text, stack.reader.vocabulary, words or " ".join(sorted(asked)), asked
    ).sentences
    return frozenset(at for at, one in enumerate(marked) if one.of_another)


def _compare(
    stack: Stack, one: _Side, other: _Side, asked: frozenset[str], value: bool, missed: Counter[str]
) -> tuple[Finding, ...]:
    """Conflicts on what is asked, the first passage on the query's side."""
    # Filters need not be symmetric: a pair is always compared the same way round, whatever the order of retrieval.
    turned = (one.passage.text, one.passage.id) > (other.passage.text, other.passage.id)
    left, right = (other, one) if turned else (one, other)
    comparison = stack.compare(left.facts, right.facts)
    findings = tuple(
        _reworded(finding, left, right, turned)
        for finding in comparison.conflicts
        if gainsays(finding, _at(right, finding.hazard, finding.passage_span))
        and _touches(finding, left, right, asked, value)
    )
    if _measured_apart(left, right):
        findings = tuple(finding for finding in findings if not _is_measure(finding, left))
    if not findings:
        missed.update(f"{name}: {why}" for name, why in comparison.unchecked.items())
    return findings


def _opposed(one: _Side, other: _Side, first: Answer, second: Answer) -> tuple[Finding, ...]:
    """One affirms and the other denies, though no filter aligned the two: the ground of each is told."""
    if {first[0], second[0]} != {"affirms", "denies"} or not (first[1] and second[1]):
        return ()
    mine, theirs = first[1][0], second[1][0]
    denial = mine if first[0] == "denies" else theirs
    told = f"{_called(one)} {first[0]} what is asked, {_called(other)} {second[0]} it."
    return (
        replace(
            denial, verdict="conflict", query_span=mine.passage_span, passage_span=theirs.passage_span,
            query_normal=mine.passage_normal, passage_normal=theirs.passage_normal, rule="disagreement.stances",
            sentence=told[:1].upper() + told[1:],
        ),
    )  # fmt: skip


def _valued(stack: Stack, one: _Side, other: _Side, asked: frozenset[str], words: str) -> tuple[Finding, ...]:
    """Different sides or classes, where the question asks for one."""
    vocabulary = stack.reader.vocabulary
    here, there = (worded(side.passage.text, side.lines.lines, vocabulary) for side in (one, other))
    finding = opposed_values(words, asked, here, there)
    return () if finding is None else (_reworded(finding, one, other, False),)


def _measured_apart(left: _Side, right: _Side) -> bool:
    """Whether two passages of known dates speak of different days or hours: a measurement changes."""
    first, second = (when(side.passage.metadata.get("date")) for side in (left, right))
    days = [frozenset(_DAY.findall(side.passage.text.lower())) for side in (left, right)]
    if days[0] & days[1]:
        return False
    return first is not None and second is not None and (first.before(second) or second.before(first))


def _course(one: _Side, other: _Side, finding: Finding, words: str) -> bool:
    """Whether the two sentences tell of different days that they name, one value or state after the other."""
    first, second = _dated(one, finding.query_span), _dated(other, finding.passage_span)
    if began_and_ended(first, second):
        return True
    return _is_measure(finding, one) and dateless(words) and days(first).apart(days(second))


def _dated(side: _Side, span: Span) -> str:
    """The sentence of a span in lower case, with those before it from the last that names a day."""
    spans = [line.span for line in side.lines.lines]
    if not spans:
        return side.passage.text.lower()
    at = side.lines.at(span)
    for start in range(at, -1, -1):
        text = side.passage.text[spans[start].start : spans[at].end].lower()
        if days(text):
            return text
    return side.passage.text[spans[at].start : spans[at].end].lower()


def _is_measure(finding: Finding, left: _Side) -> bool:
    facts = _at(left, finding.hazard, finding.query_span)
    return finding.hazard == "numerical" and any(fact.normal.get("role") == "measure" for fact in facts)


def _meet(one: _Side, other: _Side, asked: frozenset[str]) -> bool:
    """Whether two sentences share a thing that is asked and together name enough of it."""
    return any(
        mine & theirs and covered(asked, mine | theirs) >= (_VALUED if heavy(mine & theirs) else _TOUCHED)
        for mine, theirs in product(one.named, other.named)
    )


def _at(side: _Side, hazard: str, span: Span) -> list[Fact]:
    return [fact for fact in side.facts.by_filter.get(hazard, ()) if fact.span == span]


def _touches(finding: Finding, left: _Side, right: _Side, asked: frozenset[str], value: bool) -> bool:
    """Whether a conflict is about what is asked: its thing is named there, and the two sentences name most of it."""
    spans = (left, finding.query_span), (right, finding.passage_span)
    focus: set[str] = set()
    around: set[str] = set()
    for side, span in spans:
        around |= side.lines.lines[side.lines.at(span)].keys
        for fact in _at(side, finding.hazard, span):
            focus |= _focus(fact)
    if focus and focus.isdisjoint(asked):
        return False
    owned = finding.hazard == "numerical" and heavy(frozenset(focus) & asked)
    least = _VALUED if owned and (value or _is_measure(finding, left)) else _TOUCHED
    return covered(asked, frozenset(around)) >= least


def _focus(fact: Fact) -> frozenset[str]:
    """Bare keys of the thing a fact is about; of a number without an owner, of what it stands by."""
    normal = fact.normal
    if "forms" in normal and not normal["subject_keys"]:
        return frozenset(map(bare, normal["near_keys"]))
    return frozenset(bare(key) for name in _FOCUS for key in normal.get(name) or ())


def _reworded(finding: Finding, left: _Side, right: _Side, turned: bool) -> Finding:
    """The finding with both passages named, the first in retrieval on the query's side."""
    sentence = _QUERY.sub(_name(left), finding.sentence, count=1)
    sentence = _PASSAGE.sub(_name(right), sentence, count=1)
    sentence = sentence[:1].upper() + sentence[1:]
    if not turned:
        return replace(finding, sentence=sentence)
    return replace(
        finding,
        sentence=sentence,
        query_span=finding.passage_span,
        passage_span=finding.query_span,
        query_normal=finding.passage_normal,
        passage_normal=finding.query_normal,
    )


def _name(side: _Side) -> Callable[[re.Match[str]], str]:
    return lambda _: _called(side)  # a function: an id may hold a backslash


def _called(side: _Side) -> str:
    return f'passage "{side.passage.id}"'

"""Order from a question and its answer: "Which came first, X or Y? X, by ten days."."""

from __future__ import annotations

from collections.abc import Iterator

from clinsafe.mitigations.order.fact import Event, order_fact
from clinsafe.mitigations.order.rules import Rules
from clinsafe.mitigations.order.scan import Range, Scan
from clinsafe.protocols import Fact
from clinsafe.text import Reading, Sentence

_RULE = "order.answer"
_OR = "or"


def asks_which(sentence: Sentence, rules: Rules) -> bool:
    """Whether a sentence asks which of two things came first."""
    if sentence.mood != "question":
        return False
    words = [token.lower for token in sentence.tokens]
    grammar = rules.grammar
    return _OR in words and not grammar.asks_which.isdisjoint(words) and not grammar.firsts.isdisjoint(words)


def answered(reading: Reading, question: Scan, answer: Scan) -> Iterator[Fact]:
    """The order that the answer gives, where its first clause names just one of the two."""
    both = _choices(question)
    if both is None:
        return
    low, high = answer.segment(0)
    end = next((i for i in range(low, high) if answer.soft(i) and not answer.bare(low, i)), high)
    said = answer.keyset((low, end))
    if "not" in answer.marks(low, end):
        return
    one, other = (question.keyset(part) for part in both)
    first, second = not said.isdisjoint(one - other), not said.isdisjoint(other - one)
    if first == second:
        return
    early, late = both if first else both[::-1]
    fact = order_fact(reading, answer, _event(question, early), _event(question, late), (low, end), _RULE)
    if fact:
        yield fact


def _choices(scan: Scan) -> tuple[Range, Range] | None:
    """Where the two things stand: around the "or", behind the word that asks for the first."""
    words = [token.lower for token in scan.tokens]
    grammar = scan.rules.grammar
    joint = len(words) - 1 - words[::-1].index(_OR)
    asked = next((i for i in range(joint, -1, -1) if words[i] in grammar.firsts), -1)
    end = next(
        (i for i in range(joint + 1, len(words)) if not scan.bare(joint, i) and scan.soft(i)), len(words)
    )
    if asked < 0 or scan.bare(asked + 1, joint) or scan.bare(joint + 1, end):
        return None
    return (asked + 1, joint), (joint + 1, end)


def _event(scan: Scan, part: Range) -> Event:
    return Event(scan.keyset(part), scan.core(part, False), scan.named(part))

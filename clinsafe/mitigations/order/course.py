"""The course of a treatment through a text: what "it" stands for, and which state was overtaken by a later one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clinsafe.mitigations.order.rules import Rules
from clinsafe.mitigations.order.status import NOTHING, Thing
from clinsafe.protocols import Fact
from clinsafe.text import Sentence


def spoken_of(facts: Sequence[Fact]) -> Thing:
    """Keys and name of the treatment whose state a sentence told last; empty where it told of none."""
    for fact in reversed(facts):
        if fact.normal["type"] == "status" and fact.normal["axis"] == "treatment":
            return fact.normal["target_keys"], fact.normal["name"]
    return NOTHING


def asked_of(sentence: Sentence, rules: Rules) -> Thing:
    """Keys and name of what a sentence asks for ("Any angina?"); empty where it asks nothing of the kind."""
    tokens = sentence.tokens
    if sentence.mood != "question" or not tokens or tokens[0].lower not in rules.grammar.asks:
        return NOTHING
    named = [(token.text, keys) for token in tokens if (keys := rules.lexicon.keys(token))]
    return frozenset(key for _, keys in named for key in keys), " ".join(text for text, _ in named[:6])


def overtaken(facts: Sequence[Fact]) -> list[Fact]:
    """The facts, those marked that a later sentence took back ("warfarin was held … warfarin was restarted").

    Only the latest state counts against a text that speaks of now.
    """
    latest: dict[tuple[frozenset[str], str], bool] = {}
    marked: list[Fact] = []
    for fact in reversed(facts):
        normal = fact.normal
        lasting = normal["type"] == "status" and not normal["weak"] and not normal["window"]
        if lasting and normal["axis"] == "treatment":
            target = normal["target_keys"], normal["whose"]
            if latest.setdefault(target, normal["on"]) != normal["on"]:
                fact = replace(fact, normal={**normal, "overtaken": True})
        marked.append(fact)
    marked.reverse()
    return marked

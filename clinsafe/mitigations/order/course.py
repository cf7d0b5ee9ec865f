"""The course of a treatment through a text: what "it" stands for, and which state was overtaken by a later one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clinsafe.protocols import Fact


def spoken_of(facts: Sequence[Fact]) -> tuple[frozenset[str], str]:
    """Keys and name of the treatment whose state a sentence told last; empty where it told of none."""
    for fact in reversed(facts):
        if fact.normal["type"] == "status" and fact.normal["axis"] == "treatment":
            return fact.normal["target_keys"], fact.normal["name"]
    return frozenset(), ""


def overtaken(facts: Sequence[Fact]) -> list[Fact]:
    """The facts, those marked that a later sentence took back ("warfarin was held … warfarin was restarted").

    Only the latest state counts against a text that speaks of now.
    """
    latest: dict[tuple[frozenset[str], str], bool] = {}
    marked: list[Fact] = []
    for fact in reversed(facts):
        normal = fact.normal
        if normal["type"] == "status" and normal["axis"] == "treatment" and not normal["weak"]:
            target = normal["target_keys"], normal["whose"]
            if latest.setdefault(target, normal["on"]) != normal["on"]:
                fact = replace(fact, normal={**normal, "overtaken": True})
        marked.append(fact)
    marked.reverse()
    return marked

"""Findings that a clinician understands, with a severity that follows from the ratio, the threshold or the schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clinsafe.mitigations.numbers.facts import HAZARD
from clinsafe.mitigations.numbers.lexicon import Lexicon
from clinsafe.mitigations.numbers.match import Matched
from clinsafe.mitigations.numbers.pairs import Pair
from clinsafe.mitigations.numbers.severity import severity
from clinsafe.mitigations.numbers.units import Measure
from clinsafe.protocols import Fact, Finding, Verdict

_RULES = {
    "value": "numerical.value",
    "unit": "numerical.unit",
    "schedule": "numerical.schedule",
    "limit": "numerical.limit",
}


class Reporter:
    """Turns matched facts into findings."""

    def __init__(self, lexicon: Lexicon, defaults: Mapping[str, Measure]) -> None:
        self._lexicon = lexicon
        self._defaults = defaults
        self._notations = {one.id.rpartition(".")[2]: one for one in lexicon.pack.notations}

    def findings(self, matched: Matched, query: Sequence[Fact], passage: Sequence[Fact]) -> list[Finding]:
        """Conflicts first, then what agrees, then notes."""
        found = [self._conflict(pair) for pair in matched.conflicts]
        said: set[int] = set()
        for pair in matched.agreed:
            if id(pair.query) not in said:
                said.add(id(pair.query))
                found.append(self._agreement(pair))
        found += self._notes(query, passage)
        found += self._left_out(matched, query, passage)
        return found

    def _left_out(self, matched: Matched, query: Sequence[Fact], passage: Sequence[Fact]) -> list[Finding]:
        """A note for each text with more numbers than are compared."""
        found = []
        for name, left in zip(("query", "passage"), matched.left_out, strict=True):
            if not left:
                continue
            sides = (left[0], passage[0]) if name == "query" else (query[0], left[0])
            text = (
                f"The {name} states too many different numbers: {len(left)} of them, from {_said(left[0])} on, "
                "were not compared."
            )
            pair = Pair(*sides, 0.5, "")
            found.append(_finding(pair, "not_comparable", "note", 0.5, "numerical.left_out", text))
        return found

    def _conflict(self, pair: Pair) -> Finding:
        one, other = pair.query.normal, pair.passage.normal
        rule = _RULES[pair.why]
        if one["role"] == "interval":
            rule = _RULES["schedule"]
        about = one["subject"] or other["subject"]
        lead = f"For {about}, the" if about else "The"
        asked, told = _said(pair.query), _said(pair.passage)
        if (
            asked == told
        ):  # the same number on another schedule, of another thing: its words alone would not tell
            asked, told = f"“{one['show']}”", f"“{other['show']}”"
        sentence = f"{lead} query says {asked}; the passage says {told}."
        weight = severity(pair, self._lexicon, self._defaults)
        confidence = round(min(0.99, 0.55 + 0.45 * pair.score), 3)
        return _finding(pair, "conflict", weight, confidence, rule, sentence)

    def _agreement(self, pair: Pair) -> Finding:
        sentence = f"Both say {pair.query.normal['show']}."
        if pair.query.normal["raw"] != pair.passage.normal["raw"]:
            sentence = f"{_said(pair.query)} and {_said(pair.passage)} come to the same.".capitalize()
        return _finding(pair, "compatible", "note", 0.9, "numerical.same", sentence)

    def _notes(self, query: Sequence[Fact], passage: Sequence[Fact]) -> list[Finding]:
        """Dangerous notations on one side, beside a fact of the same role on the other."""
        found = []
        for mine, theirs, swapped in ((query, passage, False), (passage, query, True)):
            for fact in mine:
                for note in fact.normal["notes"]:
                    other = _counterpart(fact, theirs)
                    rule = self._notations.get(note)
                    if other is None or rule is None:
                        continue
                    pair = Pair(other, fact, 0.5, "value") if swapped else Pair(fact, other, 0.5, "value")
                    text = f"“{fact.cue}”: {rule.says}."
                    found.append(_finding(pair, "not_comparable", "note", 0.5, rule.id, text))
        return found


def _counterpart(fact: Fact, theirs: Sequence[Fact]) -> Fact | None:
    """A fact of the other text that this one would have been compared with."""
    role = fact.normal["role"]
    roles = (role, "dose") if role == "interval" else (role,)
    return next((one for one in theirs if one.normal["role"] in roles), None)


def _said(fact: Fact) -> str:
    return f"“{fact.cue}”"


def _finding(
    pair: Pair, verdict: Verdict, weight: Any, confidence: float, rule: str, sentence: str
) -> Finding:
    return Finding(
        HAZARD, verdict, "contradiction", weight, confidence, pair.query.span, pair.passage.span,
        pair.query.normal["show"], pair.passage.normal["show"], pair.query.cue, rule, sentence,
    )  # fmt: skip

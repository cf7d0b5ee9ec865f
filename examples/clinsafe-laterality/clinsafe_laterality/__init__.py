"""Left against right: an example of a filter that lives outside clinsafe.

A fact is a side with the content words after it; two facts conflict when they share most of those words and the
sides differ. "Both" and "bilateral" agree with either side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clinsafe.protocols import Fact, Finding, Reading

SIDES = {"left": "left", "right": "right", "bilateral": "both", "bilaterally": "both", "both": "both"}
WORDS_AFTER = 3
SHARED = 0.5


class LateralityFilter:
    """See the module."""

    hazard = "laterality"

    def read(self, reading: Reading, /) -> Sequence[Fact]:
        """One fact for each side that is named before a content word."""
        found = []
        text: Any = reading  # the protocol names the text alone; clinsafe.text.Reading has the sentences
        for sentence in text.sentences:
            for index, token in enumerate(sentence.tokens):
                side = SIDES.get(token.lower)
                following = [other for other in sentence.tokens[index + 1 :] if other.key][:WORDS_AFTER]
                if side and following:
                    keys = frozenset(other.key for other in following)
                    span = text.token_span([token, *following])
                    found.append(
                        Fact(self.hazard, span, {"side": side, "keys": keys}, token.lower, "laterality.side")
                    )
        return found

    def compare(self, query: Sequence[Fact], passage: Sequence[Fact], /) -> Sequence[Finding]:
        """Conflicts and agreements of all facts that share their words."""
        findings = []
        for one in query:
            for other in passage:
                mine, theirs = one.normal["keys"], other.normal["keys"]
                if len(mine & theirs) / len(mine | theirs) >= SHARED:
                    findings.append(_finding(one, other))
        return findings


def _finding(one: Fact, other: Fact) -> Finding:
    sides = (one.normal["side"], other.normal["side"])
    conflict = "both" not in sides and sides[0] != sides[1]
    sentence = (
        f"The query says {sides[0]}, the passage says {sides[1]}."
        if conflict
        else f"Both speak of the same side ({sides[0]})."
    )
    return Finding(
        hazard="laterality",
        verdict="conflict" if conflict else "compatible",
        kind="contradiction",
        severity="critical" if conflict else "note",
        confidence=0.5,
        query_span=one.span,
        passage_span=other.span,
        query_normal=sides[0],
        passage_normal=sides[1],
        cue=other.cue,
        rule=other.rule,
        sentence=sentence,
    )


def load(_content: Any = None) -> LateralityFilter:
    """What the entry point names; the content tree is not needed."""
    return LateralityFilter()

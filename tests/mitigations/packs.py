"""What the tests of rule packs and readings share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from clinsafe.text.parse import Parser
from clinsafe.text.tokens import lemma_of


def hidden(cues: Iterable[str]) -> list[str]:
    """Cues that can never match, since those before them hold all that they say."""
    seen: set[tuple[str, ...]] = set()
    found = []
    for cue in cues:
        words = [[w[:1] + lemma_of(w[1:]) if w[0] == "~" else w for w in p.split("|")] for p in cue.split()]
        forms = set(product(*words))
        found += [cue] if forms <= seen else []
        seen |= forms
    return found


class Counting(Parser):
    """A parser that keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__("")
        self.asked: list[str] = []

    def sentence(self, tokens: Sequence[Any]) -> Any:
        self.asked.append(tokens[0].text)
        return tokens[0].text

"""Which rules can apply to a sentence at all: looked up by a word that they need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from clinsafe.benchmarks.mining.pattern import needed
from clinsafe.benchmarks.mining.rules import Rule
from clinsafe.benchmarks.mining.sentences import Parsed

R = TypeVar("R", bound=Rule)


class Index(Generic[R]):
    """Rules by the words of their pickiest item."""

    def __init__(self, rules: Iterable[R]) -> None:
        self._words: dict[str, list[tuple[int, R]]] = {}
        self._lemmas: dict[str, list[tuple[int, R]]] = {}
        self._always: list[tuple[int, R]] = []
        for place, rule in enumerate(rules):
            items = needed(rule.find)
            if not items:
                self._always.append((place, rule))
                continue
            lemmas, words = min(items, key=lambda item: (len(item[1]), -max(map(len, item[1]))))
            for word in words:
                (self._lemmas if lemmas else self._words).setdefault(word, []).append((place, rule))

    def near(self, sentence: Parsed) -> list[R]:
        """The rules that may match, in the order they were given; `render.apply` looks closer."""
        found = dict(self._always)
        for table, there in ((self._words, sentence.words), (self._lemmas, sentence.lemmas)):
            for word in there:
                found.update(table.get(word, ()))
        return [rule for _, rule in sorted(found.items(), key=lambda item: item[0])]

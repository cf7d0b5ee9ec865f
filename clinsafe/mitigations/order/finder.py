"""Finds the cues of several tables in one walk through a sentence.

The cues are written as for `clinsafe.mitigations.cues.CueTable`; the longest at each place matches, not overlapping
within a table. Two things differ from there: a gap does not reach over a colon either, and of two cues that end at one
token the one that names a word as written wins over one that names its lemma, then one without a gap over the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clinsafe.mitigations.cues import GAP, Match
from clinsafe.text import Token
from clinsafe.text.tokens import TOKEN, lemma_of

_WIDEST_GAP = 3
_STOPS = frozenset(";.:")
_REMEMBERED = 50_000  # words whose openers are kept
Best = dict[str, tuple[int, str, Any]]


class _Node:
    """A place in the tree: what may follow, and the (table, cue, value) that end here."""

    __slots__ = ("after_gap", "ends", "lemmas", "words")

    def __init__(self) -> None:
        self.words: dict[str, _Node] = {}
        self.lemmas: dict[str, _Node] = {}
        self.after_gap: _Node | None = None
        self.ends: list[tuple[str, str, Any]] = []


class Finder:
    """Finds cues.

    Args:
        tables: name -> (cue, value) pairs; of two alike in one table the earlier wins.
        forms: word -> its forms that the list of lemmas does not know.
    """

    def __init__(
        self,
        tables: Mapping[str, Iterable[tuple[str, Any]]],
        forms: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        self.names = tuple(tables)
        self._forms = {form: lemma_of(word) for word, own in (forms or {}).items() for form in own}
        self._root = _Node()
        self._openers: dict[str, tuple[_Node, ...]] = {}
        for name, rows in tables.items():
            for cue, value in rows:
                self._add(name, cue, value)

    def find(self, tokens: Sequence[Token]) -> dict[str, list[Match[Any]]]:
        """Table name -> its matches, left to right."""
        found: dict[str, list[Match[Any]]] = {name: [] for name in self.names}
        openers = self._openers
        for index, token in enumerate(tokens):
            nodes = openers.get(token.lower)
            if nodes is None:
                nodes = self._open(token)
            if nodes:
                best: Best = {}
                for node in nodes:
                    self._collect(node, tokens, index + 1, best)
                for name, (end, cue, value) in best.items():
                    if not found[name] or found[name][-1].end <= index:
                        found[name].append(Match(index, end, cue, value))
        return found

    def _open(self, token: Token) -> tuple[_Node, ...]:
        both = (self._root.words.get(token.lower), self._root.lemmas.get(self._lemma(token)))
        nodes = tuple(node for node in both if node is not None)
        if len(self._openers) < _REMEMBERED:
            self._openers[token.lower] = nodes
        return nodes

    def _lemma(self, token: Token) -> str:
        return self._forms.get(token.lower, token.lemma)

    def _add(self, name: str, cue: str, value: Any) -> None:
        nodes = [self._root]
        for part in cue.lower().split():
            if part == GAP:
                nodes = [_gap(node) for node in nodes]
            else:
                nodes = [_child(node, word) for node in nodes for word in part.split("|")]
        for node in nodes:
            if node is not self._root:
                node.ends.append((name, cue, value))

    def _collect(self, node: _Node, tokens: Sequence[Token], at: int, best: Best) -> None:
        """Note everything that ends at this node or below it, of each table the longest."""
        for name, cue, value in node.ends:
            if name not in best or at > best[name][0]:
                best[name] = (at, cue, value)
        if at < len(tokens) and (node.words or node.lemmas):
            self._step(node, tokens, at, best)
        if node.after_gap is not None:
            for skip in range(at, min(at + _WIDEST_GAP + 1, len(tokens))):
                self._step(node.after_gap, tokens, skip, best)
                if tokens[skip].text in _STOPS:
                    break

    def _step(self, node: _Node, tokens: Sequence[Token], at: int, best: Best) -> None:
        token = tokens[at]
        child = node.words.get(token.lower)
        if child is not None:
            self._collect(child, tokens, at + 1, best)
        child = node.lemmas.get(self._lemma(token))
        if child is not None:
            self._collect(child, tokens, at + 1, best)


def check_cue(cue: str) -> None:
    """Raise ValueError for a cue that could never match: no words, a gap at an end, or signs grown together."""
    parts = cue.split()
    if not parts or GAP in (parts[0], parts[-1]):
        raise ValueError(f"a cue must begin and end with a word, got {cue!r}")
    for word in (word.removeprefix("~") for part in parts if part != GAP for word in part.split("|")):
        pieces = TOKEN.findall(word)
        if len(pieces) != 1:
            raise ValueError(
                f"{word!r} is {len(pieces)} tokens; write them apart, as in {' '.join(pieces)!r}"
            )


def _gap(node: _Node) -> _Node:
    if node.after_gap is None:
        node.after_gap = _Node()
    return node.after_gap


def _child(node: _Node, word: str) -> _Node:
    if word.startswith("~"):
        return node.lemmas.setdefault(lemma_of(word[1:]), _Node())
    return node.words.setdefault(word, _Node())

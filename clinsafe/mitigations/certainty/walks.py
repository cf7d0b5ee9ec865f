"""Walks left and right of a cue that gather the words naming what it is said of."""

from __future__ import annotations

from typing import TypeAlias

from clinsafe.mitigations.certainty.lexicon import Lexicon
from clinsafe.mitigations.certainty.marks import Marked
from clinsafe.mitigations.certainty.operators import BREAKS

Places: TypeAlias = tuple[int, ...]
_SKIP, _CORE, _WIDE = 14, 8, 12  # tokens skipped before a name, words of a name, words of a clause
_APPOSED = 3  # words: "carotid dissection, right ICA, shown" has a short name in apposition
_SUBJECT = 2  # words of a short subject behind a cue that ends in "whether"
_SUBCLAUSE = 6  # tokens in which "that" or "whether" must open a clause for a walk to pass its "is"
COMPLEMENT = frozenset(["of", "for", "that", "about", "to", "as", "towards", "toward", "over", "regarding"])
_OPENERS = frozenset(
    ["that", "this", "it", "she", "he", "they", "these", "there", "which", "what", "whether"]
)
_COMPLEMENTISERS = frozenset(["that", "whether", "if"])
_CONJUNCTIONS = frozenset(["but", "and", "or", "though", "although", "if", "than", "nor"])
_TOPIC = 8  # tokens before a colon that opens a sentence: "Penicillin allergy: childhood rash, unverified"


class Walks:
    """Both walks in one marked sentence. Each gives core (the name) and wide (the clause around it), in text order."""

    def __init__(self, marked: Marked, lexicon: Lexicon) -> None:
        self.tokens, self.taken, self.lexicon = marked.tokens, marked.taken, lexicon
        self.heavy = [i not in self.taken and lexicon.heavy(token) for i, token in enumerate(self.tokens)]
        self.topic = self._topic()

    def strong(self, places: Places) -> bool:
        """Whether a word among these says more than what kind of thing it is."""
        return any(not self.lexicon.weak(self.tokens[i]) for i in places)

    def _topic(self) -> Places:
        """The words before a colon near the beginning."""
        for at, token in enumerate(self.tokens[: _TOPIC + 1]):
            if token.text == ":":
                return tuple(i for i in range(at) if self.heavy[i])
            if token.text in BREAKS:
                break
        return ()

    def right(self, start: int, far: bool = False) -> tuple[Places, Places]:
        """From `start` on; `far` looks beyond the clause for the first word."""
        core: list[int] = []
        wide: list[int] = []
        closed = strong = opened = False
        clause = own = start > 0 and self.tokens[start - 1].lower in _COMPLEMENTISERS
        for at in range(start, min(start + _SKIP + _WIDE, len(self.tokens))):
            token = self.tokens[at]
            if self.heavy[at]:
                wide.append(at)
                if not closed:
                    core.append(at)
                    strong = strong or not self.lexicon.weak(token)
                    closed = len(core) >= _CORE
            elif not wide:
                opened = opened or token.lower in _OPENERS
                clause = clause or opened
                if self._ends_search(at, start, far or opened):
                    break
            elif clause and self._is(at) and not (own and len(wide) > _SUBJECT):
                # once: "that the aneurysm is mycotic", "unsure whether | the node is benign"
                clause, closed = False, closed or strong
            elif self._ends(at):
                break
            else:
                closed = closed or (strong and (token.lower in self.lexicon.prepositions or at in self.taken))
        return tuple(core), tuple(wide)

    def left(self, start: int) -> tuple[Places, Places]:
        """From `start` back."""
        core: list[int] = []
        wide: list[int] = []
        closed = False
        at = start - 1
        while at >= 0 and start - at <= _SKIP + _WIDE and len(wide) < _WIDE:
            token = self.tokens[at]
            if self.heavy[at]:
                wide.append(at)
                if not closed:
                    core.append(at)
            elif wide:
                if self._ends_left(at, closed or len(core) > _APPOSED):
                    break
                closed = closed or self._closes_left(at) or len(core) >= _CORE
            elif start - at > _SKIP or (token.text in ";.!" and at < start - 1):
                break
            at -= 1
        return tuple(reversed(core)), tuple(reversed(wide))

    def _ends_left(self, at: int, named: bool) -> bool:
        """Whether the clause begins here. A short name may stand in apposition or in brackets."""
        token = self.tokens[at]
        if token.text in (",", "("):
            return named
        if self._is(at):
            return not any(t.lower in _COMPLEMENTISERS for t in self.tokens[max(at - _SUBCLAUSE, 0) : at])
        return self._ends(at)

    def _closes_left(self, at: int) -> bool:
        token = self.tokens[at]
        if token.text in (",", "(") or at in self.taken:
            return True
        if token.lower == "that" and at and self._governed(at):
            return False  # "infection from that exposure"
        return token.lower in ("and", "that") or self._is(at)

    def _governed(self, at: int) -> bool:
        """Whether a preposition stands before the token."""
        before = self.tokens[at - 1].lower
        known = before in self.lexicon.prepositions or before in COMPLEMENT
        return known and before not in self.lexicon.be and before not in _CONJUNCTIONS

    def _is(self, at: int) -> bool:
        """Whether the token is "is" or the like; "left" is a side, for "was left" has its "was"."""
        lower = self.tokens[at].lower
        return lower in self.lexicon.be and lower != "left"

    def _ends_search(self, at: int, start: int, far: bool) -> bool:
        """Whether no name can begin beyond this token."""
        token = self.tokens[at]
        if at - start > _SKIP or (token.text == ";" and at > start):
            return True
        if far or at in self.taken or token.lower in COMPLEMENT or self._leads_on(at):
            return False
        if token.text == ",":
            closes = at > start and at - 1 in self.taken
            return not closes and not any(i in self.taken for i in range(at + 1, at + 5))
        return token.text in ";.!()]" or token.lower in self.lexicon.prepositions

    def _leads_on(self, at: int) -> bool:
        """ "suggest, but do not establish, that …": the conjunction goes on to another cue about the same thing."""
        return self.tokens[at].lower in _CONJUNCTIONS and any(i in self.taken for i in range(at + 1, at + 4))

    def _ends(self, at: int) -> bool:
        token = self.tokens[at]
        if token.text == "-":
            return at + 1 < len(self.tokens) and self.tokens[at + 1].start > token.end
        return token.text in BREAKS or token.text == "," or token.lower in self.lexicon.stops

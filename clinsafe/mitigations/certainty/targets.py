"""What a cue is said of: the words that name the thing, before it or after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clinsafe.mitigations.certainty.lexicon import Lexicon
from clinsafe.mitigations.certainty.marks import Mark, Marked
from clinsafe.mitigations.certainty.operators import BREAKS
from clinsafe.mitigations.certainty.walks import COMPLEMENT, Places, Walks

Side = Literal["left", "right", "both"]
_PARTICIPLES = ("ed", "en", "wn", "ne")
_QUOTES = frozenset("\"'")
_PRONOUNS = frozenset(["it", "this", "them", "these", "so"])
_TO_BE = 9  # tokens after a cue in which "to be X" may follow: "assumed, without biopsy, to be lymphoma"
_DETERMINERS = frozenset(
    ["a", "an", "the", "his", "her", "its", "their", "this", "these", "those", "any", "both", "all", "some"]
)


@dataclass(frozen=True, slots=True)
class Target:
    """Token positions: `core` names the thing, `wide` adds what stands with it in the clause."""

    core: Places = ()
    wide: Places = ()


class Finder:
    """Finds targets in one marked sentence."""

    def __init__(self, marked: Marked, lexicon: Lexicon) -> None:
        self.tokens, self.taken, self.lexicon = marked.tokens, marked.taken, lexicon
        self.walks = Walks(marked, lexicon)

    def find(self, mark: Mark, alone: bool) -> Target:
        """The target of a mark; empty where it speaks of what another named.

        Args:
            alone: True if no cue before it has named a thing.
        """
        if self._interposed(mark):
            return Target(*self.walks.right(mark.end + 1))
        inner = self._inner(mark)
        if inner:
            return Target(inner, inner)
        target = self._around(mark, alone)
        topic = self.walks.topic
        if not topic or mark.start < topic[-1]:
            return target
        behind = (
            bool(target.core) and target.core[0] >= mark.end
        )  # "CXR: shadowing, suspicious for TB": TB alone
        if not behind and mark.start and self.tokens[mark.start - 1].text == ",":
            # as in "Aspergillosis: galactomannan 0.6, probable"
            return Target(topic + target.core, topic + target.wide)
        return Target(target.core, topic + target.wide) if target.core else target

    def _around(self, mark: Mark, alone: bool) -> Target:
        if mark.rule.side != "left" and self._pronoun(mark.end):
            return Target(*self.walks.left(self._front(mark))) if alone else Target()
        side = mark.rule.side if mark.rule.side != "auto" else self._side(mark)
        left, before = self.walks.left(self._front(mark))
        right, after = self.walks.right(self._complement(mark), far=side == "left")
        if side == "left":
            return (
                Target(left, before)
                if left and self._complement(mark) == mark.end
                else Target(right or left, after + before)
            )
        if mark.rule.side == "both":
            return Target(right if self.walks.strong(right) else left + right, before + after)
        if side == "both":
            return Target(left or right, before + after)
        if left and not self.walks.strong(right):
            return (
                Target(left + right, before + after)
                if self.walks.strong(left) or not right
                else Target(right, after)
            )
        return Target(right, before + after if mark.rule.modal else after)

    def _interposed(self, mark: Mark) -> bool:
        """ "presumed, not proven, sarcoidosis": both are said of what follows."""
        start = mark.start
        while start and start - 1 in self.taken:
            start -= 1
        return (
            mark.rule.side == "auto"
            and start > 1
            and mark.end < len(self.tokens) - 1
            and self.tokens[start - 1].text == self.tokens[mark.end].text == ","
            and start - 2 in self.taken
            and self.tokens[mark.end + 1].lower not in self.lexicon.stops
            and self.walks.heavy[mark.end + 1]
        )

    def _inner(self, mark: Mark) -> Places:
        """ "ruled PE out", "put PE beyond doubt" hold their target."""
        if ".." not in mark.cue or mark.rule.side != "auto" or not mark.cue.startswith("~"):
            return ()
        return tuple(i for i in range(mark.start + 1, mark.end - 1) if self.lexicon.heavy(self.tokens[i]))

    def _pronoun(self, start: int) -> bool:
        """ "proved it": the thing was named before."""
        if start >= len(self.tokens) or self.tokens[start].lower not in _PRONOUNS:
            return False
        after = self.tokens[start + 1] if start + 1 < len(self.tokens) else None
        if after is None or after.text in BREAKS or after.text == ",":
            return True
        return after.lower in self.lexicon.prepositions and after.lower not in self.lexicon.be

    def _complement(self, mark: Mark) -> int:
        """Where to look on the right: after "to be", if that follows in the clause."""
        if mark.rule.side != "auto":
            return mark.end
        for at in range(mark.end, min(mark.end + _TO_BE, len(self.tokens) - 1)):
            token = self.tokens[at]
            if token.text in BREAKS or token.lower in ("and", "but") or token.lower in self.lexicon.be:
                break
            if token.lower == "to" and self.tokens[at + 1].lower in ("be", "have", "represent", "reflect"):
                return at + 2
        return mark.end

    def _front(self, mark: Mark) -> int:
        """First token of the cue with what is hyphened to it: "biopsy-proven" begins at "biopsy"."""
        start = mark.start
        if start < 2 or self.tokens[start - 1].text != "-":
            return start
        return start - 2 if self.tokens[start - 1].end == self.tokens[start].start else start

    def _side(self, mark: Mark) -> Side:
        """Where the thing stands, by the words around a cue that may have it on either side."""
        at = mark.end
        while at < len(self.tokens) and self.tokens[at].text in _QUOTES:
            at += 1
        following = self.tokens[at] if at < len(self.tokens) else None
        if following is None:
            return "left"
        if following.lower in COMPLEMENT:
            return "right"
        named = bool(following.key) and following.lower not in self.lexicon.prepositions
        if not named and following.lower not in _DETERMINERS:
            colon = following.text == ":" and self.tokens[mark.end - 1].lower in self.lexicon.light
            return "right" if colon else "left"
        if mark.cue.startswith("~") and not self.tokens[mark.start].lower.endswith(_PARTICIPLES):
            return "right"
        return "both" if self._predicate(mark) else "right"

    def _predicate(self, mark: Mark) -> bool:
        """Whether "is" or the like stands before the cue, and not "there is"."""
        before = self._front(mark) - 1
        while before >= 0 and mark.start - before < 5 and self._between(before):
            before -= 1
        if before < 0 or self.tokens[before].lower not in self.lexicon.be:
            return False
        return before == 0 or self.tokens[before - 1].lower != "there"

    def _between(self, at: int) -> bool:
        """Words that may stand between "is" and a cue."""
        lower = self.tokens[at].lower
        return at in self.taken or lower.endswith("ly") or lower in _DETERMINERS or lower in _QUOTES

"""What stands around a cue and changes it: negations, matters still pending, words that only look like either."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from clinsafe.mitigations.certainty.lexicon import Lexicon
from clinsafe.mitigations.certainty.pack import Operator, Rule
from clinsafe.mitigations.cues import Match
from clinsafe.text.tokens import Token

Found: TypeAlias = Match[Rule | Operator]
BREAKS = frozenset(";.:()[]—!")
_WALK = 8  # words walked left of a cue
_AFTER_NEGATION = 4  # a second negation must stand close to the first: "cannot fail to confirm"
_LACKING_REACH = 9


class Surroundings:
    """Answers for one sentence what governs each of its cues."""

    def __init__(self, tokens: Sequence[Token], found: Sequence[Found], lexicon: Lexicon) -> None:
        self.tokens, self.lexicon = tokens, lexicon
        self.ends = {match.end: match for match in found if not _shouted(match, tokens)}

    def before(self, start: int, rule: Rule) -> str:
        """The kind of operator that governs the cue at `start`, "" for none. Two negations cancel out."""
        negations, at, distance = 0, start - 1, 0
        while at >= 0 and distance <= _WALK:
            match = self.ends.get(at + 1)
            if match is None:
                if self._walls(at):
                    break
                at, distance = at - 1, distance + 1
                continue
            if isinstance(match.value, Operator):
                if self._governs(match.value, distance, start, rule):
                    if match.value.kind == "negate":
                        negations += 1
                    elif match.value.kind != "release":
                        return "negate" if negations else match.value.kind
                    elif not self._negation_near(match.start):
                        break
                distance += _AFTER_NEGATION if negations else 1
            elif not self._open(match, at):
                break
            at = match.start - 1
        return "negate" if negations % 2 else ""

    def request(self, match: Found) -> str:
        """ "Exclude PE." at the head of a clause asks for it."""
        token = self.tokens[match.start]
        if not match.cue.startswith("~") or token.lower != token.lemma or match.end >= len(self.tokens):
            return ""
        before = self.tokens[match.start - 1].text if match.start else ";"
        return "pending" if before in BREAKS or before in ",?-" else ""

    def lacking(self, end: int) -> bool:
        """Whether the noun before `end` is said to be missing: "confirmation is awaited"."""
        for at in range(end, min(end + _LACKING_REACH, len(self.tokens))):
            if self.tokens[at].text in BREAKS:
                return False
            match = self.lexicon.after.at(self.tokens, at)
            if match is not None and match.value.kind == "lacking":
                return True
        return False

    def absent(self, end: int) -> bool:
        """Whether what follows is an absence: "confirmed the absence of X"."""
        for at in range(end, min(end + 3, len(self.tokens))):
            if self.tokens[at].text in BREAKS or self.tokens[at].text == ",":
                return False
            match = self.lexicon.after.at(self.tokens, at)
            if match is not None and match.value.kind == "absence" and at - end <= match.value.reach:
                return True
        return False

    def person(self, start: int) -> bool:
        """Whether a person stands before the verb, or nothing does."""
        for at in range(start - 1, max(start - 5, -1), -1):
            token = self.tokens[at]
            if token.text in BREAKS or token.text == ",":
                return False
            if token.lower in self.lexicon.subjects:
                return True
        return start == 0

    def auxiliary(self, match: Found) -> bool:
        """ "has improved", "I have asked": no having."""
        if self.tokens[match.end - 1].lemma != "have" or match.end >= len(self.tokens):
            return False
        following = self.tokens[match.end]
        return following.lower != following.lemma and not following.lower.endswith("s")

    def _governs(self, operator: Operator, distance: int, start: int, rule: Rule) -> bool:
        if distance > operator.reach:
            return False
        if not operator.before:
            return True
        if rule.noun:
            return "noun" in operator.before
        token = self.tokens[start]
        return ("verb" if token.lower == token.lemma else "participle") in operator.before

    def _walls(self, at: int) -> bool:
        """Whether no operator reaches over this token."""
        token = self.tokens[at]
        if token.text in BREAKS or token.text == "," or token.lower in self.lexicon.clause:
            return True
        return token.lower in ("and", "or") and not self._cue_ends(at)

    def _open(self, match: Found, at: int) -> bool:
        """Whether a negation reaches over this other cue: adverbs, modals, and cues joined with and/or."""
        rule = match.value
        if (
            isinstance(rule, Operator)
            or rule.level == "ignore"
            or rule.side == "both"
            or rule.modal
            or rule.patient
        ):
            return True
        return at + 1 < len(self.tokens) and self.tokens[at + 1].lower in ("and", "or")

    def _cue_ends(self, index: int) -> bool:
        match = self.ends.get(index)
        return match is not None and (isinstance(match.value, Operator) or match.value.level != "ignore")

    def _negation_near(self, start: int) -> bool:
        for back in range(start, max(start - 3, 0), -1):
            match = self.ends.get(back)
            if match is not None and isinstance(match.value, Operator) and match.value.kind == "negate":
                return True
        return False


def _shouted(match: Found, tokens: Sequence[Token]) -> bool:
    """IF is immunofluorescence, not a condition: a short word in capitals is an abbreviation, unless all words are."""
    if not isinstance(match.value, Operator) or match.end - match.start != 1:
        return False
    text = tokens[match.start].text
    return len(text) > 1 and text.isupper() and any(token.text.islower() for token in tokens)

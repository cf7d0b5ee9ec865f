"""One sentence prepared for signing: a class for each token, the cues, and what is known of each word so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from clinsafe.mitigations.polarity.rules import DET, HELP, NUMBER, OP, WORD, Cue, Rules
from clinsafe.text.tokens import Token

# What is known of a word: nothing; its sign; perhaps in a negation's list; that it qualifies a signed word; undecided;
# left open.
PLAIN, SIGNED, MAYBE, QUALIFIER, SHADED, OPEN = range(6)


@dataclass(slots=True)
class Op:
    """A cue that acts: ``[start, end)`` tokens, its cue, and whether an earlier cue turned it round."""

    start: int
    end: int
    cue: Cue
    words: str
    flip: int = 1
    flipped_by: int = -1

    @property
    def sign(self) -> int:
        """-1, 0 or 1 with what turned it round."""
        return self.cue.sign * self.flip


@dataclass(slots=True)
class Line:
    """A sentence under work. Arrays run parallel to `tokens`."""

    tokens: Sequence[Token]
    rules: Rules
    kind: list[int]
    op_at: list[int]
    lexical: list[Cue | None]
    ops: list[Op]
    sign: list[int] = field(init=False)
    state: list[int] = field(init=False)
    rule: list[int] = field(init=False)
    past: set[int] = field(default_factory=set)
    other: set[int] = field(default_factory=set)
    quiet: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        size = len(self.tokens)
        self.sign, self.state, self.rule = [1] * size, [PLAIN] * size, [-1] * size

    def lower(self, index: int) -> str:
        """Lower-cased token, "" outside the sentence."""
        return self.tokens[index].lower if 0 <= index < len(self.tokens) else ""

    def among(self, index: int, name: str) -> bool:
        """Whether this token is of a named set of the pack's grammar; False outside the sentence."""
        return self.lower(index) in self.rules.sets[name]

    def op(self, index: int) -> Op | None:
        """The cue that covers this token."""
        at = self.op_at[index]
        return self.ops[at] if at >= 0 else None

    def put(self, index: int, sign: int, state: int, rule: int) -> None:
        """Multiply a word's sign; a stronger knowledge is never overwritten by a weaker."""
        now = self.state[index]
        if state == SIGNED and self._second(index, rule):
            self.sign[index], self.rule[index] = sign, rule  # "was stopped and restarted": the last counts
        elif state in (SIGNED, OPEN):
            if now not in (SIGNED, OPEN) or sign < 0:
                self.rule[index] = rule
            self.sign[index] *= sign
            self.state[index] = OPEN if OPEN in (state, now) else SIGNED
        elif now == PLAIN or (state == MAYBE and now == SHADED):
            self.sign[index] *= sign
            self.state[index], self.rule[index] = state, rule

    def _second(self, index: int, rule: int) -> bool:
        """Whether one predicate has signed this word and here comes another."""
        before = self.rule[index]
        if self.state[index] != SIGNED or min(before, rule) < 0 or before == rule:
            return False
        return self.ops[before].cue.kind == self.ops[rule].cue.kind == "predicate"

    def shade(self, start: int, end: int, rule: int) -> None:
        """Leave the plain words of a range undecided."""
        for index in range(start, end):
            if self.state[index] == PLAIN:
                self.state[index], self.rule[index] = SHADED, rule

    def passive(self, op: Op) -> bool:
        """Whether a verb cue stands in the passive, or as a participle behind its noun."""
        token = self.tokens[op.start]
        if token.lower.endswith("ing") or token.lower == token.lemma or token.lower.endswith("s"):
            return self.be_before(op.start)
        if self.be_before(op.start):
            return True
        if self._before(op.start) in self.rules.sets["have"]:
            return False
        return not self._object_behind(op.end)

    def be_before(self, index: int) -> bool:
        """Whether a form of *be* stands before this token, over adverbs and *not*."""
        return self._before(index) in self.rules.sets["be"]

    def _before(self, index: int) -> str:
        """The last form of be or have before this token, over adverbs and *not*; "" if another word is there."""
        for at in range(index - 1, max(index - 6, -1), -1):
            lower = self.lower(at)
            if self.among(at, "be") or self.among(at, "have"):
                return lower
            covering = self.op(at)
            negator = covering is not None and covering.cue.kind in ("negator", "open")
            if not (negator or self.kind[at] == HELP):
                return ""
        return ""

    def _object_behind(self, index: int) -> bool:
        return index < len(self.tokens) and (
            self.kind[index] in (WORD, DET, NUMBER)
            or (self.kind[index] == OP and self.ops[self.op_at[index]].cue.kind == "negator")
        )

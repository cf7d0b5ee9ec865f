"""How far a cue reaches forward: a noun phrase, with the list it heads."""

from __future__ import annotations

from clinsafe.mitigations.polarity.line import Line, Op
from clinsafe.mitigations.polarity.rules import (
    AND,
    COLON,
    COMMA,
    DET,
    HELP,
    HYPHEN,
    MARK,
    NUMBER,
    OP,
    OR,
    PREP,
    RELATIVE,
    STOP,
    WORD,
)
from clinsafe.mitigations.polarity.scope import FARTHEST, PART, Scope, head


def ahead(line: Line, start: int, listing: bool, both: bool = False) -> Scope:
    """The noun phrases that begin at `start`, with the list they head.

    Args:
        listing: a comma list without "or" is meant as a whole.
        both: of "A and B" both are meant for certain.
    """
    return _Ahead(line, listing, both or listing).walk(start)


class _Ahead:
    def __init__(self, line: Line, listing: bool, both: bool) -> None:
        self.line, self.listing, self.both = line, listing, both
        self.scope = Scope()
        self.run: list[int] = []
        self.sure, self.tail, self.closed, self.skipped = True, False, False, False

    def walk(self, start: int) -> Scope:
        index, size = start, min(len(self.line.tokens), start + 2 * FARTHEST)
        while index < size and self._goes_on(index):
            index += 1
        self._close()
        self.scope.end = index
        return self.scope

    def _goes_on(self, index: int) -> bool:
        kind = self.line.kind[index]
        if kind == NUMBER and not self.tail:
            return self._number(index)
        if kind in PART:
            (self.scope.tail if self.tail else self.run).append(index)
            return True
        if kind == PREP:
            return self._preposition()
        if kind in (COMMA, AND, OR):
            return self._join(index, kind)
        if kind == DET:
            return not self.run or self.tail
        if kind == HELP:
            return self._helper(index)
        return kind == OP and self._op(index)

    def _number(self, index: int) -> bool:
        """A number ends a name ("amiodarone 300 mg"), unless it is part of it ("type 2 diabetes")."""
        if not self.run:
            return self.line.lower(index) == "one"
        if self.line.lower(index - 1) in self.line.rules.numbered:
            self.run.append(index)
        else:
            self._close()
            self.tail = True
        return True

    def _preposition(self) -> bool:
        words = [i for i in self.run if self.line.kind[i] == WORD]
        if not self.tail and words and self.line.lower(words[-1]) in self.line.rules.light:
            self.scope.qualifiers += self.run
            self.run = []
            return True
        if not self.run and not self.tail and not self.scope.qualifiers:
            return self.skipped
        self._close()
        self.tail = True
        return True

    def _helper(self, index: int) -> bool:
        if self.line.among(index, "auxiliaries"):
            return False
        if self.run:
            self._close()
            self.tail = True
        return True

    def _op(self, index: int) -> bool:
        op = self.line.op(index)
        if op is not None and self._noun(op):
            return True
        if op is not None and op.words in self.line.rules.sets["hangs_on"] and self.run:
            self._close()
            self.tail = True
            return True
        return (
            op is not None
            and op.cue.kind in ("open", "history", "relative")
            and self.line.lower(index) != "if"
        )

    def _noun(self, op: Op) -> bool:
        """ "without *cover* of antibiotics": a verb cue that stands as a noun passes the negation on."""
        after = op.end < len(self.line.tokens) and self.line.kind[op.end] == PREP
        self.skipped = after and op.cue.weak and not self.run and not self.tail
        return self.skipped

    def _join(self, index: int, kind: int) -> bool:
        had = bool(self.run or self.scope.heads or self.scope.maybe)
        if kind == AND and self.tail and not self.listing:
            return True  # "on review of films and CT": the phrase hung on it goes on
        self._close()
        self.tail = False
        if not had:
            return kind != COMMA
        if kind == OR:
            self.closed = True
            return self.line.kind[index + 1] != OP if index + 1 < len(self.line.tokens) else False
        return self._after_and(index + 1) if kind == AND else self._after_comma(index + 1)

    def _after_and(self, index: int) -> bool:
        if not self._chunk(index):
            return False
        self.sure = self.sure and self.both
        return True

    def _after_comma(self, index: int) -> bool:
        line, size = self.line, len(self.line.tokens)
        if index < size and line.kind[index] == OR:
            return True
        if index < size and line.kind[index] == AND:
            return len(self.scope.heads) + len(self.scope.maybe) > 1 or self.listing
        if self.closed and not self._closes(index):
            return False
        if not self._chunk(index):
            return False
        if not self.listing and not self._closes(index):
            self.sure = False
        return True

    def _chunk(self, index: int) -> bool:
        """Whether a bare noun phrase begins here."""
        line, words = self.line, 0
        for at in range(index, min(index + FARTHEST, len(line.tokens))):
            kind = line.kind[at]
            if kind in (WORD, HYPHEN, MARK):
                cue = line.lexical[at]
                if cue is not None and (cue.about or cue.sign < 0):
                    return False
                words += kind == WORD
            elif (kind == HELP and not line.among(at, "auxiliaries")) or (
                kind == DET and not words and line.lower(at) in ("any", "other")
            ):
                continue
            else:
                opens_clause = kind in (HELP, NUMBER, DET, COLON, RELATIVE) or self._predicate(at)
                return words > 0 and not opens_clause
        return words > 0

    def _predicate(self, index: int) -> bool:
        op = self.line.op(index)
        return op is not None and op.cue.kind == "predicate" and not op.cue.weak

    def _closes(self, index: int) -> bool:
        """Whether the comma list that goes on here is closed by *or* (or *and* before its last item)."""
        line = self.line
        for at in range(index, min(index + FARTHEST, len(line.tokens))):
            kind = line.kind[at]
            if kind == OR:
                return True
            if kind == AND:
                return self._chunk(at + 1)
            if kind in (STOP, OP, NUMBER, RELATIVE, COLON) or (
                kind == HELP and line.among(at, "auxiliaries")
            ):
                return False
        return False

    def _close(self) -> None:
        if self.run:
            at = head(self.line, self.run)
            if at is not None:
                (self.scope.heads if self.sure else self.scope.maybe).append(at)
            self.scope.qualifiers += [index for index in self.run if index != at]
        self.run = []

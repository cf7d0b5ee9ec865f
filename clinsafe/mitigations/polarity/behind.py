"""The subject that stands before a predicate."""

from __future__ import annotations

from clinsafe.mitigations.polarity.line import Line
from clinsafe.mitigations.polarity.rules import (
    AND,
    COLON,
    COMMA,
    DET,
    HELP,
    MARK,
    OP,
    OR,
    PREP,
    RELATIVE,
    STOP,
    WORD,
)
from clinsafe.mitigations.polarity.scope import FARTHEST, PART, Scope, head


def behind(line: Line, start: int) -> Scope:
    """The subject that stands before `start`."""
    return _Behind(line).walk(start)


class _Behind:
    def __init__(self, line: Line) -> None:
        self.line = line
        self.scope = Scope()
        self.chunks: list[tuple[list[int], str]] = []
        self.run: list[int] = []
        self.listed = self.single = self.bare = False

    def walk(self, start: int) -> Scope:
        index = self._skip(start - 1)
        self.single = any(self.line.among(at, "singular") for at in range(index + 1, start))
        self.bare = not any(self.line.among(at, "be") for at in range(index + 1, start))
        low = max(-1, index - FARTHEST)
        while index > low:
            step = self._step(index)
            if not step:
                break
            index -= step
        self._push("subject")
        self._choose()
        self.scope.end = index + 1
        return self.scope

    def _skip(self, index: int) -> int:
        """Over helpers and negations before the predicate, and over one aside between commas or brackets."""
        line, least = self.line, max(0, index - FARTHEST)
        while index >= least and (line.kind[index] in (HELP, MARK, COLON, DET) or self._transparent(index)):
            index -= 1
        if index > 0 and line.lower(index) in (",", ")"):
            mate = "," if line.lower(index) == "," else "("
            for at in range(index - 1, max(index - 16, 0), -1):
                if line.lower(at) == mate:
                    return at - 1
            return index - 1
        return index

    def _transparent(self, index: int) -> bool:
        op = self.line.op(index)
        return op is not None and (op.cue.reach == "verb" or op.cue.kind in ("open",) or op.cue.weak)

    def _step(self, index: int) -> int:
        """How many tokens to go on by; 0 to stop."""
        line = self.line
        kind = line.kind[index]
        if kind in PART:
            self.run.append(index)
            return 1
        if kind == DET:
            return self._boundary(index)
        if kind == PREP:
            self._push("phrase")
            return 1
        if kind in (AND, OR):
            return self._and(index)
        if kind == COMMA:
            return self._comma()
        if kind == RELATIVE:
            return self._relative(index)
        if kind == OP:
            return self._cue(index)
        if kind == HELP and not line.among(index, "auxiliaries") and line.lower(index) not in ("be", "been"):
            return 1
        self._drop_listed(kind)
        return 0

    def _boundary(self, index: int) -> int:
        before = self.line.kind[index - 1] if index else STOP
        if before == PREP:
            self._push("phrase")
            return 2
        if before in (AND, OR) and self.bare:
            return 0  # "calprotectin and a biologic given up"
        if before in (AND, OR):
            step = self._and(index - 1)
            return step + 1 if step else 0
        return 0 if self.run or self.chunks else 1

    def _and(self, index: int) -> int:
        """Two subjects, unless the verb is singular or the *and* opens a clause of its own."""
        if not self.run and not self.chunks:
            return 0  # "... and must be removed": the subject stands before another predicate
        if self.single and self.line.kind[index] == AND:
            return 0
        comma = index and self.line.kind[index - 1] == COMMA and self.line.kind[index] == AND
        if comma and not self.listed and (self.chunks or not self._earlier(index - 2)):
            return 0
        self.listed = True
        self._push("listed")
        return 1

    def _earlier(self, index: int) -> bool:
        """Whether a list is under way: "rash, fever, *and*"."""
        for at in range(index, max(-1, index - FARTHEST), -1):
            if self.line.kind[at] == COMMA:
                return True
            if self.line.kind[at] not in (*PART, DET, PREP):
                return False
        return False

    def _comma(self) -> int:
        if not self.listed:
            return 0
        self._push("listed")
        return 1

    def _relative(self, index: int) -> int:
        if self.line.lower(index) == "whose":
            return 0  # "a child *whose* tests are negative"
        if index and self.line.kind[index - 1] == WORD and self.run:
            self.run, self.chunks = [], []
            return 1
        return 0

    def _cue(self, index: int) -> int:
        op = self.line.op(index)
        if op is None:
            return 0
        if op.cue.kind in ("open", "history", "relative", "pseudo") or op.cue.reach == "join":
            return 1
        if op.cue.kind == "negator" and op.cue.reach == "phrase":
            return self._boundary(op.start)
        if op.cue.kind == "exception" and op.cue.reach == "after":
            self.run, self.chunks = [], []  # "vaccines *other than X* should be withheld"
            return index - op.start + 1
        participle = op.cue.weak and self.line.lower(index).endswith(("ed", "en", "n"))
        if participle and op.start and self.line.kind[op.start - 1] == WORD:
            self.run, self.chunks = [], []
            return index - op.start + 1
        self._drop_listed(HELP)
        return 0

    def _drop_listed(self, kind: int) -> None:
        """What looked like the first of a list was the end of the clause before."""
        if kind == HELP and self.chunks and self.chunks[-1][1] == "listed":
            self.run = []

    def _push(self, role: str) -> None:
        if self.run:
            self.chunks.append((self.run[::-1], role))
        self.run = []

    def _choose(self) -> None:
        if not self.chunks:
            return
        subjects = self._subjects()
        for number, (run, _) in enumerate(self.chunks):
            at = head(self.line, run) if number in subjects else None
            if at is not None and number and self.listed and self._about(at):
                at = None  # "adrenals clear and nodes absent"
            if at is not None:
                self.scope.heads.append(at)
            others = [index for index in run if index != at]
            (self.scope.qualifiers if number in subjects else self.scope.tail).extend(others)

    def _about(self, index: int) -> bool:
        cue = self.line.lexical[index]
        return cue is not None and cue.about

    def _subjects(self) -> set[int]:
        """Numbers of the chunks that are the subject; chunks run from right to left."""
        found: set[int] = set()
        number = len(self.chunks) - 1
        if self.chunks[number][1] == "phrase":
            return {0}  # only phrases: the nearest one
        found.add(number)
        while number and self.chunks[number - 1][1] == "listed":
            number -= 1
            found.add(number)
        if number and all(self._light(one) for one in found):
            return {number - 1}
        return found

    def _light(self, number: int) -> bool:
        return all(
            self.line.lower(index) in self.line.rules.light or self.line.lower(index) in self.line.rules.weak
            for index in self.chunks[number][0]
            if self.line.kind[index] == WORD
        )

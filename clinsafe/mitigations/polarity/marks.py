"""Marks: every word of a sentence that could turn a meaning round, with what it was read to act on.

A conflict is only sure when the marks of both sentences are accounted for; one that is left over on either side is
another explanation of the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from clinsafe.mitigations.polarity.line import OPEN, SIGNED, Line
from clinsafe.mitigations.polarity.region import ends_piece
from clinsafe.mitigations.polarity.rules import COMMA, MARK, STOP

_ACTING = ("negator", "exception", "answer", "open", "pseudo")
_OPEN, _TWICE = ("open", "pseudo"), 2  # what leaves a matter open counts double
Marks = tuple[tuple[str, int, tuple[str, ...], int], ...]


def pieces(line: Line) -> list[int]:
    """Number of the piece (comma to comma) that each token stands in."""
    piece, found = 0, []
    for kind in line.kind:
        piece += kind in (COMMA, STOP)
        found.append(piece)
    return found


def marks(line: Line, key: Callable[[int], str], piece: Sequence[int]) -> Marks:
    """(words, number of the piece, keys signed by it, 1 for a cue or 0 for a word) of each mark, in order.

    Args:
        piece: what `pieces` says of the line.
    """
    found = [*_cues(line, key), *_words(line)]
    found.sort(key=lambda row: row[0])
    return tuple((words, piece[at], keys, acts) for at, words, keys, acts in found)


def _cues(line: Line, key: Callable[[int], str]) -> Iterator[tuple[int, str, tuple[str, ...], int]]:
    acted: dict[int, list[str]] = {}
    for index, rule in enumerate(line.rule):
        if rule >= 0 and line.state[index] in (SIGNED, OPEN):
            by = line.ops[rule].flipped_by
            for number in {rule, by}:
                acted.setdefault(number, []).append(key(index))
    for number, op in enumerate(line.ops):
        if not op.flip and line.op_at[op.start] < 0:
            continue  # taken back by an answer
        if op.cue.id == "nor" and number and line.ops[number - 1].cue.sign < 0:
            continue  # of one piece with "neither"
        if op.cue.kind in _ACTING or op.cue.sign < 0:
            for _ in range(_TWICE if op.cue.kind in _OPEN else 1):
                yield op.start, op.words, tuple(acted.get(number, ())), int(op.cue.kind not in _OPEN)


def _words(line: Line) -> Iterator[tuple[int, str, tuple[str, ...], int]]:
    doubts, trailing, alike = (line.rules.sets[name] for name in ("doubts", "doubts_at_end", "everyone"))
    denied = any(op.cue.sign < 0 for op in line.ops)
    for index, token in enumerate(line.tokens):
        cue = line.lexical[index]
        if cue is not None and (cue.sign < 0 or cue.opposite):
            yield index, token.lower, (cue.concept, cue.opposite) if cue.opposite else (cue.concept,), 0
            continue
        if line.op_at[index] >= 0 or line.kind[index] == MARK or index in line.quiet or cue is not None:
            continue
        if denied and line.among(index, "under_denial"):
            continue
        elif token.lower in alike:
            yield index, "~all", (), 0
        elif token.lower in doubts or (token.lower in trailing and _adverb(line, index)):
            yield index, token.lower, (), 0


def _adverb(line: Line, index: int) -> bool:
    """ "catheter *out* today", "ileus *over*": no preposition."""
    return (ends_piece(line, index + 1) or line.among(index + 1, "ends")) and not line.among(
        index - 1, "articles"
    )

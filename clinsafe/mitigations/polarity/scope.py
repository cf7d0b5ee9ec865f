"""What a cue reaches, and which word of a noun phrase is the thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from clinsafe.mitigations.polarity.line import Line
from clinsafe.mitigations.polarity.rules import HYPHEN, MARK, NUMBER, WORD

FARTHEST = 40  # tokens a look-ahead or a walk back covers at most
PART = (WORD, NUMBER, HYPHEN, MARK)  # classes a noun phrase is made of


@dataclass(slots=True)
class Scope:
    """Words a cue reaches.

    Attributes:
        heads: the things themselves.
        maybe: things of a comma list that may be meant.
        qualifiers: words that qualify a head.
        tail: words in phrases hung on it; they are neither said nor denied.
        end: where it stopped.
    """

    heads: list[int] = field(default_factory=list)
    maybe: list[int] = field(default_factory=list)
    qualifiers: list[int] = field(default_factory=list)
    tail: list[int] = field(default_factory=list)
    end: int = 0


def of_test(line: Line, index: int) -> int:
    """ "urine *culture* was not sent": of what is done, the test is the thing, not what it looks for."""
    after = line.lower(index + 1)
    test = after in line.rules.trailing and after in line.rules.carriers
    return index + 1 if test and line.kind[index + 1] == WORD else index


def head(line: Line, run: Sequence[int]) -> int | None:
    """The word of a noun phrase that is the thing: the last that is no light, weak or trailing word."""
    words = [index for index in run if line.kind[index] == WORD]
    for place in range(len(words) - 1, -1, -1):
        index = words[place]
        lower = line.lower(index)
        if line.lexical[index] is not None:
            return index
        if (
            len(lower) == 1
            or lower in line.rules.light
            or lower in line.rules.weak
            or lower in line.rules.trailing
        ):
            continue
        trailing = (lower.endswith("ing") and lower not in line.rules.ing) or lower.endswith("ed")
        if place and trailing and line.kind[index - 1] != HYPHEN:
            continue
        return index
    return words[-1] if words and line.lower(words[-1]) not in line.rules.weak else None

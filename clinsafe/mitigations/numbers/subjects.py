"""Which drug or measured thing a number belongs to: the nearest one of the right sort."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from clinsafe.mitigations.numbers.lexicon import Lexicon, Subject
from clinsafe.mitigations.numbers.shapes import Quantity
from clinsafe.mitigations.numbers.units import Measure
from clinsafe.text import Token

DOSE = frozenset(
    ["mass", "units", "mole", "eq", "volume", "mass/weight", "units/weight", "mole/weight", "eq/weight",
     "volume/weight", "mass/area", "units/area", "tablet", "puff", "drop", "patch", "sachet", "ampoule",
     "suppository", "doses", "bags", "cycles", "fractions", "cigarettes", "shock", "energy", "energy/weight",
     "radiation", "activity", "activity/weight"]
)  # fmt: skip
BODY = frozenset(["kg", "lb", "stone", "oz"])
_MATTER = frozenset(["mass", "mole", "eq", "units", "count", "osm"])
_FAR_BEFORE, _FAR_AFTER = 16, 8  # words
_BARE_BEFORE, _BARE_AFTER = 7, 4  # the same for a number without a unit
_WINDOW = 40  # tokens
_NEVER, _ILL = 99.0, 20.0
_FIRM = 3.0


class Mention(NamedTuple):
    """A drug or measured thing at tokens ``[start, end)``."""

    start: int
    end: int
    subject: Subject


class Owner(NamedTuple):
    """Whom a number belongs to; `firm` if the words leave no doubt."""

    subject: Subject | None
    firm: bool


def mentions(tokens: Sequence[Token], lexicon: Lexicon) -> list[Mention]:
    """All drugs and measured things of a sentence."""
    found: list[Mention] = []
    index, openers = 0, lexicon.subjects.openers
    while index < len(tokens):
        lower = tokens[index].lower
        hit = lexicon.subjects.at(tokens, index) if lower in openers else None
        if hit:
            found.append(Mention(index, hit[0], hit[1]))
            index = hit[0]
            continue
        drug = lexicon.stem(lower)
        if drug:
            found.append(Mention(index, index + 1, drug))
        index += 1
    return found


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A sentence with all that can own a number, in order.

    Attributes:
        starts: where its quantities begin. distances: see `distances`. defaults: the units that bare values have.
    """

    tokens: Sequence[Token]
    known: Sequence[Mention]
    starts: Sequence[int]
    distances: Sequence[float]
    lexicon: Lexicon
    defaults: Mapping[str, Measure]

    def owner(self, quantity: Quantity) -> Owner:
        """The subject of one quantity."""
        best, least = None, _NEVER
        first = bisect_left(self.known, quantity.start - _WINDOW, key=lambda mention: mention.start)
        for mention in self.known[first:]:
            if mention.start > quantity.end + _WINDOW:
                break
            cost = self._cost(quantity, mention)
            if cost < least:
                best, least = mention.subject, cost
            if mention.start == quantity.end + 1 and self._is_arm(quantity, mention, best):
                return Owner(mention.subject, True)
        return Owner(best, least <= _FIRM) if least < _ILL else Owner(None, False)

    def _cost(self, quantity: Quantity, mention: Mention) -> float:
        sort = _sort(quantity, mention.subject)
        default = self.defaults.get(mention.subject.id)
        if sort >= _ILL or (default and quantity.measure and not _alike(quantity.measure.dim, default.dim)):
            return _NEVER
        if mention.end <= quantity.start:
            return sort + self._before(quantity, mention)
        if mention.start >= quantity.end:
            return sort + self._after(quantity, mention)
        return 0.0

    def _is_arm(self, quantity: Quantity, mention: Mention, best: Subject | None) -> bool:
        """The drug in "3.1% on warfarin and 2.4% on apixaban", where no measured thing owns the share."""
        if mention.subject.drug is None or (best is not None and best.drug is None):
            return False
        return _share(quantity) and self.tokens[quantity.end].lower in self.lexicon.sets["arms"]

    def _between(self, start: int, end: int) -> int:
        return bisect_left(self.starts, end) - bisect_left(self.starts, start)

    def _before(self, quantity: Quantity, mention: Mention) -> float:
        gap = self.distances[quantity.start] - self.distances[mention.end]
        between = self._between(mention.end, quantity.start)
        crowded = between > (quantity.low != quantity.high)  # "INR 2.4, target 2 to 3"
        if (
            crowded
            and between == 1
            and self.tokens[quantity.start - 1].lower in self.lexicon.sets["becoming"]
        ):
            crowded = False  # "ALT peaked at 1,240 and was 68 at discharge"
        if quantity.measure is None and (crowded or gap > _BARE_BEFORE):
            return _NEVER
        return gap + 3.0 * between if gap <= _FAR_BEFORE else _NEVER

    def _after(self, quantity: Quantity, mention: Mention) -> float:
        words = self.tokens[quantity.end : mention.start]
        between = self._between(quantity.end, mention.start)
        if len(words) <= 4 and all(word.lower in self.lexicon.sets["fillers"] for word in words):
            return 0.1 + 0.3 * len(words) + 4.0 * between
        gap = self.distances[mention.start] - self.distances[quantity.end]
        if quantity.measure is None and gap > _BARE_AFTER:
            return _NEVER
        return gap + 3.0 + 6.0 * between if gap <= _FAR_AFTER else _NEVER


def _share(quantity: Quantity) -> bool:
    measure = quantity.measure
    return measure is not None and measure.dim == "%"


def _alike(dim: str, default: str) -> bool:
    """Whether a value in this dimension can be one of a thing measured in that: 72 % is no weight."""
    if dim == default:
        return True
    return (
        dim.partition("/")[0] in _MATTER
        and default.partition("/")[0] in _MATTER
        and "/" in dim
        and "/" in default
    )


def distances(tokens: Sequence[Token]) -> list[float]:
    """Running distance over the tokens: a content word 1, a function word 0.5, a comma 1.5, a semicolon 6."""
    total, running = 0.0, [0.0]
    for token in tokens:
        if token.key:
            total += 1.0
        elif token.text[0].isalnum():
            total += 0.5
        elif token.text == ",":
            total += 1.5
        elif token.text == ";":
            total += 6.0
        running.append(total)
    return running


def _sort(quantity: Quantity, subject: Subject) -> float:
    """How ill a subject suits this kind of quantity; 20 and more is never."""
    measure = quantity.measure
    dim = measure.dim if measure else ""
    drug = subject.drug is not None
    if measure and subject.analyte and subject.analyte.bare == "words":
        return 99.0  # a score has no unit
    if quantity.kind == "day":
        return 99.0
    if quantity.kind == "share" or quantity.kind == "count":
        shared = subject.analyte and subject.analyte.unit in (
            ("%",) if quantity.kind == "count" else ("%", "")
        )
        return 1.0 if shared else 99.0
    if measure is None:
        return 0.0 if subject.analyte and subject.analyte.bare != "never" else 99.0
    if dim in ("time", "age"):
        return (
            0.0
            if not drug and subject.analyte and subject.analyte.unit in ("second", "millisecond")
            else 99.0
        )
    if dim in DOSE and not measure.hours:
        body = measure.show in BODY
        return (99.0 if drug else 0.0) if body else (0.0 if drug else 4.0)
    if measure.hours:
        return 0.0
    if dim == "%":
        return 0.5 if drug else 0.0
    if "/volume" in dim:
        return 1.5 if drug else 0.0
    return 99.0 if drug else 0.0

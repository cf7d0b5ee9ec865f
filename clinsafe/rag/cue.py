"""Context utilisation: what was found against what was used, question by question (RAG-X, III-B; decision D9).

Everything here turns columns of values into columns of outcomes: 1.0 or 0.0 where the outcome is known, NaN where a
question does not belong into the figure. What is counted over one column has one n.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clinsafe.rag.metrics import PAIRED_RANKS
from clinsafe.rag.settings import Settings
from clinsafe.rag.slices import Columns
from clinsafe.stats import Array

LEVELS = ("substring", "tokens", "cosine")
Known = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Paired:
    """Two outcomes of the same questions, NaN in both where either is not known."""

    first: Array
    second: Array

    @property
    def gap(self) -> Array:
        """First minus second: -1, 0 or 1."""
        return self.first - self.second


def hazards_of(columns: Columns) -> list[str]:
    """The hazards of which the records say anything, sorted."""
    return sorted({*columns.ends("conflict."), *columns.ends("contradicts.")})


def depth_of(columns: Columns, settings: Settings) -> int:
    """How many ranks there are to show: those that were measured, at most the k that counts."""
    measured = [int(end) for end in columns.ends("hit_at.") if end.isdecimal()]
    return min(settings.k, max(measured, default=settings.k), 100)


def adhered(columns: Columns, settings: Settings) -> Array:
    """1 from the threshold on, 0 below it and for an abstention, which claims nothing (decision D9)."""
    adherence = columns.get("adherence")
    found = _where(~np.isnan(adherence), adherence >= settings.thresholds.adherence)
    found[columns.get("abstained") == 1] = 0.0
    return found


def safely_correct(columns: Columns) -> Array:
    """Right and in no hazard against the reference; not known where a hazard was not looked at."""
    correct = columns.get("correct")
    said = columns.get("safe_correct")
    against = [columns.get(f"contradicts.{hazard}") for hazard in columns.ends("contradicts.")]
    made = np.full(len(columns), np.nan)
    if against:
        made = _both(correct, 1 - _any(against))
        looked = ~np.isnan(np.array(against)).all(axis=0)  # else the wrong ones alone would be known
        made[(correct == 0) & looked] = 0.0
    return np.where(np.isnan(said), made, said)


def cue(columns: Columns, settings: Settings) -> dict[str, Array | Paired]:
    """All ``cue.*`` outcomes by metric key."""
    adh, correct = adhered(columns, settings), columns.get("correct")
    hit = columns.get("hit")
    found: dict[str, Array | Paired] = {}
    for end, used in (("", hit), (".safe", columns.get("safe_hit"))):
        found |= {f"cue.all.{name}{end}": column for name, column in quadrants(used, adh).items()}
        known = _known(used, adh, correct)
        grounded = (used == 1) & (adh == 1)
        found[f"cue.all.ungrounded_correct{end}"] = _where(known, (correct == 1) & ~grounded)
        found[f"cue.all.attribution_error{end}"] = _where(known & (correct == 1), (adh == 1) & (used == 0))
        both = _known(correct, used)
        found[f"cue.all.accuracy_gap{end}"] = Paired(_where(both, correct == 1), _where(both, used == 1))
    found |= {f"cue.all.table.{name}": column for name, column in table(hit, adh, correct).items()}
    found["cue.all.unscored"] = (~_known(hit, adh)).astype(np.float64)
    return found


def quadrants(hit: Array, adh: Array) -> dict[str, Array]:
    """The four quadrants over the questions of which both are known; each such question is in exactly one."""
    known = _known(hit, adh)
    return {
        "effective_use": _where(known, (hit == 1) & (adh == 1)),
        "information_blindness": _where(known, (hit == 1) & (adh == 0)),
        "lucky_guess": _where(known, (hit == 0) & (adh == 1)),
        "correct_rejection": _where(known, (hit == 0) & (adh == 0)),
    }


def table(hit: Array, adh: Array, correct: Array) -> dict[str, Array]:
    """The eight cells over the questions of which all three are known."""
    known = _known(hit, adh, correct)
    return {
        f"h{h}a{a}c{c}": _where(known, (hit == h) & (adh == a) & (correct == c))
        for h in (1, 0)
        for a in (1, 0)
        for c in (1, 0)
    }


def retrieval(columns: Columns, settings: Settings) -> dict[str, Array]:
    """Outcomes of retrieval that are made of several values: which rank, which level, how dangerous."""
    hit, safe = columns.get("hit"), columns.get("safe_hit")
    hits = hit == 1
    conflicts = {hazard: columns.get(f"conflict.{hazard}") for hazard in columns.ends("conflict.")}
    any_conflict = _any(list(conflicts.values())) if conflicts else np.full(len(columns), np.nan)
    found = {
        "retrieval.all.no_hit": 1 - hit,
        "retrieval.all.dangerous.only": _where(hits & _known(safe), safe == 0),
        "retrieval.all.dangerous.any": np.where(hits, any_conflict, np.nan),
    }
    for hazard, column in conflicts.items():
        found[f"retrieval.{hazard}.dangerous.any"] = np.where(hits, column, np.nan)
    depth = depth_of(columns, settings)
    found |= dict(_levels(columns, hits, depth))
    if "cosine" not in settings.levels:
        found["retrieval.all.level.cosine"] = np.full(len(columns), np.nan)
    found |= dict(_ranks(columns, depth, settings.thresholds.redundancy))
    return found


def _levels(columns: Columns, hits: Known, depth: int) -> Iterator[tuple[str, Array]]:
    strictest = np.full(len(columns), np.inf)
    for rank in range(1, depth + 1):
        level = columns.get(f"level_at.{rank}")
        strictest = np.where(level >= 1, np.fmin(strictest, level), strictest)
    known = hits & np.isfinite(strictest)
    for number, name in enumerate(LEVELS, start=1):
        yield f"retrieval.all.level.{name}", _where(known, strictest == number)


def _ranks(columns: Columns, depth: int, close: float) -> Iterator[tuple[str, Array]]:
    at = np.array([columns.get(f"hit_at.{rank}") for rank in range(1, depth + 1)])
    contexts = columns.get("contexts")
    hits = (at == 1).sum(axis=0)
    # A rank without a passage holds nothing; a passage of which nothing is known may hold the answer.
    there = np.where(np.isnan(contexts), False, np.arange(1, depth + 1)[:, None] <= contexts)
    for rank in range(1, depth + 1):
        codes = columns.reasons.get(f"hit_at.{rank}")
        if codes is not None:
            there[rank - 1] |= np.isnan(contexts) & (codes > 0)
    unclear = (np.isnan(at) & there).any(axis=0)
    for i, column in enumerate(at):
        alone = (column == 1) & (hits == 1)
        yield f"retrieval.all.exclusive_hit.r{i + 1}", _where(_known(column) & ~(alone & unclear), alone)
    for i in range(min(depth, PAIRED_RANKS)):
        for j in range(i + 1, min(depth, PAIRED_RANKS)):
            pair = f"r{i + 1}_{j + 1}"
            yield f"retrieval.all.redundancy.{pair}", _both(at[i], at[j])
            cosine = columns.get(f"overlap.{i + 1}_{j + 1}")
            yield f"retrieval.all.overlap.{pair}", _where(_known(cosine), cosine >= close)


def derived(columns: Columns, settings: Settings) -> Mapping[str, Array | Paired]:
    """Every outcome that is not simply a value of the records, by metric key."""
    fuzzy = columns.get("fuzzy")
    return {
        **retrieval(columns, settings),
        **cue(columns, settings),
        "generation.all.fuzzy": _where(_known(fuzzy), fuzzy >= settings.thresholds.fuzzy),
        "generation.all.safe_correct": safely_correct(columns),
    }


def _known(*columns: Array) -> Known:
    known: Known = ~np.isnan(columns[0])
    for column in columns[1:]:
        known &= ~np.isnan(column)
    return known


def _where(known: Known, outcome: Known) -> Array:
    return np.where(known, outcome.astype(np.float64), np.nan)


def _both(a: Array, b: Array) -> Array:
    return _where(_known(a, b), (a == 1) & (b == 1))


def _any(columns: Sequence[Array]) -> Array:
    """1 where one of them is, 0 where all are known to be 0, else not known."""
    one = np.any([column == 1 for column in columns], axis=0)
    known = _known(*columns)
    return _where(one | known, one)

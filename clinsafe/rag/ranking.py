"""Recall, precision, AP, RR and nDCG at k, from grades that somebody gave to passages.

As trec_eval has them: precision divides by k, AP and recall by all relevant passages, an ungraded passage is not
relevant, and grades are taken to be complete. nDCG has the gain 2^grade - 1 and its ideal is the best order of ALL
relevant passages, not of those that were retrieved. A passage that a ranking names twice is relevant once, at its first
place, and takes up both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

from clinsafe.rag.item import Item
from clinsafe.rag.values import Values

NAMES = ("recall", "precision", "ap", "rr", "ndcg")
COVERAGE = "corpus coverage"
NOT_GRADED = "nobody graded the passages"
NO_RANKING = "no ranking is known"
WRONG_GRADE = "a grade is not a finite number"
_LARGE = 500.0  # grades from which gains are taken relative to the highest, or they would leave the range of a float


def ranking_values(item: Item, k: int) -> Values:
    """`NAMES` and ``covered`` of one question, each a number in [0, 1] or the reason why there is none.

    Where the corpus holds no relevant passage, ``covered`` is 0 and recall, ap and ndcg, which divide by them, are not
    measured; precision and rr are 0, which is the truth. An empty ranking is a real 0.

    Args:
        item: with `relevance` or `eligible`, and `ranking` or `contexts`.
        k: how many passages count, >= 1.
    """
    found = Values()
    grades = graded(item)
    ranking = ranked(item)
    wrong = grades is not None and not all(map(math.isfinite, grades.values()))
    if grades is None or ranking is None or wrong:
        why = NOT_GRADED if grades is None else WRONG_GRADE if wrong else NO_RANKING
        found.missing = dict.fromkeys(NAMES, why)
        if grades is None or wrong:
            found.missing["covered"] = why
        else:
            found.values["covered"] = float(any(grade > 0 for grade in grades.values()))
        return found
    values, missing = found.values, found.missing
    relevant = {passage: grade for passage, grade in grades.items() if grade > 0}
    gains = once(ranking[:k], relevant)
    places = [rank for rank, gain in enumerate(gains, start=1) if gain]
    values["covered"] = float(bool(relevant))
    values["precision"] = len(places) / k
    values["rr"] = reciprocal_rank(places)
    if not relevant:
        missing.update(dict.fromkeys(("recall", "ap", "ndcg"), COVERAGE))
        return found
    values["recall"] = len(places) / len(relevant)
    values["ap"] = average_precision(places, len(relevant))
    values["ndcg"] = ndcg(gains, list(relevant.values()), k)
    return found


def ranked(item: Item) -> Sequence[str] | None:
    """Ids, best first: as retrieved, else as shown; None where neither is known."""
    if item.ranking is not None:
        return item.ranking
    return None if item.contexts is None else [context.id for context in item.contexts]


def graded(item: Item) -> Mapping[str, float] | None:
    """Passage id -> grade; an eligible passage without a grade has 1. None where nothing is known."""
    if item.relevance is None and item.eligible is None:
        return None
    return {**dict.fromkeys(item.eligible or (), 1.0), **(item.relevance or {})}


def once(ranking: Sequence[str], grades: Mapping[str, float]) -> list[float]:
    """The grade at each rank, 0 where there is none; of a passage that comes twice, only the first time."""
    seen: set[str] = set()
    found = []
    for passage in ranking:
        grade = 0.0 if passage in seen else grades.get(passage, 0.0)
        seen.add(passage)
        found.append(grade)
    return found


def reciprocal_rank(places: Sequence[int]) -> float:
    """1 / rank of the first relevant passage, 0 where there is none.

    Args:
        places: ranks of relevant passages, from 1, rising.
    """
    return 1 / places[0] if places else 0.0


def average_precision(places: Sequence[int], total: int) -> float:
    """Mean over `total` relevant passages of the precision at their rank, 0 for those that are not in the list.

    Args:
        places: ranks of relevant passages, from 1, rising.
        total: relevant passages, >= 1.
    """
    return sum(number / rank for number, rank in enumerate(places, start=1)) / total


def ndcg(grades: Sequence[float], relevant: Sequence[float], k: int) -> float:
    """Discounted gain of the first k, as a share of the best that these relevant passages allow.

    Args:
        grades: by rank, 0 for not relevant.
        relevant: grades > 0 of all relevant passages, in any order.
        k: cut, >= 1.
    """
    ideal = sorted(relevant, reverse=True)
    highest = ideal[0] if ideal and ideal[0] > _LARGE else 0.0
    best = _dcg(ideal[:k], highest)
    return min(1.0, _dcg(grades[:k], highest) / best) if best > 0 else 0.0


def _dcg(grades: Sequence[float], highest: float) -> float:
    discounts = _discounts(len(grades))
    return sum(
        _gain(grade, highest) / discount for grade, discount in zip(grades, discounts, strict=True) if grade
    )


def _gain(grade: float, highest: float) -> float:
    if highest:
        return math.exp2(grade - highest) - math.exp2(-highest) if grade else 0.0
    # Of a grade near 0 the plain formula has nothing left.
    return math.expm1(grade * math.log(2)) if grade < 1 else 2.0**grade - 1


@lru_cache(maxsize=64)
def _discounts(count: int) -> tuple[float, ...]:
    return tuple(math.log2(rank + 1) for rank in range(1, count + 1))

"""Retrieval over the collection: scores in, the first k passages out.

A retriever is a function from a query to one score a passage: cosines, BM25, or their mean (the hybrid of
`clinsafe.benchmarks.hybrid`). Ties count against the retriever: the contradicting passage goes first, the right one
last (decision D1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from clinsafe.benchmarks.endtoend.corpus import Collection, Task
from clinsafe.protocols import Passage, Vectors

Score: TypeAlias = Callable[[str], NDArray[np.float64]]
"""Query -> a score for each passage of the collection; -inf where a passage could not be scored.

Raises `Unscored` where the query could not."""


class Unscored(ValueError):
    """The query could not be scored; the message says why."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a retriever gave for one query.

    Attributes:
        passages: the first k, best first, with their scores.
        right, wrong: place of the two passages among all that were searched, from 1; 0: not searched, or not scored.
    """

    passages: tuple[Passage, ...]
    right: int
    wrong: int


def search(
    collection: Collection, task: Task, scores: NDArray[np.float64], k: int, *, control: bool
) -> Found:
    """The first k passages that the query may see; scores have shape (len(collection.passages),)."""
    usable = collection.seen(task, control=control) & np.isfinite(scores)
    favour = np.zeros(len(scores))
    favour[task.wrong], favour[task.right] = -1, 1
    order = [index for index in np.lexsort((favour, -scores)).tolist() if usable[index]]
    shown = tuple(replace(collection.passages[i], score=float(scores[i])) for i in order[:k])
    place = {index: order.index(index) + 1 if usable[index] else 0 for index in (task.right, task.wrong)}
    return Found(shown, place[task.right], place[task.wrong])


def dense(passages: Vectors, queries: dict[str, Vectors | str], usable: NDArray[np.bool_]) -> Score:
    """Cosine of unit rows.

    Args:
        passages: (n, dim), a row of zeros where there is no vector.
        queries: query -> its vector, or why it has none.
        usable: (n,), which rows are vectors.
    """

    def score(query: str) -> NDArray[np.float64]:
        vector = queries[query]
        if isinstance(vector, str):
            raise Unscored(vector)
        cosines = np.asarray(passages @ vector, dtype=np.float64)
        return np.where(usable, cosines, -np.inf)

    return score


def mean(first: Score, second: Score) -> Score:
    """The plain mean of two scores; a passage that one of them lacks is not scored."""
    return lambda query: (first(query) + second(query)) / 2

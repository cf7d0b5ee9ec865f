"""The collection that is searched: every query's two passages among all other passages of both corpora.

One collection serves all queries. For each query it hides what would spoil its own question: passages that hold its
sentence as it stands in the documents, and the passages that were made for other queries.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clinsafe.benchmarks.endtoend.documents import Texts
from clinsafe.benchmarks.endtoend.neighbours import pair_of
from clinsafe.benchmarks.endtoend.queries import Query
from clinsafe.corpus import Document, windows
from clinsafe.protocols import Passage
from clinsafe.stats import SEED

WORDS = 80  # of a distractor; documents are cut without overlap


@dataclass(frozen=True, slots=True)
class Task:
    """One query in the collection.

    Attributes:
        query: with its sentences.
        right, wrong: indices of its two passages.
        hidden: indices of the ordinary passages that it does not see, as they hold its sentence.
    """

    query: Query
    right: int
    wrong: int
    hidden: frozenset[int]


@dataclass(frozen=True, slots=True)
class Collection:
    """What is searched.

    Attributes:
        passages: the ordinary ones first, then each query's two. Ids are hashes of the text: they give nothing away.
        ordinary: how many of them are ordinary.
        offered: how many ordinary passages the corpora have; more than `ordinary` where a sample was drawn.
        tasks: one a query.
    """

    passages: tuple[Passage, ...]
    ordinary: int
    offered: int
    tasks: tuple[Task, ...]

    def seen(self, task: Task, *, control: bool) -> NDArray[np.bool_]:
        """(len(passages),): which passages this query is searched in; a control has no contradicting one."""
        mask = np.zeros(len(self.passages), dtype=np.bool_)
        mask[: self.ordinary] = True
        mask[list(task.hidden)] = False
        mask[task.right] = True
        mask[task.wrong] = not control
        return mask

    def texts(self) -> list[str]:
        """The passages' texts, in their order."""
        return [passage.text for passage in self.passages]


def build(queries: Sequence[Query], texts: Texts, most: int = 0) -> Collection:
    """Cut the documents, make the queries' passages, find what each query must not see.

    Args:
        queries: with their sentences.
        texts: all documents.
        most: ordinary passages at most; of the others a sample is drawn, always the same, and those of the queries' own
            documents are kept first. 0 takes all.
    """
    cut = _Cut(texts)
    kept = cut.sample(most, {(query.row.source.corpus, query.row.source.document) for query in queries})
    place = {index: number for number, index in enumerate(kept)}
    passages = [cut.passages[index] for index in kept]
    tasks = []
    for query in queries:
        hidden = frozenset(place[index] for index in cut.holding(query.true) if index in place)
        source = f"{query.row.source.corpus} {query.row.source.document}"
        tasks.append(Task(query, len(passages), len(passages) + 1, hidden))
        passages += [_passage(text, source) for text in pair_of(query)]
    return Collection(tuple(passages), len(kept), len(cut.passages), tuple(tasks))


class _Cut:
    """All documents in passages of `WORDS` words; a text that stands in several documents is one passage."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self.passages: list[Passage] = []
        self._spans: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
        known: dict[str, int] = {}
        for (corpus, name), text in texts.items():
            spans = self._spans[corpus, name] = []
            for window in windows(Document(name, text, name), WORDS, 0):
                if (index := known.get(window.text)) is None:
                    index = known[window.text] = len(self.passages)
                    self.passages.append(_passage(window.text, f"{corpus} {name}"))
                spans.append((window.start, window.end, index))

    def sample(self, most: int, first: set[tuple[str, str]]) -> list[int]:
        """Indices of the passages that are kept, in order."""
        everything = list(range(len(self.passages)))
        if not 0 < most < len(everything):
            return everything
        own = {index for key in first for *_, index in self._spans.get(key, ())}
        order = random.Random(SEED).sample(everything, len(everything))  # noqa: S311 - a sample, not a secret
        return sorted(sorted(order, key=lambda index: index not in own)[:most])

    def holding(self, sentence: str) -> Iterator[int]:
        """Passages that hold any part of a sentence, in whatever document it stands."""
        for key, text in self.texts.items():
            at = text.find(sentence)
            while at >= 0:
                end = at + len(sentence)
                yield from (index for a, b, index in self._spans[key] if a < end and at < b)
                at = text.find(sentence, end)


def _passage(text: str, source: str) -> Passage:
    return Passage(hashlib.sha256(text.encode()).hexdigest()[:16], text, source=source)

"""From candidates to a suite: one quad a source document and hazard, split by document, families and sizes in balance.

Everything here is decided by hashes of the material and the seed: the order in which shards come in changes nothing.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from clinsafe.benchmarks.mining.plausible import Plausibility
from clinsafe.benchmarks.mining.quads import Candidate
from clinsafe.text import words


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a suite is to look like.

    Attributes:
        dev, test: cases a hazard.
        dev_share: share of source documents that are kept for dev.
        family_share: the largest share of a hazard's cases that one family may have.
        floor: plausibility below which a quad is nonsense, see `Plausibility.delta`.
        alike: word overlap (Jaccard) of two sentences `a` above which they count as the same.
    """

    dev: int = 100
    test: int = 430
    dev_share: float = 0.2
    family_share: float = 0.12
    floor: float = -1.5
    alike: float = 0.6
    seed: int = 0


@dataclass(slots=True)
class Selection:
    """The chosen candidates by hazard and split, and why others were left out."""

    chosen: dict[str, dict[str, list[Candidate]]]
    left_out: Counter[str] = field(default_factory=Counter)


def plausibility(candidate: Candidate, model: Plausibility) -> float:
    """The least plausible of the three sentences that were made from `a`."""
    return min(
        model.delta(candidate.a, candidate.b),
        model.delta(candidate.a, candidate.a_same),
        model.delta(candidate.b, candidate.b_same),
    )


def split_of(cluster: str, wanted: Wanted) -> str:
    """``dev`` or ``test``: a document's own, for every hazard, before any filter has seen it."""
    digest = hashlib.sha256(f"{wanted.seed}\t{cluster}".encode()).digest()
    return "dev" if int.from_bytes(digest[:4], "big") < wanted.dev_share * 2**32 else "test"


def select(
    candidates: Iterable[Candidate],
    novel: Mapping[str, Mapping[str, bool]],
    model: Plausibility,
    wanted: Wanted,
) -> Selection:
    """Choose.

    Args:
        candidates: of all documents, in any order.
        novel: hazard -> family -> whether the filters' packs know none of its cues; dev holds known families only.
        model: of the same corpus.
        wanted: sizes and shares.
    """
    pools: dict[tuple[str, str], list[Candidate]] = {}
    selection = Selection({hazard: {"dev": [], "test": []} for hazard in novel})
    for candidate in {one.key: one for one in candidates}.values():
        split = split_of(candidate.cluster, wanted)
        if split == "dev" and novel[candidate.hazard][candidate.family]:
            selection.left_out["novel family, kept for test"] += 1
        elif plausibility(candidate, model) < wanted.floor:
            selection.left_out["implausible"] += 1
        else:
            pools.setdefault((candidate.hazard, split), []).append(candidate)
    test: list[frozenset[str]] = []
    for (hazard, split), pool in sorted(pools.items(), key=lambda item: (item[0][1] == "dev", item[0])):
        n, others = (wanted.dev, test) if split == "dev" else (wanted.test, [])
        chosen = _Choice(pool, novel[hazard], n, wanted, others).take()
        selection.chosen[hazard][split] = chosen
        test += [_bag(one.a) for one in chosen if split == "test"]
        selection.left_out["not needed"] += len(pool) - len(chosen)
    return selection


class _Choice:
    """One hazard and split: the scarcest want is served first. `others` are sentences that none may be like."""

    def __init__(
        self,
        pool: Sequence[Candidate],
        novel: Mapping[str, bool],
        n: int,
        wanted: Wanted,
        others: Sequence[frozenset[str]],
    ) -> None:
        self.novel, self.n, self.wanted = novel, n, wanted
        self.most = max(1, int(wanted.family_share * n))
        self.used: Counter[str] = Counter()
        self.have: Counter[tuple[str, bool]] = Counter()
        self.taken: list[frozenset[str]] = list(others)
        rank = sorted(pool, key=lambda one: hashlib.sha256(f"{wanted.seed}{one.key}".encode()).hexdigest())
        self.by_family: dict[str, list[Candidate]] = {}
        for one in rank:
            self.by_family.setdefault(one.family, []).append(one)
        self.clusters: set[str] = set()

    def take(self) -> list[Candidate]:
        """Up to n candidates: novel and known families by turns, in each the least used family first."""
        chosen: list[Candidate] = []
        while len(chosen) < self.n:
            new = self.have["novel", True] * 2 <= len(chosen)
            one = self._next(new) or self._next(not new)
            if one is None:
                break
            chosen.append(one)
            self.used[one.family] += 1
            self.have["novel", self.novel[one.family]] += 1
            self.have["balanced", one.balanced] += 1
            self.clusters.add(one.cluster)
            self.taken.append(_bag(one.a))
        return chosen

    def _next(self, new: bool) -> Candidate | None:
        families = [
            f
            for f, left in self.by_family.items()
            if left and self.novel[f] is new and self.used[f] < self.most
        ]
        for family in sorted(families, key=lambda f: (self.used[f], f)):
            left = self.by_family[family] = [
                one for one in self.by_family[family] if one.cluster not in self.clusters
            ]
            balanced = self.have["balanced", True] <= self.have["balanced", False]
            for one in sorted(
                left, key=lambda one: one.balanced is not balanced
            ):  # stable: the hash decides the rest
                if not self._twin(one):
                    return one
                left.remove(one)
        return None

    def _twin(self, one: Candidate) -> bool:
        bag = _bag(one.a)
        return any(len(bag & other) > self.wanted.alike * len(bag | other) for other in self.taken)


def _bag(text: str) -> frozenset[str]:
    return frozenset(words(text))

"""Which facts of a text can meet a fact of another at all, and how many of them are looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from clinsafe.mitigations.bounds import TooMuchToCompare
from clinsafe.protocols import Fact

MOST = 50_000  # pairs of facts that one comparison looks at
FEW, WALKS = 200, 8  # facts that are gone through so many times before an index of them pays


class Effort:
    """Counts the pairs of one comparison.

    Args:
        most: how many there may be.
    """

    def __init__(self, most: int = MOST) -> None:
        self._left = most

    def spend(self, pairs: int = 1) -> None:
        """Count what is about to be looked at.

        Raises:
            TooMuchToCompare: it is more than is left.
        """
        self._left -= pairs
        if self._left < 0:
            raise TooMuchToCompare


class Index:
    """The facts with some keys in some of their fields.

    A few short questions are answered by going through the facts; an index of a field is made when it is worth it.

    Args:
        facts: those of one form, in the order of the text; every field asked for is a set of keys in `Fact.normal`.
    """

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.facts = facts
        self._fields: dict[str, dict[str, list[int]]] = {}
        self._walks = WALKS if len(facts) <= FEW else 0

    def _walk(self) -> bool:
        """Whether to go through the facts once more."""
        self._walks -= 1
        return self._walks >= 0

    def _places(self, field: str) -> dict[str, list[int]]:
        places = self._fields.get(field)
        if places is None:
            places = self._fields[field] = {}
            for at, fact in enumerate(self.facts):
                for key in fact.normal[field]:
                    places.setdefault(key, []).append(at)
        return places

    def _indexed(self, field: str, keys: Iterable[str]) -> set[int]:
        places = self._places(field)
        return {at for key in keys if key in places for at in places[key]}

    def having(self, field: str, keys: frozenset[str]) -> set[int]:
        """Places of the facts with one of these keys in a field."""
        return self.with_all((field, keys))

    def with_all(self, *wanted: tuple[str, frozenset[str]]) -> set[int]:
        """Places of facts that may have one of the keys in each of the (field, keys).

        Found by the rarest of these; the others may not have been checked.
        """
        if not self._walk():
            return self._indexed(*min(wanted, key=lambda row: self._count(*row)))
        places: Sequence[int] = range(len(self.facts))
        for field, keys in wanted:
            places = [at for at in places if not keys.isdisjoint(self.facts[at].normal[field])]
        return set(places)

    def sharing(self, field: str, keys: frozenset[str], least: int) -> set[int]:
        """Places of the facts that may have at least so many of `keys` in a field, and have one.

        Whoever has so many of them has one of the rarest, for the others are too few.
        """
        if self._walk():
            least = max(least, 1)
            return {at for at, fact in enumerate(self.facts) if len(keys & fact.normal[field]) >= least}
        spare = len(keys) - least + 1
        places = self._places(field)
        rarest = sorted(keys, key=lambda key: (len(places.get(key, ())), key))[:spare]
        return self._indexed(field, rarest)

    def at(self, places: Iterable[int], effort: Effort) -> Iterator[Fact]:
        """The facts at these places in the order of the text, each of them counted."""
        for place in sorted(places):
            effort.spend()
            yield self.facts[place]

    def _count(self, field: str, keys: Iterable[str]) -> int:
        places = self._places(field)
        return sum([len(places[key]) for key in keys if key in places])

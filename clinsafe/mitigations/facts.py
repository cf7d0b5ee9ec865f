"""Facts of one text, as they are kept beside an index: read once, compared at every query.

In `Fact.normal`, a field called ``keys`` or ending in ``_keys`` is a frozenset in memory and a sorted list in JSON.
``keys`` are the canonical keys by which the fact can align: a fact that shares none with the query is never compared.
A fact without ``keys`` is always compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clinsafe.errors import UsageError
from clinsafe.protocols import Fact, Span

SCHEMA_VERSION = 2


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the facts of one filter stand that have a key, and those that have none; the keys of all of them."""

    by_key: Mapping[str, Sequence[int]]
    keyless: Sequence[int]
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class TextFacts:
    """What a stack read in one text.

    Attributes:
        by_filter: filter name -> its facts.
        unchecked: filter name -> why it gave no facts (it raised, or ran out of time). Treated as unsafe.
        keys: filter name -> all alignment keys of its facts, for narrowing; None if a fact has none, for it is
            compared with everything.
    """

    by_filter: Mapping[str, tuple[Fact, ...]]
    unchecked: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, frozenset[str] | None] = field(init=False)
    _places: Mapping[str, _Places] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        places = {name: _places_of(facts) for name, facts in self.by_filter.items()}  # asked at every query
        keys = {name: None if found.keyless else found.keys for name, found in places.items()}
        object.__setattr__(self, "_places", places)
        object.__setattr__(self, "keys", keys)

    def near(self, name: str, keys: frozenset[str] | None) -> tuple[Fact, ...]:
        """The facts of one filter that share a key, or have none; all of them where `keys` is None."""
        facts = self.by_filter.get(name, ())
        if keys is None or not facts:
            return tuple(facts)
        places = self._places[name]
        near = set(places.keyless)
        for key in keys & places.keys:
            near.update(places.by_key[key])
        return tuple([facts[at] for at in sorted(near)])

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; `from_json` gives an equal value back."""
        return {
            "schema_version": SCHEMA_VERSION,
            "facts": {name: [_fact_out(fact) for fact in facts] for name, facts in self.by_filter.items()},
            "unchecked": dict(self.unchecked),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TextFacts:
        """Read what `to_json` wrote.

        Raises:
            UsageError: not facts, or of a later schema.
        """
        try:
            if data["schema_version"] != SCHEMA_VERSION:
                raise UsageError(
                    f"facts of schema {data['schema_version']}, this version reads {SCHEMA_VERSION}: read the text anew"
                )
            facts = {name: tuple(_fact_in(row) for row in rows) for name, rows in data["facts"].items()}
            return cls(facts, dict(data["unchecked"]))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, UsageError):
                raise
            raise UsageError(f"not the facts of a text: {type(error).__name__} {error}") from error


def _places_of(facts: Sequence[Fact]) -> _Places:
    by_key: dict[str, list[int]] = {}
    keyless = []
    for at, fact in enumerate(facts):
        own = fact.normal.get("keys")
        if own is None:
            keyless.append(at)
        else:
            for key in own:
                by_key.setdefault(key, []).append(at)
    return _Places(by_key, keyless, frozenset(by_key))


def _is_keys(name: str) -> bool:
    return name == "keys" or name.endswith("_keys")


def _fact_out(fact: Fact) -> dict[str, Any]:
    normal = {name: _plain(value) for name, value in fact.normal.items()}
    return {
        "hazard": fact.hazard,
        "span": [fact.span.start, fact.span.end],
        "normal": normal,
        "cue": fact.cue,
        "rule": fact.rule,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset | set):
        return sorted(value)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


def _fact_in(row: Mapping[str, Any]) -> Fact:
    normal = {name: _rich(name, value) for name, value in row["normal"].items()}
    return Fact(row["hazard"], Span(*row["span"]), normal, row["cue"], row["rule"])


def _rich(name: str, value: Any) -> Any:
    if _is_keys(name) and isinstance(value, list):
        return frozenset(value)
    if isinstance(value, Mapping):
        return {inner: _rich(inner, item) for inner, item in value.items()}
    return tuple(_rich("", item) for item in value) if isinstance(value, list) else value

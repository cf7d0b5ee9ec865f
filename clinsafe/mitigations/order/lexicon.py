"""The keys by which two texts' events align: light words dropped, words of one event made one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from clinsafe.text.tokens import Token, stem_of

_REMEMBERED = 50_000  # words whose keys are kept


class Lexicon:
    """Event keys of tokens.

    Args:
        light: words that say nothing about which event is meant.
        not_adverbs: words in -ly that name something; the others do not. None: all do.
        events: event name -> its words; they share the key ``@name``.
        endings: event name -> endings of words that are a kind of it; they keep their own key beside ``@name``.
        kinds: event name -> its kinds (antibiotic -> amoxicillin); they keep their own key beside ``^name``.
        anchors: event name -> words it goes by after a prefix.
        units: time unit -> hours.
        numbers: number word -> its value.
    """

    def __init__(
        self,
        light: Sequence[str],
        not_adverbs: Sequence[str] | None,
        events: Mapping[str, Sequence[str]],
        endings: Mapping[str, Sequence[str]],
        kinds: Mapping[str, Sequence[str]],
        anchors: Mapping[str, Sequence[str]],
        units: Mapping[str, float],
        numbers: Mapping[str, float],
    ) -> None:
        self._light = frozenset(light) | {stem_of(word) for word in light} - {""}
        self._not_adverbs = None if not_adverbs is None else frozenset(not_adverbs)
        self._events = {stem_of(word): f"@{name}" for name, words in events.items() for word in words}
        self._endings = [(ending, f"@{name}") for name, ends in endings.items() for ending in ends]
        self._kinds = {stem_of(word): f"^{name}" for name, words in kinds.items() for word in words}
        self._classes = {f"@{name}": (f"@{name}", f"^{name}") for name in kinds}
        self._anchors = {
            word: f"@{name}" if name in events else stem_of(name)
            for name, words in anchors.items()
            for word in words
        }
        self.units = units
        self.numbers = numbers
        self._seen: dict[tuple[str, str], tuple[str, ...]] = {}

    def keys(self, token: Token) -> tuple[str, ...]:
        """Keys of one token: none for a light word, two for a kind of an event."""
        known = self._seen.get((token.lower, token.key))
        if known is None:
            known = self._read(token)
            if len(self._seen) < _REMEMBERED:
                self._seen[token.lower, token.key] = known
        return known

    def anchor(self, token: Token) -> tuple[str, ...]:
        """Keys of the word after "pre-" or "post-"."""
        event = self._anchors.get(token.lower)
        return (event,) if event else self.keys(token) or ((token.key,) if len(token.key) > 1 else ())

    def hours(self, token: Token) -> float:
        """Length of a time unit in hours, 0 for other words."""
        return self.units.get(token.lower) or self.units.get(token.lemma) or 0.0

    def number(self, token: Token) -> float | None:
        """Value of a number or number word, None for other words and for numbers beyond all measure."""
        if token.lower[0].isdigit():
            try:
                value = float(token.lower.replace(",", ""))
            except ValueError:
                return None
            return value if isfinite(value) else None
        return self.numbers.get(token.lower)

    def _adverb(self, word: str) -> bool:
        known = self._not_adverbs
        return known is not None and len(word) > 4 and word.endswith("ly") and word not in known

    def _read(self, token: Token) -> tuple[str, ...]:
        stem = stem_of(token.lower)
        if stem in self._events:
            event = self._events[stem]
            return self._classes.get(event, (event,))
        if stem in self._kinds:
            return token.key, self._kinds[stem]
        if not token.key or token.lower in self._light or stem in self._light or token.key in self._light:
            return ()
        if len(token.key) == 1 and not token.key.isdigit():
            return ()
        if self._adverb(token.lower):
            return ()
        for ending, event in self._endings:
            if token.lower.endswith(ending) and len(token.lower) > len(ending) + 2:
                return (token.key, event)
        return (token.key,)

"""Facts of the texts that were read last, so that a passage that comes again is only compared."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from clinsafe.mitigations.facts import TextFacts

LONGEST = 20_000  # characters; the facts of longer texts are not kept


class Memory:
    """Text -> facts, bounded; safe for several threads.

    Args:
        most: texts kept; the one that was asked for longest ago is forgotten first. 0 keeps none.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._facts: OrderedDict[str, TextFacts] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._facts)

    def __call__(self, text: str, read: Callable[[str], TextFacts]) -> TextFacts:
        """The facts of a text, read with `read` where they are not known. Facts with a failure are not kept."""
        with self._lock:
            if (known := self._facts.get(text)) is not None:
                self._facts.move_to_end(text)
                return known
        facts = read(
            text
        )  # outside the lock: two callers may read the same text, and neither waits for the other
        if not facts.unchecked and len(text) <= LONGEST and self._most:
            with self._lock:
                self._facts[text] = facts
                while len(self._facts) > self._most:
                    self._facts.popitem(last=False)
        return facts

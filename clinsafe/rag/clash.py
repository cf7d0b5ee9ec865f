"""Clinical conflict as evaluation sees it: two texts in, the hazards in which they contradict each other out.

`rag` does not know the filters; who composes a run hands a `Conflicts` in (decision D9: R is blind to all six hazards).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

HAZARDS = ("negation", "numerical", "temporal", "entity_swap", "hedging", "quantifier")
"""Those that the built-in filters look for; a conflict in another hazard counts under its own name."""


@dataclass(frozen=True, slots=True)
class Clash:
    """What the filters said of two texts.

    Attributes:
        hazards: ids of the hazards in which they conflict.
        unchecked: filters that did not look; a pair that was not looked at is never a safe one.
    """

    hazards: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()

    @property
    def safe(self) -> bool:
        """No conflict, and every filter did look."""
        return not self.hazards and not self.unchecked


Conflicts: TypeAlias = Callable[[str, str], Clash]
"""Reference first, then the text that is held against it."""

"""Word tokens below the level of meaning: the unit of every edit distance and overlap."""

from __future__ import annotations

import re

WORD = re.compile(r"\w+(?:[.\-/'’]\w+)*")


def words(text: str) -> tuple[str, ...]:
    """Lower-cased word tokens, the unit of every edit distance and overlap.

    ``5 mg/kg`` gives ``5`` and ``mg/kg``; ``0.5``, ``x-ray`` and ``isn't`` stay whole.
    """
    return tuple(WORD.findall(text.lower()))

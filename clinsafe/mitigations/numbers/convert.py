"""Conversions that our own table lacks, by pint: only between names from the pack, never on raw text.

pint takes raw units wrongly without a word ("U" is an enzyme unit, "C" a coulomb, mg/kg a bare ratio), so each unit of
the pack names its own pint unit, or none.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any


@lru_cache(maxsize=512)
def factor(one: str, other: str) -> float:
    """How many of the unit `other` one of the unit `one` is; 0 without pint or a conversion."""
    registry = _registry()
    if registry is None or not one or not other:
        return 0.0
    try:
        return float(registry.Quantity(1.0, one).to(other).magnitude)
    except Exception:  # noqa: BLE001 - pint raises a dozen kinds for units that do not convert
        return 0.0


@lru_cache(maxsize=1)
def _registry() -> Any:
    """Built at the first need; it takes 0.6 s."""
    try:
        import pint
    except ImportError:
        return None
    return pint.UnitRegistry()

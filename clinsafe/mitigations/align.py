"""Do two facts speak of the same thing? Weighted overlap of content keys; no named-entity model decides anything."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

_LIGHT_KEYS = """
patient person people woman women man men boy girl child year old day week month hour today yesterday tomorrow
now time case report show find found note see seen record result finding studi adult group take given give use
made make present current left right upper lower mild moder sever small larg new known clinic hospit ward doctor
"""
_LIGHT = frozenset(_LIGHT_KEYS.split())
_LIGHT_WEIGHT, _NUMBER_WEIGHT = 0.3, 0.4


@lru_cache(maxsize=65536)
def weight(key: str) -> float:
    """How much a shared key says: 1 for a content word, less for a number or a word that any note holds."""
    if key.removeprefix("=") in _LIGHT:
        return _LIGHT_WEIGHT
    return _NUMBER_WEIGHT if key[:1].isdigit() else 1.0


def mass(keys: Iterable[str]) -> float:
    """Total weight of a set of keys, the same in whatever order a set gives them."""
    return math.fsum(map(weight, keys))


def coverage(keys: frozenset[str], others: frozenset[str]) -> float:
    """Share in [0, 1] of the weight of `keys` found in `others`; 0 for no keys."""
    total = mass(keys)
    return mass(keys & others) / total if total else 0.0


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Symmetric weighted overlap in [0, 1] (Jaccard); 0 if either is empty."""
    union = mass(one | other)
    return mass(one & other) / union if union else 0.0

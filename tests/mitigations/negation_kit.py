"""One loaded negation filter for all tests of a session."""

from __future__ import annotations

from functools import lru_cache

from clinsafe.mitigations.filters.negation import NegationFilter, load
from clinsafe.mitigations.stack import Comparison, Stack
from clinsafe.text import Reader


@lru_cache(maxsize=1)
def load_once() -> NegationFilter:
    """The filter on the packaged rules."""
    return load()


@lru_cache(maxsize=1)
def stack() -> Stack:
    """The filter in a stack without a pipeline."""
    return Stack({"negation": load_once()}, Reader(model=""), seconds=0)


def compare(query: str, passage: str) -> Comparison:
    """What the filter says of two texts."""
    return stack().compare(stack().read(query), stack().read(passage))

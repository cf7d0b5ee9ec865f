"""Normal forms and findings of the temporal filter in words that a clinician reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

Normal = Mapping[str, Any]
_STATES = {
    ("treatment", True): "given or continued",
    ("treatment", False): "stopped or held",
    ("condition", True): "current",
    ("condition", False): "past",
    ("onset", True): "new",
    ("onset", False): "long-standing",
}


class Words(NamedTuple):
    """Both normal forms and the sentence of a finding."""

    query: str
    passage: str
    sentence: str


def order_words(query: Normal, passage: Normal, verdict: str, why: str) -> Words:
    """Words for two orders."""
    one, other = _order(query), _order(passage)
    if verdict == "compatible":
        return Words(one, other, f"Both texts have the same order: {one}.")
    if why == "offset":
        return Words(one, other, f"The texts differ in the time between the two: {one}, against {other}.")
    return Words(one, other, f"The query has {one}; the passage has the order {other}.")


def status_words(query: Normal, passage: Normal, verdict: str) -> Words:
    """Words for two states."""
    one, other = _status(query), _status(passage)
    if verdict == "compatible":
        return Words(one, other, f"Both texts agree: {one}.")
    return Words(
        one,
        other,
        f"The query says that {query['name']} is {_state(query)}; the passage says that it is {_state(passage)}.",
    )


def _order(normal: Normal) -> str:
    if normal["relation"] == "during":
        return f"{normal['early']} during {normal['late']}"
    hours = f"{_span(normal['hours'])} " if normal["hours"] else ""
    return f"{normal['early']} {hours}before {normal['late']}"


def _status(normal: Normal) -> str:
    return f"{normal['name']}: {_state(normal)}"


def _state(normal: Normal) -> str:
    return _STATES[normal["axis"], normal["on"]]


def _span(hours: float) -> str:
    return f"{hours / 24:.3g} days" if hours >= 48 else f"{hours:.3g} h"

"""Facts of the temporal filter: an order of two events, or the state of one thing.

Order facts hold ``early_keys`` and ``late_keys``; a relation "during" holds the event and its occasion in the same
two fields. Status facts hold ``target_keys``: what goes on or stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from clinsafe.mitigations.order.pack import StatusRule
from clinsafe.mitigations.order.scan import Range, Scan
from clinsafe.mitigations.order.whose import whose_events
from clinsafe.protocols import Fact
from clinsafe.text import Reading

HAZARD = "temporal"


class Event(NamedTuple):
    """An event: all keys with its clause, those of its own name (the core), its words.

    `off`: it is a stop; `well`: it is a thing found well.
    """

    keys: frozenset[str]
    core: frozenset[str]
    words: tuple[tuple[str, tuple[str, ...]], ...] = ()
    off: bool = False
    well: bool = False


def order_fact(
    reading: Reading,
    scan: Scan,
    early: Event,
    late: Event,
    at: Range,
    rule: str,
    relation: str = "before",
    hours: float = 0.0,
) -> Fact | None:
    """An order fact from two events, or None where they cannot be told apart."""
    common = early.keys & late.keys
    first, second = (
        early.keys - (common - (early.core - late.core)),
        late.keys - (common - (late.core - early.core)),
    )
    if not first or not second:
        return None
    cue = scan.tokens[at[0] : at[1]]
    return Fact(
        HAZARD,
        reading.token_span(cue),
        {
            "type": "order",
            "keys": first | second,
            "early_keys": first,
            "late_keys": second,
            "early_core_keys": first & early.core,
            "late_core_keys": second & late.core,
            "relation": relation,
            "hours": round(hours, 3),
            "early_well": early.well,
            "late_well": late.well,
            "early_off": early.off,
            "late_off": late.off,
            "whose": whose_events(scan, at[0]),
            "early": _words(early, first),
            "late": _words(late, second),
        },
        " ".join(token.lower for token in cue),
        rule,
    )


def status_fact(
    reading: Reading,
    scan: Scan,
    rule: StatusRule,
    state: tuple[bool, bool],
    at: Range,
    target: frozenset[str],
    name: str,
    whose: str,
    window: bool = False,
) -> Fact:
    """A status fact; `state` is (on, weak), `target` must not be empty, `whose` is "patient" or a relative.

    `window`: it holds until something happens ("held until the scan").
    """
    cue = scan.tokens[at[0] : at[1]]
    return Fact(
        HAZARD,
        reading.token_span(cue),
        {
            "type": "status",
            "keys": target,
            "target_keys": target,
            "on": state[0],
            "axis": rule.axis,
            "weak": state[1],
            "now": rule.now or scan.now(*at),
            "overtaken": False,
            "window": window,
            "through": rule.through or (rule.state == "off" and state[0]),
            "later": state[0] and scan.later(*at),
            "at_once": scan.at_once(*at),
            "whose": whose,
            "asked": scan.sentence.mood == "question",
            "name": name or _named(target),
        },
        " ".join(token.lower for token in cue),
        rule.id,
    )


def event(scan: Scan, ranges: Sequence[Range], last: bool = False) -> Event:
    """The event that stands in some ranges; its core lies in their last clause, or in their first."""
    named = [part for part in ranges if not scan.bare(*part)] or list(ranges)
    main = named[-1] if last else named[0]
    start, end = scan.clause(main, last)
    off = scan.stopping(start, end)
    return Event(
        scan.keyset(*ranges), scan.core(main, last), scan.named(*ranges), off, scan.well((start, end))
    )


def _words(one: Event, keys: frozenset[str]) -> str:
    found = [text for text, own in one.words if not keys.isdisjoint(own)]
    return " ".join(found[:6]) or _named(keys)


def _named(keys: frozenset[str]) -> str:
    return " ".join(sorted(key.lstrip("@=^") for key in keys)[:4])

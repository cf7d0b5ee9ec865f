"""Order in a word: pre-dialysis, postoperatively, antenatal, POD 2."""

from __future__ import annotations

from collections.abc import Iterator

from clinsafe.mitigations.order.fact import Event, event, order_fact
from clinsafe.mitigations.order.scan import Range, Scan
from clinsafe.protocols import Fact
from clinsafe.text import Reading

_MOST = 20  # prefixes of one sentence; where there are more the sentence is told as unread


def prefixed(reading: Reading, scan: Scan) -> Iterator[Fact]:
    """Facts of the prefixes of a sentence."""
    read = 0
    for i, token in enumerate(scan.tokens):
        sign = scan.rules.prefixes.get(token.lower)
        if sign is not None:
            found = _hyphened(scan, i, sign)
        elif token.lower in scan.rules.joined:
            sign, key = scan.rules.joined[token.lower]
            found = (sign, (i, i + 1), frozenset([key]))
        elif token.lower in scan.rules.suffixes:
            found = _suffixed(scan, i, scan.rules.suffixes[token.lower])
        else:
            continue
        if found and read == _MOST:
            scan.cut = True
            break
        if found:
            read += 1
            fact = _fact(reading, scan, *found)
            if fact:
                yield fact


def phased(reading: Reading, scan: Scan) -> Iterator[Fact]:
    """Facts of places in the course of an operation ("at induction", "in recovery")."""
    for match in scan.phases:
        for key in match.value.keys:
            at = (match.start, match.end)
            fact = _fact(reading, scan, match.value.sign, at, frozenset([key]), match.value.rule)
            if fact:
                yield fact


def _hyphened(scan: Scan, at: int, sign: str) -> tuple[str, Range, frozenset[str]] | None:
    tokens = scan.tokens
    word = at + 1
    if word < len(tokens) and tokens[word].text == "-":
        word += 1
    if word >= len(tokens) or tokens[word].lower in scan.rules.frozen or not tokens[word].text[0].isalpha():
        return None
    if word == at + 1 and tokens[word].lower in scan.rules.object_stops:
        return None
    keys = frozenset(scan.rules.lexicon.anchor(tokens[word]))
    return (sign, (at, word + 1), keys) if keys else None


def _suffixed(scan: Scan, at: int, sign: str) -> tuple[str, Range, frozenset[str]] | None:
    """ "Steroid-naive" is before any steroid."""
    if at < 2 or scan.tokens[at - 1].text != "-":
        return None
    keys = frozenset(scan.rules.lexicon.anchor(scan.tokens[at - 2]))
    return (sign, (at - 2, at + 1), keys) if keys else None


def _fact(
    reading: Reading, scan: Scan, sign: str, at: Range, anchor: frozenset[str], rule: str = ""
) -> Fact | None:
    main = _main(scan, at)
    if main is None:
        return None
    whole = event(scan, main)
    named = Event(anchor, anchor)
    if sign == "during":
        return order_fact(reading, scan, whole, named, at, "prefix.during", "during")
    if scan.withheld(main[0][0], at[0]):
        return None  # what was not seen before an operation need not have been seen after it
    early, late = (whole, named) if sign == "before" else (named, whole)
    return order_fact(reading, scan, early, late, at, rule or f"prefix.{sign}")


def _main(scan: Scan, at: Range) -> tuple[Range, ...] | None:
    """What the prefixed word speaks of: its clause, else its segment, else the next one."""
    for left, right in (scan.chunk(*at), scan.segment(at[0])):
        if not scan.bare(left, at[0]) or not scan.bare(at[1], right):
            return (left, at[0]), (at[1], right)
    _, high = scan.segment(at[0])
    if high + 1 < len(scan.tokens):
        following = scan.segment(high + 1)
        if not scan.bare(*following):
            return (at[0], at[0]), following
    return None

"""What narrows a number: route, phase, group, side, time of day; and whether a span is a length or an offset."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from clinsafe.mitigations.numbers.lexicon import Lexicon
from clinsafe.text import Token

_BEFORE = frozenset(["change", "aim", "denied"])  # kinds whose words stand before the number only
_NONE: frozenset[str] = frozenset()
_ANCHOR = 6  # tokens that the event of "2 days after …" is looked for in

Hit = tuple[int, int, str, str]  # start, end, kind, value


def hits(tokens: Sequence[Token], lexicon: Lexicon) -> list[Hit]:
    """All qualifying words of a sentence."""
    found: list[Hit] = []
    known = lexicon.qualifiers
    for at, token in enumerate(tokens):
        for kind, value, words in known.get(token.lower, ()):
            size = len(words)
            if size == 1 or tuple(other.lower for other in tokens[at : at + size]) == words:
                found.append((at, at + size, kind, value))
    return found


def quality(
    found: Sequence[Hit], start: int, end: int, lexicon: Lexicon, stops: Sequence[int] = ()
) -> frozenset[str]:
    """ "route:oral", "phase:loading" …: of each kind the one value within reach; none where several are.

    Args:
        stops: the semicolons of the sentence, in order; no qualifier reaches across one.
    """
    if not found:
        return _NONE
    reach = lexicon.pack.qualifier_reach
    values: dict[str, set[str]] = {}
    first = bisect_left(found, (start - lexicon.widest,))
    for begin, stop, kind, value in found[first:]:
        if begin - end > lexicon.widest:
            break
        far = start - stop if stop <= start else begin - end if begin >= end else 0
        crossed = bisect_left(stops, min(begin, start)) != bisect_left(stops, max(stop, end))
        if far < reach[kind] and not crossed and (kind not in _BEFORE or stop <= start):
            values.setdefault(kind, set()).add(value)
    return frozenset(f"{kind}:{next(iter(some))}" for kind, some in values.items() if len(some) == 1)


def relation(tokens: Sequence[Token], start: int, end: int, lexicon: Lexicon) -> str:
    """``length`` ("for 7 days"), ``offset`` ("after 7 days", "7 days later"), or "" where the words do not say."""
    after = [token.lower for token in tokens[end : end + 3] if token.text not in ("'", "s")]
    if (
        after
        and after[0] in lexicon.sets["offset_cues"]
        and after[0] not in ("in", "at", "by", "time", "from", "since")
    ):
        return "offset"
    for at in range(start - 1, max(-1, start - 4), -1):
        lower = tokens[at].lower
        if lower in lexicon.sets["length_cues"] or lower == "time":  # "tourniquet time 95 min"
            return "length"
        if lower in lexicon.sets["offset_cues"]:
            return "offset"
        if tokens[at].text in ",;":
            break
    return "length" if after and after[0] in lexicon.sets["length_cues"] else ""


def anchor(tokens: Sequence[Token], keys: Sequence[str], end: int, lexicon: Lexicon) -> frozenset[str]:
    """Keys of the event a span is counted from ("2 days after surgery": surgery); empty where it names none.

    Args:
        keys: of the tokens, "" for numbers and words without content.
        end: token after the span.
    """
    at = end
    while at < min(end + 2, len(tokens)) and tokens[at].lower not in lexicon.sets["anchor_cues"]:
        at += 1
    if at >= min(end + 2, len(tokens)):
        return _NONE
    found = []
    for token, key in zip(tokens[at + 1 : at + 1 + _ANCHOR], keys[at + 1 :], strict=False):
        if token.text in ",;.:()" or token.lower in lexicon.sets["anchor_ends"]:
            break
        if key:
            found.append(key)
    return frozenset(found)

"""Counts that are shares of a total given elsewhere in the sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from clinsafe.mitigations.quantity_words.interval import at_count
from clinsafe.mitigations.quantity_words.lexicon import Lexicon
from clinsafe.mitigations.quantity_words.numbers import Number, measured, numbers, plural
from clinsafe.mitigations.quantity_words.share import Figure
from clinsafe.text.tokens import Token

_PARTS_OF = frozenset(["of", "which", "them", "these", "whom", "those"])
_OPENING = frozenset(["of", "among", "amongst", "from"])
_AUXILIARY = frozenset(["did", "was", "were", "had", "is", "are", "do", "does"])
_SIGNS = frozenset(["<", ">", "≤", "≥"])
_FILLED = 4  # words between "of" and the total
_LONG = 30  # tokens of a sentence that counts what the next or the last one speaks of
_MOST_NUMBERS = 24  # in one sentence; a table row beyond that holds no prose shares


def counts(
    tokens: Sequence[Token], free: Sequence[Number], counted: Sequence[Number], lexicon: Lexicon
) -> Iterator[Figure]:
    """Two neighbouring counts that add up to a total; counts "of them", "of which"."""
    if len(counted) > _MOST_NUMBERS:
        return
    free = [number for number in free if not _compared(tokens, number)]
    totals = [number for number in free if number.value >= 2 and _names_set(tokens, number, lexicon)]
    sizes = totals + [number for number in free if number.value >= 2 and _opens_clause(tokens, number)]
    loose = [number for number in free if not measured(tokens, number, lexicon)]
    used: set[int] = set()
    for total in sizes:
        later = [number for number in loose if number.start not in used and number != total]
        for first, second in pairwise(later):
            if first.value + second.value == total.value and first.start not in used:
                used |= {first.start, second.start}
                yield from (_counted(number, total, "figure.adds_up") for number in (first, second))
    for number in loose:
        total_ = next((t for t in totals if t.start < number.start and t.value >= number.value), None)
        if total_ is None or number.start in used:
            continue
        if _of_them(tokens, number) or _acts(tokens, number, total_, lexicon):
            used.add(number.start)
            yield _counted(number, total_, "figure.of_them")


def _compared(tokens: Sequence[Token], number: Number) -> bool:
    """ "≥6 wet nappies": a bound, no total."""
    return number.start > 0 and tokens[number.start - 1].text in _SIGNS


def carried(before: Sequence[Token], tokens: Sequence[Token], lexicon: Lexicon) -> Iterator[Figure]:
    """Counts of a set whose size the sentence before gives: "Five samples were sent. Two grew yeasts"."""
    if len(before) > _LONG or len(tokens) > _LONG:
        return
    totals = [n for n in numbers(before, lexicon) if n.value >= 2 and _names_set(before, n, lexicon)]
    if len(totals) != 1:
        return
    for number in numbers(tokens, lexicon):
        opens = not number.start or tokens[number.start - 1].lower in (",", "and", ";", "only")
        after = tokens[number.end].lower if number.end < len(tokens) else ""
        acts = after in lexicon.pack.count_verbs or after.endswith("ed")
        if opens and acts and number.value < totals[0].value:
            yield _counted(number, totals[0], "figure.of_them")._replace(named=-1)


def _counted(number: Number, total: Number, rule: str) -> Figure:
    label = f"{number.value:.0f} of {total.value:.0f}"
    share = at_count(number.value, total.value)
    return Figure(number.start, number.end, share, label, rule, total.value, total.end)


def _names_set(tokens: Sequence[Token], number: Number, lexicon: Lexicon) -> bool:
    if measured(tokens, number, lexicon):
        return False
    if number.start and tokens[number.start - 1].lower in ("of", "total", "=", "all"):
        return True
    if number.start >= 2 and tokens[number.start - 1].text == ":" and _alone(tokens, number):
        return plural(tokens[number.start - 2].lower) or tokens[number.start - 2].key in lexicon.sets
    for token in tokens[number.end : number.end + 5]:
        if token.text in ",;:.()":
            return False
        if plural(token.lower) or (token.key in lexicon.sets and token.lower.endswith(("n", "e", "a"))):
            return True
    return False


def _alone(tokens: Sequence[Token], number: Number) -> bool:
    """ "Cousins: nine, ..."."""
    return number.end >= len(tokens) or tokens[number.end].text in ",;.("


def bare_denial(tokens: Sequence[Token], end: int) -> bool:
    """ "... eleven were euploid and three not": the three say nothing new."""
    after = [token.lower for token in tokens[end : end + 3]]
    if after and after[0] in _AUXILIARY:
        after = after[1:]
    return after[:1] == ["not"] and (len(after) == 1 or after[1] in (",", ";", ".", ")"))


def _opens_clause(tokens: Sequence[Token], number: Number) -> bool:
    """ "; fourteen had been biopsied, eleven ...": a set named before."""
    before = tokens[number.start - 1].text if number.start else ";"
    after = tokens[number.end].lower if number.end < len(tokens) else ""
    return before in ",;" and after in ("had", "were", "have", "are")


def _acts(tokens: Sequence[Token], number: Number, total: Number, lexicon: Lexicon) -> bool:
    """ "Of 26 implants, 24 were lost"; "forty children had surgery, just three relapsed"."""
    end = number.end + 1 if _single_one(tokens, number) else number.end
    after = tokens[end].lower if end < len(tokens) else ""
    before = tokens[number.start - 1].lower
    opens = _opens(tokens, total, lexicon)
    if before in ("a", "only", "just", "merely") and end > number.end:
        return opens
    if after in ("", ".", ";", ",", ":"):
        return opens and before != "aged" and (before in lexicon.pack.count_verbs or before.endswith("ed"))
    if after not in lexicon.pack.count_verbs and not after.endswith("ed"):
        return False
    if before in ("only", "just", "merely", "whom"):
        return True
    return (opens or _listed(tokens, total)) and before in (",", "and", "but", "—", "which")


def _single_one(tokens: Sequence[Token], number: Number) -> bool:
    """ "of ten checks, a single one found ..."."""
    after = tokens[number.end].lower if number.end < len(tokens) else ""
    return number.value == 1 and after == "one" and tokens[number.start].lower == "single"


def _listed(tokens: Sequence[Token], total: Number) -> bool:
    """ "Three stents, one occluded": the set opens the line, or stands after its heading."""
    return total.start == 0 or tokens[total.start - 1].text == ":"


def _opens(tokens: Sequence[Token], total: Number, lexicon: Lexicon) -> bool:
    """ "Of 26 implants", "of her last 10 slots"."""
    at = total.start - 1
    while at > 0 and total.start - at <= _FILLED and tokens[at].lower not in _OPENING:
        if tokens[at].lower not in lexicon.pack.fillers:
            return False
        at -= 1
    return at >= 0 and tokens[at].lower in _OPENING


def _of_them(tokens: Sequence[Token], number: Number) -> bool:
    after = [token.lower for token in tokens[number.end : number.end + 2]]
    return len(after) == 2 and after[0] == "of" and after[1] in _PARTS_OF

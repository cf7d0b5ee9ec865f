"""Figures that are shares: 3 of 12, 4/6 sets, 30% of patients, one third, all but 2 of 14."""

from __future__ import annotations

from collections.abc import Sequence

from clinsafe.mitigations.quantity_words.counts import counts
from clinsafe.mitigations.quantity_words.interval import Interval, at, at_count
from clinsafe.mitigations.quantity_words.lexicon import Lexicon
from clinsafe.mitigations.quantity_words.numbers import (
    Number,
    labelled,
    numbers,
    of_or_verb,
    past_fillers,
    plural,
)
from clinsafe.mitigations.quantity_words.share import Figure
from clinsafe.text.tokens import Token

_TABLE = 60  # numbers in one sentence that make it a table row, not prose
_CALENDAR = (7, 12, 52)  # n/7, n/12, n/52: days, months, weeks
_LARGEST = 20  # a larger figure after / is a strength or a pressure
_RATE_JOINS = frozenset(
    ["of", "was", "is", "were", "at", ":", "=", "reached", "about", "approximately", "only"]
)
_EXCEPT = frozenset(["but", "except", "save", "bar", "barring", "excepting"])
_OWNERS = frozenset(["the", "his", "her", "their", "these", "those", "your", "my", "our"])
_RATE_REACH = 2  # words between a rate and its figure
_WIDEST = 3  # words between the count and "out of"


def figures(tokens: Sequence[Token], lexicon: Lexicon) -> list[Figure]:
    """All shares in figures, left to right, not overlapping."""
    counted = numbers(tokens, lexicon)
    if not counted or len(counted) > _TABLE:
        return []
    by_start = {number.start: number for number in counted}
    found: list[Figure] = []
    done = 0
    for number in counted:
        if number.start < done:
            continue
        figure = _figure(tokens, number, by_start, lexicon)
        if figure is not None:
            found.append(_complement(tokens, figure))
            done = figure.end
    taken = {index for figure in found for index in range(figure.start, figure.end)}
    free = [number for number in counted if number.start not in taken]
    found += counts(tokens, free, counted, lexicon)
    return sorted(found)


def _figure(
    tokens: Sequence[Token], number: Number, by_start: dict[int, Number], lexicon: Lexicon
) -> Figure | None:
    if labelled(tokens, number, lexicon):
        return None
    return (
        _fraction(tokens, number, lexicon)
        or _of_total(tokens, number, by_start, lexicon)
        or _slash(tokens, number, by_start, lexicon)
        or _percent(tokens, number, lexicon)
    )


def _fraction(tokens: Sequence[Token], number: Number, lexicon: Lexicon) -> Figure | None:
    at_ = number.end + 1 if number.end < len(tokens) and tokens[number.end].text == "-" else number.end
    if at_ >= len(tokens) or tokens[number.start].is_number or not 0 < number.value < 10:
        return None
    part = lexicon.pack.parts.get(tokens[at_].lower)
    follows = tokens[at_ + 1].lower if at_ + 1 < len(tokens) else ""
    if not part or number.value >= part or not of_or_verb(follows, lexicon):
        return None
    share = at(number.value / part)
    wide = Interval(max(0.0, share.low - 0.02), min(1.0, share.high + 0.02), True)
    return Figure(number.start, at_ + 1, wide, f"{number.value:.0f}/{part}", "figure.fraction")


def _of_total(
    tokens: Sequence[Token], number: Number, by_start: dict[int, Number], lexicon: Lexicon
) -> Figure | None:
    for step in range(_WIDEST + 1):
        at_ = number.end + step
        if at_ + 1 >= len(tokens) or (tokens[at_].text in ".;:," and step):
            return None
        word, after = tokens[at_].lower, tokens[at_ + 1].lower
        if word == "out" and after == "of":
            return _share_of(tokens, number, at_ + 2, by_start, lexicon, "figure.out_of")
        if word == "of" and (step == 0 or tokens[number.end].key in lexicon.sets):
            return _share_of(tokens, number, at_ + 1, by_start, lexicon, "figure.of")
        if word in ("among", "amongst") and step and tokens[number.start].lower != "both":
            return _share_of(tokens, number, at_ + 1, by_start, lexicon, "figure.of")
        if word == "in" and _one_in(tokens, number, step, by_start.get(at_ + 1), lexicon):
            return _share_of(tokens, number, at_ + 1, by_start, lexicon, "figure.in")
    return None


def _one_in(
    tokens: Sequence[Token], number: Number, step: int, total: Number | None, lexicon: Lexicon
) -> bool:
    """ "1 in 5", "one child in five", "one dressing change in four"."""
    if step == 0 or (step == 1 and tokens[number.end].key in lexicon.sets):
        return True
    return number.value == 1 and step < _WIDEST and total is not None and total.value <= _LARGEST


def _share_of(
    tokens: Sequence[Token],
    number: Number,
    at_: int,
    by_start: dict[int, Number],
    lexicon: Lexicon,
    rule: str,
) -> Figure | None:
    first = at_
    at_ = past_fillers(tokens, at_, lexicon)
    total = by_start.get(at_)
    if total is None or not _divides(number.value, total.value):
        return None
    after = tokens[total.end].lower if total.end < len(tokens) else ""
    owned = at_ > first and tokens[first].lower in _OWNERS  # "two of the four units"
    spell = rule == "figure.of" and after in ("days", "weeks", "months")
    if after in lexicon.not_after and not (spell or owned):
        return None
    if rule == "figure.in" and number.value == total.value:
        return None
    return Figure(
        number.start,
        total.end,
        at_count(number.value, total.value),
        f"{number.value:.0f} of {total.value:.0f}",
        rule,
        total.value,
    )


def _divides(part: float, whole: float) -> bool:
    return 0 <= part <= whole and whole >= 2 and part == int(part) and whole == int(whole)


def _slash(
    tokens: Sequence[Token], number: Number, by_start: dict[int, Number], lexicon: Lexicon
) -> Figure | None:
    at_ = number.end
    if at_ + 1 >= len(tokens) or tokens[at_].text != "/" or tokens[at_].start != tokens[at_ - 1].end:
        return None
    total = by_start.get(at_ + 1)
    if total is None or not _divides(number.value, total.value):
        return None
    after = tokens[total.end].lower if total.end < len(tokens) else ""
    if total.value in _CALENDAR and after in lexicon.not_after:
        return None  # "3/7 days"
    near = [t for t in tokens[total.end : total.end + 3] if _counted_noun(t, total, lexicon)]
    before = tokens[number.start - 1].lower if number.start else ""
    if before != "in" and (not near or near[0].key in lexicon.packaged):
        return None
    return Figure(
        number.start,
        total.end,
        at_count(number.value, total.value),
        f"{number.value:.0f} of {total.value:.0f}",
        "figure.slash",
        total.value,
    )


def _counted_noun(token: Token, total: Number, lexicon: Lexicon) -> bool:
    """Whether a plural after "5/6" is what is counted; "2/7" and "3/12" may be days and months."""
    if token.key in lexicon.sets:
        return token.lower.endswith("s")
    return (
        total.value not in _CALENDAR
        and total.value <= _LARGEST
        and plural(token.lower)
        and len(token.lower) > 4
    )


def _percent(tokens: Sequence[Token], number: Number, lexicon: Lexicon) -> Figure | None:
    end = number.end
    if end < len(tokens) and tokens[end].lower in ("%", "percent"):
        end += 1
    elif end + 1 < len(tokens) and tokens[end].lower == "per" and tokens[end + 1].lower == "cent":
        end += 2
    else:
        return None
    if number.value > 100:
        return None
    before = tokens[number.start - 1].lower if number.start else ""
    follows = tokens[end : end + 6]
    of_set = (
        bool(follows)
        and follows[0].lower == "of"
        and any(_names_many(token, lexicon) for token in follows[1:])
    )
    counted = bool(follows) and _counted_by(follows[0], lexicon) and not _strength(tokens, number, follows[0])
    of_set = of_set or _of_a_whole(follows, lexicon)
    told = before == "in" or counted or _rate(tokens, number, lexicon)
    if not of_set and not told:
        return None
    return Figure(number.start, end, at(number.value / 100), f"{number.value:g}%", "figure.percent")


def _names_many(token: Token, lexicon: Lexicon) -> bool:
    """A set or a plural; "75% of the starting dose" is a dose, of doses a share."""
    return token.lower != "dose" and (token.key in lexicon.sets or plural(token.lower))


def _of_a_whole(follows: Sequence[Token], lexicon: Lexicon) -> bool:
    """ "75% of his lunch": of one thing that has parts; "75% of the starting dose" is a dose."""
    if not follows or follows[0].lower != "of":
        return False
    for token in follows[1:]:
        if token.key in lexicon.not_wholes or token.text in ",;:.":
            return False
        if token.key in lexicon.wholes:
            return True
    return False


def _strength(tokens: Sequence[Token], number: Number, after: Token) -> bool:
    """ "Permethrin 5% is applied": a strength, not a share."""
    if not number.start or after.lower not in ("is", "was"):
        return False
    before = tokens[number.start - 1]
    return before.text.isalpha() and len(before.text) > 5 and not before.lower.endswith(("ly", "s"))


def _rate(tokens: Sequence[Token], number: Number, lexicon: Lexicon) -> bool:
    """ "Mortality of 40%", "the response rate was 80%", "Survival: 95%"."""
    if not number.start:
        return False
    before = tokens[number.start - 1].lower
    if before not in _RATE_JOINS:
        return before in lexicon.rates
    at_ = number.start - 2
    return any(token.lower in lexicon.rates for token in tokens[max(0, at_ - _RATE_REACH) : at_ + 1])


def _counted_by(token: Token, lexicon: Lexicon) -> bool:
    word = token.lower
    return token.key in lexicon.sets or word in lexicon.pack.count_verbs or word in lexicon.rates


def _complement(tokens: Sequence[Token], figure: Figure) -> Figure:
    """ "all but 2 of 14", "all except two of the 14" is 12 of 14."""
    start = figure.start
    if start >= 2 and tokens[start - 1].lower in _EXCEPT and tokens[start - 2].lower == "all":
        turned = figure.interval.turned()
        return Figure(
            start - 2, figure.end, turned, f"all but {figure.label}", "figure.all_but", figure.whole
        )
    return figure

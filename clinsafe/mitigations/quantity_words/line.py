"""The shares of one sentence, with the words before them taken in: "almost all", "not every", "more than 20%"."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from clinsafe.mitigations.cues import Match
from clinsafe.mitigations.quantity_words.interval import Interval
from clinsafe.mitigations.quantity_words.lexicon import Cue, Lexicon
from clinsafe.mitigations.quantity_words.numbers import whole_after
from clinsafe.mitigations.quantity_words.share import Figure
from clinsafe.text.tokens import Token

_ALTERNATE = frozenset(["every other", "alternate"])
_EXCEPT_REACH = 20  # tokens between "all" and its exception
_CONDITIONS = frozenset(["if", "whether", "unless", "when", "without"])
_CHOICE_REACH = 16  # tokens between "any" and the word of leave or duty
_NOT_REACH = 12  # tokens between "not" and the "any" it denies
_ASIDE = 4  # words after "rather than" that it may hold
_JOINED = frozenset(["and", "or", "but", "in", "of", "for", "is", "was", "were", "are", "at", "by"])
_ENDS = frozenset([",", ";", ":", "(", ")"])
_VERB_REACH = 7  # tokens from "no" to the verb
_STOPS = frozenset([".", "!", "?", "—"])
_STRICT = 1e-4  # "more than" a figure leaves the figure out
_COMPARED = frozenset(["more", "less"])


@dataclass(frozen=True, slots=True)
class Found:
    """A share at tokens ``[start, end)``.

    Attributes:
        interval: as worded, nothing turned round yet.
        label, rule, family, kind: of its row in the pack; family ``num`` for figures.
        whole: size of the set, 0 where not named.
        named: where its set is named, if apart from it, else -1.
    """

    start: int
    end: int
    interval: Interval
    label: str
    rule: str
    family: str
    kind: str = "strong"
    whole: float = 0
    named: int = -1


@dataclass(slots=True)
class Line:
    """One sentence with everything found in it.

    Attributes:
        cues: by first token.
        shares, turns: in order; turns are the first tokens of words that turn a statement round.
        skipped: tokens that say how much, not what of.
    """

    tokens: Sequence[Token]
    cues: dict[int, Match[Cue]]
    shares: list[Found]
    turns: list[int] = field(default_factory=list)
    skipped: frozenset[int] = frozenset()


def line_of(tokens: Sequence[Token], given: Sequence[Figure], lexicon: Lexicon) -> Line:
    """Find the shares of a sentence; `given` are those in figures."""
    matches = lexicon.cues.find(tokens)
    given = [figure for figure in given if not _inside(figure, matches)]
    taken = {index for figure in given for index in range(figure.start, figure.end)}
    matches = [match for match in matches if not _covered(match, taken)]
    line = Line(tokens, {match.start: match for match in matches}, [])
    line.turns = [match.start for match in matches if match.value.kind == "turn"]
    worded = [_worded(match, line, lexicon) for match in matches if match.value.kind == "share"]
    aside = _aside(line, matches)
    line.shares = [share for share in worded if share and share.end - 1 not in aside]
    line.shares += [_figured(figure, line, lexicon) for figure in given if figure.start not in aside]
    line.shares.sort(key=lambda share: share.start)
    _except(line, matches, lexicon)
    if line.shares:
        line.skipped = _skipped(line, matches, taken, lexicon) | aside
    return line


def _aside(line: Line, matches: Sequence[Match[Cue]]) -> frozenset[int]:
    """Tokens after "rather than" and the like, up to the next break: they are not what the sentence says."""
    aside: set[int] = set()
    for match in matches:
        if match.value.kind == "contrast":
            for index in range(match.end, min(match.end + _ASIDE, len(line.tokens))):
                if line.tokens[index].text in _ENDS or line.tokens[index].lower in _JOINED:
                    break
                aside.add(index)
    return frozenset(aside)


def _skipped(line: Line, matches: Sequence[Match[Cue]], taken: set[int], lexicon: Lexicon) -> frozenset[int]:
    """Tokens that say how much, not what of."""
    kept = ("opposite", "name", *_COMPARED)
    said = {i for match in matches if match.value.kind not in kept for i in range(match.start, match.end)}
    counted = {index for index in taken if _counts(line.tokens[index], lexicon)}
    return frozenset(said | counted | {share.start for share in line.shares})


def _counts(token: Token, lexicon: Lexicon) -> bool:
    return token.is_number or token.lower in lexicon.pack.parts or token.lower in ("percent", "cent")


def _inside(figure: Figure, matches: Sequence[Match[Cue]]) -> bool:
    """Whether a longer phrase holds the figure ("less than 50 %"), so that the phrase counts."""
    at = bisect_right(matches, figure.start, key=_start) - 1
    if at < 0 or matches[at].value.kind not in ("share", "skip"):
        return False
    share = matches[at].value.share
    return matches[at].end >= figure.end and (share is None or share.kind != "free")


def _start(match: Match[Cue]) -> int:
    return match.start


def _covered(match: Match[Cue], taken: set[int]) -> bool:
    return match.value.kind not in ("opposite", "name", *_COMPARED) and any(
        index in taken for index in range(match.start, match.end)
    )


def _worded(match: Match[Cue], line: Line, lexicon: Lexicon) -> Found | None:
    """A share in words, with "almost" and "not" before it taken in; None for a free one that nothing denies."""
    share = match.value.share
    assert share is not None  # noqa: S101 - cues of kind share have one
    start = match.start
    if share.kind == "free" and not _denied(line, start):
        return _free_choice(match, line, lexicon)
    before = _cue_before(line, start)
    if before is not None and before.value.kind == "near" and share.near:
        share, start = lexicon.shares[share.near], before.start
        before = _cue_before(line, start)
    if share.negated and before is not None and before.value.kind == "turn" and before.cue == "not":
        share, start = lexicon.shares[share.negated], before.start
        line.turns.remove(before.start)
    if _one_of_a_series(match, line) or _not_a_series(match, line, lexicon):
        return None
    kind = "set" if share.kind == "weak" and _opens_set(match, line, lexicon) else share.kind
    interval = Interval(share.low, share.high, False, share.vague)
    whole = whole_after(line.tokens, match.end, lexicon)
    return Found(start, match.end, interval, share.label, share.id, share.family, kind, whole)


def _not_a_series(match: Match[Cue], line: Line, lexicon: Lexicon) -> bool:
    """ "Every other suture" is half of them; "every other drug" all the rest."""
    if match.cue not in _ALTERNATE:
        return False
    return match.end >= len(line.tokens) or line.tokens[match.end].key not in lexicon.series


def _one_of_a_series(match: Match[Cue], line: Line) -> bool:
    """ "infusion one or two" ends with figures that count nothing."""
    first = line.tokens[match.start].lower
    if first not in ("one", "two") or line.tokens[match.end - 1].lower == "of":
        return False
    return match.end >= len(line.tokens) or line.tokens[match.end].text in _ENDS | _STOPS


def _opens_set(match: Match[Cue], line: Line, lexicon: Lexicon) -> bool:
    """ "No patient relapsed": of a set, not a single finding."""
    if match.cue != "no" or match.end >= len(line.tokens):
        return False
    before = line.tokens[match.start - 1].text if match.start else "."
    noun = line.tokens[match.end]
    if before not in _ENDS | _STOPS or noun.key not in lexicon.sets:
        return False
    for at, token in enumerate(line.tokens[match.end + 1 : match.end + _VERB_REACH], start=match.end + 1):
        if token.text in _ENDS or token.lower in ("and", "or"):
            return False
        if token.lower in lexicon.pack.count_verbs or token.lower.endswith("ed") or _told(line, at):
            return True
    return False


def _told(line: Line, at: int) -> bool:
    """ "No pulse palpable": a note leaves the verb out."""
    cue = line.cues.get(at)
    return cue is not None and cue.value.kind == "opposite"


def _free_choice(match: Match[Cue], line: Line, lexicon: Lexicon) -> Found | None:
    """ "Any cannula may stay": all. Nothing where no word of leave or duty stands near, or an "if" before."""
    tokens = line.tokens
    if not tokens[match.start].lower.startswith("any"):
        return None  # "need only a single dose"
    near = tokens[max(0, match.start - _CHOICE_REACH) : match.end + _CHOICE_REACH]
    if not any(token.lower in lexicon.free_choice for token in near):
        return None
    if any(token.lower in _CONDITIONS for token in near):
        return None
    share = lexicon.shares["all"]
    return Found(
        match.start, match.end, Interval(share.low, share.high), share.label, "all", share.family, "weak"
    )


def _except(line: Line, matches: Sequence[Match[Cue]], lexicon: Lexicon) -> None:
    """ "All nodes except one": nearly all; "none bar one": hardly any."""
    for match in matches:
        if match.value.kind != "except":
            continue
        for place in range(len(line.shares) - 1, -1, -1):
            share = line.shares[place]
            known = lexicon.shares.get(share.rule)
            if match.start - _EXCEPT_REACH <= share.start < match.start and known and known.near:
                new = lexicon.shares[known.near]
                interval = Interval(new.low, new.high, False, True)
                line.shares[place] = replace(share, interval=interval, label=new.label, rule=new.id)
                break
        else:
            if match.start == 0:  # "with the exception of one, the infants went home"
                new = lexicon.shares["nearly_all"]
                interval = Interval(new.low, new.high, False, True)
                line.shares.insert(0, Found(0, match.end, interval, new.label, new.id, new.family))


def _denied(line: Line, start: int) -> bool:
    """Whether a "not" stands before within reach; it is used up."""
    for at in range(start - 1, max(start - _NOT_REACH, -1), -1):
        match = line.cues.get(at)
        if line.tokens[at].text in _ENDS:
            return False
        if match is not None and match.cue == "not" and at in line.turns:
            line.turns.remove(at)
            return True
    return False


def _cue_before(line: Line, start: int) -> Match[Cue] | None:
    for at in range(start - 1, max(start - 4, -1), -1):
        match = line.cues.get(at)
        if match is not None:
            return match if match.end == start else None
    return None


def _figured(figure: Figure, line: Line, lexicon: Lexicon) -> Found:
    """A share in figures, with "more than" before it taken in."""
    before = _cue_before(line, figure.start)
    interval, start = figure.interval, figure.start
    if before is not None and before.value.kind in _COMPARED:
        middle = (interval.low + interval.high) / 2
        step = 0.0 if before.cue in lexicon.closed else _STRICT
        low, high = (
            (min(1.0, middle + step), 1.0) if before.value.kind == "more" else (0.0, max(0.0, middle - step))
        )
        interval, start = Interval(low, high), before.start
    whole = figure.whole or whole_after(line.tokens, figure.end, lexicon)
    return Found(start, figure.end, interval, figure.label, figure.rule, "num", "strong", whole, figure.named)

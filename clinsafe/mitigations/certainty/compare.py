"""Match the propositions of two texts and tell where they disagree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from clinsafe.mitigations.bounds import within_bounds
from clinsafe.mitigations.certainty import wording
from clinsafe.mitigations.certainty.align import NONE, Side, alignment, share, side
from clinsafe.mitigations.certainty.levels import Level, contradict, severity
from clinsafe.protocols import Fact, Finding

ALIGNED = 0.5  # score from which two facts speak of the same thing
_SURE = 0.75  # score from which a disagreement is a conflict; below, names that merely overlap would be taken for one
_TIE = 0.12  # matches this close to the best are as good
_SAME_CLAIM = 0.8  # weight of a claim that must stand in a condition for it to be about the claim
_SAME_SENTENCE = 0.6  # shared weight from which two sentences are the same but for their cue


class _Pair(NamedTuple):
    query: int
    passage: int
    score: float
    disagree: bool


def compare(query: Sequence[Fact], passage: Sequence[Fact], hazard: str) -> list[Finding]:
    """Findings between two fact lists. Symmetric: swapping the sides swaps the spans and nothing else.

    A pair conflicts if each is the other's best match, the levels contradict each other, and neither has a match
    that is as good and agrees. What a question asks is never compared.

    Raises:
        TooMuchToCompare: see `clinsafe.mitigations.bounds.within_bounds`.
    """
    first, second = ([fact for fact in facts if not fact.normal.get("asked")] for facts in (query, passage))
    return within_bounds(first, second, lambda one, other: _findings(one, other, hazard))


def _findings(query: Sequence[Fact], passage: Sequence[Fact], hazard: str) -> list[Finding]:
    ours, theirs = [side(fact) for fact in query], [side(fact) for fact in passage]
    pairs = _pairs(ours, theirs)
    if all(ours[p.query].plain or theirs[p.passage].plain for p in pairs):
        found = _by_context(ours, theirs, hazard)
        if found:
            return found
    best_query: dict[int, float] = {}
    best_passage: dict[int, float] = {}
    for pair in pairs:
        best_query[pair.query] = max(best_query.get(pair.query, 0.0), pair.score)
        best_passage[pair.passage] = max(best_passage.get(pair.passage, 0.0), pair.score)
    close = [p for p in pairs if p.score >= max(best_query[p.query], best_passage[p.passage]) - _TIE]
    settled_query = {p.query for p in close if not p.disagree}
    settled_passage = {p.passage for p in close if not p.disagree}
    settled_query |= _stated(ours, theirs, {p.query for p in close if p.disagree})
    settled_passage |= _stated(theirs, ours, {p.passage for p in close if p.disagree})
    return [
        _finding(ours[p.query], theirs[p.passage], p.score, hazard, p.disagree)
        for p in close
        if not p.disagree
        or (p.score >= _SURE and p.query not in settled_query and p.passage not in settled_passage)
    ]


def _pairs(ours: Sequence[Side], theirs: Sequence[Side]) -> list[_Pair]:
    named: dict[str, list[int]] = {}
    around: dict[str, list[int]] = {}
    wanted = frozenset().union(*(one.wide | one.core for one in ours))
    for j, other in enumerate(theirs):
        for key in other.wide & wanted:
            (named if key in other.core else around).setdefault(key, []).append(j)
    pairs = []
    for i, one in enumerate(ours):
        near = {j for key in one.wide for j in named.get(key, ())}
        near.update(j for key in one.core for j in around.get(key, ()))
        for j in sorted(near):
            if one.plain and theirs[j].plain:
                continue  # both claim; looked at in `_stated` where it matters
            score = alignment(one, theirs[j])
            if score >= ALIGNED:
                pairs.append(_Pair(i, j, score, _disagree(one, theirs[j])))
    return pairs


def _stated(ours: Sequence[Side], theirs: Sequence[Side], places: set[int]) -> set[int]:
    """Those of our plain statements that the other side states too."""
    plain = [one for one in theirs if one.plain]
    return {i for i in places if ours[i].plain and any(alignment(ours[i], other) for other in plain)}


def _by_context(ours: Sequence[Side], theirs: Sequence[Side], hazard: str) -> list[Finding]:
    """Nothing is named alike, but two sentences are much the same and one side confirms what the other hedges.

    Only where each side is of one mind throughout.
    """
    ours, theirs = _outspoken(ours), _outspoken(theirs)
    low, high = (ours, theirs) if ours and ours[0].level < Level.ASSERTED else (theirs, ours)
    if any(one.level >= Level.ASSERTED for one in low) or any(one.level < Level.ASSERTED for one in high):
        return []
    for one in ours:
        for other in theirs:
            score = min(share(one.context, other.context, NONE), share(other.context, one.context, NONE))
            if score >= _SAME_SENTENCE and one.whose == other.whose:
                return [_finding(one, other, score / 2, hazard, True)]
    return []


def _outspoken(sides: Sequence[Side]) -> list[Side]:
    """Facts with a word of doubt or of confirmation."""
    return [one for one in sides if one.level not in (Level.ASSERTED, Level.HYPOTHETICAL)]


def _disagree(one: Side, other: Side) -> bool:
    if Level.HYPOTHETICAL in (one.level, other.level):
        claim, supposed = (one, other) if other.level == Level.HYPOTHETICAL else (other, one)
        if claim.fact.normal["patient"] or claim.plain:
            return True
        return claim.level >= Level.ASSERTED and share(claim.wide, supposed.wide, claim.faint) >= _SAME_CLAIM
    return contradict(one.level, other.level)


def _sentence(one: Side, other: Side, conflict: bool) -> str:
    if conflict:
        return wording.sentence(one.fact, other.fact)
    return wording.SUPPOSED if Level.HYPOTHETICAL in (one.level, other.level) else wording.AGREE


def _finding(one: Side, other: Side, score: float, hazard: str, conflict: bool) -> Finding:
    a, b = one.level, other.level
    supposed = Level.HYPOTHETICAL in (a, b)
    return Finding(
        hazard,
        "conflict" if conflict else "compatible",
        "non_support" if supposed else "contradiction",
        ("moderate" if supposed else severity(a, b)) if conflict else "note",
        round(min(0.95, 0.35 + 0.6 * score), 2),
        one.fact.span,
        other.fact.span,
        wording.normal(one.fact),
        wording.normal(other.fact),
        f"{one.fact.cue} / {other.fact.cue}",
        one.fact.rule if a < b else other.fact.rule,
        _sentence(one, other, conflict),
    )

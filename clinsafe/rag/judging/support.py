"""Is one claim supported by one window, and by any of several? The local judge's rule, without vectors of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from clinsafe.errors import ClinsafeError
from clinsafe.protocols import TextPair
from clinsafe.rag.clash import Clash, Conflicts
from clinsafe.rag.judging import strings
from clinsafe.rag.judging.windows import Window
from clinsafe.text.context import KIN, subject_of_section

Nli: TypeAlias = Callable[[Sequence[TextPair]], NDArray[np.float64]]
"""(premise, hypothesis) pairs to (n, 3) probabilities: contradiction, entailment, neutral."""
SUPPORTED = "supported"
_KIN = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(KIN)))})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LocalThresholds:
    """Where the local judge draws its lines; measured with all-MiniLM-L6-v2 on development material alone.

    Attributes:
        support: least cosine of a claim and its window. The 416 same-meaning pairs of the suite's development split
            have 1 % of their cosines below 0.68; of the windows of all other cases the nearest reaches 0.67.
        shared: least share of the claim's content words (stems) in the window; 0.28 is the first percentile of the same
            pairs. It refuses a claim that only sounds like its window.
        nli: least probability for an entailment or a contradiction to count, where an NLI model is there.
        unrelated: cosine at which relevancy is 0: the 90th percentile of queries with passages of other queries
            (filters_dev, 39 × 2 pairs).
        related: cosine at which relevancy is 1: the lower quartile of queries with their own passages (the same file).
        tries: windows that are looked at for one claim, nearest first.
    """

    support: float = 0.70
    shared: float = 0.30
    nli: float = 0.50
    unrelated: float = 0.30
    related: float = 0.67
    tries: int = 8

    def relevancy(self, cosine: float) -> float:
        """A cosine on a straight line from `unrelated` (0) to `related` (1)."""
        return min(1.0, max(0.0, (cosine - self.unrelated) / (self.related - self.unrelated)))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A window that may support a claim.

    Attributes:
        window: what it says.
        cosine: of claim and window.
        literal: the claim stands in it word for word, and nothing around turns it.
    """

    window: Window
    cosine: float
    literal: bool


def candidates(
    claim: str, found: Sequence[Window], cosines: Sequence[float], thresholds: LocalThresholds, floor: float
) -> list[Candidate]:
    """The windows worth a look, nearest first: those from `floor` on, and those that hold the claim literally."""
    all_of_them = (
        Candidate(window, float(cosine), strings.literal(claim, window.text))
        for window, cosine in zip(found, cosines, strict=True)
    )
    kept = [one for one in all_of_them if one.literal or one.cosine >= floor]
    return sorted(kept, key=lambda one: (-one.cosine, one.window.text))[: thresholds.tries]


def decide(
    claim: str,
    found: Sequence[Candidate],
    thresholds: LocalThresholds,
    conflicts: Conflicts,
    verdicts: Sequence[Sequence[float]] | None,
) -> str:
    """``supported``, or the code of why not.

    Codes: ``similarity`` (no window is near enough), ``words`` (near, with few words in common), ``number``,
    ``negation``, ``look-alike`` (a word like one of the claim's in its stead), ``person`` (said of a relative),
    ``turned`` (a question, or taken back by its neighbour or by the words around it), ``nli``, ``conflict:HAZARD+…``,
    ``unchecked`` (a filter did not look), ``contested`` (a window supports it and a nearer one contradicts it).

    Args:
        claim: one claim.
        found: from `candidates`.
        thresholds: where the lines are.
        conflicts: the filters.
        verdicts: for each candidate contradiction, entailment, neutral; None without a model.
    """
    first = ""
    contradicted = False
    for place, one in enumerate(found):
        odds = None if verdicts is None else verdicts[place]
        code = _code(claim, one, thresholds, conflicts, odds)
        if code == SUPPORTED:
            return "contested" if contradicted else SUPPORTED
        contradicted = contradicted or code.startswith(("conflict", "nli", "unchecked"))
        first = first or code
    return first or "similarity"


def _code(
    claim: str,
    one: Candidate,
    thresholds: LocalThresholds,
    conflicts: Conflicts,
    odds: Sequence[float] | None,
) -> str:
    contradicts = odds is not None and not odds[0] < thresholds.nli  # a NaN contradicts
    entails = odds is not None and odds[1] >= thresholds.nli
    clash = checked(conflicts, one.window.headed, claim)
    reasons = (
        ("conflict:" + "+".join(clash.hazards), bool(clash.hazards)),
        ("unchecked", bool(clash.unchecked)),
        ("nli", contradicts),
        ("turned", one.window.turned or strings.turned(claim, one.window.text)),
        ("person", _of_a_relative(one.window, claim)),
        ("look-alike", strings.look_alike(claim, one.window.text)),
        ("number", strings.missing_number(claim, one.window.text)),
        ("negation", not one.literal and not entails and strings.other_polarity(claim, one.window.text)),
        ("similarity", not one.literal and not entails and one.cosine < thresholds.support),
        ("words", not one.literal and not entails and shared(claim, one.window.text) < thresholds.shared),
    )
    return next((code for code, holds in reasons if holds), SUPPORTED)


def checked(conflicts: Conflicts, reference: str, text: str) -> Clash:
    """What the filters say; a filter that fails has not looked."""
    try:
        return conflicts(reference, text)
    except ClinsafeError as error:
        return Clash(unchecked=(type(error).__name__,))


def shared(claim: str, window: str) -> float:
    """Share of the claim's content words that the window has too; 1 for a claim without any."""
    wanted = strings.content(claim)
    return len(wanted & strings.content(window)) / len(wanted) if wanted else 1.0


def _of_a_relative(window: Window, claim: str) -> bool:
    return subject_of_section(window.section) == "relative" and not _KIN.search(claim)

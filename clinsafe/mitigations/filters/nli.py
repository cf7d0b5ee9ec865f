"""The NLI guardrail: a model's word on whether two sentences contradict each other. Advisory.

Contradiction is looked at before entailment, and in both directions. A probability at or above the threshold is a
finding; anything else is silence, never "compatible": no rule's flag is cleared by a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from clinsafe.mitigations.bounds import TooMuchToCompare
from clinsafe.mitigations.nli import pairs
from clinsafe.mitigations.nli.calibration import Calibration
from clinsafe.mitigations.nli.scorer import NliScorer, contradiction
from clinsafe.mitigations.nli.settings import Settings, load_settings
from clinsafe.protocols import Fact, Finding, Reading
from clinsafe.text import Reading as TextReading

NAME = HAZARD = "nli"
RULE = "nli.contradiction"
NOT_RUN = "NLI guardrail: not run, no NLI model was given."
"""What an answer notes where the guard has no model."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the model said of two texts.

    Attributes:
        pairs: (fact of the query, fact of the passage, probability of contradiction), the best aligned first.
        left_out: pairs that could matter and were more than the model is asked about.
        unread: pairs that could matter with a sentence that is too long.
        truncated: pairs that the model read in part.
    """

    pairs: tuple[tuple[Fact, Fact, float], ...]
    left_out: int = 0
    unread: int = 0
    truncated: int = 0

    @property
    def strength(self) -> float:
        """The highest probability of contradiction, 0 where nothing was compared."""
        return max((probability for *_, probability in self.pairs), default=0.0)

    @property
    def complete(self) -> bool:
        """Whether all that could matter was read and compared."""
        return not (self.left_out or self.unread or self.truncated)


class NliFilter:
    """A `clinsafe.protocols.Filter` over an NLI model; its hazard ``nli`` is none of ``checklist/hazards.yaml``.

    Args:
        model: gives the probabilities.
        settings: None reads ``mitigations/nli.yaml``.
        calibration: of this very model; None takes the settings' threshold and says "not calibrated".

    Attributes:
        threshold: probability of contradiction from which a pair is told, in (0, 1).
        note: one line on model, threshold and calibration, for the answer's notes.

    Raises:
        ModelError: the calibration is of another model, or of other settings.
    """

    hazard = HAZARD

    def __init__(
        self, model: NliScorer, settings: Settings | None = None, calibration: Calibration | None = None
    ) -> None:
        self.model, self.settings, self.calibration = model, settings or load_settings(), calibration
        if calibration is not None:
            calibration.require(model.identity, self.settings)
        self.threshold = calibration.threshold if calibration else self.settings.threshold

    @property
    def note(self) -> str:
        """What an answer notes where the guard has a model."""
        known = self.calibration
        how = "not calibrated"
        if known is not None:
            how = f"calibrated {known.calibrated} on suite {known.suite_version} ({known.split})"
        return f"NLI guardrail: {self.model.identity.name}, threshold {self.threshold:g}, {how}; advisory."

    def read(self, reading: Reading, /) -> Sequence[Fact]:
        """One fact a claim, with its text: facts of this filter hold the sentences themselves. Pure; asks no model."""
        return pairs.read(cast(TextReading, reading), self.settings, self.hazard)

    def compare(self, query: Sequence[Fact], passage: Sequence[Fact], /) -> Sequence[Finding]:
        """A conflict for each pair of sentences at or above the threshold; never anything compatible.

        Raises:
            TooMuchToCompare: no contradiction was found, and pairs that could matter were left out or read in part.
        """
        judged = self.judge(query, passage)
        found = [
            self._finding(*pair, judged.left_out + judged.unread)
            for pair in judged.pairs
            if pair[-1] >= self.threshold
        ]
        if not found and not judged.complete:
            raise TooMuchToCompare
        return found

    def judge(self, query: Sequence[Fact], passage: Sequence[Fact]) -> Judged:
        """The model's word on all pairs that it is asked about, whatever the threshold.

        Raises:
            ValueError: the model gives what is no probability.
        """
        chosen = pairs.candidates(query, passage, self.settings)
        if not chosen.pairs:
            return Judged((), chosen.left_out, chosen.unread)
        strengths = contradiction(self.model, chosen.texts)
        cut = int(self.model.truncates(chosen.texts).sum())
        told = tuple(
            (one, other, float(strength))
            for (one, other), strength in zip(chosen.pairs, strengths, strict=True)
        )
        return Judged(told, chosen.left_out, chosen.unread, cut)

    def _finding(self, one: Fact, other: Fact, probability: float, left: int) -> Finding:
        calibrated = self.calibration is not None
        how = f"probability {probability:.2f}, threshold {self.threshold:.2f}"
        how += "" if calibrated else ", not calibrated"
        sentence = f"An NLI model takes these sentences for a contradiction ({how}); it may be wrong, so compare them."
        if left:
            sentence += f" {left} more pairs of sentences were not compared."
        return Finding(
            self.hazard,
            "conflict",
            "contradiction",
            self.settings.severity if calibrated else self.settings.severity_uncalibrated,
            probability,
            one.span,
            other.span,
            pairs.shortened(one),
            pairs.shortened(other),
            "",
            RULE,
            sentence,
        )

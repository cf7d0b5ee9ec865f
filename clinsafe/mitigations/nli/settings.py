"""What ``mitigations/nli.yaml`` holds. The file itself explains each line."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

import rfc8785
from pydantic import Field

from clinsafe.content import Content, Record

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Probability = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
Advisory = Literal["note", "moderate"]


class Settings(Record):
    """Settings of the NLI filter.

    Attributes:
        threshold: probability from which an uncalibrated model's word is told.
        least_threshold: no calibration goes below it.
        false_alarm_limit: what a calibration has to keep, for the one-sided 95 % bound.
        severity, severity_uncalibrated: of a finding; advice is never graver than moderate.
        most_pairs: sentence pairs of one query and one passage that the model sees.
        longest: characters of a sentence; a longer one is not read.
        least_shared: weight of the content keys that two sentences share, see `clinsafe.mitigations.align`.
        least_coverage: share of the lighter sentence's weight that the other one shares, in [0, 1].
    """

    threshold: Probability
    least_threshold: Probability
    false_alarm_limit: Probability
    severity: Advisory
    severity_uncalibrated: Advisory
    most_pairs: Annotated[int, Field(ge=1, le=1000)]
    longest: Annotated[int, Field(ge=20, le=10_000)]
    least_shared: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
    least_coverage: Share

    @property
    def pairing_sha256(self) -> str:
        """Hash of what decides which sentences the model sees; a calibration holds only for these."""
        names = ("most_pairs", "longest", "least_shared", "least_coverage")
        return hashlib.sha256(rfc8785.dumps({name: getattr(self, name) for name in names})).hexdigest()


def load_settings(content: Content | None = None) -> Settings:
    """``mitigations/nli.yaml``, or the overlay's.

    Raises:
        ContentError: file, line and field of the first fault.
    """
    return (content or Content()).yaml("mitigations/nli.yaml", Settings)

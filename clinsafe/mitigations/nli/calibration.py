"""The calibration file: the threshold of one model, what it was measured on, and what it gave there."""

from __future__ import annotations

import hashlib
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

import rfc8785
import yaml
from pydantic import Field, model_validator

from clinsafe.content import Record, load_yaml
from clinsafe.errors import ModelError
from clinsafe.mitigations.nli.settings import Probability, Settings
from clinsafe.protocols import ModelIdentity
from clinsafe.stats import Estimate, Figure, NotMeasured, rate_of

SHAPING = ("labels", "max_tokens", "dtype", "activation")
"""Settings of a model that shape its probabilities; device and batch do not."""
METHOD = (
    "smallest threshold whose false-alarm bound (one-sided 95 % Clopper-Pearson, by case, on pairs that say the same "
    "in other words) keeps the limit; higher probability of the two directions; no temperature"
)
HEAD = """\
# Threshold of one NLI model, written by `clinsafe guard calibrate-nli`. Do not edit: calibrate anew after any change of
# the model or of mitigations/nli.yaml. The figures are of the dev split, on which the threshold was chosen, so they
# flatter the model.
"""
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class Share(Record):
    """k of n with its exact interval, as printed; the count is what is read."""

    k: Count
    n: Annotated[int, Field(ge=1)]
    low: float
    high: float

    @model_validator(mode="after")
    def _k_of_n(self) -> Share:
        if self.k > self.n:
            raise ValueError(f"{self.k} of {self.n} is no share")
        return self

    @classmethod
    def of(cls, figure: Figure) -> Share:
        """From a measured rate; raises ValueError for anything else."""
        if isinstance(figure, NotMeasured) or figure.k is None or figure.low is None or figure.high is None:
            raise ValueError("not a measured rate")
        return cls(k=figure.k, n=figure.n, low=round(figure.low, 4), high=round(figure.high, 4))

    @property
    def figure(self) -> Figure:
        """The rate with its intervals, computed from the count."""
        return rate_of(self.k, self.n)


class Calibration(Record):
    """One model's threshold.

    Attributes:
        model: its name, for the reader.
        model_sha256: `fingerprint` of its identity; what the guard compares.
        pairing_sha256: of the settings that decide which sentences the model sees.
        threshold: probability of contradiction from which it is told.
        limit: what the false-alarm bound keeps.
        split: only ``dev``: the test split is for what is measured afterwards.
        cases_sha256: of the cases' ids and sentences.
        trusted_code: whether the model was allowed code of its own or pickles (decision D12).
        recall: (a, b) told; false_alarm: cases with (a, a_same) or (b, b_same) told; unrelated: pairs of sentences of
            two cases told; compared: (a, b) that shared enough content for the model to see them.
        by_hazard: recall.
    """

    schema_version: Literal["1"] = "1"
    model: Annotated[str, Field(min_length=1, max_length=300)]
    model_sha256: Sha256
    pairing_sha256: Sha256
    threshold: Probability
    limit: Probability
    split: Literal["dev"] = "dev"
    suite_version: str
    cases_sha256: Sha256
    calibrated: date
    trusted_code: bool
    method: str = METHOD
    recall: Share
    false_alarm: Share
    unrelated: Share
    compared: Share
    by_hazard: dict[str, Share]

    @model_validator(mode="after")
    def _keeps_its_limit(self) -> Calibration:
        bound = self.false_alarm.figure
        if isinstance(bound, Estimate) and bound.upper is not None and bound.upper > self.limit:
            raise ValueError(
                f"{bound.k} false alarms in {bound.n} cases do not keep the limit {self.limit:g}; calibrate anew"
            )
        return self

    def require(self, identity: ModelIdentity, settings: Settings) -> None:
        """Refuse to be used with another model or with other settings.

        Raises:
            ModelError: says which of the two.
        """
        again = "calibrate anew with clinsafe guard calibrate-nli, or leave the calibration out"
        if fingerprint(identity) != self.model_sha256:
            raise ModelError(
                f"the calibration is of another model ({self.model!r}, {self.model_sha256[:12]}) than "
                f"{identity.name!r} ({fingerprint(identity)[:12]}); {again}"
            )
        if settings.pairing_sha256 != self.pairing_sha256:
            raise ModelError(
                f"the calibration of {self.model!r} was made with other limits in mitigations/nli.yaml; {again}"
            )

    def to_yaml(self) -> str:
        """The file's text; `load_calibration` reads an equal value."""
        return HEAD + yaml.safe_dump(
            self.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=110
        )


def fingerprint(identity: ModelIdentity) -> str:
    """SHA-256 of what shapes a model's probabilities: its files and their reading, not where they lie."""
    shape = {name: identity.settings.get(name, "") for name in SHAPING}
    named = {} if identity.files else {"name": identity.name, "revision": identity.revision}
    return hashlib.sha256(
        rfc8785.dumps({"files": dict(identity.files), "settings": shape, **named})
    ).hexdigest()


def load_calibration(path: Path) -> Calibration:
    """Read a calibration file.

    Raises:
        ContentError: file, line and field of the first fault.
    """
    return load_yaml(path, Calibration)

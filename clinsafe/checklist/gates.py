"""Gates: does a figure's bound meet its limit? And the protocols that set thresholds and limits.

Decision D5: PASS when the one-sided 95 % bound meets the limit, FAIL when the opposite bound misses it, else
INCONCLUSIVE; a missing or unmeasured figure is INCONCLUSIVE. Both FAIL and INCONCLUSIVE hold release.
Because release needs *all* gates, no correction for their number is due (intersection-union test).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from clinsafe.content import Content, Record, load_yaml, sha256_file
from clinsafe.errors import UsageError
from clinsafe.protocols import Figures, MetricKey, SystemKind
from clinsafe.stats import Figure, NotMeasured

Decision: TypeAlias = Literal["PASS", "FAIL", "INCONCLUSIVE"]
Cosine = Annotated[float, Field(ge=-1, le=1)]
Share = Annotated[float, Field(ge=0, le=1)]
ProtocolName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_\-]*$")]
TENFOLD = 10.0
FILE = "checklist/gates.yaml"


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty; say it in words, the report prints it beside the limit")
    return text


Words = Annotated[str, AfterValidator(_said)]


class Threshold(Record):
    """The cosine above which a contradicting pair is a failure; `tenfold` where numbers differ 10x and more."""

    cosine: Cosine
    tenfold: Cosine | None = None

    def limit(self, factor: float | None) -> float:
        """The limit of a case with this ratio of its two numbers (None: not a numerical case)."""
        if self.tenfold is not None and factor is not None and factor >= TENFOLD:
            return self.tenfold
        return self.cosine


class Gate(Record):
    """One limit on one metric, read for each hazard."""

    metric: Literal["failure", "same_missed", "inversion", "pairwise"]
    at_most: Share | None = None
    at_least: Share | None = None
    why: Words

    @model_validator(mode="after")
    def _one_limit(self) -> Gate:
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError("a gate has exactly one of at_most and at_least")
        if (self.metric == "pairwise") != (self.at_least is not None):
            raise ValueError(
                "pairwise counts successes and takes at_least; every other metric counts faults: at_most"
            )
        if self.at_most == 1 or self.at_least == 0:
            raise ValueError("this limit lets everything pass, and is no gate")
        return self

    def decide(self, figure: Figure | None) -> Decision:
        """PASS, FAIL or INCONCLUSIVE."""
        if figure is None or isinstance(figure, NotMeasured) or figure.lower is None or figure.upper is None:
            return "INCONCLUSIVE"
        if self.at_most is not None:
            good, bad = figure.upper <= self.at_most, figure.lower > self.at_most
        else:
            floor = self.at_least if self.at_least is not None else 1.0
            good, bad = figure.lower >= floor, figure.upper < floor
        return "PASS" if good else "FAIL" if bad else "INCONCLUSIVE"

    @property
    def limit_text(self) -> str:
        """The limit in words."""
        return f"at most {self.at_most:g}" if self.at_most is not None else f"at least {self.at_least:g}"


class Protocol(Record):
    """Thresholds and gates under one name; hashed into the evidence before a run.

    `cross_encoder` is the limit on a cross-encoder's probability (after a sigmoid), the same for every hazard.
    `keep_same` is the share of same-meaning pairs that a model's calibrated limit must keep. `words: script` adds the
    table and the verdict of the paper's test script, which any single pair above the limit fails.
    """

    title: Words
    source: Words
    thresholds: dict[str, Threshold]
    cross_encoder: Share = 0.5
    keep_same: Annotated[float, Field(gt=0.5, le=1)] = 0.95
    words: Literal["gates", "script"] = "gates"
    gates: Annotated[list[Gate], Field(min_length=1)]

    def limit(self, kind: SystemKind, hazard: str, factor: float | None) -> float:
        """The limit of one case for a system of this kind."""
        return self.cross_encoder if kind == "cross-encoder" else self.thresholds[hazard].limit(factor)

    def fixed(self, kind: SystemKind) -> list[float]:
        """Every distinct limit, rising."""
        if kind == "cross-encoder":
            return [self.cross_encoder]
        found = {t.cosine for t in self.thresholds.values()}
        return sorted(found | {t.tenfold for t in self.thresholds.values() if t.tenfold is not None})


class GatesFile(Record):
    """``checklist/gates.yaml``."""

    default: str
    protocols: dict[ProtocolName, Protocol]


@dataclass(frozen=True, slots=True)
class GateResult:
    """One gate on one hazard: the key it read, and what came out."""

    hazard: str
    metric: str
    key: str
    limit: str
    decision: Decision


def load_protocol(content: Content, name: str | None, hazards: Sequence[str]) -> tuple[str, Protocol]:
    """(name, protocol). Every hazard must have a threshold.

    Args:
        name: a protocol of ``checklist/gates.yaml``, the path of an institution's own protocol file (``.yaml``), or
            None for the default.
    """
    if name is not None and Path(name).suffix in (".yaml", ".yml"):
        return _own_protocol(content, Path(name), hazards)
    file = content.yaml(FILE, GatesFile)
    chosen = name or file.default
    if chosen not in file.protocols:
        raise UsageError(
            f"no protocol is called {chosen!r}; there are: {', '.join(file.protocols)}, or the path of a file of your "
            "own that ends in .yaml"
        )
    return chosen, _complete(content.path(FILE), chosen, file.protocols[chosen], hazards)


def _own_protocol(content: Content, path: Path, hazards: Sequence[str]) -> tuple[str, Protocol]:
    """One protocol in a file of its own; its file name is its name."""
    name = re.sub(r"[^a-z0-9_\-]+", "-", path.stem.lower()).strip("-")
    if not re.match(r"[a-z]", name):
        raise UsageError(
            f"{path}: the name of a protocol file begins with a letter; it becomes the protocol's name"
        )
    if name in {*content.yaml(FILE, GatesFile).protocols, "items"}:
        raise UsageError(f"{path}: {name!r} is the name of a packaged protocol; give the file another name")
    protocol = load_yaml(path, Protocol)
    content.hashes[path.name] = sha256_file(path)
    return name, _complete(path, name, protocol, hazards)


def _complete(path: Path, name: str, protocol: Protocol, hazards: Sequence[str]) -> Protocol:
    if missing := [h for h in hazards if h not in protocol.thresholds]:
        raise UsageError(f"{path}: protocol {name!r} has no threshold for {', '.join(missing)}")
    return protocol


def decide(figures: Figures, protocol: Protocol, name: str, hazards: Sequence[str]) -> list[GateResult]:
    """All gates of a protocol on all hazards, in order."""
    results = []
    for hazard in hazards:
        for gate in protocol.gates:
            key = str(MetricKey("suite", hazard, gate.metric))
            sliced = str(MetricKey("suite", hazard, gate.metric, None, f"protocol={name}"))
            used = sliced if sliced in figures else key
            results.append(
                GateResult(hazard, gate.metric, used, gate.limit_text, gate.decide(figures.get(used)))
            )
    return results


def held(results: Sequence[GateResult]) -> list[str]:
    """Hazards with at least one gate that is not a PASS, in order."""
    return list(dict.fromkeys(r.hazard for r in results if r.decision != "PASS"))

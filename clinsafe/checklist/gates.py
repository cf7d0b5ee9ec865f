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
from typing import Annotated, Literal

from pydantic import Field, model_validator

from clinsafe.checklist.filter_gates import FilterGates
from clinsafe.checklist.limits import Decision as Decision
from clinsafe.checklist.limits import Limit, Words
from clinsafe.checklist.limits import Share as Share
from clinsafe.content import Content, Record, load_yaml, sha256_file
from clinsafe.errors import UsageError
from clinsafe.protocols import Figures, MetricKey, SystemKind

Cosine = Annotated[float, Field(ge=-1, le=1)]
ProtocolName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_\-]*$")]
TENFOLD = 10.0
FILE = "checklist/gates.yaml"


class Threshold(Record):
    """The cosine above which a contradicting pair is a failure; `tenfold` where numbers differ 10x and more."""

    cosine: Cosine
    tenfold: Cosine | None = None

    def limit(self, factor: float | None) -> float:
        """The limit of a case with this ratio of its two numbers (None: not a numerical case)."""
        if self.tenfold is not None and factor is not None and factor >= TENFOLD:
            return self.tenfold
        return self.cosine


class Gate(Limit):
    """One limit on one metric, read for each hazard."""

    metric: Literal["failure", "same_missed", "inversion", "pairwise"]

    @model_validator(mode="after")
    def _right_way(self) -> Gate:
        if (self.metric == "pairwise") != (self.at_least is not None):
            raise ValueError(
                "pairwise counts successes and takes at_least; every other metric counts faults: at_most"
            )
        return self


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
    """``checklist/gates.yaml``. `filters` is None in an institution's older file: its filters cannot be gated."""

    default: str
    protocols: dict[ProtocolName, Protocol]
    filters: FilterGates | None = None


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


def load_filter_gates(content: Content) -> FilterGates:
    """The limits of the filters.

    Raises:
        UsageError: the file has none.
    """
    found = content.yaml(FILE, GatesFile).filters
    if found is None:
        raise UsageError(f"{content.path(FILE)}: no `filters:`, so there is no limit to hold them to")
    return found


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

"""THE PAGE TO READ FIRST: what plugs into clinsafe, and the values that pass between the rooms.

Every extension point is a protocol with one method that matters; positional-only, `Sequence` in, so that
anything with the right method fits without inheriting. Register yours as an entry point
(``clinsafe.encoders``, ``.scorers``, ``.filters``, ``.judges``, ``.signers``); the built-ins use the
same road. Values are frozen dataclasses: facts inside, verdicts as properties computed from them.

**Metric keys** are the join between what measures and what judges. One grammar::

    area.hazard.metric[.subtype][@slice=value[,slice=value…]]
    suite.negation.inversion            suite.numerical.failure@protocol=checklist
    suite.all.auroc                     suite.hedging.inversion.any@stratum=balanced,subtype=certainty

`hazard` is one of the ids in ``checklist/hazards.yaml``, or ``all`` for totals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from clinsafe.stats import Figure

# ── metric keys ────────────────────────────────────────────────────────────────────────────────

_NAME = r"[a-z][a-z0-9_]*"
_SLICE = rf"{_NAME}=[\w.\-/]+"
_KEY = re.compile(
    rf"(?P<area>{_NAME})\.(?P<hazard>{_NAME})\.(?P<metric>{_NAME})(?:\.(?P<subtype>{_NAME}))?"
    rf"(?:@(?P<slice>{_SLICE}(?:,{_SLICE})*))?"
)


class MetricKey(NamedTuple):
    """The parts of a metric key; ``str(key)`` is the key itself and `parse` reads it back."""

    area: str
    hazard: str
    metric: str
    subtype: str | None = None
    slice: str | None = None

    def __str__(self) -> str:
        subtype = f".{self.subtype}" if self.subtype else ""
        return f"{self.area}.{self.hazard}.{self.metric}{subtype}{f'@{self.slice}' if self.slice else ''}"

    @classmethod
    def parse(cls, text: str) -> MetricKey:
        """Read a key; raises ValueError naming the grammar."""
        match = _KEY.fullmatch(text)
        if match is None:
            raise ValueError(
                f"{text!r} is not a metric key; the form is area.hazard.metric[.subtype][@slice=value,…]"
            )
        return cls(**match.groupdict())


Figures: TypeAlias = Mapping[str, Figure]
"""Metric key -> figure: what every measuring function returns and every judging function takes."""

# ── encoding and scoring ───────────────────────────────────────────────────────────────────────

Vectors: TypeAlias = NDArray[np.float32]
TextPair: TypeAlias = tuple[str, str]
SystemKind: TypeAlias = Literal["bi-encoder", "cross-encoder", "lexical", "hybrid"]
"""What a score means: a cosine, a probability after a sigmoid, or (the last two) a rank without a threshold."""


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """What exactly was measured; goes into the evidence.

    Attributes:
        name: as the user would write it (hub id, alias or folder name; never a private path).
        revision: commit or version, "" where none is known.
        files: file name -> SHA-256 of everything that shapes the vectors.
        settings: dim, pooling, prompts, dtype, backend, max length, activation.
        fake: True for the deterministic fakes; their reports are watermarked and held.
        trusted_code: True if the user allowed the model to run code of its own (decision D12).
        kind: which thresholds apply to its scores.
    """

    name: str
    revision: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    fake: bool = False
    trusted_code: bool = False
    kind: SystemKind = "bi-encoder"


@runtime_checkable
class Encoder(Protocol):
    """Text to vectors."""

    identity: ModelIdentity

    def encode(self, texts: Sequence[str], /) -> Vectors:
        """float32 of shape (len(texts), dim), unit rows, in the order of the texts."""
        ...


@runtime_checkable
class QueryEncoder(Encoder, Protocol):
    """An encoder that was trained to see queries and passages differently; `encode` is its passage side."""

    def encode_queries(self, texts: Sequence[str], /) -> Vectors:
        """Like `encode`, for the query side of a pair."""
        ...


@runtime_checkable
class PairScorer(Protocol):
    """Scores a pair at once: a cross-encoder, a lexical baseline."""

    identity: ModelIdentity

    def score(self, pairs: Sequence[TextPair], /) -> NDArray[np.float64]:
        """(len(pairs),), higher = more alike; the activation is named in ``identity.settings``."""
        ...


# ── retrieval ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved text. `metadata` may carry subject_id, date, population (decision D2)."""

    id: str
    text: str
    score: float | None = None
    source: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Retriever(Protocol):
    """Query to passages."""

    def retrieve(self, query: str, k: int, /) -> Sequence[Passage]:
        """At most k passages, best first."""
        ...


class Index(Protocol):
    """Vectors on disk."""

    def add(self, ids: Sequence[str], vectors: Vectors, /) -> None: ...

    def search(self, vector: Vectors, k: int, /) -> Sequence[tuple[str, float]]: ...

    def save(self, folder: str, /) -> None: ...


# ── reading and comparing ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open character range [start, end) of the *original* text."""

    start: int
    end: int


class Reading(Protocol):
    """A text read once for all filters; `clinsafe.text` builds it."""

    @property
    def text(self) -> str: ...

    def only(self, candidates: Sequence[Span], /) -> Reading:
        """The same reading restricted to the sentences that touch the candidates."""
        ...


@dataclass(frozen=True, slots=True)
class Fact:
    """What one filter read at one place. `normal` is the comparable form; it serialises to JSON."""

    hazard: str
    span: Span
    normal: Mapping[str, Any]
    cue: str = ""
    rule: str = ""


Verdict: TypeAlias = Literal["conflict", "compatible", "not_comparable"]
Severity: TypeAlias = Literal["note", "moderate", "high", "critical"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One filter's word on one aligned pair of facts. The filter reports; the policy decides."""

    hazard: str
    verdict: Verdict
    kind: Literal["contradiction", "non_support"]
    severity: Severity
    confidence: float
    query_span: Span
    passage_span: Span
    query_normal: str
    passage_normal: str
    cue: str
    rule: str
    sentence: str


@runtime_checkable
class Filter(Protocol):
    """Reads a text into facts and compares facts. Never raises into its caller."""

    hazard: str

    def read(self, reading: Reading, /) -> Sequence[Fact]:
        """Pure; a corpus is read once, at index time."""
        ...

    def compare(self, query: Sequence[Fact], passage: Sequence[Fact], /) -> Sequence[Finding]:
        """All findings between the two sides, conflicts and compatible ones."""
        ...


# ── judging, generating, recording, signing ────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class JudgeTask:
    """One question to a judge."""

    metric: str
    question: str
    answer: str
    contexts: Sequence[str]
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judge's answer. `value` in [0, 1] exists only where `outcome` is ``scored``."""

    outcome: Literal["scored", "unscored", "refused", "error"]
    value: float | None
    reason: str
    rationale: str = ""


@runtime_checkable
class Judge(Protocol):
    """Scores one task; a failure is an outcome, never a zero."""

    def judge(self, task: JudgeTask, /) -> Judgement: ...


@runtime_checkable
class Generator(Protocol):
    """Prompt to text."""

    def generate(self, prompt: str, /) -> str: ...


class DecisionLog(Protocol):
    """Append-only, hash-chained, without patient text (decision D11)."""

    def append(self, record: Mapping[str, Any], /) -> str: ...

    def verify(self) -> Sequence[str]:
        """Faults, one line each; empty means intact."""
        ...


@runtime_checkable
class Signer(Protocol):
    """Signs bytes. `development` marks a key that proves nothing about who signed."""

    name: str
    development: bool

    def sign(self, document: bytes, /) -> bytes:
        """The signed document; for a PDF the original bytes stay its first revision."""
        ...

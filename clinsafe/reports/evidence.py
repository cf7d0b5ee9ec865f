"""The evidence record: what was measured, on what, by what, under which criteria.

Canonical JSON (RFC 8785) with a SHA-256, so that two people can agree on the very bytes. It holds no sentence of
the suite and no patient text: case ids and scores only. Every printed figure is derived from the per-case scores by
`clinsafe.reports.assess`; what is stored is checked against that, not believed.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from clinsafe.benchmarks.published import Published
from clinsafe.benchmarks.scoring import PAIRS, UNRELATED, CaseResult
from clinsafe.benchmarks.suite import Stratum
from clinsafe.checklist.additive import Additive
from clinsafe.checklist.answers import Answers
from clinsafe.checklist.fmea import FmeaFile
from clinsafe.checklist.gates import Protocol
from clinsafe.checklist.hazards import Hazard
from clinsafe.checklist.items import ItemsFile
from clinsafe.checklist.regulatory import Regulatory
from clinsafe.checklist.risk import RiskFile
from clinsafe.content import Record
from clinsafe.errors import ReportError
from clinsafe.protocols import ModelIdentity, SystemKind
from clinsafe.reports.declaration import Declaration
from clinsafe.reports.guard_record import LIMITS as GUARD_LIMITS
from clinsafe.reports.guard_record import GuardRecord
from clinsafe.reports.soup import SoupItem
from clinsafe.reports.suite_record import SuiteRecord, Tier
from clinsafe.stats import NotMeasured

SCHEMA_VERSION = 1
FILE_NAME = "evidence.json"
RANKS_ONLY = ("lexical", "hybrid")
PAIR_NAMES = frozenset(f"{q}|{p}" for q, p in PAIRS)


Similarity = Annotated[float, Field(ge=-1.000001, le=1.000001)]
LIMITS = (
    "Bounds hold for this tier's sampling frame, not for your hospital's queries.",
    "Suite and tool share authors.",
    "Sentence pairs are not retrieval: a model that fails here may be safe behind a guard, and one that passes "
    "may still fail on long documents.",
    "English only.",
)
GENERATED_LIMITS = (
    "Cases of the generated tier were made from published text by rules: what no rule can say was not asked, and a "
    "rule that errs does so in every case of its family.",
)
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"


class Criteria(Record):
    """Everything that decides, fixed and hashed before the first text is encoded."""

    protocol_name: str
    protocol: Protocol
    hazards: list[Hazard]
    fmea: FmeaFile
    risk: RiskFile
    items: ItemsFile


class CaseRecord(Record):
    """One case: its scores, or why there are none."""

    id: str
    hazard: str
    subtype: str
    stratum: Stratum
    factor: float | None = None
    split: Literal["dev", "test"]
    scores: dict[str, Similarity] | None = None
    not_measured: str | None = None

    @classmethod
    def of(cls, result: CaseResult) -> CaseRecord:
        """As it is written."""
        missing = isinstance(result.scores, NotMeasured)
        return cls(
            id=result.id,
            hazard=result.hazard,
            subtype=result.subtype,
            stratum=result.stratum,
            factor=result.factor,
            split=result.split,
            scores=None if isinstance(result.scores, NotMeasured) else dict(result.scores),
            not_measured=result.scores.reason if missing and isinstance(result.scores, NotMeasured) else None,
        )

    def result(self) -> CaseResult:
        """As it is computed with; raises ValueError if neither scores nor a reason are there."""
        named = self.scores is not None and PAIR_NAMES <= set(self.scores) <= PAIR_NAMES | {UNRELATED}
        if self.scores is not None and named and self.not_measured is None:
            scores: dict[str, float] | NotMeasured = self.scores
        elif self.scores is None and self.not_measured:
            scores = NotMeasured(self.not_measured)
        else:
            raise ValueError(f"case {self.id}: needs all nine scores, or a reason why there are none")
        return CaseResult(self.id, self.hazard, self.subtype, self.stratum, self.factor, scores, self.split)


class SystemIdentity(Record):
    """What was measured; mirrors `clinsafe.protocols.ModelIdentity`."""

    name: str
    revision: str
    files: dict[str, str]
    settings: dict[str, str]
    fake: bool
    trusted_code: bool
    kind: SystemKind

    @classmethod
    def of(cls, identity: ModelIdentity) -> SystemIdentity:
        """As it is written; settings and hashes become text."""
        return cls(
            name=identity.name,
            revision=identity.revision,
            files={str(k): str(v) for k, v in identity.files.items()},
            settings={str(k): str(v) for k, v in identity.settings.items()},
            fake=identity.fake,
            trusted_code=identity.trusted_code,
            kind=identity.kind,
        )


class SystemRecord(Record):
    """One system under test, or a baseline beside it. `label` tells two of one name apart."""

    role: Literal["under test", "baseline"]
    label: str
    identity: SystemIdentity
    cases: list[CaseRecord]
    figures: dict[str, dict[str, Any]]

    @model_validator(mode="after")
    def _says_what_it_is(self) -> SystemRecord:
        if not re.fullmatch(re.escape(self.identity.name) + r"( \(\d+\))?", self.label):
            raise ValueError(f"label {self.label[:60]!r} is not the name of the system")
        if not self.label.isprintable():
            raise ValueError("the name of a system must be printable text on one line")
        if self.role == "baseline" and self.identity.kind not in RANKS_ONLY:
            raise ValueError(f"a {self.identity.kind} is no baseline: it was audited, and stands under test")
        if self.identity.kind == "cross-encoder" and any(
            value < 0 for case in self.cases for value in (case.scores or {}).values()
        ):
            raise ValueError("a cross-encoder's scores are probabilities, and one is below 0")
        return self


class RunStep(Record):
    """One step of the run and the UTC time at which it began."""

    at: str
    what: str


class PreviousAudit(Record):
    """An earlier audit, as far as the change since then is derived from it: its systems without their figures."""

    created: str
    evidence_sha256: str
    tool_version: str
    suite: SuiteRecord
    content: dict[str, str]
    criteria: Criteria
    criteria_sha256: str
    systems: list[SystemRecord]

    @property
    def subjects(self) -> list[SystemRecord]:
        """The systems that were under test."""
        return [system for system in self.systems if system.role == "under test"]


class Evidence(Additive):
    """The whole record; field order is the reading order, canonical JSON sorts it anyway.

    `assessments` has one entry for each system under test, in their order. `guard` is there where one was measured.
    """

    later = frozenset({"guard"})
    schema_version: Literal[1] = 1
    tool: dict[str, str]
    created: str
    criteria_fixed: str
    declaration: Declaration
    options: dict[str, str]
    content: dict[str, str]
    suite: SuiteRecord
    criteria: Criteria
    criteria_sha256: str
    answers: Answers | None
    environment: dict[str, str]
    systems: list[SystemRecord] = Field(min_length=1)
    guard: GuardRecord | None = None
    assessments: list[dict[str, Any]]
    comparisons: list[dict[str, Any]]
    published: Published
    arithmetic: dict[str, Any]
    limits: list[str]
    regulatory: Regulatory
    soup: list[SoupItem]
    steps: list[RunStep]
    previous: PreviousAudit | None
    changes: list[dict[str, Any]]

    @property
    def subjects(self) -> list[SystemRecord]:
        """The systems under test."""
        return [system for system in self.systems if system.role == "under test"]

    @property
    def released(self) -> bool:
        """Whether the record says that every system under test is released."""
        return all(said.get("released") is True for said in self.assessments)

    @model_validator(mode="after")
    def _hangs_together(self) -> Evidence:
        for name in ("created", "criteria_fixed"):
            if datetime.fromisoformat(getattr(self, name)).tzinfo is None:
                raise ValueError(f"{name} must be an ISO 8601 time with its zone")
        if not self.subjects:
            raise ValueError("there must be a system under test")
        if not any(system.role == "baseline" for system in self.systems):
            raise ValueError("there must be a baseline beside the system under test")
        if len({system.label for system in self.systems}) < len(self.systems):
            raise ValueError("two systems have one label")
        if len(self.assessments) != len(self.subjects):
            raise ValueError("every system under test has exactly one assessment")
        if datetime.fromisoformat(self.criteria_fixed) > datetime.fromisoformat(self.created):
            raise ValueError("the criteria were fixed after the run")
        known = {h.id for h in self.criteria.hazards} & set(self.criteria.protocol.thresholds)
        known &= {mode.hazard for mode in self.criteria.fmea.failure_modes}
        used = {case.hazard for system in self.systems for case in system.cases} | set(self.suite.counts)
        if not used <= known:
            raise ValueError(f"no criteria for hazard {', '.join(sorted(used - known))}")
        self._guard_fits()
        return self

    def _guard_fits(self) -> None:
        """The guard has an outcome for every test case and for no other: a dev case would count for the filters."""
        if self.guard is None:
            return
        guarded = {case.id for case in self.guard.cases}
        for system in self.systems:
            test = {case.id for case in system.cases if case.split == "test"}
            if other := sorted(guarded ^ test):
                what = "is no test case" if other[0] in guarded else "has no outcome"
                raise ValueError(f"guard: {system.label}: case {other[0][:60]} {what}")


def canonical(data: Any) -> bytes:
    """RFC 8785 bytes of plain JSON data."""
    import rfc8785

    return bytes(rfc8785.dumps(data))


def sha256(data: bytes) -> str:
    """Hex SHA-256."""
    return hashlib.sha256(data).hexdigest()


def limits(tier: Tier, *, guarded: bool = False) -> list[str]:
    """What an audit of this tier cannot say; `guarded`: the guard was measured too."""
    mined = GENERATED_LIMITS if tier == "generated" else ()
    return [*LIMITS, *mined, *(GUARD_LIMITS if guarded else ())]


def criteria_hash(criteria: Criteria) -> str:
    """SHA-256 of the canonical criteria."""
    return sha256(canonical(criteria.model_dump(mode="json")))


def to_bytes(evidence: Evidence) -> bytes:
    """The canonical bytes that are hashed, attached and signed."""
    return canonical(evidence.model_dump(mode="json"))


def predicate(evidence: Evidence) -> dict[str, Any]:
    """What the DSSE sidecar says about the record, in the words of in-toto's test-result predicate."""
    return {
        "result": "PASSED" if evidence.released else "FAILED",
        "configuration": [{"name": "criteria", "digest": {"sha256": evidence.criteria_sha256}}],
    }


def from_bytes(data: bytes, name: str = FILE_NAME) -> Evidence:
    """Read a record.

    Raises:
        ReportError: not JSON, another schema version, or a field that does not fit (named).
    """
    try:
        plain = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ReportError(f"{name} is not JSON: {error}") from error
    try:
        canonical(plain)
    except ValueError as error:  # NaN, integers beyond 2**53, lone surrogates: two readers would differ
        raise ReportError(f"{name} holds a value that canonical JSON cannot: {str(error)[:80]}") from error
    if isinstance(plain, dict) and plain.get("record") == "clinsafe rag evaluation":
        raise ReportError(f"{name} is the record of a RAG evaluation, not of an audit")
    if isinstance(plain, dict) and plain.get("record") == "clinsafe qualification":
        raise ReportError(f"{name} is a qualification record: check it with `clinsafe qualify --check FILE`")
    version = plain.get("schema_version") if isinstance(plain, dict) else None
    if version != SCHEMA_VERSION:
        raise ReportError(
            f"{name} has schema_version {version!r}; this version of clinsafe reads {SCHEMA_VERSION}"
        )
    try:
        evidence = Evidence.model_validate(plain)
        to_bytes(evidence)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{step}." for step in first["loc"]).rstrip(".")
        message = str(first["msg"]).removeprefix("Value error, ")
        raise ReportError(f"{name}: {f'{where}: ' if where else ''}{message}") from error
    except (ValueError, RecursionError) as error:  # nested deeper than a record ever is
        raise ReportError(f"{name} cannot be written again: {str(error)[:80]}") from error
    return evidence


def load(path: Path) -> Evidence:
    """The evidence of a run folder, an ``evidence.json`` or a ``report.pdf``; no signature is checked here."""
    from clinsafe.reports.pdfcheck import attachment

    if path.is_dir():
        path = path / FILE_NAME
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ReportError(f"{path}: cannot be read: {error.strerror or error}") from error
    return from_bytes(attachment(data) if data.startswith(b"%PDF") else data, path.name)

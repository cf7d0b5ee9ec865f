"""The evidence of an evaluation of RAG traces: per question what was measured, and every figure that follows from it.

Canonical JSON (RFC 8785) with a SHA-256, like the evidence of an audit. No text of a question, a passage or an answer
is in it (decision D11). The figures are derived from the questions' values by `clinsafe.rag.figures` alone; who checks
the record derives them again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, ValidationError, model_validator

from clinsafe.content import Record
from clinsafe.errors import ReportError
from clinsafe.rag.auditing.record import JudgeAudit
from clinsafe.rag.settings import Settings
from clinsafe.rag.values import ItemRecord
from clinsafe.reports.evidence import SystemIdentity, canonical, sha256

KIND: Literal["clinsafe rag evaluation"] = "clinsafe rag evaluation"
SCHEMA_VERSION = 1
JSON_NAME, PDF_NAME, SIDECAR = "rag.json", "rag.pdf", "rag.dsse.json"


class BadRow(Record):
    """A line of the traces that could not be used; `why` never quotes it."""

    line: NonNegativeInt
    field: str = ""
    why: str


class SourceRecord(Record):
    """Where the questions came from.

    Attributes:
        file: its name without the folder.
        sha256: of the file.
        format: clinsafe, ragvue, ragas, ragchecker or openinference.
        bad: lines left out, the first hundred.
        bad_lines: how many there were.
    """

    file: str
    sha256: str
    format: str
    bad: list[BadRow] = Field(default_factory=list)
    bad_lines: NonNegativeInt = 0


class RagSystem(Record):
    """One file of traces, one system.

    Attributes:
        label: tells the systems of a record apart.
        setting: ``rag``, ``direct`` or ``long-context``; "" where the traces do not say.
        versions: what the traces say of embedding, index, reranker, model and prompt; several where they differ.
        fake: a fake model answered or retrieved; nothing of it may be published.
        items: one a question, in the order of the file.
        figures: metric key -> figure (`clinsafe.stats.figure_to_json`).
    """

    label: str
    setting: str = ""
    source: SourceRecord
    versions: dict[str, list[str]] = Field(default_factory=dict)
    fake: bool = False
    items: list[ItemRecord]
    figures: dict[str, dict[str, Any]]


class JudgeRecord(Record):
    """Who judged, and what that word is worth.

    Attributes:
        identity: model, rubrics and settings.
        audit: its audit (`clinsafe rag audit-judge`); None: not audited.
        declared: grades by human readers that came with the traces: who they are, in the user's words.
        outcomes: per metric, how many tasks were scored, unscored, refused, in error.
        reasons: why tasks were not scored -> how many.
        usage: calls, cached answers, prompt and completion tokens.
    """

    identity: SystemIdentity
    audit: JudgeAudit | None = None
    declared: str = ""
    outcomes: dict[str, dict[str, int]] = Field(default_factory=dict)
    reasons: dict[str, int] = Field(default_factory=dict)
    usage: dict[str, int] = Field(default_factory=dict)


class RagEvidence(Record):
    """The whole record.

    Attributes:
        record: tells this file from other records.
        settings: thresholds and steps; `settings_sha256` was fixed before the run.
        normalisation: step -> how many texts it changed.
        encoder: what made the vectors of level 3 of R and of semantic similarity; None: none.
        filters: hash of what the conflict filters knew; "" where none looked.
        judge: None: nobody judged.
        content: every content file that was read -> SHA-256.
        environment: versions of what shapes figures and pages.
        limits: what the figures do not say.
        systems: what was measured.
    """

    record: Literal["clinsafe rag evaluation"] = KIND
    schema_version: Literal[1] = 1
    tool: dict[str, str]
    created: str
    operator: str = "not stated"
    settings: Settings
    settings_sha256: str
    normalisation: dict[str, int] = Field(default_factory=dict)
    encoder: SystemIdentity | None = None
    filters: str = ""
    judge: JudgeRecord | None = None
    content: dict[str, str]
    environment: dict[str, str]
    limits: list[str] = Field(default_factory=list)
    questions: PositiveInt
    systems: list[RagSystem] = Field(min_length=1)

    @model_validator(mode="after")
    def _sound(self) -> RagEvidence:
        if datetime.fromisoformat(self.created).tzinfo is None:
            raise ValueError("created must be an ISO 8601 time with its zone")
        labels = [system.label for system in self.systems]
        if len(set(labels)) != len(labels):
            raise ValueError("two systems have one label")
        for system in self.systems:
            ids = [item.id for item in system.items]
            if len(set(ids)) != len(ids):
                raise ValueError(f"system {system.label}: two questions have one id")
        return self

    @property
    def fake(self) -> bool:
        """Whether any fake took part: watermarked, never released (decision D12)."""
        return (
            any(system.fake for system in self.systems)
            or bool(self.encoder and self.encoder.fake)
            or bool(self.judge and self.judge.identity.fake)
        )


def settings_hash(settings: Settings) -> str:
    """SHA-256 of the settings in canonical form."""
    return sha256(canonical(settings.model_dump(mode="json")))


def to_bytes(record: RagEvidence) -> bytes:
    """The canonical bytes that are hashed, attached and signed."""
    return canonical(record.model_dump(mode="json"))


def is_rag(data: Mapping[str, Any]) -> bool:
    """Whether a decoded record is one of these."""
    return data.get("record") == KIND


def from_bytes(data: bytes, name: str = JSON_NAME) -> RagEvidence:
    """Read a record.

    Raises:
        ReportError: not one of these, of another schema, or a field that does not fit; one line.
    """
    try:
        plain = json.loads(data)
        canonical(plain)
    except (ValueError, RecursionError) as error:
        raise ReportError(f"{name} is not canonical JSON: {str(error)[:80]}") from error
    if not isinstance(plain, dict) or not is_rag(plain):
        raise ReportError(f"{name} is not the record of a RAG evaluation (`clinsafe rag evaluate`)")
    if plain.get("schema_version") != SCHEMA_VERSION:
        raise ReportError(
            f"{name} has schema_version {plain.get('schema_version')!r}; this version of clinsafe reads "
            f"{SCHEMA_VERSION}"
        )
    try:
        return RagEvidence.model_validate(plain)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        message = str(first["msg"]).removeprefix("Value error, ")
        raise ReportError(f"{name}: {f'{where}: ' if where else ''}{message}") from error

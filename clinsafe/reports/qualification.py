"""The qualification record: what was asked of the installed tool, what was seen, and the verdict that follows.

Canonical JSON (RFC 8785) with a SHA-256, like the evidence of an audit. The verdict and the deviations are computed
from the checks by `verdict_of` and `deviations_of`; a file that says otherwise is found by
`clinsafe.reports.qualification_check`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

from pydantic import Field, ValidationError, model_validator

from clinsafe.checklist.qualification import CheckSpec, Question
from clinsafe.content import Content, Record
from clinsafe.errors import ReportError
from clinsafe.reports.evidence import PREDICATE, canonical, sha256
from clinsafe.reports.render import TEMPLATES

__all__ = [
    "JSON_NAME", "PDF_NAME", "PREDICATE", "SIDECAR", "CheckRecord", "Qualification", "deviations_of", "from_bytes",
    "html", "predicate", "to_bytes", "verdict_of",
]  # fmt: skip

SCHEMA_VERSION = 1
JSON_NAME, PDF_NAME, SIDECAR = "qualification.json", "qualification.pdf", "qualification.dsse.json"
TEMPLATE = "reports/templates/qualification.html.j2"
STYLE = TEMPLATES[-1]

Outcome: TypeAlias = Literal["pass", "fail", "not run"]
Verdict: TypeAlias = Literal["QUALIFIED", "NOT QUALIFIED"]
Installation: TypeAlias = Literal["package", "editable", "source tree"]


class CheckRecord(CheckSpec):
    """One check as it was made. `reason` is empty only where it passed."""

    observed: str
    outcome: Outcome
    reason: str = ""

    @model_validator(mode="after")
    def _says_why(self) -> CheckRecord:
        if self.outcome != "pass" and not self.reason:
            raise ValueError(f"{self.id} is {self.outcome!r} and must say why")
        return self

    @property
    def blocks(self) -> bool:
        """Whether it alone forbids the verdict QUALIFIED. A check that was not run is never a pass."""
        if self.level == "reported":
            return False
        return self.outcome == "fail" or (self.level == "always" and self.outcome != "pass")

    @property
    def spec(self) -> CheckSpec:
        """What was asked, without what was seen."""
        return CheckSpec(**self.model_dump(include=set(CheckSpec.model_fields)))


class Qualification(Record):
    """The whole record.

    Attributes:
        record: tells this file from the evidence of an audit.
        installation: how the code that ran is installed; only a ``package`` can be proved unmodified.
        environment: versions of what shapes figures and pages.
        distributions: name -> version of everything installed beside the tool.
        content: every controlled content file -> SHA-256.
        package_sha256: over names and hashes of the tool's Python files; equal for equal code, however installed.
        requirements_sha256: of the file that holds the checks and the known answers.
        yours: what only the user can answer.
    """

    record: Literal["clinsafe qualification"] = "clinsafe qualification"
    schema_version: Literal[1] = 1
    tool: dict[str, str]
    created: str
    operator: str = "not stated"
    installation: Installation
    environment: dict[str, str]
    distributions: dict[str, str]
    content: dict[str, str]
    package_sha256: str
    requirements_sha256: str
    checks: list[CheckRecord] = Field(min_length=1)
    verdict: Verdict
    deviations: list[str]
    yours: list[Question]

    @model_validator(mode="after")
    def _dated(self) -> Qualification:
        if datetime.fromisoformat(self.created).tzinfo is None:
            raise ValueError("created must be an ISO 8601 time with its zone")
        return self

    @property
    def qualified(self) -> bool:
        """What the record says."""
        return self.verdict == "QUALIFIED"


def verdict_of(checks: Sequence[CheckRecord]) -> Verdict:
    """QUALIFIED only where there are checks and none of them blocks."""
    return "QUALIFIED" if checks and not any(check.blocks for check in checks) else "NOT QUALIFIED"


def deviations_of(checks: Sequence[CheckRecord]) -> list[str]:
    """Every check that did not pass, blocking or not, one line each."""
    return [
        f"{check.id} {check.title}: {check.outcome}; {check.reason}"
        for check in checks
        if check.outcome != "pass"
    ]


def to_bytes(record: Qualification) -> bytes:
    """The canonical bytes that are hashed, attached and signed."""
    return canonical(record.model_dump(mode="json"))


def from_bytes(data: bytes, name: str = JSON_NAME) -> Qualification:
    """Read a record; raises ReportError naming what does not fit."""
    try:
        plain = json.loads(data)
        canonical(plain)
    except (ValueError, RecursionError) as error:
        raise ReportError(f"{name} is not canonical JSON: {str(error)[:80]}") from error
    if not isinstance(plain, dict) or plain.get("record") != "clinsafe qualification":
        raise ReportError(
            f"{name} is not a qualification record; a report is checked with `clinsafe report verify`"
        )
    if plain.get("schema_version") != SCHEMA_VERSION:
        raise ReportError(
            f"{name} has schema_version {plain.get('schema_version')!r}; this version of clinsafe reads "
            f"{SCHEMA_VERSION}"
        )
    try:
        return Qualification.model_validate(plain)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        message = str(first["msg"]).removeprefix("Value error, ")
        raise ReportError(f"{name}: {f'{where}: ' if where else ''}{message}") from error


def predicate(record: Qualification) -> dict[str, Any]:
    """What the DSSE sidecar says about the record, in the words of in-toto's test-result predicate."""
    by = {
        outcome: [c.id for c in record.checks if c.outcome == outcome]
        for outcome in ("pass", "fail", "not run")
    }
    return {
        "result": "PASSED" if record.qualified else "FAILED",
        "configuration": [{"name": "requirements", "digest": {"sha256": record.requirements_sha256}}],
        "passedTests": by["pass"],
        "warnedTests": by["not run"],
        "failedTests": by["fail"],
    }


def html(record: Qualification, content: Content) -> str:
    """The record as one self-contained HTML document, with the style sheet of the reports."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(content.path(TEMPLATE).read_text(encoding="utf-8"))
    css = content.path(STYLE).read_text(encoding="utf-8")
    return str(template.render(q=record, css=css, record_sha256=sha256(to_bytes(record))))

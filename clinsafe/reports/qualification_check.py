"""``clinsafe qualify --check``: is this the record that was signed, and does its verdict follow from its checks?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clinsafe.checklist.qualification import FILE, load_qualification
from clinsafe.content import Content, sha256_file
from clinsafe.reports import qualification as records
from clinsafe.reports.evidence import sha256
from clinsafe.reports.pages import Pages
from clinsafe.reports.pdfcheck import attachment
from clinsafe.reports.qualification import STYLE, TEMPLATE, Qualification
from clinsafe.reports.record_check import Form, Opened, RecordCheck, compare_pages, open_record
from clinsafe.reports.render import FONTS
from clinsafe.version import VERSION

FORM = Form(
    name="qualification record",
    files=f"{records.PDF_NAME} or {records.JSON_NAME}",
    sidecar=records.SIDECAR,
    parse=records.from_bytes,
    predicate_type=records.PREDICATE,
    predicate=records.predicate,
)


@dataclass(frozen=True)
class QualificationCheck(RecordCheck[Qualification]):
    """Facts about one file; `valid` follows from them. What the record's own verdict is, is another matter.

    `requirements_compared`: the requirements that the record names are the ones installed here.
    """

    requirements_compared: bool

    @property
    def remarks(self) -> tuple[str, ...]:
        """What could not be compared."""
        return () if self.requirements_compared else ("requirements not compared (another version's)",)

    def to_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return super().to_json() | {
            "recorded_verdict": self.record.verdict,
            "requirements_compared": self.requirements_compared,
        }


def check_qualification(path: Path, trust: Sequence[Path] = ()) -> QualificationCheck:
    """Check a signed ``qualification.pdf``, or a ``qualification.json`` with its DSSE sidecar.

    Args:
        path: the file.
        trust: certificates (PEM or DER) that are trusted; none means this user's development certificate.

    Raises:
        ReportError: not a qualification record, or nothing in it can be read.
    """
    content = Content()
    opened = open_record(path, trust, FORM, attached=attachment)
    record = opened.record
    compared = record.requirements_sha256 == sha256_file(content.path(FILE))
    return QualificationCheck(
        file=path,
        signature=opened.signature,
        record=record,
        record_sha256=sha256(opened.data),
        faults=(*_faults(record, opened.data, content if compared else None), *opened.said),
        pages=None if opened.first_revision is None else _pages(opened, content),
        requirements_compared=compared,
    )


def _faults(record: Qualification, record_bytes: bytes, content: Content | None) -> list[str]:
    """What the record says and does not follow from it; `content` where the same requirements are installed."""
    faults = []
    if records.to_bytes(record) != record_bytes:
        faults.append("the record is not in canonical form: it was edited, or written by another program")
    if record.verdict != records.verdict_of(record.checks):
        faults.append(f"the verdict {record.verdict} does not follow from the checks")
    if record.deviations != records.deviations_of(record.checks):
        faults.append("the deviations are not those of the checks")
    if content is not None:
        asked = load_qualification(content)
        if [check.spec for check in record.checks] != asked.checks:
            faults.append("the checks are not the ones that the named requirements ask for")
        if record.yours != asked.yours:
            faults.append("the questions to the user are not those of the named requirements")
    elif record.tool.get("version") == VERSION:
        faults.append("the record names this version of clinsafe and other requirements than this version's")
    return faults


def _pages(opened: Opened[Qualification], content: Content) -> Pages:
    record = opened.record
    drawn_with = (TEMPLATE, STYLE, *FONTS)
    return compare_pages(
        lambda _charts: records.html(record, content),
        opened,
        content,
        other=[n for n in drawn_with if record.content.get(n) != sha256_file(content.path(n))],
        created=record.created,
        environment=record.environment,
    )

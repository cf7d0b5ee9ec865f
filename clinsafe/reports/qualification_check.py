"""``clinsafe qualify --check``: is this the record that was signed, and does its verdict follow from its checks?"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clinsafe.checklist.qualification import FILE, load_qualification
from clinsafe.content import Content, sha256_file
from clinsafe.errors import ClinsafeError, ReportError
from clinsafe.reports import pdf
from clinsafe.reports import qualification as records
from clinsafe.reports.dsse import DsseCheck, check
from clinsafe.reports.evidence import sha256
from clinsafe.reports.pages import Pages, Rerender
from clinsafe.reports.pdfcheck import PdfCheck, attachment, check_pdf
from clinsafe.reports.qualification import STYLE, TEMPLATE, Qualification
from clinsafe.reports.render import FONTS
from clinsafe.reports.verify import trusted_certificates
from clinsafe.reports.words import missing_words
from clinsafe.version import VERSION

LARGEST_FILE = 50_000_000  # bytes


@dataclass(frozen=True)
class QualificationCheck:
    """Facts about one file; `valid` follows from them. What the record's own verdict is, is another matter.

    `pages` is None for a JSON file, which has none. `requirements_compared`: the requirements that the record names are
    the ones installed here.
    """

    file: Path
    signature: PdfCheck | DsseCheck
    record: Qualification
    record_sha256: str
    faults: tuple[str, ...]
    pages: Pages | None
    requirements_compared: bool

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that speaks against the file, one line each."""
        differ = self.pages is not None and self.pages.answer == "DIFFERENT"
        pages = ("the pages are not what the record renders to",) if differ else ()
        return (*self.signature.problems, *self.faults, *pages)

    @property
    def valid(self) -> bool:
        """No problem of any kind, and a signature that holds."""
        return self.signature.valid and not self.problems

    @property
    def accepted(self) -> bool:
        """Valid, and what the pages say was looked at: exit code 0."""
        return self.valid and (self.pages is None or self.pages.read)

    @property
    def rerender(self) -> Rerender:
        """IDENTICAL, DIFFERENT or NOT_COMPARABLE."""
        return "NOT_COMPARABLE" if self.pages is None else self.pages.answer

    @property
    def rerender_reason(self) -> str:
        """One line on `rerender`."""
        return "a JSON file has no pages" if self.pages is None else self.pages.reason

    @property
    def verdict(self) -> str:
        """One line."""
        if not self.valid:
            return f"INVALID: {'; '.join(self.problems) or 'the signature does not hold'}"
        key = "; DEVELOPMENT key: proves nothing about who signed" if self.signature.development else ""
        what = "VALID"
        if not self.accepted:
            what = "VALID RECORD, PAGES NOT READ, NOT ACCEPTED"
        elif self.pages is not None and self.pages.answer == "NOT_COMPARABLE":
            what = "VALID RECORD, PAGES NOT COMPARED"
        other = "" if self.requirements_compared else "; requirements not compared (another version's)"
        return f"{what}: signed by {self.signature.signer}{key}{other}"

    def to_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "file": self.file.name,
            "valid": self.valid,
            "accepted": self.accepted,
            "verdict": self.verdict,
            "recorded_verdict": self.record.verdict,
            "signer": self.signature.signer,
            "development_key": self.signature.development,
            "record_sha256": self.record_sha256,
            "requirements_compared": self.requirements_compared,
            "rerender": self.rerender,
            "problems": list(self.problems),
        }


def check_qualification(path: Path, trust: Sequence[Path] = ()) -> QualificationCheck:
    """Check a signed ``qualification.pdf``, or a ``qualification.json`` with its DSSE sidecar.

    Args:
        path: the file.
        trust: certificates (PEM or DER) that are trusted; none means this user's development certificate.

    Raises:
        ReportError: not a qualification record, or nothing in it can be read.
    """
    data, certificates, content = _read(path), trusted_certificates(trust), Content()
    signature: PdfCheck | DsseCheck
    pages: Pages | None
    if data[:1024].lstrip().startswith(b"{"):
        record_bytes = data
        record = records.from_bytes(data, path.name)
        signature, said = _sidecar(path, data, record, certificates)
        pages = None
    else:
        facts = check_pdf(data, certificates)
        record_bytes = attachment(data)
        record, signature, said = records.from_bytes(record_bytes, "the attached record"), facts, []
        pages = _pages(record, record_bytes, facts.first_revision or data, content)
    compared = record.requirements_sha256 == sha256_file(content.path(FILE))
    return QualificationCheck(
        file=path,
        signature=signature,
        record=record,
        record_sha256=sha256(record_bytes),
        faults=(*_faults(record, record_bytes, content if compared else None), *said),
        pages=pages,
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


def _pages(record: Qualification, record_bytes: bytes, first_revision: bytes, content: Content) -> Pages:
    """Are the pages what the record renders to? Byte by byte with the same renderer, by their words without it."""
    drawn_with = (TEMPLATE, STYLE, *FONTS)
    other = [n for n in drawn_with if record.content.get(n) != sha256_file(content.path(n))]
    if other:
        named = ", ".join(name.rpartition("/")[2] for name in other)
        return Pages("NOT_COMPARABLE", f"the record was made with another {named}", read=False)
    page = records.html(record, content)
    changed = [n for n, v in pdf.renderer_versions().items() if record.environment.get(n) != v]
    try:
        if changed:
            return _words(page, first_revision, ", ".join(changed))
        drawn = pdf.render(page, record_bytes, record.created, content)
    except ClinsafeError as error:
        return Pages("NOT_COMPARABLE", str(error), read=False)
    if drawn == first_revision:
        return Pages("IDENTICAL", "the pages are byte for byte what the record renders to", read=True)
    return Pages("DIFFERENT", "the pages differ from what the record renders to", read=False)


def _words(page: str, document: bytes, changed: str) -> Pages:
    missing = missing_words(page, document)
    if missing:
        said = f"the pages do not say what the record says, for example {missing[0][:60]!r}"
        return Pages("DIFFERENT", said, read=False)
    reason = f"another version of {changed} is installed here; every word was found in the pages, in order"
    return Pages("NOT_COMPARABLE", reason, read=True)


def _sidecar(
    path: Path, data: bytes, record: Qualification, certificates: Sequence[bytes]
) -> tuple[DsseCheck, list[str]]:
    from cryptography import x509

    beside = path.with_name(records.SIDECAR)
    if not beside.is_file():
        return DsseCheck(problems=(f"not signed: there is no {records.SIDECAR} beside the record",)), []
    try:
        envelope = json.loads(_read(beside))
    except (ValueError, RecursionError):
        envelope = {}
    trust = [x509.load_der_x509_certificate(c) for c in certificates]
    found = check(envelope, {path.name: data}, trust)
    try:
        payload = json.loads(base64.b64decode(envelope["payload"]))
        said = payload["predicateType"], payload["predicate"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return found, []  # the signature check has said so
    if said != (records.PREDICATE, records.predicate(record)):
        return found, ["the sidecar's statement is not what the record says"]
    return found, []


def _read(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise ReportError(f"{path}: not a file; give qualification.pdf or qualification.json")
        if path.stat().st_size > LARGEST_FILE:
            raise ReportError(
                f"{path}: larger than {LARGEST_FILE // 1_000_000} MB, not a qualification record"
            )
        return path.read_bytes()
    except OSError as error:
        raise ReportError(f"{path}: cannot be read: {error.strerror or error}") from error

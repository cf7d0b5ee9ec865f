"""``clinsafe report verify``: is this the report that was signed, and does it say what was measured?

Five questions, each answered by itself: is the signature good and the file whole; is the record complete; do the
per-case scores yield every stored figure and verdict; does rendering the record again give the very pages that
were signed; has everybody signed who has to. The fourth needs the same renderer; where that is not here, the answer is
NOT_COMPARABLE, never a pass: then the words of the pages are looked for instead, and where even that is impossible the
file is not accepted unless the caller asks for the record alone.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from clinsafe.errors import ReportError
from clinsafe.reports.approvals import CLOCKS, Approvals, check_approvals
from clinsafe.reports.complete import criteria_as_packaged, incomplete, suite_compared
from clinsafe.reports.differences import differences
from clinsafe.reports.dsse import DsseCheck, check
from clinsafe.reports.evidence import (
    PREDICATE,
    Evidence,
    from_bytes,
    predicate,
    sha256,
)
from clinsafe.reports.keys import default_folder
from clinsafe.reports.pages import Pages, Rerender, compare_pages
from clinsafe.reports.pdfcheck import PdfCheck, attachment, check_pdf

LARGEST_FILE = 300_000_000
SIDECAR = "evidence.dsse.json"


@dataclass(frozen=True)
class Verification:
    """Facts about one file; `verdict` and `valid` follow from them.

    `figures` counts the stored figures and verdicts that were derived again; `faults` are those that differ.
    `suite_compared`: the very suite of the record was at hand, so that no case can be missing unseen.
    """

    file: Path
    signature: PdfCheck | DsseCheck
    evidence: Evidence
    evidence_sha256: str
    incomplete: tuple[str, ...]
    figures: int
    faults: tuple[str, ...]
    pages: Pages | None
    approvals: Approvals
    record_only: bool = False
    suite_compared: bool = False

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that speaks against the file, one line each."""
        differ = self.pages is not None and self.pages.answer == "DIFFERENT"
        pages = ("the pages are not what the evidence renders to",) if differ else ()
        return (
            *self.signature.problems,
            *self._backdated,
            *self.incomplete,
            *self.faults,
            *pages,
            *self._approvals,
        )

    @property
    def _backdated(self) -> tuple[str, ...]:
        """A report cannot have been signed before its record was written; two clocks may differ a little."""
        signed = self.signature.signed_at if isinstance(self.signature, PdfCheck) else None
        written = datetime.fromisoformat(self.evidence.created)
        if signed is None or signed >= written - CLOCKS:
            return ()
        return (f"the claimed time of signing, {signed:%Y-%m-%d}, lies before the record was written",)

    @property
    def _approvals(self) -> tuple[str, ...]:
        """A line that is not about this report in its place is a fault; one by a stranger is only not counted."""
        strayed = [e for e in self.approvals.entries if not e.bound]
        said = (f"approval of {e.role} ({e.name}): {'; '.join(e.problems)}" for e in strayed)
        return (*self.approvals.problems, *said)

    @property
    def valid(self) -> bool:
        """No problem of any kind. What could not be compared, and who has not signed yet, is no fault of the file."""
        return not self.problems

    @property
    def missing_roles(self) -> list[str]:
        """Roles that have to sign and that nobody trusted has signed for; approvals are about a report's file."""
        if self.pages is None:
            return []
        return self.approvals.missing(self.evidence.declaration.required_roles)

    @property
    def rerender(self) -> Rerender:
        """IDENTICAL, DIFFERENT or NOT_COMPARABLE."""
        return "NOT_COMPARABLE" if self.pages is None else self.pages.answer

    @property
    def rerender_reason(self) -> str:
        """One line on `rerender`."""
        return "an evidence file has no pages" if self.pages is None else self.pages.reason

    @property
    def time_text(self) -> str:
        """When it was signed, and by whose clock."""
        signature = self.signature
        if isinstance(signature, DsseCheck):
            return "not stated: a sidecar of evidence carries no time"
        if signature.signed_at is None:
            return "not stated"
        claimed = f"{signature.signed_at:%Y-%m-%d %H:%M:%S} UTC by the signer's own clock"
        if signature.timestamp is None:
            return f"{claimed}; no timestamp authority stands behind it"
        trusted = "trusted" if signature.timestamp_trusted else "NOT trusted, no credit given"
        return f"{claimed}; timestamp {signature.timestamp:%Y-%m-%d %H:%M:%S} UTC ({trusted})"

    @property
    def pages_read(self) -> bool:
        """Whether the pages were compared with the record, byte by byte or cell by cell; an evidence file has none."""
        return self.pages is None or self.pages.read

    @property
    def accepted(self) -> bool:
        """Valid, its pages read, and everybody has signed who has to: exit code 0."""
        return self.valid and (self.pages_read or self.record_only) and not self.missing_roles

    @property
    def verdict(self) -> str:
        """One line, with its reasons."""
        if not self.valid:
            more = len(self.problems) - 1
            return f"INVALID: {self.problems[0]}{f' (and {more} more)' if more else ''}"
        notes = [f"signed by {self.signature.signer}"]
        if self.signature.development:
            notes.append("DEVELOPMENT key: proves nothing about who signed")
        if self.missing_roles:
            notes.append(f"not signed yet by: {', '.join(self.missing_roles)}")
        if not criteria_as_packaged(self.evidence):
            notes.append("judged by criteria of its own")
        if not self.suite_compared:
            mined = self.evidence.suite.mined is not None
            notes.append(
                f"completeness not compared ({'the mined suite was not given' if mined else 'another suite'})"
            )
        return f"{self._what}: {'; '.join(notes)}"

    @property
    def _what(self) -> str:
        if not self.pages_read:
            return "VALID RECORD, PAGES NOT READ" + ("" if self.record_only else ", NOT ACCEPTED")
        what = "VALID"
        if self.pages is not None and self.pages.answer == "NOT_COMPARABLE":
            what = "VALID RECORD, PAGES NOT COMPARED"
        return f"{what}, NOT YET APPROVED" if self.missing_roles else what

    def to_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "file": self.file.name,
            "valid": self.valid,
            "verdict": self.verdict,
            "signer": self.signature.signer,
            "development_key": self.signature.development,
            "evidence_sha256": self.evidence_sha256,
            "figures_derived": self.figures,
            "criteria_as_packaged": criteria_as_packaged(self.evidence),
            "suite_tier": self.evidence.suite.tier,
            "suite_compared": self.suite_compared,
            "rerender": self.rerender,
            "rerender_reason": self.rerender_reason,
            "signed": self.time_text,
            "pages_read": self.pages_read,
            "accepted": self.accepted,
            "approvals": [
                {
                    "name": a.name,
                    "role": a.role,
                    "meaning": a.meaning,
                    "time": a.time.isoformat(),
                    "signer": a.signer,
                    "development_key": a.development,
                    "valid": a.valid,
                    "problems": list(a.problems),
                }
                for a in self.approvals.entries
            ],
            "missing_roles": self.missing_roles,
            "problems": list(self.problems),
        }


def verify(
    path: Path,
    trust: Sequence[Path] = (),
    *,
    trust_tsa: Sequence[Path] = (),
    record_only: bool = False,
    suite: Path | None = None,
) -> Verification:
    """Verify a signed ``report.pdf``, or an ``evidence.json`` with its DSSE sidecar.

    Args:
        path: the file.
        trust: certificates (PEM or DER) that are trusted; none means this user's development certificate.
        trust_tsa: certificates of timestamp authorities that are trusted beside them.
        record_only: accept a valid record whose pages could not be read here.
        suite: file of the mined suite that the report was made on; without it, whether all its cases are there is not
            compared. A report of the written suite is held against the installed one.

    Raises:
        ReportError: not a report, or nothing in it can be read.
        UsageError: `suite` is not there, or the report was made on the written one.
        ContentError: `suite` is damaged.
    """
    data = _read(path)
    certificates = trusted_certificates(trust)
    signature: PdfCheck | DsseCheck
    pages: Pages | None
    if data[:1024].lstrip().startswith(b"{"):
        record, signature = data, _check_sidecar(path, data, certificates)
        evidence = from_bytes(record, path.name)
        said = _predicate_faults(path, evidence)
        pages, approvals = None, Approvals((), ())
    else:
        facts = check_pdf(data, certificates, trust_tsa=_certificates(trust_tsa))
        record, signature = attachment(data), facts
        evidence = from_bytes(record)
        said = []
        pages = compare_pages(evidence, record, facts.first_revision or data)
        approvals = check_approvals(path, certificates)
    return Verification(
        file=path,
        signature=signature,
        evidence=evidence,
        evidence_sha256=sha256(record),
        incomplete=(*incomplete(evidence, record, suite), *said),
        figures=sum(len(s.figures) for s in evidence.systems)
        + sum(len(a.get("gates", [])) for a in evidence.assessments),
        faults=tuple(differences(evidence)),
        pages=pages,
        approvals=approvals,
        record_only=record_only,
        suite_compared=suite_compared(evidence, suite),
    )


def trusted_certificates(paths: Sequence[Path]) -> list[bytes]:
    """DER certificates to trust; without any, this user's development certificate."""
    development = default_folder() / "development.pem"
    return _certificates(list(paths) or ([development] if development.is_file() else []))


def _certificates(paths: Sequence[Path]) -> list[bytes]:
    """DER certificates; raises ReportError naming a file that is none."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    found = []
    for path in paths:
        data = _read(path)
        try:
            loader = (
                x509.load_pem_x509_certificate if b"-----BEGIN" in data else x509.load_der_x509_certificate
            )
            found.append(loader(data).public_bytes(Encoding.DER))
        except (ValueError, x509.InvalidVersion) as error:
            raise ReportError(f"{path}: not a certificate in PEM or DER form") from error
    return found


def _check_sidecar(path: Path, record: bytes, certificates: Sequence[bytes]) -> DsseCheck:
    from cryptography import x509

    sidecar = path.with_name(SIDECAR)
    if not sidecar.is_file():
        return DsseCheck(problems=(f"not signed: there is no {SIDECAR} beside the evidence",))
    try:
        envelope = json.loads(_read(sidecar))
    except (ValueError, RecursionError):
        envelope = {}
    trust = [x509.load_der_x509_certificate(c) for c in certificates]
    return check(envelope, {path.name: record}, trust)


def _predicate_faults(path: Path, evidence: Evidence) -> list[str]:
    """The sidecar must say about the record what the record says: other in-toto tools read only the sidecar."""
    try:
        payload = json.loads(base64.b64decode(json.loads(_read(path.with_name(SIDECAR)))["payload"]))
        said = payload["predicateType"], payload["predicate"]
    except (ReportError, ValueError, KeyError, TypeError, RecursionError):
        return []  # the signature check has said so
    if said != (PREDICATE, predicate(evidence)):
        return ["the sidecar's statement is not what the record says (its type, its result or its criteria)"]
    return []


def _read(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise ReportError(f"{path}: not a file")
        if path.stat().st_size > LARGEST_FILE:
            raise ReportError(f"{path}: larger than {LARGEST_FILE // 1_000_000} MB, not a clinsafe report")
        return path.read_bytes()
    except OSError as error:
        raise ReportError(f"{path}: cannot be read: {error.strerror or error}") from error

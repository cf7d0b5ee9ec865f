"""``clinsafe report verify``: is this the report that was signed, and does it say what was measured?

Four questions, each answered by itself: is the signature good and the file whole; is the record complete; do the
per-case scores yield every stored figure and verdict; does rendering the record again give the very pages that
were signed. The last needs the same renderer; where that is not here, the answer is NOT_COMPARABLE, never a pass.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clinsafe.errors import ReportError
from clinsafe.reports.complete import criteria_as_packaged, incomplete, suite_compared
from clinsafe.reports.differences import differences
from clinsafe.reports.dsse import DsseCheck, check
from clinsafe.reports.evidence import (
    PREDICATE,
    Evidence,
    from_bytes,
    predicate,
    sha256,
)  # fmt: skip
from clinsafe.reports.keys import default_folder
from clinsafe.reports.pages import Rerender, compare_pages
from clinsafe.reports.pdfcheck import PdfCheck, attachment, check_pdf

LARGEST_FILE = 300_000_000
SIDECAR = "evidence.dsse.json"


@dataclass(frozen=True)
class Verification:
    """Facts about one file; `verdict` and `valid` follow from them.

    `figures` counts the stored figures and verdicts that were derived again; `faults` are those that differ.
    """

    file: Path
    signature: PdfCheck | DsseCheck
    evidence: Evidence
    evidence_sha256: str
    incomplete: tuple[str, ...]
    figures: int
    faults: tuple[str, ...]
    rerender: Rerender
    rerender_reason: str

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that speaks against the file, one line each."""
        pages = ("the pages are not what the evidence renders to",) if self.rerender == "DIFFERENT" else ()
        return (*self.signature.problems, *self.incomplete, *self.faults, *pages)

    @property
    def valid(self) -> bool:
        """No problem of any kind. A page comparison that could not be made is said, but is not a fault."""
        return not self.problems

    @property
    def verdict(self) -> str:
        """One line."""
        if not self.valid:
            more = len(self.problems) - 1
            return f"INVALID: {self.problems[0]}{f' (and {more} more)' if more else ''}"
        key = "; DEVELOPMENT key: proves nothing about who signed" if self.signature.development else ""
        compared = self.rerender == "IDENTICAL" or isinstance(self.signature, DsseCheck)
        what = "VALID" if compared else "VALID RECORD, PAGES NOT COMPARED"
        own = "" if criteria_as_packaged(self.evidence) else "; judged by criteria of its own"
        suite = "" if suite_compared(self.evidence) else "; completeness not compared (another suite)"
        return f"{what}: signed by {self.signature.signer}{key}{own}{suite}"

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
            "suite_compared": suite_compared(self.evidence),
            "rerender": self.rerender,
            "rerender_reason": self.rerender_reason,
            "problems": list(self.problems),
        }


def verify(path: Path, trust: Sequence[Path] = ()) -> Verification:
    """Verify a signed ``report.pdf``, or an ``evidence.json`` with its DSSE sidecar.

    Args:
        path: the file.
        trust: certificates (PEM or DER) that are trusted; none means this user's development certificate.

    Raises:
        ReportError: not a report, or nothing in it can be read.
    """
    data = _read(path)
    certificates = trusted_certificates(trust)
    signature: PdfCheck | DsseCheck
    if data[:1024].lstrip().startswith(b"{"):
        record, signature = data, _check_sidecar(path, data, certificates)
        evidence = from_bytes(record, path.name)
        said = _predicate_faults(path, evidence)
        pages: tuple[Rerender, str] = ("NOT_COMPARABLE", "an evidence file has no pages")
    else:
        facts = check_pdf(data, certificates)
        record, signature = attachment(data), facts
        evidence = from_bytes(record)
        said = []
        pages = compare_pages(evidence, record, facts.first_revision or data)
    return Verification(
        file=path,
        signature=signature,
        evidence=evidence,
        evidence_sha256=sha256(record),
        incomplete=(*incomplete(evidence, record), *said),
        figures=sum(len(s.figures) for s in evidence.systems)
        + sum(len(a.get("gates", [])) for a in evidence.assessments),
        faults=tuple(differences(evidence)),
        rerender=pages[0],
        rerender_reason=pages[1],
    )


def trusted_certificates(paths: Sequence[Path]) -> list[bytes]:
    """DER certificates to trust; raises ReportError naming a file that is none."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    development = default_folder() / "development.pem"
    chosen = list(paths) or ([development] if development.is_file() else [])
    found = []
    for path in chosen:
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
